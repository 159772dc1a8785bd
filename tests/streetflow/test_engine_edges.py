"""Small cases on which the real CityFlow was recorded (`tests/golden/engine`): equal at every step, to the last bit."""

from __future__ import annotations

import gzip
import json
import random
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streetflow import Engine, InputWarning, StepError
from streetflow.kernels import tables as t
from tests.helpers.lane_change_oracle import LaneChangeOracle
from tests.helpers.oracle import LostError, Oracle
from tests.helpers.places import ROOT
from tests.helpers.small_network import CAR, TRUCK, write
from tests.streetflow.test_engine_lane_change import assert_same as assert_same_lanes
from tests.streetflow.test_engine_oracle import assert_same
from tinylight.cli import app

HERE = ROOT / "tests" / "golden" / "engine"
RECORDED = [
    "route_after_jump_over_lane",
    "zero_length_lane_link",
    "repeated_point_in_lane_link",
    "unknown_type",
    "lane_change_signal_outlives_change",
    "lane_change_on_last_road_seen_before",
    "dead_end_on_last_road",
    "route_comes_back_within_look_ahead",
    "shadow_forgets_place_in_route",
    "custom_speed_not_copied_to_shadow",
    "follower_gap_stale_in_shadow",
]
SET_SPEEDS = {"custom_speed_not_copied_to_shadow": 100.0}  # m/s, of every vehicle, before each step


def engine_of(name: str, folder: Path) -> tuple[Engine, Any]:
    """The engine of a case, and what CityFlow showed after each step."""
    case = json.loads(gzip.decompress((HERE / f"{name}.json.gz").read_bytes()))
    config = write(folder, case["roadnet"], case["flow"], **case["config"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return Engine(config), case["expected"]


@pytest.mark.parametrize("name", RECORDED)
def test_equal_at_every_step(name: str, tmp_path: Path) -> None:
    engine, recorded = engine_of(name, tmp_path)
    assert len(recorded) >= 30
    for step, expected in enumerate(recorded):
        if name in SET_SPEEDS:
            for vehicle in engine.get_vehicles():
                engine.set_vehicle_speed(vehicle, SET_SPEEDS[name])
        engine.next_step()
        speeds, distances = engine.get_vehicle_speed(), engine.get_vehicle_distance()
        shown = {
            "lanes": {lane: vehicles for lane, vehicles in engine.get_lane_vehicles().items() if vehicles},
            "vehicles": {vehicle: [speeds[vehicle], distances[vehicle]] for vehicle in speeds},
            "count": engine.get_vehicle_count(),
            "average_travel_time_s": engine.get_average_travel_time(),
        }
        assert shown == expected, f"step {step}"


def test_every_recording_is_compared() -> None:
    told_in_words = {"set_route_back_to_current_road", "set_route_refused_on_second_visit"}
    assert {path.name.split(".")[0] for path in HERE.glob("*.json.gz")} == {*RECORDED, *told_in_words}


def run_until(engine: Engine, road: str, visit: int) -> None:
    """Step until flow_0_0 is on a road for the n-th time."""
    before = ""
    while visit:
        engine.next_step()
        now = engine.get_vehicle_info("flow_0_0").get("road", before)
        visit -= now == road != before
        before = now


def run_out(engine: Engine) -> list[str]:
    """Step until the trip ends; the lanes on which flow_0_0 was."""
    lanes: list[str] = []
    while engine.get_vehicle_count():
        lanes += [lane for lane, on_lane in engine.get_lane_vehicles().items() if on_lane and lane not in lanes[-1:]]
        engine.next_step()
    return lanes


def test_a_route_that_leads_back_to_the_present_road_ends_there(tmp_path: Path) -> None:
    """62 steps in CityFlow. The lane has no lane link to the next road; as a lane of the last road it needs none."""
    engine, _ = engine_of("set_route_back_to_current_road", tmp_path)
    run_until(engine, "R1", 1)
    assert engine.set_vehicle_route("flow_0_0", ["R2", "R1"])
    assert engine.get_vehicle_info("flow_0_0")["route"] == "R1 R2 R3 R0 R1 "
    assert run_out(engine) == ["R1_1"]
    assert engine.get_current_time() == 62.0


def test_a_refused_route_puts_a_vehicle_back_to_the_first_visit_of_its_road(tmp_path: Path) -> None:
    """259 s in CityFlow, against 171 s without the call."""
    engine, _ = engine_of("set_route_refused_on_second_visit", tmp_path)
    run_until(engine, "R0", 2)
    assert engine.get_vehicle_info("flow_0_0")["route"] == "R0 R1 X "
    assert not engine.set_vehicle_route("flow_0_0", ["E"])
    assert engine.get_vehicle_info("flow_0_0")["route"] == "R0 R1 R2 R3 R0 R1 X "
    assert [lane[:2] for lane in run_out(engine)] == ["R0", "R1", "R2", "R3", "R0", "R1", "X_"]
    assert engine.get_average_travel_time() == 259.0


def test_route_in_the_info_begins_with_the_last_road_on_which_a_step_ended(tmp_path: Path) -> None:
    engine, _ = engine_of("route_after_jump_over_lane", tmp_path)
    seen = {}
    for _ in range(30):
        engine.next_step()
        info = engine.get_vehicle_info("flow_0_0")
        seen[info["drivable"]] = info["route"]
    assert seen == {"A_0": "A B C ", "B_0_TO_C_0": "A B C ", "C_0": "C "}  # it jumps over the lane B_0


DOUBTS = {
    "zero_length_lane_link": ("lane links of length 0", "intersections[1].roadLinks[0].laneLinks[0]"),
    "repeated_point_in_lane_link": ("repeated points", "intersections[1].roadLinks[0].laneLinks[0].points[1]"),
    "unknown_type": ("movements of an unknown type", "intersections[1].roadLinks[0].type"),
}


@pytest.mark.parametrize("name", DOUBTS)
def test_what_cityflow_drives_soundly_is_warned_of(name: str, tmp_path: Path) -> None:
    topic, place = DOUBTS[name]
    engine_of(name, tmp_path)
    with pytest.warns(InputWarning) as caught:
        Engine(tmp_path / "config.json")
    assert f"{topic}: {place}: " in str(caught[0].message)
    result = CliRunner().invoke(app, ["check", str(tmp_path / "roadnet.json"), "--json", str(tmp_path / "report.json")])
    assert result.exit_code == 0
    assert topic in result.output and place in (tmp_path / "report.json").read_text()


@pytest.mark.parametrize("name", ["zero_length_lane_link", "repeated_point_in_lane_link"])
def test_their_replay_has_a_direction_for_every_vehicle(name: str, tmp_path: Path) -> None:
    engine_of(name, tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**content, "saveReplay": True}))
    with pytest.warns(InputWarning):
        engine = Engine(tmp_path / "config.json")
    engine.step_many(60)
    engine.set_save_replay(False)
    vehicles = [line.split(";")[0] for line in (tmp_path / "replay.txt").read_text().splitlines()]
    assert sum(bool(each) for each in vehicles) > 30 and "nan" not in "".join(vehicles)


