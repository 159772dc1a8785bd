"""The eight scenarios of the RESCO benchmark on SUMO: policies for the chip against fixed time, actuated control and rules.

python scripts/sumo_table.py --train [NAME ...]   # trains the policies that docs/results/sumo/ lacks
python scripts/sumo_table.py [NAME ...]           # writes docs/results/sumo.json and .md; stopped, the same command goes on
python scripts/sumo_table.py --sides [NAME ...]   # measures the same networks on our own engine and on SUMO
python scripts/sumo_table.py --show               # .md alone, from .json

The scenarios are read from datasets-sumo in the folder TINYLIGHT_SHARED and imported to the folder that SUMO_TABLE_WORK names
(else one in the cache). What depends on a file that has changed runs again.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from hil.loop.job import Job, run_job
from hil.words import counted
from model.evaluate import make_controller
from model.policy.file import load_policy
from model.report.bootstrap import mean_interval
from streetflow.cache import cache_folder
from streetflow.control.controllers import CONTROLLERS, Controller, interval_of, run
from streetflow.control.environment import Environment
from streetflow.control.own_program import OwnProgram
from streetflow.control.vehicle_actuated import VehicleActuated
from streetflow.files import write_whole
from streetflow.networks.catalogue import RUN_SEEDS, Network, network_of
from streetflow.networks.write import write_network
from streetflow.sumo.engine import SumoEngine
from streetflow.sumo.importing import Imported, import_scenario
from streetflow.sumo.programs import OPEN, YELLOW
from streetflow.sumo.scenario import Scenario, read_scenario

ONE_LIGHT = "--set horizon=20 --set rounds=4 --set varied=2 --set judged=0 --set planned_share=0.25 --set search_steps=300 --set refine_steps=400 --set last_steps=1200 --set faulty=0.0"  # noqa: E501
SETTINGS = {"ingolstadt1": ONE_LIGHT}  # of the policies that our own engine trains, beside what all have in common
ON_SUMO = ("cologne1", "cologne3", "cologne8", "ingolstadt7", "ingolstadt21", "grid4x4", "arterial4x4")  # by sumo_distil.py
NAMES = ("cologne1", "cologne3", "cologne8", "ingolstadt1", "ingolstadt7", "ingolstadt21", "grid4x4", "arterial4x4")
SHORT_APPROACHES = ("cologne3", "cologne8", "ingolstadt7", "ingolstadt21")
APPROACH_M = 50.0  # there; without it rules and policies would see a few metres only of some roads
POLICY_TIMES_S = {"cologne1": (2, 8), "cologne3": (2, 6), "cologne8": (2, 6)}  # of decisions, least green; elsewhere 5, 0
RULE_INTERVAL_S = {"arterial4x4": 5}  # the benchmark's; elsewhere 10 s
SEEDS = RUN_SEEDS[:5]  # of SUMO; none of them is one that anything was trained or chosen on
SEED_COUNT: Mapping[str, int] = {"ingolstadt21": 2}  # of them, where fewer ran
CLEARANCE = "yellow"
OPTIONS = {"time-to-teleport": "-1"}  # the benchmark's: nobody who stands long is taken off the road
ACTUATED = {"minDur": "5", "maxDur": "50"}
POLICY, FIXED, SUMO_ACTUATED = "policy", "fixed time (the network's program)", "actuated (SUMO's)"
RULES: Mapping[str, Callable[[], Controller]] = {
    FIXED: OwnProgram,
    SUMO_ACTUATED: OwnProgram,
    "VehicleActuated": VehicleActuated,
    **{name: CONTROLLERS[name] for name in ("MaxPressure", "MaxPressure0", "MaxQueue")},
}
AGENTS = (POLICY, *RULES)
TO_BEAT = (SUMO_ACTUATED, "VehicleActuated", "MaxPressure", "MaxPressure0")
RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"
FILE, POLICIES = RESULTS / "sumo.json", RESULTS / "sumo"
FIGURES = ("delay_s", "average_travel_time_s", "throughput_veh_per_min", "queue_vehicles")


def seeds_of(name: str) -> tuple[int, ...]:
    return SEEDS[: SEED_COUNT.get(name, len(SEEDS))]


class Variant(NamedTuple):
    """A scenario as a data set. actuated: with SUMO's actuated programs; in_parts: as `tinylight import-sumo --in-parts`."""

    name: str
    actuated: bool = False
    in_parts: bool = True

    @property
    def times_s(self) -> tuple[int, int]:
        return POLICY_TIMES_S.get(self.name, (5, 0))

    def network(self) -> Network:
        """Imported, if it isn't yet."""
        folder = work() / (self.name + ".actuated" * self.actuated + ".whole" * (not self.in_parts))
        if not folder.is_dir():
            scenario = read_scenario([scenarios() / self.name / f"{self.name}.sumocfg"])
            scenario = dataclasses.replace(scenario, options={**scenario.options, **OPTIONS})
            with tempfile.TemporaryDirectory() as aside:
                if self.actuated:
                    programs = Path(aside) / "actuated.add.xml"
                    programs.write_bytes(actuated_programs(scenario))
                    scenario = dataclasses.replace(scenario, additional=(*scenario.additional, programs))
                write_network(folder, self._imported(scenario).files)
        return network_of(str(folder))

    def _imported(self, scenario: Scenario) -> Imported:
        approach_m = APPROACH_M if self.name in SHORT_APPROACHES else 0.0
        return import_scenario(scenario, self.times_s[0], in_parts=self.in_parts, approach_m=approach_m)


