"""An hour with a tenth of the loops faulty: the chip that suspects them, the one that believes all, and an actuated controller.

python scripts/loop_faults.py            # writes docs/results/loop_faults.json and .md; stopped, the same command goes on
python scripts/loop_faults.py --show     # .md alone, from .json

Each kind of fault hits a tenth of a crossing's loops, drawn by each of SEEDS. The chip is emulated and alone, no monitor.
The actuated controller feels the very same loops with the same faults; its parameters are those of a grid that are best
on the very flow without faults.
"""

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np

from hil.build.firmware import NO_SUSPICION
from hil.light.felt_loops import FeltLoops
from hil.light.job import lanes_of, plans_of, run_light
from hil.loop.detector_faults import KINDS, DetectorFaultSpec
from hil.loop.job_spec import Job
from model.policy.file import load_policy
from scripts.on_street import FLOW, Row, Rows, files_of
from streetflow.control.controllers import run
from streetflow.control.environment import Environment
from streetflow.control.vehicle_actuated import VehicleActuated
from streetflow.files import write_whole
from streetflow.networks.catalogue import Network, find_network

NETWORKS, SEEDS, SHARE = ("Hangzhou1", "crossing"), (1, 2, 3), "10%"
CHIP, BELIEVES, ACTUATED = "chip", "chip that believes every loop", "VehicleActuated"
AGENTS = (CHIP, BELIEVES, ACTUATED)
PARAMETERS = {"crossing": {"passage_s": 3, "max_green_s": 120}, "Hangzhou1": {"passage_s": 4, "max_green_s": 120}}
NAMES = ("network", "agent", "kind", "seed")
FILE = Path(__file__).resolve().parent.parent / "docs" / "results" / "loop_faults.json"


def measured(rows: Rows, network: Network, agent: str, kind: str | None, seed: int) -> Row:
    """One run. kind: None: no faults."""
    faults = None if kind is None else DetectorFaultSpec.parse(f"{kind}:{SHARE},seed={seed}")
    names = {"network": network.name, "agent": agent, "kind": kind, "seed": seed}
    identity = names | files_of(network, with_chip=agent != ACTUATED)
    return rows.of(identity, NAMES, lambda: _actuated(network, faults) if agent == ACTUATED else _chip(network, agent, faults))


def _chip(network: Network, agent: str, faults: DetectorFaultSpec | None) -> Row:
    flags = (NO_SUSPICION,) if agent == BELIEVES else ()
    verdict, light = run_light(Job.named(network.name, FLOW, None, mode="alone", detector_faults=faults, firmware_flags=flags))
    records = light.result.records
    return {
        "average_travel_time_s": light.result.average_travel_time_s,
        "by_plan": sum(not record.answered for record in records),
        "decisions": len(records),
        "lamps": verdict.check("lamps").outcome,
    }


def _actuated(network: Network, faults: DetectorFaultSpec | None) -> Row:
    job = Job.named(network.name, FLOW, None, mode="alone")
    policy = load_policy(job.policy_file)
    (plan,) = plans_of(job)
    lanes = lanes_of(job.environment(policy), policy, 0, plan)
    own = VehicleActuated(**PARAMETERS[network.name], sensors=lambda environment: FeltLoops(environment, lanes, faults))
    environment = Environment(network, FLOW, features=own.features, clearance="computed", decision_interval_s=1)
    run(environment, own)
    return {"average_travel_time_s": environment.average_travel_time_s()}


def page(rows: Rows) -> str:
    """The results as Markdown."""
    lines = [
        "# Faulty loops",
        "",
        "`python scripts/loop_faults.py`: average travel times in s, 3,600 s of flow 0, 10 % of the loops faulty in one way",
        "for the whole hour, mean of the seeds that draw which (each of them in brackets). *Suspects*: the chip, as built.",
        "*Believes*: the same chip with `TINYLIGHT_SUSPICION=off`. *Actuated*: VehicleActuated with the parameters that are",
        "best on this flow without faults, under the same clearances, on the same loops with the same faults; it counts as the",
        "chip does, and suspects nothing.",
        f"Seeds: {', '.join(map(str, sorted({int(row['seed']) for row in rows.rows if row['kind'] is not None})))}.",
        "",
    ]
    worse: list[str] = []
    for name in NETWORKS:
        found: dict[tuple[str, str | None], dict[int, float]] = {}
        for row in rows.rows:
            if row["network"] == name:
                found.setdefault((row["agent"], row["kind"]), {})[int(row["seed"])] = row["average_travel_time_s"]
        lines += [f"## {name}", "", "| loops | suspects | believes | actuated |", "| --- | ---: | ---: | ---: |"]
        for kind in (None, *KINDS):
            by_seed = [found.get((agent, kind), {}) for agent in AGENTS]
            seeds = sorted(set.intersection(*map(set, by_seed)))  # those that all have run with
            if not seeds:
                continue
            times = [[each[seed] for seed in seeds] for each in by_seed]
            lines += [f"| {kind or 'all sound'} | {' | '.join(map(_cell, times))} |"]
            with_s, without_s, actuated_s = (float(np.mean(each)) for each in times)
            for what, other_s in (("believing", without_s), ("the actuated controller", actuated_s)):
                if kind is not None and with_s > other_s:
                    worse.append(f"{name}, {kind}: {with_s:.1f} s, {what} {other_s:.1f} s")
        lines += [""]
    lines.insert(9, f"Where suspecting isn't better: {'; '.join(worse) or 'nowhere'}.\n")
    return "\n".join(lines).rstrip() + "\n"


def _cell(times: list[float]) -> str:
    each = f" ({', '.join(f'{time:.0f}' for time in times)})" if len(times) > 1 else ""
    return f"{np.mean(times):.1f}{each}"


def measure(rows: Rows) -> None:
    faults: list[tuple[str | None, int]] = [(None, 0), *((kind, seed) for seed in SEEDS for kind in KINDS)]
    for (kind, seed), name, agent in itertools.product(faults, NETWORKS, AGENTS[::-1]):
        measured(rows, find_network(name), agent, kind, seed)
        write_whole(FILE.with_suffix(".md"), page(rows))


def main(arguments: list[str]) -> Any:
    rows = Rows(FILE, "python scripts/loop_faults.py")
    if "--show" not in arguments:
        measure(rows)
    write_whole(FILE.with_suffix(".md"), page(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
