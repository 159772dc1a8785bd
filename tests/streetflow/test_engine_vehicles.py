"""Single vehicles by their names: information, speeds, routes, vehicles pushed in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from streetflow import Engine, InputError
from streetflow.errors import InputWarning
from tests.helpers.driven_engine import ROUTE, SIGNAL
from tests.helpers.small_network import CAR, grid, line, write


def test_vehicle_info(tmp_path: Path) -> None:
    flows = [{"vehicle": dict(CAR), "route": ROUTE, "interval": 1, "startTime": 0, "endTime": 0}] * 2
    engine = Engine(write(tmp_path, grid(seed=1), flows))
    engine.set_tl_phase(SIGNAL, 7)
    engine.next_step()
    ids = engine.get_vehicles()
    info = engine.get_vehicle_info(ids[0])
    assert list(info) == sorted(info)
    assert (info["running"], info["speed"], info["distance"]) == ("1", "2.000000", "1.000000")
    assert (info["road"], info["intersection"], info["route"]) == (ROUTE[0], SIGNAL, "r_-1_0_0 r_0_0_0 ")
    assert info["drivable"] in ("r_-1_0_0_0", "r_-1_0_0_1")
    seen = {}
    while engine.get_vehicle_count():
        for name in engine.get_vehicles():
            info = engine.get_vehicle_info(name)
            seen[info["drivable"].count("_TO_"), info.get("road")] = info["route"]
        engine.next_step()
    assert seen == {
        (0, ROUTE[0]): "r_-1_0_0 r_0_0_0 ",
        (1, None): "r_-1_0_0 r_0_0_0 ",  # on a lane link the road just left is still the first
        (0, ROUTE[1]): "r_0_0_0 ",
    }


@pytest.mark.parametrize("name", ["flow_0_1", "flow_9_0", "flow_00_0", "flow_0_00", "flow_x_0", "nobody", "", "flow_0_²"])
def test_unknown_vehicles(tmp_path: Path, name: str) -> None:
    flows = [{"vehicle": dict(CAR), "route": ROUTE, "interval": 1, "startTime": 0, "endTime": 0}]
    engine = Engine(write(tmp_path, grid(), flows))
    engine.next_step()
    for call in (engine.get_vehicle_info, engine.get_leader, lambda v: engine.set_vehicle_speed(v, 1.0)):
        with pytest.raises(RuntimeError, match=f"^Vehicle '{name}' not found") as caught:
            call(name)
        assert isinstance(caught.value, KeyError) and caught.value.name == name
        assert ("near matches: flow_0_0" in str(caught.value)) == (name not in ("nobody", ""))
    assert engine.set_vehicle_route(name, ROUTE) is False


def test_set_vehicle_speed_acts_once(tmp_path: Path) -> None:
    flows = [{"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 1, "startTime": 0, "endTime": 0}]
    engine = Engine(write(tmp_path, line(), flows))
    engine.step_many(10)
    assert engine.get_vehicle_speed() == {"flow_0_0": 11.11}
    engine.set_vehicle_speed("flow_0_0", 8.0)
    speeds = []
    for _ in range(3):
        engine.next_step()
        speeds.append(engine.get_vehicle_speed()["flow_0_0"])
    assert speeds == [8.0, 10.0, 11.11]
    engine.set_vehicle_speed("flow_0_0", 0.0)
    engine.next_step()
    assert engine.get_vehicle_speed()["flow_0_0"] == 11.11 - 4.5  # bounded by the brakes
    with pytest.raises(ValueError, match="finite"):
        engine.set_vehicle_speed("flow_0_0", float("nan"))


def test_a_vehicle_exactly_at_the_stop_line_stays_there(tmp_path: Path) -> None:
    """Distance to go 0 and speed 0: the stopping formula is 0 / 0, which has to end as standing still."""
    flows = [{"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 1, "startTime": 0, "endTime": 0}]
    engine = Engine(write(tmp_path, line(100.0), flows))
    engine.set_tl_phase("mid", 1)
    engine.next_step()
    state = engine._tables.state
    v = int(state.head[0])
    for values in (state.distance_0, state.distance_1):
        values[v] = 100.0
    for values in (state.speed_0, state.speed_1):
        values[v] = 0.0
    with np.errstate(invalid="ignore"):
        engine.step_many(3)
    assert (engine.get_vehicle_distance(), engine.get_vehicle_speed()) == ({"flow_0_0": 100.0}, {"flow_0_0": 0.0})
    assert engine.lane_waiting_time_sums_s()[0] == 3.0
    engine.set_tl_phase("mid", 0)
    engine.next_step()
    assert engine.get_vehicle_speed() == {"flow_0_0": 2.0}


def test_push_vehicle(tmp_path: Path) -> None:
    engine = Engine(write(tmp_path, line(), []))
    engine.push_vehicle({"speed": 3, "maxSpeed": 9.5, "colour": 7}, ["in_0", "out"])
    assert engine.get_vehicles(include_waiting=True) == ["manually_pushed_0"] and engine.get_vehicles() == []
    assert engine.get_vehicle_info("manually_pushed_0") == {"running": "0"}
    assert engine.get_leader("manually_pushed_0") == ""
    engine.next_step()
    assert engine.get_vehicle_speed() == {"manually_pushed_0": 7.5}  # 3 m/s + 4.5 m/s2
    engine.step_many(5)
    assert engine.get_vehicle_speed() == {"manually_pushed_0": 9.5}
    engine.push_vehicle({}, ["in_0", "out"])
    engine.reset()
    assert engine.get_vehicles(include_waiting=True) == []  # the pushed one is gone, too
    engine.next_step()
    engine.push_vehicle({}, ["in_0", "out"])
    assert engine.get_vehicles(include_waiting=True) == ["manually_pushed_2"]  # numbering goes on


def test_push_vehicle_faults(tmp_path: Path) -> None:
    engine = Engine(write(tmp_path, line(), []))
    for info, roads, message in (
        ({}, [], "push_vehicle: roads: must hold at least 1 road"),
        ({"length": -1}, ["in_0", "out"], r"push_vehicle: info\.length: must be above 0"),
        ({"maxSpeed": "9"}, ["in_0", "out"], r"push_vehicle: info\.maxSpeed: must be a number"),
        ({"speed": float("nan")}, ["in_0", "out"], r"info\.speed: must be finite, is nan"),
        ({"speed": -1}, ["in_0", "out"], r"info\.speed: must be at least 0"),
        ({"width": 10**400}, ["in_0", "out"], r"info\.width: must be finite"),
        ({"minGap": float("inf")}, ["in_0", "out"], r"info\.minGap: must be finite"),
    ):
        with pytest.raises(InputError, match=message):
            engine.push_vehicle(info, roads)
    with pytest.raises(KeyError, match="unknown road 'in_O'; near matches: in_0"):
        engine.push_vehicle({}, ["in_O", "out"])
    with pytest.warns(InputWarning, match="push_vehicle: roads: there is no path from road 'out' to road 'in_0'"):
        engine.push_vehicle({}, ["out", "in_0"])
    assert engine.get_vehicles(include_waiting=True) == ["manually_pushed_0"]
    engine.next_step()
    assert engine.get_vehicles(include_waiting=True) == []
    with pytest.raises(RuntimeError, match="not found"):
        engine.get_vehicle_info("manually_pushed_0")


def test_set_vehicle_route(tmp_path: Path) -> None:
    flows = [{"vehicle": dict(CAR), "route": ROUTE, "interval": 1, "startTime": 1, "endTime": 1}]
    engine = Engine(write(tmp_path, grid(), flows))
    engine.set_tl_phase(SIGNAL, 7)
    engine.push_vehicle({}, ROUTE)
    assert engine.set_vehicle_route("manually_pushed_0", ["r_0_0_1"])  # before it was planned
    assert not engine.set_vehicle_route("manually_pushed_0", ["nowhere"])
    assert not engine.set_vehicle_route("manually_pushed_0", ["r_-1_0_0"])  # one road only
    engine.step_many(2)
    assert engine.get_vehicle_info("manually_pushed_0")["route"] == "r_-1_0_0 r_0_0_1 "
    lane = engine.get_vehicle_info("flow_0_0")["drivable"] if "flow_0_0" in engine.get_vehicles() else ""
    engine.step_many(2)
    lane = lane or engine.get_vehicle_info("flow_0_0")["drivable"]
    turn = {"r_-1_0_0_0": "r_0_0_1", "r_-1_0_0_1": "r_0_0_3"}  # from the inner lane left, from the outer one right
    other = {"r_-1_0_0_0": "r_0_0_3", "r_-1_0_0_1": "r_0_0_1"}
    assert not engine.set_vehicle_route("flow_0_0", [other[lane]])
    assert engine.get_vehicle_info("flow_0_0")["route"] == "r_-1_0_0 r_0_0_0 "
    assert engine.set_vehicle_route("flow_0_0", [turn[lane]])
    assert engine.get_vehicle_info("flow_0_0")["route"] == f"r_-1_0_0 {turn[lane]} "
    on_link = None
    while engine.get_vehicle_count():
        if "flow_0_0" in engine.get_vehicles() and "road" not in engine.get_vehicle_info("flow_0_0"):
            on_link = engine.set_vehicle_route("flow_0_0", [turn[lane]])
        engine.next_step()
    assert on_link is False
    assert engine.finished_vehicle_count == 2