def scenarios() -> Path:
    return Path(os.environ["TINYLIGHT_SHARED"]) / "datasets-sumo"


def work() -> Path:
    folder = Path(os.environ.get("SUMO_TABLE_WORK") or cache_folder() / "sumo_table")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def actuated_programs(scenario: Scenario) -> bytes:
    """SUMO's actuated control with each light's own phases: their greens last ACTUATED, the rest as long as before."""
    additional = ET.Element("additional")
    for light in ET.parse(scenario.net).getroot().iter("tlLogic"):
        program = ET.SubElement(additional, "tlLogic", {"id": light.get("id", ""), "type": "actuated", "programID": "actuated"})
        program.set("offset", "0")
        for phase in light.iter("phase"):
            letters = set(phase.get("state", ""))
            lasts = ACTUATED if letters & OPEN and not letters & (YELLOW | {"u"}) else {}
            ET.SubElement(program, "phase", {name: phase.get(name, "") for name in ("duration", "state")} | lasts)
    return ET.tostring(additional)


class Measured(NamedTuple):
    """delay_s: the benchmark's, the mean over all trips, those under way and those that wait to enter included, of SUMO's
    timeLoss and departDelay. queue_vehicles: mean over the steps of the vehicles that SUMO counts as halting."""

    delay_s: float
    average_travel_time_s: float
    throughput_veh_per_min: float
    queue_vehicles: float
    trips: int
    arrived: int


def drive(network: Network, controller: Controller, seed: int, interval_s: int | None, min_green_s: int = 0) -> Measured:
    """One run on SUMO."""
    environment = Environment(
        network,
        seed=seed,
        engine="sumo",
        features=controller.features,
        clearance=CLEARANCE,
        decision_interval_s=interval_of(controller) or interval_s,
        min_green_s=min_green_s,
    )
    engine = environment.engine
    assert isinstance(engine, SumoEngine)
    with tempfile.TemporaryDirectory() as folder:
        trips, summary = Path(folder) / "trips.xml", Path(folder) / "summary.xml"
        engine.options = ("--tripinfo-output", str(trips), "--summary-output", str(summary), *_ALL_TRIPS)
        run(environment, controller)
        times = environment.average_travel_time_s(), environment.throughput_veh_per_min()
        arrived = engine.finished_vehicle_count
        engine.close()
        delay_s, count = benchmark_delay(trips)
        halting = [int(step.get("halting", 0)) for step in ET.parse(summary).getroot()]
    return Measured(delay_s, *times, fmean(halting), count, arrived)


_ALL_TRIPS = ("--tripinfo-output.write-unfinished", "true", "--tripinfo-output.write-undeparted", "true")


def benchmark_delay(trips: Path) -> tuple[float, int]:
    """The mean over the trips of a tripinfo file, and how many there are."""
    delays_s = [
        float(trip.get("timeLoss", 0)) + float(trip.get("departDelay", 0))
        for trip in ET.parse(trips).getroot().iter("tripinfo")
    ]
    return fmean(delays_s), len(delays_s)


