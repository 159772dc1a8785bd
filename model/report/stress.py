"""The scorecard of robustness: agents on traffic that differs from what they were made for, column by column.

Every column is a network's ten demands with one thing changed, each with a seed of its own. All agents meet the same draws, so
that they compare draw by draw; each column names the rule that does best there.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from model.evaluate import AGENTS, RunSettings, evaluate
from model.policy.file import Policy, load_policy
from model.report.bootstrap import Interval, mean_interval
from streetflow.control.conditions import FINE, Conditions
from streetflow.control.controllers import CONTROLLERS
from streetflow.errors import FieldError
from streetflow.near import or_else
from streetflow.networks.catalogue import Network, default_seed
from streetflow.networks.variations import UNCHANGED, Variation, Varied, varied_network


@dataclass(frozen=True)
class Column:
    """One kind of trouble. clearance: None for the agent's own."""

    name: str
    variation: Variation = UNCHANGED
    conditions: Conditions = FINE
    clearance: str | None = None


COLUMNS = (
    Column("as is"),
    *(Column(f"volume {volume:g}", Variation(volume=volume)) for volume in (0.5, 0.7, 0.85, 1.15, 1.3, 1.5)),
    Column("turns", Variation(turns=0.5)),
    Column("starts", Variation(shift_s=60)),
    Column("shut lane", conditions=Conditions(shut_s=600)),
    Column("miscounts", conditions=Conditions(miscount=0.5)),
    Column("dead lane", conditions=Conditions(dead_lanes=1)),
    Column("stuck lane", conditions=Conditions(stuck_lanes=1)),
    Column("yellow", clearance="yellow"),
    Column("all red", clearance="all_red"),
)
SEEDS = 10


@dataclass(frozen=True)
class StressRun:
    """One agent in one draw of one column."""

    network: str
    column: str
    seed: int  # of the draw, and number of the flow that it changes
    agent: str
    arithmetic: str  # "integer" or "float", "" for a rule
    policy_sha256: str | None
    average_travel_time_s: float
    throughput_veh_per_min: float


@dataclass(frozen=True)
class Score:
    """An agent in one column: its mean travel time, and the excess over the column's best rule, draw by draw."""

    column: str
    agent: str
    travel_time_s: Interval
    best_rule: str
    loss_s: Interval  # this agent's travel time - the best rule's
    loss: float  # of the means, as a share of the best rule's


def find_columns(text: str) -> list[Column]:
    """The columns of a list such as `as is,volume 1.3`, or all; FieldError for an unknown one."""
    known = {column.name: column for column in COLUMNS}
    if text == "all":
        return list(COLUMNS)
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise FieldError("columns", f"unknown column {name!r}{or_else(name, known)}")
    return [known[name] for name in dict.fromkeys(names)]


class Kept:
    """Finished runs in a file of JSON lines, so that a stopped scorecard goes on where it was. None: kept nowhere."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._runs: dict[tuple[Any, ...], StressRun] = {}
        if file is not None and file.is_file():
            for line in file.read_text(encoding="utf-8").splitlines():
                try:
                    run = StressRun(**json.loads(line))
                except (ValueError, TypeError):
                    continue  # the line that a kill left half written
                self._runs[_key(run)] = run

    def find(self, key: tuple[Any, ...]) -> StressRun | None:
        return self._runs.get(key)

    def keep(self, run: StressRun) -> None:
        self._runs[_key(run)] = run
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(asdict(run)) + "\n")


def stress(
    network: Network,
    agents: Sequence[str | Path],
    columns: Iterable[Column] = COLUMNS,
    seeds: int = SEEDS,
    *,
    integer: bool = True,
    kept: Kept | None = None,
    progress: Callable[[StressRun], None] | None = None,
) -> list[StressRun]:
    """Runs all agents in all columns.

    Args:
        network: whose demands the columns change: draw K is made of flow K.
        agents: rules by name, or policy files.
        columns: of the scorecard.
        seeds: draws of each column.
        integer: policies decide as the chip does, else in float.
        kept: finished runs, found and added to.
        progress: called after each run.

    Raises:
        InputError: an unknown agent, or a policy that is made for another network.
    """
    kept = kept or Kept(None)
    ready = [(str(agent), agent if str(agent) in AGENTS else load_policy(agent)) for agent in agents]
    runs = []
    for column in columns:
        with tempfile.TemporaryDirectory(prefix="tinylight-") as folder:
            flows = len(network.flow_files)
            demands = [Varied(seed % flows, column.variation, seed) for seed in range(seeds)]
            draws = varied_network(network, demands, Path(folder))
            for seed in range(seeds):
                for name, agent in ready:
                    runs.append(_run(draws, network, column, seed, name, agent, integer, kept))
                    if progress is not None:
                        progress(runs[-1])
    return runs


def scores(runs: Sequence[StressRun]) -> list[Score]:
    """Every agent in every column, in the order of first appearance. The best rule is the one of least mean in the column."""
    times: dict[str, dict[str, dict[int, float]]] = {}
    for run in runs:
        times.setdefault(run.column, {}).setdefault(run.agent, {})[run.seed] = run.average_travel_time_s
    result = []
    for column, by_agent in times.items():
        rules = [agent for agent in by_agent if agent in CONTROLLERS]
        best = min(rules or by_agent, key=lambda agent: _mean(by_agent[agent].values()))
        for agent, own in by_agent.items():
            both = sorted(own.keys() & by_agent[best].keys())
            loss_s = mean_interval([own[seed] - by_agent[best][seed] for seed in both])
            loss = loss_s.mean / _mean(by_agent[best][seed] for seed in both)
            result.append(Score(column, agent, mean_interval(list(own.values())), best, loss_s, loss))
    return result


def _run(
    draws: Network, network: Network, column: Column, seed: int, name: str, agent: str | Path | Policy,
    integer: bool, kept: Kept,
) -> StressRun:  # fmt: skip
    policy = agent if isinstance(agent, Policy) else None
    arithmetic = "" if policy is None else "integer" if integer else "float"
    sha256 = None if policy is None else policy.sha256
    found = kept.find((network.name, column.name, seed, name, arithmetic, sha256))
    if found is not None:
        return found
    settings = RunSettings(
        seed=default_seed(seed), clearance=column.clearance, conditions=replace(column.conditions, seed=seed)
    )
    (row,) = evaluate(draws, agent, [seed], integer=policy is not None and integer, settings=settings)
    run = StressRun(
        network.name, column.name, seed, name, arithmetic, sha256, row.average_travel_time_s, row.throughput_veh_per_min
    )
    kept.keep(run)
    return run


def _key(run: StressRun) -> tuple[Any, ...]:
    return run.network, run.column, run.seed, run.agent, run.arithmetic, run.policy_sha256


def _mean(values: Iterable[float]) -> float:
    held = list(values)
    return sum(held) / len(held)
