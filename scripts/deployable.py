"""Policies for a chip that is the light against rules under the same computed clearances, on all flows of their networks.

python scripts/deployable.py [NETWORK ...]   # writes docs/results/deployable.json and .md; stopped, the same command goes on
python scripts/deployable.py --show          # .md alone, from .json

Rules run with their defaults, and with the parameters of a grid that are best on the network's flow 0. What depends on a file
or a parameter that has changed runs again.
"""

import itertools
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from model import pretrained_policies, pretrained_policy
from model.evaluate import RunSettings, evaluate
from model.policy.file import load_policy
from model.policy.provenance import file_sha256
from model.report.bootstrap import mean_interval
from model.report.paper_table import PAPER_NETWORKS
from streetflow.control.controllers import CONTROLLERS, SECOND_BY_SECOND, Controller, interval_of, run
from streetflow.control.environment import Environment
from streetflow.files import write_whole
from streetflow.networks.catalogue import Network, find_network

NETWORKS = ("crossing", "arterial", *PAPER_NETWORKS)
CLEARANCE, OWN_FLOW = "computed", 0
GRIDS: dict[str, dict[str, tuple[int, ...]]] = {
    "MaxPressure": {"min_elapsed_s": (0, 20, 40, 60, 80)},
    "MaxQueue": {"min_green_s": (0, 20, 40, 60), "lead": (0, 2, 4, 8)},
    "VehicleActuated": {"passage_s": (3, 4), "max_green_s": (30, 45, 60, 90, 120)},
    "WebsterSeconds": {"max_cycle_s": (80, 100, 120, 180, 240)},
}
POLICY = "policy"
RULES: Mapping[str, Callable[..., Controller]] = CONTROLLERS | SECOND_BY_SECOND
DOCS = Path(__file__).resolve().parent.parent / "docs"
FILE = DOCS / "results" / "deployable.json"
Parameters = dict[str, int]


class Task(NamedTuple):
    """One run; agent: a rule, or POLICY with its arithmetic."""

    network: str
    agent: str
    parameters: Parameters
    flow: int

    def identity(self, network: Network) -> dict[str, Any]:
        """What the run depends on."""
        known = {"roadnet_sha256": file_sha256(network.roadnet_file), "flow_sha256": file_sha256(network.flow_file(self.flow))}
        if self.agent.startswith(POLICY):
            known["policy_sha256"] = load_policy(pretrained_policy(self.network, "alone")).sha256
        return self._asdict() | known


class Runs:
    """The runs there are, kept in FILE."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = json.loads(FILE.read_text())["rows"] if FILE.is_file() else []

    def time_s(self, network: Network, agent: str, parameters: Parameters, flow: int) -> float:
        """The average travel time of one run, from FILE or by running it."""
        identity = Task(network.name, agent, parameters, flow).identity(network)
        for row in self.rows:
            if all(row.get(key) == value for key, value in identity.items()):
                return float(row["average_travel_time_s"])
        figures = _policy(network, agent, flow) if agent.startswith(POLICY) else _rule(network, agent, parameters, flow)
        print(f"{network.name} {agent} {parameters or ''} flow {flow}: {figures['average_travel_time_s']:.2f} s", flush=True)
        told = {key: identity[key] for key in Task._fields}
        self.rows = [row for row in self.rows if {key: row[key] for key in told} != told] + [identity | figures]
        self.save()
        return float(figures["average_travel_time_s"])

    def save(self) -> None:
        made = {"command": "python scripts/deployable.py", "clearance": CLEARANCE, "tuned_on_flow": OWN_FLOW, "grids": GRIDS}
        lines = ",\n  ".join(json.dumps(row) for row in self.rows)
        write_whole(FILE, f'{{\n "made": {json.dumps(made)},\n "rows": [\n  {lines}\n ]\n}}\n')


def _rule(network: Network, agent: str, parameters: Parameters, flow: int) -> dict[str, Any]:
    rule = RULES[agent](**parameters)
    environment = Environment(network, flow, features=rule.features, clearance=CLEARANCE, decision_interval_s=interval_of(rule))
    run(environment, rule)
    figures = {"average_travel_time_s": environment.average_travel_time_s()}
    return figures | {"throughput_veh_per_min": environment.throughput_veh_per_min()}


def _policy(network: Network, agent: str, flow: int) -> dict[str, Any]:
    file, settings = pretrained_policy(network.name, "alone"), RunSettings(clearance=CLEARANCE)
    (row,) = evaluate(network, file, [flow], integer=agent.endswith("integer"), settings=settings)
    figures = {"average_travel_time_s": row.average_travel_time_s, "throughput_veh_per_min": row.throughput_veh_per_min}
    counts = {"decisions_beyond_range": row.decisions_beyond_range, "decisions": row.decisions}
    return figures | (counts if row.decisions is not None else {})


def tuned(runs: Runs, network: Network, agent: str) -> Parameters:
    """The grid's best on flow 0; the defaults, where nothing is better."""
    grid = GRIDS[agent]
    every: list[Parameters] = [{}, *(dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values()))]
    return min(every, key=lambda parameters: runs.time_s(network, agent, parameters, OWN_FLOW))