class Table:
    """The runs there are, kept in FILE."""

    def __init__(self) -> None:
        kept = json.loads(FILE.read_text()) if FILE.is_file() else {}
        self.rows: list[dict[str, Any]] = kept.get("rows", [])
        self.chip: dict[str, Any] = kept.get("chip", {})
        self.sides: list[dict[str, Any]] = kept.get("sides", [])

    def save(self) -> None:
        made = {"command": "python scripts/sumo_table.py", "seeds": SEEDS, "clearance": CLEARANCE, "sumo_options": OPTIONS}
        parts = [f' "made": {json.dumps(made)}', f' "rows": {_lines(self.rows)}', f' "chip": {json.dumps(self.chip, indent=1)}']
        write_whole(FILE, "{\n" + ",\n".join([*parts, f' "sides": {_lines(self.sides)}']) + "\n}\n")

    def measure(self, name: str, agent: str, seed: int) -> None:
        """One row, unless it is there."""
        file = POLICIES / f"{name}.json"
        identity: dict[str, Any] = {"scenario": name, "agent": agent, "seed": seed}
        known = identity | ({"policy_sha256": load_policy(file).sha256} if agent == POLICY else {})
        if any(all(row.get(key) == value for key, value in known.items()) for row in self.rows):
            return
        network = Variant(name, actuated=agent == SUMO_ACTUATED).network()
        controller = make_controller(file, integer=True)[0] if agent == POLICY else RULES[agent]()
        times_s = Variant(name).times_s if agent == POLICY else (RULE_INTERVAL_S.get(name, 10), 0)
        found = drive(network, controller, seed, *times_s)
        print(f"{name} {agent} seed {seed}: delay {found.delay_s:.2f} s", flush=True)
        self.rows = [row for row in self.rows if any(row[key] != value for key, value in identity.items())]
        self.rows.append(known | {key: round(value, 4) for key, value in found._asdict().items()})
        self.save()

    def run_chip(self, name: str) -> None:
        """The policy on the emulated chip, in the loop with SUMO, under the first seed."""
        file = POLICIES / f"{name}.json"
        policy = load_policy(file)
        if self.chip.get(name, {}).get("policy_sha256") == policy.sha256:
            return
        verdict = run_job(Job(Variant(name).network(), 0, file, engine="sumo", min_green_s=Variant(name).times_s[1]))
        checks = {check.name: f"{check.outcome}: {check.measured}" for check in verdict.checks}
        print(f"{name} on the chip: {'PASS' if verdict.passed else 'FAIL'}", flush=True)
        found = {"policy_sha256": policy.sha256, "seed": verdict.provenance["seed"], "passed": verdict.passed}
        self.chip[name] = found | {"traffic": verdict.figures.get("traffic"), "checks": checks}
        self.save()

    def compare_sides(self, name: str) -> None:
        """MaxQueue on both engines, with the demand that our own can drive as a whole."""
        network = Variant(name, in_parts=False).network()
        for engine in ("builtin", "sumo"):
            if any((row["scenario"], row["engine"]) == (name, engine) for row in self.sides):
                continue
            rule = CONTROLLERS["MaxQueue"]()
            settings: dict[str, Any] = {"features": rule.features, "clearance": CLEARANCE, "decision_interval_s": 10}
            environment = Environment(network, engine=engine, **settings)
            environment.measures_queues = True
            run(environment, rule)
            measures = {key: value for key, value in environment.measures().items() if value is not None}
            throughput = {"throughput_veh_per_min": environment.throughput_veh_per_min()}
            self.sides.append({"scenario": name, "engine": engine, **throughput, **measures})
            self.save()


def _lines(rows: list[dict[str, Any]]) -> str:
    return "[" + ",".join(f"\n  {json.dumps(row)}" for row in rows) + "\n ]"


def train(name: str) -> None:
    """Train the policy: on our own engine, or where that comes to less (ON_SUMO) by a rule on SUMO."""
    out = POLICIES / f"{name}.json"
    if out.is_file():
        return
    POLICIES.mkdir(exist_ok=True)
    Variant(name).network()
    if name in ON_SUMO:
        distil = [sys.executable, str(Path(__file__).with_name("sumo_distil.py")), name, str(out)]
        subprocess.run(distil, check=True)
        return
    common = f"train --method planned --network {name} --features deployable --clearance {CLEARANCE}"
    command = [sys.executable, "-m", "tinylight.cli", *shlex.split(f"{common} {SETTINGS[name]}"), "--out", str(out)]
    subprocess.run(command, check=True, env={**os.environ, "TINYLIGHT_DATA": str(work())})


def by_agent(rows: list[dict[str, Any]], name: str, figure: str) -> dict[str, list[float]]:
    """The figure of every agent that ran with all seeds, by seed."""
    found = {}
    for agent in AGENTS:
        own = {row["seed"]: row[figure] for row in rows if (row["scenario"], row["agent"]) == (name, agent)}
        seeds = seeds_of(name)
        if set(own) >= set(seeds):
            found[agent] = [own[seed] for seed in seeds]
    return found


