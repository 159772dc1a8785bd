"""Compares the engine with the plain oracles on drawn networks, at every step and to the last bit.

    python -m tests.streetflow.compare_drawn [--count N] [--out STEM]      # writes STEM.json and STEM.md

N networks with lane changing and N without: grids and blocks that routes go round, roads of one to four lanes of different
widths and limits, bends, vehicles of drawn kinds, step lengths and lights; in the grids vehicles are pushed, get other routes
and set speeds as well. What is done is kept in STEM.json: a run that was stopped goes on where it was, unless engine or
oracles have changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streetflow
from streetflow import Engine, InputWarning, StepError
from streetflow.files import write_whole
from tests.helpers import lane_change_oracle, oracle
from tests.helpers.lane_change_oracle import LaneChangeOracle
from tests.helpers.oracle import LostError, Oracle
from tests.helpers.small_network import CAR, TRUCK, demand, grid, write
from tests.streetflow.test_engine_edges import ROUND, ROUTES, ring
from tests.streetflow.test_engine_lane_change import assert_same as assert_same_lanes
from tests.streetflow.test_engine_oracle import assert_same

STEPS = 120
ROUND_SHARE = 0.25  # of the networks: blocks
Result = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares the engine with the oracles on drawn networks.")
    parser.add_argument("--count", type=int, default=300, metavar="N", help="networks with lane changing, and as many without")
    parser.add_argument("--out", type=Path, default=Path("docs/results/drawn_networks"), metavar="STEM")
    arguments = parser.parse_args()
    file, key = arguments.out.with_suffix(".json"), code_key()
    results = kept(file, key)
    for seed in range(arguments.count):
        for lane_change in (False, True):
            name = f"{'lane changing' if lane_change else 'plain'} {seed}"
            if name not in results:
                results[name] = compare(seed, lane_change)
                print(f"{name}: {results[name]['difference'] or 'equal'}", flush=True)
            if seed % 10 == 9 or seed == arguments.count - 1:
                write_whole(file, (json.dumps({"code": key, "networks": results}, indent=1) + "\n").encode())
    report = summary(results)
    write_whole(arguments.out.with_suffix(".md"), report.encode())
    print(report)
    return 1 if any(each["difference"] for each in results.values()) else 0


def code_key() -> str:
    """Of all that a result depends on."""
    package = Path(streetflow.__file__).parent
    files = [*sorted((package / "engine").glob("*.py")), *sorted((package / "kernels").glob("*.py"))]
    files += [Path(__file__), Path(str(oracle.__file__)), Path(str(lane_change_oracle.__file__))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


def kept(file: Path, key: str) -> dict[str, Result]:
    if not file.exists():
        return {}
    found = json.loads(file.read_text(encoding="utf-8"))
    networks: dict[str, Result] = found["networks"] if found["code"] == key else {}
    return networks


def compare(seed: int, lane_change: bool, spoil: Callable[[Oracle], None] | None = None) -> Result:
    """One drawn network, run by both until its last step, a dead end, or the step in which CityFlow would abort.

    Args:
        seed: of everything that is drawn.
        lane_change: whether vehicles change lanes.
        spoil: changes the oracle before the run: to see that a difference is found.
    """
    rng = random.Random(f"{seed} {lane_change}")
    is_round = rng.random() < ROUND_SHARE
    roadnet, flows = (a_block if is_round else a_grid)(rng, lane_change)
    interval_s, own_lights = rng.choice([0.25, 0.5, 1.0, 1.0, 1.5]), not is_round and rng.random() < 0.3
    with tempfile.TemporaryDirectory(prefix="drawn-") as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        folder = Path(temporary)
        config = write(
            folder, roadnet, flows, interval=interval_s, seed=seed, rlTrafficLight=not own_lights, laneChange=lane_change
        )
        engine = Engine(config)
        plain = (LaneChangeOracle if lane_change else Oracle)(folder, interval_s, seed, own_lights)
        if spoil is not None:
            spoil(plain)
        return run(engine, plain, roadnet, flows, rng, acts=not is_round)


def run(engine: Engine, plain: Any, roadnet: Any, flows: Any, rng: random.Random, acts: bool) -> Result:
    """acts: vehicles are pushed, sent other ways and given speeds."""
    same: Any = assert_same_lanes if isinstance(plain, LaneChangeOracle) else assert_same
    result: Result = {"steps": 0, "vehicle_steps": 0, "end": "", "difference": ""}
    try:
        for step in range(STEPS):
            if engine.config.rl_traffic_light and step % 10 == 0:
                for number, phases in enumerate(engine.phase_counts.tolist()):
                    if phases:
                        plain.phase[number] = rng.randrange(phases)
                        engine.set_phase_by_index(number, plain.phase[number])
            if acts:
                act(engine, plain, roadnet, flows, rng, step)
            plain.next_step()
            engine.next_step()
            same(engine, plain)
            result["steps"] += 1
            result["vehicle_steps"] += engine.get_vehicle_count()
    except LostError:
        result["end"] = "CityFlow would abort"
    except StepError:
        result["end"] = "dead end"
    except AssertionError as difference:
        result["difference"] = f"step {plain.step}: {str(difference).splitlines()[0]}"
    result["finished"] = plain.finished
    result["events"] = dict(sorted(plain.events.items()))
    return result


def act(engine: Engine, plain: Any, roadnet: Any, flows: Any, rng: random.Random, step: int) -> None:
    """What a program does between two steps."""
    known = {v.id: v for v in plain.running()}
    for name in rng.sample(sorted(known), min(2, len(known))) if rng.random() < 0.5 else []:
        known[name].custom = speed = rng.choice([0.0, rng.uniform(0, 14)])
        engine.set_vehicle_speed(name, speed)
    if step % 9 == 4:
        kind, route = a_kind(rng), flows[rng.randrange(len(flows))]["route"]
        plain.push(kind, route, 0.0)
        engine.push_vehicle(kind, route)
    for name in rng.sample(sorted(known), min(1, len(known))):
        wanted = [rng.choice(roadnet["roads"])["id"]]
        accepted = plain.set_route(known[name], wanted)
        if engine.set_vehicle_route(name, wanted) != accepted:
            raise AssertionError(f"set_vehicle_route {'refused' if accepted else 'accepted'} {wanted} for {name}")


def a_grid(rng: random.Random, lane_change: bool) -> tuple[Any, Any]:
    n_columns, n_rows = rng.choice([(1, 1), (1, 1), (2, 1), (1, 2), (2, 2)])
    layout, n_lanes = rng.randrange(10**6), rng.randint(1 + lane_change, 4)
    roadnet = grid(n_columns, n_rows, layout, n_lanes, rng.uniform(40, 260))
    for road in roadnet["roads"]:
        width_m, limit_mps = rng.choice([3.0, 3.2, 4.0, 9.0]), rng.choice([8.3, 11.11, 13.9, 16.67])
        for number, lane in enumerate(road["lanes"]):
            lane.update(width=width_m + 0.3 * number, maxSpeed=limit_mps - rng.choice([0.0, 0.9]) * number)
    if rng.random() < 0.3:  # straight on within the lane only: lanes from which a route doesn't go on
        for link in (link for each in roadnet["intersections"] for link in each.get("roadLinks", [])):
            if link["type"] == "go_straight":
                link["laneLinks"] = [pair for pair in link["laneLinks"] if pair["startLaneIndex"] == pair["endLaneIndex"]]
    flows = demand(roadnet, rng.randint(8, 40) * n_columns * n_rows, STEPS // 2, layout)
    kinds = [a_kind(rng) for _ in range(4)]
    for flow in flows:
        flow["vehicle"] = dict(rng.choice(kinds))
    return roadnet, flows


def a_block(rng: random.Random, lane_change: bool) -> tuple[Any, Any]:
    roadnet = ring(float(rng.randrange(18, 220)), rng.randint(1 + lane_change, 3), rng.random() < 0.3)
    routes = [*ROUTES, ["E", *ROUND, *ROUND, "R0"], ["E", "R0", "R1"]]
    starts = [rng.randrange(60) for _ in range(rng.randint(2, 14))]
    flows = [
        {"vehicle": a_kind(rng), "route": rng.choice(routes), "interval": 1.0, "startTime": start, "endTime": start}
        for start in starts
    ]
    return roadnet, flows


def a_kind(rng: random.Random) -> dict[str, float]:
    """From a motorcycle to a slow road train."""
    kind = dict(rng.choice([CAR, CAR, TRUCK]))
    kind |= {"length": rng.choice([2.0, 5.0, 12.0, 30.0]), "maxSpeed": rng.randrange(8, 60) / 2}
    kind |= {"headwayTime": rng.choice([1.0, 1.5, 2.0]), "minGap": rng.choice([0.5, 2.5, 4.0])}
    kind |= {"usualPosAcc": rng.choice([1.0, 2.0]), "maxNegAcc": rng.choice([3.0, 4.5, 6.0])}
    return kind | {"usualNegAcc": min(kind["usualNegAcc"], kind["maxNegAcc"])}


def summary(results: dict[str, Result]) -> str:
    """The results as a page."""
    lines = ["# Engine and oracles on drawn networks", ""]
    lines += ["`python -m tests.streetflow.compare_drawn`: its text says what is drawn.", ""]
    lines += ["| | networks | different | steps | vehicle-steps | trips ended | ended early |"]
    lines += ["| --- | --: | --: | --: | --: | --: | --- |"]
    for kind in ("plain", "lane changing"):
        found = [each for name, each in results.items() if name.startswith(kind)]
        early = Counter(each["end"] for each in found if each["end"])
        totals = [sum(each[name] for each in found) for name in ("steps", "vehicle_steps", "finished")]
        different = sum(bool(each["difference"]) for each in found)
        why = ", ".join(f"{count} {end}" for end, count in sorted(early.items())) or "none"
        lines.append(f"| {kind} | {len(found)} | {different} | {' | '.join(f'{each:,}' for each in totals)} | {why} |")
    events: Counter[str] = Counter()
    for each in results.values():
        events.update(each["events"])
    happened = ", ".join(f"{name} {count:,}" for name, count in sorted(events.items()))
    lines += ["", f"What happened in them, times: {happened}."]
    lines += [f"* {name}: {each['difference']}" for name, each in results.items() if each["difference"]]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