def measure(runs: Runs, names: list[str]) -> None:
    for name in names:
        network = find_network(name)
        flows = range(len(network.flow_files))
        for agent in (f"{POLICY}, integer", f"{POLICY}, float"):
            for flow in flows:
                runs.time_s(network, agent, {}, flow)
        for agent in GRIDS:
            best = tuned(runs, network, agent)
            for parameters, flow in itertools.product(([{}, best] if best else [{}]), flows):
                runs.time_s(network, agent, parameters, flow)
        write_page(runs)


def times_of(runs: Runs, network: str, agent: str, parameters: Parameters) -> np.ndarray:
    """float64[flows], those that there are, by flow."""
    own = [row for row in runs.rows if (row["network"], row["agent"], row["parameters"]) == (network, agent, parameters)]
    return np.array([row["average_travel_time_s"] for row in sorted(own, key=lambda row: row["flow"])])


def by_agent(runs: Runs, network: str) -> dict[str, np.ndarray]:
    """Travel times by flow of every agent that ran on all flows."""
    agents = dict.fromkeys((row["agent"], tuple(row["parameters"].items())) for row in runs.rows if row["network"] == network)
    found = {}
    for agent, parameters in agents:
        times = times_of(runs, network, agent, dict(parameters))
        if len(times) == len(find_network(network).flow_files):
            label = ", ".join(f"{name} = {value}" for name, value in parameters)
            found[f"{agent} ({label})" if label else agent] = times
    return found


def write_page(runs: Runs) -> None:
    """The table as a page."""
    lines, not_below, beyond = [], [], []
    for name in NETWORKS:
        found = by_agent(runs, name)
        integer = found.pop(f"{POLICY}, integer", None)
        if integer is None or not set(GRIDS) <= set(found):
            continue
        rules = {label: times for label, times in found.items() if not label.startswith(POLICY)}
        lines += [f"## {name}", "", "| | flow 0 | flows 1 to 9 (95 %) | policy less this, flows 1 to 9 (95 %) |"]
        lines += ["| --- | ---: | ---: | ---: |", _row("policy, integers as on the chip", integer, None)]
        lines += [_row("policy, float", found[f"{POLICY}, float"], None)]
        lines += [_row(label, times, integer) for label, times in rules.items()]
        lines += [""]
        for label, times in rules.items():
            for what, part in (("flow 0", slice(0, 1)), ("flows 1 to 9", slice(1, None))):
                if integer[part].mean() >= times[part].mean():
                    not_below.append(f"{name}, {what}: {label} {times[part].mean():.2f} s, policy {integer[part].mean():.2f} s")
        own = [row for row in runs.rows if row["network"] == name and row["agent"] == f"{POLICY}, integer"]
        outside, decisions = (sum(row[key] for row in own) for key in ("decisions_beyond_range", "decisions"))
        beyond.append(f"{name} {outside} of {decisions}")
    head = [
        "# Policies for a chip that is the light",
        "",
        "Average travel time in s under `computed` clearances (`python scripts/deployable.py`). The policies see what two",
        "loops a lane can tell and decide every 20 s; they were trained on flow 0 and variations of it; one seed (arterial's",
        "with the limits of the safety shell: `shell`). MaxPressure and MaxQueue decide every 20 s, VehicleActuated and",
        "WebsterSeconds each second. With values in brackets: the best of a grid on flow 0 (the grids are in",
        "`deployable.json`). Intervals are over flows; differences are paired.",
        "",
        "Where the policy isn't below: " + ("; ".join(not_below) if not_below else "nowhere") + ".",
        "",
        "Decisions with an input beyond its range: " + ", ".join(beyond) + ".",
        "",
    ]
    write_whole(FILE.with_suffix(".md"), "\n".join(head + lines).rstrip() + "\n")


def _row(label: str, times: np.ndarray, policy: np.ndarray | None) -> str:
    unseen = mean_interval(list(times[1:]))
    cells = [label, f"{times[0]:.2f}", f"{unseen.mean:.2f} ({unseen.low:.2f} to {unseen.high:.2f})"]
    if policy is None:
        return f"| {' | '.join(cells)} | |"
    less = mean_interval(list((policy - times)[1:]))
    return f"| {' | '.join(cells)} | {less.mean:+.2f} ({less.low:+.2f} to {less.high:+.2f}) |"


def main() -> None:
    runs = Runs()
    names = [name for name in sys.argv[1:] if name != "--show"]
    if "--show" not in sys.argv[1:]:
        there = pretrained_policies("alone")
        measure(runs, names or [name for name in NETWORKS if name in there])
    write_page(runs)


if __name__ == "__main__":
    main()
