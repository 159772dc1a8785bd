"""The scorecard of robustness: agents on traffic that differs from what they were made for, column by column.

Every column is a network's ten demands with one thing changed, each with a seed of its own. All agents meet the same draws, so
that they compare draw by draw; each column names the rule that does best there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple

from model.evaluate import AGENTS, RunSettings, evaluate, make_controller
from model.policy.file import Policy
from model.policy.provenance import file_sha256, tool_version
from model.report.bootstrap import Interval, mean_interval, ratio_interval
from streetflow.control.clearance import require_clearance
from streetflow.control.conditions import FINE, Conditions
from streetflow.control.environment import Environment
from streetflow.control.own_agent import OwnAgent
from streetflow.control.tuned import RULES, SUFFIX, TUNED, rules_for, tuned_parameters
from streetflow.errors import FieldError
from streetflow.files import cannot_write
from streetflow.near import or_else
from streetflow.networks.catalogue import Network, default_seed
from streetflow.networks.variations import UNCHANGED, Variation, Varied
from streetflow.roadnet.flow import Flow


@dataclass(frozen=True)
class Column:
    """One kind of trouble. clearance: of all agents; None for the scorecard's."""

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
    clearance: str
    inputs_sha256: str  # of all that the figures depend on, beside the agent
    agent: str
    arithmetic: str  # "integer" or "float", "" for a rule
    policy_sha256: str | None  # of a tuned rule: of its parameters
    average_travel_time_s: float
    throughput_veh_per_min: float

    @property
    def key(self) -> tuple[Any, ...]:
        return self.network, self.column, self.seed, self.inputs_sha256, self.agent, self.arithmetic, self.policy_sha256


class Contestant(NamedTuple):
    """An agent as it runs; fields as in `StressRun`."""

    name: str
    arithmetic: str
    policy_sha256: str | None
    features: Sequence[str]


@dataclass(frozen=True)
class Score:
    """An agent in one column: its mean travel time, and the excess over the column's best rule, draw by draw."""

    column: str
    agent: str
    travel_time_s: Interval
    best_rule: str
    loss_s: Interval  # this agent's travel time - the best rule's
    loss: Interval  # of the means, as a share of the best rule's


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
        self._line_is_open = False
        if file is not None and file.is_file():
            text = file.read_bytes().decode(errors="replace")
            self._line_is_open = not text.endswith("\n") and bool(text)
            for line in text.splitlines():
                try:
                    run = StressRun(**json.loads(line))
                except (ValueError, TypeError):
                    continue  # the line that a kill left half written, or one of another version
                self._runs[run.key] = run

    def find(self, key: tuple[Any, ...]) -> StressRun | None:
        return self._runs.get(key)

    def keep(self, run: StressRun) -> None:
        """InputError where the file can't be written."""
        self._runs[run.key] = run
        if self._file is None:
            return
        with cannot_write(self._file):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as stream:
                stream.write("\n" * self._line_is_open + json.dumps(asdict(run)) + "\n")
        self._line_is_open = False


def contestants(agents: Iterable[str | Path], network: str = "", *, integer: bool = True) -> list[Contestant]:
    """The agents, then the rules that aren't among them, with those tuned for the network: one of these is the best. InputError
    for an unknown agent."""
    found = []
    for name in dict.fromkeys([*map(str, agents), *rules_for(network)]):
        controller, _, _ = make_controller(name, integer=None)
        policy = getattr(controller, "policy", None)
        arithmetic = "" if policy is None else "integer" if integer and isinstance(policy, Policy) else "float"
        if isinstance(controller, OwnAgent):
            sha256: str | None = controller.sha256
        else:
            sha256 = _parameters_sha256(name, network) if policy is None else policy.sha256
        found.append(Contestant(name, arithmetic, sha256, controller.features))
    return found


def draws_of(network: Network, seeds: int | None) -> int:
    """How many draws each column has. FieldError for more than the network has flows: they would repeat each other."""
    flows = len(network.flow_files)
    if seeds is not None and not 1 <= seeds <= flows:
        raise FieldError("seeds", f"must be from 1 to {flows}, the number of {network.name}'s flows, is {seeds}")
    return min(SEEDS, flows) if seeds is None else seeds