def page(table: Table) -> str:
    """The results as Markdown."""
    parts: list[str] = []
    below: list[str] = []
    not_below: list[str] = []
    unsure: list[str] = []
    for name in NAMES:
        delays = by_agent(table.rows, name, "delay_s")
        if not delays:
            continue
        parts.append(_of_scenario(table, name, delays))
        if set(delays) >= {POLICY, *TO_BEAT}:
            above = [rule for rule in TO_BEAT if fmean(delays[POLICY]) >= fmean(delays[rule])]
            (not_below if above else below).append(f"{name} ({', '.join(above)})" if above else name)
            differences = [mean_interval(np.subtract(delays[POLICY], delays[rule]).tolist()) for rule in TO_BEAT]
            if not above and any(each.high >= 0 for each in differences):
                unsure.append(name)
    said = {"below": ", ".join(below) or "none", "unsure": ", ".join(unsure) or "none", "above": "; ".join(not_below) or "none"}
    open_ones = [name for name in NAMES if name not in {each.partition(" ")[0] for each in (*below, *not_below)}]
    taught = [name for name in ON_SUMO if (POLICIES / f"{name}.json").is_file()]
    times = [f"{name} {each[0]} and {each[1]} s" for name, each in POLICY_TIMES_S.items() if name in taught]
    said |= {"taught": ", ".join(taught) or "no other", "times": ", ".join(times)}
    head = _HEAD.format(seeds=len(SEEDS), open=", ".join(open_ones) or "none", **said)
    return head + "\n".join(parts) + _sides(table.sides)


def _of_scenario(table: Table, name: str, delays: Mapping[str, list[float]]) -> str:
    others = {figure: by_agent(table.rows, name, figure) for figure in FIGURES[1:]}
    rules = [agent for agent in delays if agent != POLICY]
    strongest = min(rules, key=lambda agent: fmean(delays[agent]), default="")
    seeds = f"{counted(len(seeds_of(name)), 'seed')}. " if name in SEED_COUNT else ""
    lines = [f"## {name}", "", seeds + _chip_line(table.chip.get(name)), "", _COLUMNS]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for agent, values in delays.items():
        mean = mean_interval(values)
        cells = [f"{mean.mean:.2f} ({mean.low:.2f} to {mean.high:.2f})"]
        cells += [f"{fmean(others[figure][agent]):.2f}" for figure in FIGURES[1:]]
        paired = POLICY in delays and agent != POLICY
        cells.append(str(mean_interval([p - r for p, r in zip(delays[POLICY], values, strict=True)])) if paired else "")
        lines.append(f"| {agent}{' (the strongest)' * (agent == strongest)} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _chip_line(chip: Mapping[str, Any] | None) -> str:
    if chip is None:
        return "Not run on the chip yet."
    failed = [check for check, outcome in chip["checks"].items() if outcome.startswith("fail")]
    traffic = chip["traffic"] or {}
    said = "PASS" if chip["passed"] else f"FAIL ({', '.join(failed)})"
    figures = f"{traffic.get('decisions')} decisions, {traffic.get('unequal')} unequal, {traffic.get('unanswered')} unanswered"
    return f"On the chip, in the loop with SUMO (seed {chip['seed']}): {said}; {figures}."


def _sides(sides: list[dict[str, Any]]) -> str:
    if not sides:
        return ""
    names = ("travel_time_s", "network_time_s", "throughput_veh_per_min", "queue_vehicles", "created_vehicles")
    lines = ["", _SIDES, "", f"| | engine | {' | '.join(names)} |", f"| --- | --- |{' ---: |' * len(names)}"]
    for row in sides:
        lines.append(f"| {row['scenario']} | {row['engine']} | {' | '.join(f'{row[key]:.2f}' for key in names)} |")
    return "\n".join([*lines, ""])


_COLUMNS = "| | delay, s (95 %) | travel time, s | throughput, veh/min | queue, vehicles | policy's delay less this (95 %) |"
_HEAD = Path(__file__).with_name("sumo_table_head.md").read_text(encoding="utf-8")
_SIDES = """## The same network on our own engine and on SUMO

`python scripts/sumo_table.py --sides`: MaxQueue, every 10 s, on both, each with what it can drive of the demand. What differs,
and why, is in [For SUMO's users](../sumo.md#the-same-network-on-our-own-engine)."""


def main(arguments: list[str]) -> None:
    names = [each for each in arguments if not each.startswith("--")] or list(NAMES)
    table = Table()
    if "--train" in arguments:
        for name in names:
            train(name)
        return
    if "--sides" in arguments:
        for name in names:
            table.compare_sides(name)
    elif "--show" not in arguments:
        for name in names:
            agents = AGENTS if (POLICIES / f"{name}.json").is_file() else tuple(RULES)
            for agent in agents:
                for seed in seeds_of(name):
                    table.measure(name, agent, seed)
                    write_whole(FILE.with_suffix(".md"), page(table))
            if POLICY in agents:
                table.run_chip(name)
    write_whole(FILE.with_suffix(".md"), page(table))


if __name__ == "__main__":
    main(sys.argv[1:])
