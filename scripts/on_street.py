"""The chip as the light for an hour, in emulation and with its monitor, beside true counts and rules: docs/results/street.md.

python scripts/on_street.py [NETWORK ...]   # writes docs/results/street.json and .md; stopped, the same command goes on
python scripts/on_street.py --show          # .md alone, from .json

Each crossing of a network has a chip and a monitor. The policy's travel time in the loop stands beside that of the same policy
with true counts, with the shell's longest green and red and without, and beside rules under the same clearances, both ways.
Rules run with their defaults, and with the parameters of a grid that are best on the very flow. All runs are of flow 0.
"""

import itertools
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import hil.light
from hil.build.project import content_hash, project_files
from hil.light.job import run_light
from hil.loop.job_spec import Job
from model import pretrained_policy
from model.policy.file import load_policy
from model.policy.provenance import file_sha256
from streetflow.control.controllers import CONTROLLERS, SECOND_BY_SECOND, Controller, interval_of, run
from streetflow.control.environment import Environment
from streetflow.files import write_whole
from streetflow.networks.catalogue import Network, find_network

NETWORKS, FLOW = ("crossing", "arterial", "Hangzhou1"), 0
CLEARANCES = {"computed": "without limits", "shell": "with limits"}
GRIDS: dict[str, dict[str, tuple[int, ...]]] = {
    "MaxPressure": {"min_elapsed_s": (0, 20, 40, 60, 80)},
    "VehicleActuated": {"passage_s": (3, 4), "max_green_s": (30, 45, 60, 90, 120)},
    "WebsterSeconds": {"max_cycle_s": (80, 100, 120, 180, 240)},
}
RULES: Mapping[str, Callable[..., Controller]] = CONTROLLERS | SECOND_BY_SECOND
FILE = Path(__file__).resolve().parent.parent / "docs" / "results" / "street.json"
Row = dict[str, Any]


class Rows:
    """What has been run, kept in a file: a run is done again once what it depends on has changed."""

    def __init__(self, file: Path, command: str) -> None:
        self._file, self._command = file, command
        self.rows: list[Row] = json.loads(file.read_text())["rows"] if file.is_file() else []

    def of(self, identity: Row, names: tuple[str, ...], measure: Callable[[], Row]) -> Row:
        """The run's row. `names`: the keys of `identity` that say which run it is; the others, what it depends on."""
        for row in self.rows:
            if all(row.get(key) == value for key, value in identity.items()):
                return row
        found = identity | measure()
        self.rows = [row for row in self.rows if any(row.get(name) != identity.get(name) for name in names)] + [found]
        lines = ",\n  ".join(json.dumps(row) for row in self.rows)
        write_whole(self._file, f'{{\n "made": {json.dumps({"command": self._command})},\n "rows": [\n  {lines}\n ]\n}}\n')
        told = ", ".join(f"{key} {identity[key]}" for key in names if identity.get(key) not in (None, {}))
        print(f"{told}: {found['average_travel_time_s']:.2f} s", flush=True)
        return found


def files_of(network: Network, *, with_chip: bool) -> Row:
    """What a run on a network depends on."""
    known = {"roadnet_sha256": file_sha256(network.roadnet_file), "flow_sha256": file_sha256(network.flow_file(FLOW))}
    if with_chip:
        known |= chip_files(pretrained_policy(network.name, "alone"))
    return known


def chip_files(policy_file: Path) -> Row:
    """What a run with the chips depends on beside the traffic."""
    harness = sorted(Path(hil.light.__file__).parent.glob("*.py"))
    return {
        "policy_sha256": load_policy(policy_file).sha256,
        "firmware_sha256": content_hash(project_files()),
        "harness_sha256": sha256(b"\0".join(file.read_bytes() for file in harness)).hexdigest(),
    }


def loop(rows: Rows, network: Network) -> Row:
    """An hour with the chips."""

    def measure() -> Row:
        begin_s = time.process_time()
        verdict, light = run_light(Job.named(network.name, FLOW, None, mode="alone", monitor=True))
        crossings = light.crossings
        assert light.unlimited is not None, "the traffic is judged"
        return {
            "average_travel_time_s": light.result.average_travel_time_s,
            "with_limits_s": light.reference.average_travel_time_s,
            "without_limits_s": light.unlimited.average_travel_time_s,
            "limits_s": [light.job.max_green_s, light.job.longest_red_s],
            "checks": [asdict(check) for check in verdict.checks],
            "longest_wait_s": max(crossing.judge.figures.longest_wait_s for crossing in crossings),
            "frames_lost": sum(crossing.told.lost + crossing.told.damaged for crossing in crossings),
            "crossings": len(crossings),
            "processor_s": time.process_time() - begin_s,
        }

    return rows.of({"what": "loop", "network": network.name} | files_of(network, with_chip=True), ("what", "network"), measure)