def ring(side_m: float, n_lanes: int, links_by_lane: bool) -> Any:
    """Four one-way roads R0 to R3 round a block, a road E that leads onto R0 and a road X that leaves after R1; always green.

    links_by_lane: lane 0 alone leads on round the block from R1, the outermost alone to X.
    """
    corners = [(0.0, 0.0), (side_m, 0.0), (side_m, side_m), (0.0, side_m)]
    lanes = [{"width": 3, "maxSpeed": 16.67 - 2 * i} for i in range(n_lanes)]
    ends = {"E": ("e", "n0", (-4 * side_m, 0.0), corners[0]), "X": ("n2", "x", corners[2], (4 * side_m, side_m))}
    ends |= {f"R{i}": (f"n{i}", f"n{(i + 1) % 4}", corners[i], corners[(i + 1) % 4]) for i in range(4)}
    roads = [
        {"id": name, "startIntersection": start, "endIntersection": end, "lanes": lanes,
         "points": [{"x": x, "y": y} for x, y in points]}
        for name, (start, end, *points) in ends.items()
    ]  # fmt: skip
    intersections: list[Any] = [
        {"id": "e", "point": {"x": -4 * side_m, "y": 0}, "virtual": True, "roads": ["E"]},
        {"id": "x", "point": {"x": 4 * side_m, "y": side_m}, "virtual": True, "roads": ["X"]},
    ]
    turns = {"n0": ["E R0", "R3 R0"], "n1": ["R0 R1"], "n2": ["R1 R2", "R1 X"], "n3": ["R2 R3"]}
    for (name, movements), (x, y) in zip(turns.items(), corners, strict=True):
        links = []
        for movement in movements:
            start, end = movement.split()
            kind = {"E R0": "go_straight", "R1 X": "turn_right"}.get(movement, "turn_left")
            only = {"R1 R2": 0, "R1 X": n_lanes - 1}.get(movement) if links_by_lane else None
            pairs = [(i, j) for i in range(n_lanes) for j in range(n_lanes) if only is None or i == only]
            lane_links = [{"startLaneIndex": i, "endLaneIndex": j} for i, j in pairs]
            links.append({"type": kind, "startRoad": start, "endRoad": end, "laneLinks": lane_links})
        light = {"lightphases": [{"time": 30, "availableRoadLinks": list(range(len(links)))}]}
        intersections.append({
            "id": name, "point": {"x": x, "y": y}, "virtual": False, "width": 8, "roadLinks": links, "trafficLight": light,
            "roads": [road["id"] for road in roads if name in (road["startIntersection"], road["endIntersection"])],
        })  # fmt: skip
    return {"intersections": intersections, "roads": roads}


ROUND = ["R0", "R1", "R2", "R3"]
ROUTES = [["E", *ROUND, "R0", "R1", "X"], ["E", *ROUND, *ROUND, "R0", "R1", "X"], ["E", *ROUND, "R0"], ["E", "R0", "R1", "X"]]


