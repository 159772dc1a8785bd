"""Bad input: one error that names file, place and fault, before any step is run (docs/cityflow-semantics.md, section 12)."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streetflow import Engine, InputError
from streetflow.errors import InputWarning, StepError
from streetflow.roadnet.json_reader import number_from_token, read_json
from tests.helpers.small_network import CAR, dead_end, grid, write

ROADNET = grid()
CROSSING = next(i for i, x in enumerate(ROADNET["intersections"]) if not x["virtual"])
LINKS = f"intersections[{CROSSING}].roadLinks"
LIGHTS = f"intersections[{CROSSING}].trafficLight.lightphases"


def flow(**changes: Any) -> dict[str, Any]:
    return {"vehicle": dict(CAR), "route": ["r_-1_0_0", "r_0_0_0"], "interval": 5, "startTime": 0, "endTime": 0, **changes}


def crossing(roadnet: Any) -> Any:
    return roadnet["intersections"][CROSSING]


def put(value: Any, *path: Any) -> Callable[[Any], None]:
    def change(root: Any) -> None:
        for key in path[:-1]:
            root = root[key]
        root[path[-1]] = value

    return change


def drop(*path: Any) -> Callable[[Any], None]:
    def change(root: Any) -> None:
        for key in path[:-1]:
            root = root[key]
        del root[path[-1]]

    return change


def in_crossing(change: Callable[[Any], None]) -> Callable[[Any], None]:
    return lambda roadnet: change(crossing(roadnet))


ROADNET_FAULTS = [
    (drop("roads"), "roads", "is missing"),
    (put({}, "intersections"), "intersections", "must be an array, not an object"),
    (drop("roads", 3, "id"), "roads[3].id", "is missing"),
    (put("r_-1_0_0", "roads", 3, "id"), "roads[3].id", "is the id of roads[0] already"),
    (put("i_0_0", "intersections", 0, "id"), f"intersections[{CROSSING}].id", "already"),
    (put("3.5", "roads", 1, "lanes", 0, "width"), "roads[1].lanes[0].width", "must be a number, not a string"),
    (put(True, "roads", 1, "lanes", 0, "width"), "roads[1].lanes[0].width", "must be a number, not a boolean"),
    (put(-1, "roads", 1, "lanes", 1, "width"), "roads[1].lanes[1].width", "must be at least 0, is -1"),
    (drop("roads", 1, "lanes", 1, "maxSpeed"), "roads[1].lanes[1].maxSpeed", "is missing"),
    (put(0, "roads", 1, "lanes", 1, "maxSpeed"), "roads[1].lanes[1].maxSpeed", "must be above 0"),
    (put("nowhere", "roads", 2, "startIntersection"), "roads[2].startIntersection", "no intersection 'nowhere'"),
    (put([{"x": 0, "y": 0}], "roads", 2, "points"), "roads[2].points", "at least 2 elements, holds 1"),
    (put([{"x": 1, "y": 0}] * 2, "roads", 2, "points"), "roads[2].points[1]", "same point"),
    (in_crossing(put("no", "virtual")), f"intersections[{CROSSING}].virtual", "must be true or false"),
    (in_crossing(drop("width")), f"intersections[{CROSSING}].width", "is missing"),
    (in_crossing(put("nowhere", "roads", 0)), f"intersections[{CROSSING}].roads[0]", "no road 'nowhere'"),
    (in_crossing(put(3, "roadLinks", 1, "type")), f"{LINKS}[1].type", "must be a string, not an integer"),
    (in_crossing(put("nowhere", "roadLinks", 0, "startRoad")), f"{LINKS}[0].startRoad", "no road 'nowhere'"),
    (in_crossing(put(2, "roadLinks", 0, "laneLinks", 1, "startLaneIndex")),
     f"{LINKS}[0].laneLinks[1].startLaneIndex", "has 2 lanes, there is no lane index 2"),
    (in_crossing(put(-1, "roadLinks", 0, "laneLinks", 1, "endLaneIndex")),
     f"{LINKS}[0].laneLinks[1].endLaneIndex", "no lane index -1"),
    (in_crossing(put(1.0, "roadLinks", 0, "laneLinks", 1, "endLaneIndex")),
     f"{LINKS}[0].laneLinks[1].endLaneIndex", "must be an integer"),
    (in_crossing(put([{"x": 0, "y": 0}], "roadLinks", 0, "laneLinks", 1, "points")),
     f"{LINKS}[0].laneLinks[1].points", "no point or at least 2"),
    (in_crossing(put([], "trafficLight", "lightphases")), LIGHTS, "at least 1 element, holds 0"),
    (in_crossing(drop("trafficLight", "lightphases", 1, "time")), f"{LIGHTS}[1].time", "is missing"),
    (in_crossing(put([99], "trafficLight", "lightphases", 1, "availableRoadLinks")),
     f"{LIGHTS}[1].availableRoadLinks[0]", "there is no road link 99"),
    (put([{"x": 0, "y": 0}, {"x": 90, "y": 0}, {"x": 0, "y": 0}], "roads", 2, "points"),
     "roads[2].points", "or the road turns back"),
]  # fmt: skip

FLOW_FAULTS = [
    (drop("vehicle", "minGap"), "[1].vehicle.minGap", "is missing"),
    (put("5", "vehicle", "length"), "[1].vehicle.length", "must be a number, not a string"),
    (put(0, "vehicle", "usualNegAcc"), "[1].vehicle.usualNegAcc", "must be above 0"),
    (put([], "route"), "[1].route", "at least 1 element"),
    (put(["r_-1_0_0", "nowhere"], "route"), "[1].route[1]", "no road 'nowhere'"),
    (drop("interval"), "[1].interval", "is missing"),
    (put(0, "interval"), "[1].interval", "must be above 0, is 0"),
    (put(-5, "interval"), "[1].interval", "must be above 0"),
    (lambda f: f.update(interval=0.5, endTime=10), "[1].interval", "must be at least 1 s"),
    (put(5.0, "startTime"), "[1].startTime", "CityFlow silently takes 5.0 as 0"),
    (put(7.5, "endTime"), "[1].endTime", "CityFlow silently takes 7.5 as -1"),
    (put("5", "startTime"), "[1].startTime", "must be an integer, not a string"),
]

CONFIG_FAULTS = [
    (drop("interval"), "interval", "is missing"),
    (put(0, "interval"), "interval", "must be above 0"),
    (put(-1.0, "interval"), "interval", "must be above 0"),
    (drop("seed"), "seed", "is missing"),
    (put(1.0, "seed"), "seed", "must be an integer"),
    (put(2**31, "seed"), "seed", "must be at most 2147483647"),
    (drop("dir"), "dir", "is missing"),
    (put(3, "roadnetFile"), "roadnetFile", "must be a string"),
    (drop("rlTrafficLight"), "rlTrafficLight", "is missing"),
    (put("yes", "saveReplay"), "saveReplay", "must be true or false"),
    (lambda c: (c.update(saveReplay=True), c.pop("replayLogFile")), "replayLogFile", "is missing"),
    (put("yes", "laneChange"), "laneChange", "must be true or false"),
]


def expect(path: Path, file: Path, place: str, fault: str) -> InputError:
    with pytest.raises(InputError) as caught:
        Engine(path)
    assert (caught.value.file, caught.value.place) == (str(file), place)
    assert fault in caught.value.fault
    assert str(caught.value).startswith(f"{file}: {place}: " if place else f"{file}: ")
    assert "\n" not in str(caught.value)
    return caught.value


def test_the_network_that_the_faults_are_put_into_is_sound(tmp_path: Path) -> None:
    engine = Engine(write(tmp_path, ROADNET, [flow(), flow()]))
    engine.step_many(60)
    assert engine.get_vehicle_count() + engine.finished_vehicle_count == 2


@pytest.mark.parametrize(("change", "place", "fault"), ROADNET_FAULTS, ids=[f[1] for f in ROADNET_FAULTS])
def test_roadnet_fault(tmp_path: Path, change: Any, place: str, fault: str) -> None:
    roadnet = copy.deepcopy(ROADNET)
    change(roadnet)
    expect(write(tmp_path, roadnet, [flow()]), tmp_path / "roadnet.json", place, fault)


@pytest.mark.parametrize(("change", "place", "fault"), FLOW_FAULTS, ids=[f[1] for f in FLOW_FAULTS])
def test_flow_fault(tmp_path: Path, change: Any, place: str, fault: str) -> None:
    bad = flow()
    change(bad)
    expect(write(tmp_path, ROADNET, [flow(), bad]), tmp_path / "flow.json", place, fault)


def test_a_vehicle_that_is_no_object_is_one_fault(tmp_path: Path) -> None:
    error = expect(write(tmp_path, ROADNET, [flow(vehicle=None)]), tmp_path / "flow.json", "[0].vehicle", "must be an object")
    assert not error.others


def test_flow_file_that_holds_an_object(tmp_path: Path) -> None:
    expect(write(tmp_path, ROADNET, {"flows": []}), tmp_path / "flow.json", "", "must be an array")


@pytest.mark.parametrize(("change", "place", "fault"), CONFIG_FAULTS, ids=[f[1] for f in CONFIG_FAULTS])
def test_config_fault(tmp_path: Path, change: Any, place: str, fault: str) -> None:
    path = write(tmp_path, ROADNET, [flow()])
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))
    expect(path, path, place, fault)


def places(error: InputError) -> list[str]:
    return [error.place, *(place for place, _ in error.others)]


def test_all_faults_of_a_flow_file_are_reported_at_once(tmp_path: Path) -> None:
    bad = flow(interval=0, route=["nowhere", "r_-1_0_0", "neither"], startTime=1.5)
    del bad["vehicle"]["width"], bad["vehicle"]["minGap"]
    error = expect(
        write(tmp_path, ROADNET, [flow(), bad, flow(route=[])]), tmp_path / "flow.json", "[1].vehicle.width", "missing"
    )
    faults = ["[1].vehicle.width", "[1].vehicle.minGap", "[1].route[0]", "[1].route[2]", "[1].interval", "[1].startTime"]
    assert places(error) == [*faults, "[2].route"]
    assert "(also [1].vehicle.minGap: is missing; " in str(error) and str(error).endswith("; and 3 more)")


def test_all_faults_of_a_roadnet_file_are_reported_at_once(tmp_path: Path) -> None:
    roadnet = copy.deepcopy(ROADNET)
    roadnet["roads"][0]["lanes"][1] = {"width": -1}
    roadnet["roads"][0]["endIntersection"] = "nowhere"
    roadnet["roads"][2]["points"] = []
    links = crossing(roadnet)["roadLinks"]
    links[0]["type"] = None
    links[1]["laneLinks"][0] = {"startLaneIndex": 9}
    crossing(roadnet)["trafficLight"]["lightphases"][1]["availableRoadLinks"] = [0, 99, 12]
    del crossing(roadnet)["width"]
    error = expect(write(tmp_path, roadnet, []), tmp_path / "roadnet.json", "roads[0].endIntersection", "nowhere")
    assert [place for place in places(error) if not place.startswith(LINKS)] == [
        "roads[0].endIntersection", "roads[0].lanes[1].width", "roads[0].lanes[1].maxSpeed", "roads[2].points",
        f"intersections[{CROSSING}].width", f"{LIGHTS}[1].availableRoadLinks[1]", f"{LIGHTS}[1].availableRoadLinks[2]",
    ]  # fmt: skip
    assert f"{LINKS}[0].type" in places(error)


def test_all_faults_of_a_config_file_are_reported_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, ROADNET, [], interval="1", seed=None, laneChange=3)
    assert places(expect(path, path, "interval", "a number")) == ["interval", "seed", "laneChange"]


def test_missing_files_are_named_in_full(tmp_path: Path) -> None:
    path = write(tmp_path, ROADNET, [flow()], dir=str(tmp_path))  # no separator at the end
    with pytest.raises(InputError, match="no such file") as caught:
        Engine(path)
    assert f"{tmp_path}roadnet.json" in str(caught.value)
    assert caught.value.file == str(path) and caught.value.place == "dir" and "must end with a slash" in caught.value.fault
    with pytest.raises(InputError, match=r"there is no such file \(tried .*absent\.json\)"):
        Engine("absent.json")
    with pytest.raises(InputError, match="can't be read"):
        Engine(tmp_path)


@pytest.mark.parametrize(
    ("text", "place", "fault"),
    [
        ('{"interval": 1,\n "seed": }', "line 2, column 10", "not JSON: Expecting value"),
        ('{"interval": 1', "line 1, column 15", "not JSON"),
        ("", "line 1, column 1", "not JSON"),
        ('{"seed": 1, "seed": 2}', "", "the key 'seed' twice"),
        ('{"interval": NaN}', "", "NaN is not a JSON number"),
        ('{"interval": 1e999}', "", "too large for a double"),
        (f'{{"interval": {"9" * 400}e-300}}', "", "too large for a double"),
        ("[" * 100_000, "", "nested too deeply"),
        ("[1]", "", "must be an object, not an array"),
    ],
)
def test_malformed_json(tmp_path: Path, text: str, place: str, fault: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    expect(path, path, place, fault)


def test_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b'{"dir": "\xff"}')
    expect(path, path, "byte 9", "isn't UTF-8")


@pytest.mark.parametrize(("time_s", "fault"), [(0, "all times are 0"), (1e-300, "all times add up to")])
def test_lights_that_never_end(tmp_path: Path, time_s: float, fault: str) -> None:
    roadnet = copy.deepcopy(ROADNET)
    for phase in crossing(roadnet)["trafficLight"]["lightphases"]:
        phase["time"] = time_s
    expect(write(tmp_path, roadnet, [], rlTrafficLight=False), tmp_path / "roadnet.json", LIGHTS, fault)
    Engine(write(tmp_path, roadnet, []))  # without their own plan the times don't matter


def test_integral_float_times_need_a_switch(tmp_path: Path) -> None:
    write(tmp_path, ROADNET, [flow(startTime=5.0, endTime=5.0)])
    files = tmp_path / "roadnet.json", tmp_path / "flow.json"
    with pytest.raises(InputError, match="startTime"):
        Engine.from_files(*files)
    engine = Engine.from_files(*files, accept_integral_floats=True)
    engine.step_many(5)
    assert engine.get_vehicles(include_waiting=True) == []
    engine.next_step()
    assert engine.get_vehicles(include_waiting=True) == ["flow_0_0"]


def test_unusual_step_length_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(InputWarning, match=r"interval: 2 s is outside 0\.2 to 1\.5 s"):
        Engine(write(tmp_path, ROADNET, [], interval=2))
    with pytest.raises(InputError, match="interval_s: must be above 0"):
        Engine.from_files(tmp_path / "roadnet.json", tmp_path / "flow.json", interval_s=0)


def test_flows_that_no_step_hits_are_warned_of(tmp_path: Path) -> None:
    flows = [flow(), flow(startTime=1, endTime=1), flow(startTime=2, endTime=3), flow(startTime=9, endTime=4)]
    with pytest.warns(InputWarning, match=r"flow\.json: 2 flows that never fire.*\[1\]: 1 to 1 s; \[3\]: 9 to 4 s$"):
        engine = Engine(write(tmp_path, ROADNET, flows, interval=0.7))
    assert engine.missed_flows == (1, 3)
    engine.step_many(20)
    assert engine.get_vehicles(include_waiting=True) and engine.finished_vehicle_count == 0
    ids = engine.get_vehicles(include_waiting=True)
    assert sorted(ids) == ["flow_0_0", "flow_2_0"]


@pytest.mark.parametrize("how", ["config", "files"])
def test_warnings_name_the_line_that_makes_the_engine(how: str, tmp_path: Path) -> None:
    config = write(tmp_path, ROADNET, [flow(startTime=9, endTime=4)])
    with pytest.warns(InputWarning) as caught:
        if how == "config":
            Engine(config)
        else:
            Engine.from_files(tmp_path / "roadnet.json", tmp_path / "flow.json")
    assert [each.filename for each in caught] == [__file__]


def test_invalid_routes_are_warned_of_and_dropped_but_draw(tmp_path: Path) -> None:
    """The two draws of the dropped vehicle stay consumed: the next one gets the third, as its priority."""
    one_road = flow(route=["r_-1_0_0"])
    backwards = flow(route=["r_0_0_0", "r_-1_0_0"], startTime=1, endTime=1)
    with pytest.warns(InputWarning) as caught:
        engine = Engine(write(tmp_path, ROADNET, [one_road, flow(), backwards], seed=11))
    text = str(caught[0].message)
    assert "[0].route: the route has only one road, 'r_-1_0_0'" in text
    assert "[2].route: there is no path from road 'r_0_0_0' to road 'r_-1_0_0'" in text
    assert engine.invalid_flows == (0, 2)
    engine.step_many(3)
    assert engine.get_vehicles(include_waiting=True) == ["flow_1_0"]
    draws = np.random.RandomState(11).randint(0, 2**32, 4, np.uint32).view(np.int32)
    state = engine._tables.state
    assert state.priority[state.status > 0].tolist() == [draws[2]]
    assert state.flow_dropped.tolist() == [1, 0, 1]
    engine.reset(seed=True)  # dropped flows aren't revived
    engine.next_step()
    assert state.priority[state.status > 0].tolist() == [draws[0]]


def test_dead_end_is_warned_of_and_stops_the_step_in_which_a_vehicle_gets_there(tmp_path: Path) -> None:
    stuck = flow(route=["r_-1_0_0", "r_0_0_0", "r_1_0_0"], interval=5, endTime=40)
    with pytest.warns(InputWarning, match=r"dead end: \[0\]\.route: no path onwards from lane 'r_-1_0_0_1'"):
        engine = Engine(write(tmp_path, dead_end(), [stuck]))
    assert engine.dead_ends == ((0, engine.lane_index["r_-1_0_0_1"]),)
    with pytest.raises(StepError, match=r"vehicle 'flow_0_\d' leaves lane 'r_-1_0_0_1'"):
        engine.step_many(100)
    with pytest.raises(StepError):  # and stays so
        engine.next_step()
    with pytest.raises(RuntimeError, match="in the middle of a step"):
        engine.snapshot()
    engine.reset()
    engine.next_step()


def test_network_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    path = write(tmp_path, ROADNET, [flow()])
    before = Engine(path)
    roadnet = copy.deepcopy(ROADNET)
    roadnet["roads"][0]["lanes"][0]["maxSpeed"] = 7.25
    write(tmp_path, roadnet, [flow()])
    assert Engine(path).lane_max_speed_mps[0] == 7.25 != before.lane_max_speed_mps[0]


# ---------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("token", "value"),
    [
        ("0.1", 0.1),
        ("-2.5e-3", -0.0025),
        ("1E3", 1000.0),
        ("-0.0", -0.0),
        ("0e10", 0.0),
        ("1e-400", 0.0),
        ("184467440737095516150", 184467440737095516150.0),
        # 17 digits: 1811999999999999 has 16 and is exact; one division by 10**15 rounds once
        ("1.811999999999999", 1811999999999999 / 1e15),
        # the integer grows to 90071992547409915 > 2**53, is rounded, then divided: two roundings
        ("9.0071992547409915", float(90071992547409915) / 1e16),
        # past 17 significant digits the rest is skipped, not rounded
        ("0.30000000000000004441", 30000000000000004 / 1e17),
    ],
)
def test_number_conversion(token: str, value: float) -> None:
    result = number_from_token(token)
    assert (result, math.copysign(1, result)) == (value, math.copysign(1, value))


def test_number_conversion_is_not_correctly_rounding() -> None:
    tokens = [f"{k}.{j:016d}" for k in range(30) for j in range(1, 10**16, 10**16 // 37)]
    off = [token for token in tokens if number_from_token(token) != float(token)]
    assert 0 < len(off) < len(tokens)
    assert all(abs(number_from_token(x) - float(x)) <= 2 * math.ulp(float(x)) for x in off)


@given(st.integers(-(10**15), 10**15), st.integers(0, 15))
def test_up_to_fifteen_digits_it_is_plain_float(digits: int, n_decimals: int) -> None:
    text = f"{abs(digits):016d}"
    token = ("-" if digits < 0 else "") + str(int(text[: 16 - n_decimals])) + "." + text[16 - n_decimals :] + "0"
    assert number_from_token(token) == float(token)


def test_big_integers(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[18446744073709551615, -9223372036854775808, 18446744073709551616, 12]")
    values = read_json(path)
    assert values == [2**64 - 1, -(2**63), 2.0**64, 12]
    assert [type(x) for x in values] == [int, int, float, int]