def rule(rows: Rows, network: Network, agent: str, parameters: Row, clearance: str) -> Row:
    """An hour of a rule."""

    def measure() -> Row:
        own = RULES[agent](**parameters)
        environment = Environment(
            network, FLOW, features=own.features, clearance=clearance, decision_interval_s=interval_of(own)
        )
        run(environment, own)
        return {"average_travel_time_s": environment.average_travel_time_s()}

    names = {"what": agent, "network": network.name, "parameters": parameters, "clearance": clearance}
    return rows.of(names | files_of(network, with_chip=False), tuple(names), measure)


def tuned(rows: Rows, network: Network, agent: str, clearance: str) -> Row:
    """The grid's best on this very flow; the defaults, where nothing is better."""
    grid = GRIDS[agent]
    every = [{}, *(dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values()))]
    runs = [rule(rows, network, agent, parameters, clearance) for parameters in every]
    return min(runs, key=lambda row: float(row["average_travel_time_s"]))


def page(rows: Rows) -> str:
    """The results as Markdown."""
    lines = [
        "# The chip as the light, for an hour",
        "",
        "`python scripts/on_street.py`: 3,600 s of flow 0, `tinylight hil --mode alone --monitor`, a chip and a monitor for",
        "each crossing, in emulation. Times are average travel times in s. *Without limits*: yellow, red clearance and minimum",
        "green as needed; *with limits*: and the shell's longest green and red. Rules have the same clearances, and",
        "true counts; *tuned*: the best of a grid on this very flow, which favours them. The policies were trained on this",
        "flow and variations of it; other flows: [deployable.md](deployable.md).",
        "",
    ]
    for name in NETWORKS:
        network = find_network(name)
        row = next((row for row in rows.rows if row["what"] == "loop" and row["network"] == name), None)
        if row is None:
            continue
        green_s, red_s = row["limits_s"]
        lines += [f"## {name}", "", f"Limits: green {green_s:g} s, red {red_s:g} s. Crossings: {row['crossings']}.", ""]
        lines += ["| verdict | outcome | measured | limit |", "| --- | --- | ---: | ---: |"]
        lines += [f"| `{c['name']}` | {c['outcome']} | {c['measured']} | {c['limit']} |" for c in row["checks"]]
        lines += ["", f"Longest wait for a green: {row['longest_wait_s']:.0f} s. Frames lost or damaged: {row['frames_lost']}."]
        lines += ["", "| travel time | with limits | without limits |", "| --- | ---: | ---: |"]
        time_s, with_s, without_s = (row[key] for key in ("average_travel_time_s", "with_limits_s", "without_limits_s"))
        lines += [f"| chips alone, by their own loops | {time_s:.2f} | |"]
        cells = (f"{each:.2f} ({time_s / each - 1:+.1%} in the loop)" for each in (with_s, without_s))
        lines += [f"| the same policy, true counts | {' | '.join(cells)} |"]
        for agent in GRIDS:
            default = [rule(rows, network, agent, {}, clearance) for clearance in CLEARANCES][::-1]
            best = [tuned(rows, network, agent, clearance) for clearance in CLEARANCES][::-1]
            lines += [f"| {agent} | " + " | ".join(f"{each['average_travel_time_s']:.2f}" for each in default) + " |"]
            lines += [f"| {agent}, tuned | " + " | ".join(map(_tuned_cell, best)) + " |"]
        lines += [""]
    return "\n".join(lines).rstrip() + "\n"


def _tuned_cell(row: Row) -> str:
    label = ", ".join(f"{name} {value}" for name, value in row["parameters"].items()) or "defaults"
    return f"{row['average_travel_time_s']:.2f} ({label})"


def main() -> None:
    rows = Rows(FILE, "python scripts/on_street.py")
    if "--show" not in sys.argv[1:]:
        for name in [name for name in sys.argv[1:] if name in NETWORKS] or NETWORKS:
            loop(rows, find_network(name))
            write_whole(FILE.with_suffix(".md"), page(rows))
    write_whole(FILE.with_suffix(".md"), page(rows))


if __name__ == "__main__":
    main()