@pytest.mark.parametrize("lane_change", [False, True])
@pytest.mark.filterwarnings("ignore::streetflow.errors.InputWarning")
def test_routes_round_the_block_are_equal_to_the_oracle(lane_change: bool, tmp_path: Path) -> None:
    """Up to the step in which CityFlow would abort, because a vehicle has lost its place in its route."""
    steps_with_jumps = steps = lost = changes = 0
    for seed in range(20):
        rng = random.Random(seed)
        side_m = float(rng.randrange(120, 200) if lane_change and seed % 2 else rng.randrange(18, 50))
        roadnet = ring(side_m, rng.randint(1 + lane_change, 3), rng.random() < 0.3)
        flows = [
            {"vehicle": {**rng.choice([CAR, TRUCK]), "maxSpeed": rng.randrange(12, 40) / 2}, "route": rng.choice(ROUTES),
             "interval": 1.0, "startTime": rng.randrange(40), "endTime": 40}
            for _ in range(rng.randint(1, 4))
        ]  # fmt: skip
        for flow in flows:
            flow["endTime"] = flow["startTime"]
        interval = rng.choice([0.5, 1.0, 1.5])
        folder = tmp_path / str(seed)
        engine = Engine(write(folder, roadnet, flows, interval=interval, seed=seed, laneChange=lane_change))
        oracle = (LaneChangeOracle if lane_change else Oracle)(folder, interval, seed)
        try:
            for _ in range(150):
                oracle.next_step()
                try:
                    engine.next_step()
                except StepError:
                    break
                (assert_same_lanes if lane_change else assert_same)(engine, oracle)  # type: ignore[operator]
                steps += 1
                steps_with_jumps += bool((engine.state.jump_from[engine.state.status == t.RUNNING] >= 0).any())
        except LostError:
            lost += 1
        changes += oracle.events["change"]
    assert steps > 1500 and steps_with_jumps > 30 and lost < 15
    assert changes > 20 or not lane_change


@pytest.mark.filterwarnings("ignore::streetflow.errors.InputWarning")
def test_an_archive_keeps_what_was_planned_over_roads_that_come_back(tmp_path: Path) -> None:
    """Another engine goes on from the file as the first one does. Planned anew, the way of some vehicle would differ."""
    with_jumps = 0
    for seed in range(12):
        rng = random.Random(seed)
        roadnet = ring(rng.choice([20.0, 60.0]), rng.randint(1, 3), False)
        flows = [
            {"vehicle": {**rng.choice([CAR, TRUCK]), "maxSpeed": rng.randrange(12, 40) / 2}, "route": rng.choice(ROUTES),
             "interval": 1.0, "startTime": start_s, "endTime": start_s}
            for start_s in range(0, 30, 5)
        ]  # fmt: skip
        config = write(tmp_path / str(seed), roadnet, flows, interval=0.5, seed=seed)
        first, other = Engine(config), Engine(config)
        other.push_vehicle({**CAR, "speed": 0.0}, ROUTES[0][:2])  # so that its numbers of paths are others
        for _ in range(4):
            for _ in range(20):
                first.next_step()
            with_jumps += bool((first.state.jump_from[first.state.status == t.RUNNING] >= 0).any())
            file = tmp_path / f"{seed}.json"
            first.snapshot().dump(file)
            other.load_from_file(str(file))
            for _ in range(10):
                first.next_step()
                other.next_step()
                assert first.get_vehicle_distance() == other.get_vehicle_distance()
                assert first.get_lane_vehicles() == other.get_lane_vehicles()
    assert with_jumps > 3


@pytest.mark.filterwarnings("ignore::streetflow.errors.InputWarning")
def test_changes_among_mixed_speeds_are_equal_to_the_oracle(tmp_path: Path) -> None:
    """Where vehicles that received a signal have their turn after the change that it announced is complete."""
    after_the_change = 0
    for seed in range(12):
        rng = random.Random(seed)
        roadnet = ring(400.0, 3, False)
        flows = [
            {"vehicle": {**rng.choice([CAR, TRUCK]), "maxSpeed": rng.randrange(8, 60) / 2}, "route": ["E", "R0", "R1"],
             "interval": 1.0, "startTime": start, "endTime": start}
            for start in range(0, 40, 2)
        ]  # fmt: skip
        folder = tmp_path / str(seed)
        engine = Engine(write(folder, roadnet, flows, seed=seed, laneChange=True))
        oracle = LaneChangeOracle(folder, 1.0, seed)
        for step in range(90):
            if seed % 3 == 0 and step % 4 == 0:
                for vehicle in oracle.running():
                    vehicle.custom = 9.0
                    engine.set_vehicle_speed(vehicle.id, 9.0)
            oracle.next_step()
            engine.next_step()
            assert_same_lanes(engine, oracle)
        after_the_change += oracle.events["let in after the change"]
    assert after_the_change > 5
