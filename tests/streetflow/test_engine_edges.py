"""Small cases on which the real CityFlow was recorded (`tests/golden/engine`): equal at every step, to the last bit."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streetflow import Engine, InputWarning
from tests.helpers.places import ROOT
from tests.helpers.small_network import write
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
    told_in_words |= {"route_comes_back_within_look_ahead"}
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