def stress(
    network: Network,
    agents: Sequence[Contestant],
    columns: Iterable[Column] = COLUMNS,
    seeds: int | None = None,
    *,
    clearance: str = "hold",
    kept: Kept | None = None,
    progress: Callable[[StressRun], None] | None = None,
) -> list[StressRun]:
    """Runs all agents in all columns, seed by seed.

    Args:
        network: whose demands the columns change: draw K is made of flow K.
        agents: from `contestants`.
        columns: of the scorecard.
        seeds: draws of each column; None: ten, or as many as there are flows.
        clearance: what all lights show between two phases, in the columns that don't say.
        kept: finished runs, found and added to.
        progress: called after each run.

    Raises:
        InputError: a policy is made for another network, a demand can't be run, or there are fewer flows than draws.
    """
    require_clearance(clearance)
    seeds = draws_of(network, seeds)
    for each in agents:
        if each.policy_sha256 is not None:
            make_controller(each.name, integer=None)[0].reset(Environment(network, features=each.features))
    kept, runs = kept or Kept(None), []
    chosen = [replace(column, clearance=column.clearance or clearance) for column in columns]
    for seed in range(seeds):
        demands = {variation: Varied(seed, variation, seed).of(network) for variation in {each.variation for each in chosen}}
        for column in chosen:
            demand = demands[column.variation]
            inputs_sha256 = _inputs_sha256(network, demand, column, seed)
            for agent in agents:
                runs.append(_run(network, demand, inputs_sha256, column, seed, agent, kept))
                if progress is not None:
                    progress(runs[-1])
    return runs


def scores(runs: Sequence[StressRun]) -> list[Score]:
    """Every agent in every column, in the order of first appearance, on the draws that all agents there have. The best rule is
    the one of least mean in the column."""
    times: dict[str, dict[str, dict[int, float]]] = {}
    for run in runs:
        times.setdefault(run.column, {}).setdefault(run.agent, {})[run.seed] = run.average_travel_time_s
    result = []
    for column, by_agent in times.items():
        shared = sorted(set.intersection(*(set(own) for own in by_agent.values())))
        own_s = {agent: [own[seed] for seed in shared] for agent, own in by_agent.items()}
        rules = [agent for agent in own_s if agent in RULES]
        best = min(rules or own_s, key=lambda agent: fsum(own_s[agent]))
        for agent, values_s in own_s.items():
            more_s = [own - rule for own, rule in zip(values_s, own_s[best], strict=True)]
            loss = ratio_interval(more_s, own_s[best])
            result.append(Score(column, agent, mean_interval(values_s), best, mean_interval(more_s), loss))
    return result


def labels(agents: Iterable[str]) -> dict[str, str]:
    """What to call each agent: rules by their name, files by theirs, or with their folder where two have the same."""
    names = {agent: agent if agent in AGENTS else Path(agent).name for agent in agents}
    shared = [name for name in names.values() if list(names.values()).count(name) > 1]
    return {agent: agent if name in shared else name for agent, name in names.items()}


def _parameters_sha256(name: str, network: str) -> str | None:
    """None for a rule that isn't tuned."""
    own = tuned_parameters().get(network, {}).get(name.removesuffix(SUFFIX)) if name in TUNED else None
    return None if own is None else hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


def _inputs_sha256(network: Network, demand: Sequence[Flow], column: Column, seed: int) -> str:
    roads = file_sha256(network.roadnet_file)
    content = [roads, repr(demand), repr(column), network.horizon_s, default_seed(seed), tool_version()]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _run(
    network: Network, demand: Sequence[Flow], inputs_sha256: str, column: Column, seed: int, agent: Contestant, kept: Kept
) -> StressRun:
    clearance = column.clearance or ""
    run = StressRun(network.name, column.name, seed, clearance, inputs_sha256, *agent[:3], 0.0, 0.0)
    found = kept.find(run.key)
    if found is not None:
        return found
    conditions = replace(column.conditions, seed=seed)
    settings = RunSettings(seed=default_seed(seed), clearance=clearance, conditions=conditions, demand=demand)
    (row,) = evaluate(network, agent.name, [seed], integer=agent.arithmetic == "integer", settings=settings)
    times = {name: getattr(row, name) for name in ("average_travel_time_s", "throughput_veh_per_min")}
    run = replace(run, **times)
    kept.keep(run)
    return run
