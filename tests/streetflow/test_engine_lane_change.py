"""Lane changing: the fast engine against the plain one, bit for bit, and what the interface shows of it."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streetflow import Engine, InputError
from streetflow.engine.start import INITIAL_SLOTS
from streetflow.kernels import tables as t
from streetflow.kernels.crossing import live_blocker
from tests.helpers.lane_change_oracle import Driver, LaneChangeOracle
from tests.helpers.small_network import CAR, TRUCK, demand, grid, write

EXERCISED: Counter[str] = Counter()


def shown_leader(v: Driver) -> str:
    """`get_leader` of a shadow is its owner's."""
    leader = (v.owner or v).leader
    return leader.id if leader else ""


def assert_same(engine: Engine, oracle: LaneChangeOracle) -> None:
    where = f"step {oracle.step}"
    running = sorted(oracle.running(), key=lambda v: v.priority)
    drivers = [v for v in running if v.owner is None]
    assert engine.get_vehicles() == [v.id for v in drivers], where
    assert engine.get_vehicle_speed() == {v.id: v.u for v in drivers}, where
    assert engine.get_vehicle_distance() == {v.id: v.x for v in drivers}, where
    assert engine.get_vehicle_count() == len(running), where
    lanes = engine.get_lane_vehicles()
    for lane, name in enumerate(engine.lane_ids):
        on_lane = oracle.lists[lane]
        assert lanes[name] == [v.id for v in on_lane], where
        assert engine.lane_vehicle_counts()[lane] == len(on_lane), where
        assert engine.lane_waiting_counts()[lane] == sum(v.u < 0.1 for v in on_lane), where
        assert engine.lane_waiting_time_sums_s()[lane] == sum(v.waited for v in on_lane) * oracle.dt, where
    assert {v.id: engine.get_leader(v.id) for v in running} == {v.id: shown_leader(v) for v in running}, where
    assert engine.get_average_travel_time() == oracle.average_travel_time(), where
    assert engine.finished_vehicle_count == oracle.finished, where
    trips = engine.trips()  # of drivers
    assert trips.finished.sum() == oracle.finished - oracle.events["shadow counted as a trip"], where
    assert len(set(trips.ids)) == trips.finished.size == trips.finished.sum() + len(engine.get_vehicles(True)), where


CASES = [  # columns, rows, lanes, their width and length in m, interval in s, own lights, straight on within the lane only
    (1, 1, 3, 3.2, 220.0, 1.0, False, False),
    (2, 1, 3, 3.2, 160.0, 1.0, False, True),
    (2, 2, 2, 9.0, 130.0, 1.0, False, False),
    (1, 1, 4, 3.2, 300.0, 0.5, True, False),
    (2, 1, 2, 8.0, 150.0, 1.5, False, True),
    (2, 2, 3, 12.0, 100.0, 0.3, True, True),
]
ROAD_TRAIN = {**TRUCK, "length": 90.0}  # reaches back from a lane link to where others change


def network(case: int) -> Any:
    n_columns, n_rows, n_lanes, width_m, length_m, _, _, strict = CASES[case]
    roadnet = grid(n_columns, n_rows, seed=case, n_lanes=n_lanes, length_m=length_m)
    for road in roadnet["roads"]:  # lanes of different widths, limits and, on bends, lengths
        if width_m > 5:
            start, end = road["points"][0], road["points"][-1]
            road["points"][1:-1] = [{"x": (start["x"] + end["x"]) / 2 + 20, "y": (start["y"] + end["y"]) / 2 + 20}]
        for i, lane in enumerate(road["lanes"]):
            lane.update(width=width_m + 0.3 * i, maxSpeed=13.9 - 1.7 * i)
    for intersection in roadnet["intersections"]:
        for link in intersection.get("roadLinks", []):
            if strict and link["type"] == "go_straight":
                link["laneLinks"] = [x for x in link["laneLinks"] if x["startLaneIndex"] == x["endLaneIndex"]]
    return roadnet


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.filterwarnings("ignore::streetflow.errors.InputWarning")
def test_whole_trajectories_are_equal(tmp_path: Path, case: int) -> None:
    n_columns, n_rows, _, _, _, interval, own_lights, _ = CASES[case]
    n_steps = 250
    roadnet = network(case)
    flows = demand(roadnet, 60 * n_columns * n_rows, int(n_steps * interval / 2), seed=case)
    for i in range(0, len(flows), 3):  # slow ones, to be left behind
        flows[i]["vehicle"] = {**flows[i]["vehicle"], "maxSpeed": 4.0 + i % 5}
    config = write(tmp_path, roadnet, flows, interval=interval, seed=case, rlTrafficLight=not own_lights, laneChange=True)
    engine = Engine(config, thread_num=2)
    oracle = LaneChangeOracle(tmp_path, interval, case, own_lights)

    rng = random.Random(case)
    names = [road["id"] for road in roadnet["roads"]]
    signals = [i for i, x in enumerate(roadnet["intersections"]) if not x["virtual"]]
    for step in range(n_steps):
        if not own_lights and step % 10 == 0:
            for signal in signals:
                oracle.phase[signal] = rng.randrange(8)
                engine.set_phase_by_index(signal, oracle.phase[signal])
        known = {v.id: v for v in oracle.running()}
        for name in rng.sample(sorted(known), min(2, len(known))):  # of shadows, too
            known[name].custom = speed = rng.choice([0.0, rng.uniform(0, 12)])
            engine.set_vehicle_speed(name, speed)
        if step % 7 == 0:
            kind, route = dict(rng.choice([CAR, ROAD_TRAIN])), flows[rng.randrange(len(flows))]["route"]
            oracle.push(kind, route, 0.0)
            engine.push_vehicle(kind, route)
        for name in rng.sample(sorted(known), min(1, len(known))):
            wanted = rng.sample(names, 1)
            accepted = oracle.set_route(known[name], wanted)
            assert engine.set_vehicle_route(name, wanted) == accepted
            EXERCISED["route changed in a change" if accepted and known[name].pair() != [known[name]] else "other"] += 1
        oracle.next_step()
        engine.next_step()
        assert_same(engine, oracle)
    assert oracle.finished > 10
    EXERCISED.update(oracle.events)
    EXERCISED["run"] += 1


def test_the_runs_above_exercised_every_rule() -> None:
    if EXERCISED["run"] < len(CASES):
        pytest.skip("only meaningful after all runs of this file in one process")
    rare = {"change": 500, "change done": 400, "change aborted": 5, "change aborted by the owner": 2, "let in": 100}
    rare |= {"signal kept": 20, "signal refused": 100, "before a dead end": 50, "leader on a lane link": 1, "yield": 100}
    rare |= {"route changed in a change": 3}
    assert {name: EXERCISED[name] for name, least in rare.items() if EXERCISED[name] < least} == {}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Fast cars behind a slow truck on a straight road of two lanes."""
    roadnet = grid(1, 1, seed=5, length_m=300.0)
    for road in roadnet["roads"]:
        road["points"] = [road["points"][0], road["points"][-1]]
    kinds = [{**TRUCK, "maxSpeed": 5.0}, CAR, CAR, CAR]
    flows = [
        {"vehicle": kind, "route": ["r_-1_0_0", "r_0_0_0"], "interval": 1, "startTime": 4 * i, "endTime": 4 * i}
        for i, kind in enumerate(kinds)
    ]
    return write(tmp_path, roadnet, flows, seed=4, laneChange=True, saveReplay=True)


def until_change(engine: Engine) -> str:
    """Step until a vehicle changes lanes; returns the owner's id."""
    engine.set_tl_phase("i_0_0", 7)
    for _ in range(60):
        engine.next_step()
        on_lanes = [name for names in engine.get_lane_vehicles().values() for name in names]
        for name in on_lanes:
            if name.endswith("_shadow"):
                return name.removesuffix("_shadow")
    raise AssertionError("no vehicle has changed lanes")


def test_counts_include_shadows_and_lists_leave_them_out(config: Path) -> None:
    engine = Engine(config)
    name = until_change(engine)
    shadow = f"{name}_shadow"
    ids = engine.get_vehicles()
    assert name in ids and shadow not in ids
    assert sorted(engine.get_vehicle_speed()) == sorted(engine.get_vehicle_distance()) == sorted(ids)
    assert engine.get_vehicle_count() == len(ids) + 1 == sum(engine.get_lane_vehicle_count().values())
    assert shadow not in engine.get_vehicles(include_waiting=True)


def test_a_shadow_is_known_by_its_id(config: Path) -> None:
    engine = Engine(config)
    name = until_change(engine)
    owner, shadow = engine.get_vehicle_info(name), engine.get_vehicle_info(f"{name}_shadow")
    assert owner["drivable"] != shadow["drivable"] and owner["road"] == shadow["road"]
    assert {k: owner[k] for k in ("speed", "distance", "route")} == {k: shadow[k] for k in ("speed", "distance", "route")}
    assert engine.get_leader(f"{name}_shadow") == engine.get_leader(name) != ""
    with pytest.raises(RuntimeError, match="'flow_9_0_shadow' not found"):
        engine.get_vehicle_info("flow_9_0_shadow")
    speed = float(owner["speed"])
    engine.set_vehicle_speed(f"{name}_shadow", speed - 1)
    engine.next_step()  # both drive at the lesser speed
    assert engine.get_vehicle_speed()[name] == pytest.approx(speed - 1, abs=1e-6)


def test_a_change_moves_the_vehicle_to_the_other_lane(config: Path) -> None:
    engine = Engine(config)
    name = until_change(engine)
    target = engine.get_vehicle_info(f"{name}_shadow")["drivable"]
    finished = engine.finished_vehicle_count
    while f"{name}_shadow" in str(engine.get_lane_vehicles()):
        assert engine.get_vehicle_info(name)["drivable"] != target
        engine.next_step()
    assert engine.get_vehicle_info(name)["drivable"] == target
    assert engine.finished_vehicle_count == finished  # an owner that goes has not ended a trip


def test_replay_shows_where_a_changing_vehicle_is(config: Path) -> None:
    engine = Engine(config)
    name = until_change(engine)
    width = 3.5
    own, beside = (engine.lane_index[engine.get_vehicle_info(one)["drivable"]] for one in (name, f"{name}_shadow"))
    while f"{name}_shadow" in str(engine.get_lane_vehicles()):
        engine.next_step()
    engine.set_save_replay(False)
    lines = (config.parent / "replay.txt").read_text().splitlines()
    assert "_shadow" not in "".join(lines)
    seen = [v.split() for line in lines for v in line.split(";")[0].split(",") if f" {name} " in v]
    changing = [v for v in seen if v[4] != "0"]
    assert {int(v[4]) for v in changing} == {beside - own}  # -1 inwards, 1 outwards
    angle = float(seen[0][2])
    across = [math.sin(angle) * float(v[0]) - math.cos(angle) * float(v[1]) for v in seen]  # m to the right
    first = next(i for i, v in enumerate(seen) if v[4] != "0")
    gone = [width - (across[-1] - x) * (beside - own) for x in across]
    assert gone[: first + 2] == pytest.approx([0.0] * first + [1.0, 2.0], abs=0.3)  # at least 1 m/s sideways
    assert all(after > before - 1e-9 for before, after in pairwise(gone[first:]))


def state(engine: Engine) -> tuple[object, ...]:
    shown = (engine.get_lane_vehicles(), engine.get_vehicle_speed(), engine.get_vehicle_distance(), engine.get_vehicles())
    return (*shown, engine.get_average_travel_time(), engine.finished_vehicle_count, engine.get_vehicle_count())


def run(engine: Engine, n_steps: int) -> list[tuple[object, ...]]:
    seen = []
    for _ in range(n_steps):
        engine.next_step()
        seen.append(state(engine))
    return seen


def test_snapshots_in_the_middle_of_a_change(config: Path, tmp_path: Path) -> None:
    engine = Engine.from_files(tmp_path / "roadnet.json", tmp_path / "flow.json", seed=4, lane_change=True)
    until_change(engine)
    archive = engine.snapshot()
    archive.dump(tmp_path / "archive.json")
    after = run(engine, 80)
    engine.load(archive)
    assert run(engine, 80) == after
    other = Engine.from_files(tmp_path / "roadnet.json", tmp_path / "flow.json", seed=9, lane_change=True)
    other.load_from_file(tmp_path / "archive.json")
    assert run(other, 80) == after
    other.reset(seed=True)
    first = run(other, 80)
    other.reset(seed=True)
    assert run(other, 80) == first
    ordinary = Engine.from_files(tmp_path / "roadnet.json", tmp_path / "flow.json", seed=4)
    with pytest.raises(InputError, match="laneChange: is of an engine with another setting"):
        ordinary.load(archive)


def test_many_shadows_find_room(tmp_path: Path) -> None:
    """Slots are made for the shadows, also within one call of many steps."""
    roadnet = grid(1, 1, seed=1, n_lanes=4, length_m=900.0)
    flows = [
        {"vehicle": {**CAR, "maxSpeed": 6.0 + i % 6}, "route": [start, end], "interval": 2, "startTime": i, "endTime": -1}
        for i, (start, end) in enumerate([("r_-1_0_0", "r_0_0_0"), ("r_1_0_2", "r_0_0_2"), ("r_0_-1_1", "r_0_0_1")] * 3)
    ]
    config = write(tmp_path, roadnet, flows, laneChange=True, rlTrafficLight=False)
    one, many = Engine(config), Engine(config)
    for _ in range(300):
        one.next_step()
    many.step_many(300)
    assert state(one) == state(many)
    assert one.get_vehicle_count() > 2 * INITIAL_SLOTS


def test_no_vehicle_yields_to_one_that_has_left(tmp_path: Path) -> None:
    """Its slot still holds the vehicle that it yielded to: that must not close a circle. It matters for owners that complete a
    change; a vehicle that yields before the end of its route can't reach that end in the same step."""
    engine = Engine(write(tmp_path, grid(), demand(grid(), 20, 5)))
    engine.step_many(10)
    state = engine._tables.state
    v, w = (int(slot) for slot in np.flatnonzero(state.status == t.RUNNING)[:2])
    blocker = np.full(state.status.size, -1, np.int32)
    live = getattr(live_blocker, "py_func", live_blocker)  # the kernel's function, uncompiled
    assert live(state, v, blocker) == -1
    blocker[v] = w
    assert live(state, v, blocker) == w
    state.status[w] = t.FREE
    assert live(state, v, blocker) == -1


def test_a_road_too_long_to_change_lanes_on(tmp_path: Path) -> None:
    path = write(tmp_path, grid(length_m=1e6), [], laneChange=True)
    with pytest.raises(InputError, match=r"roadnet\.json: roads\[0\]\.points: are .* m long: too long to change"):
        Engine(path)


def test_lane_changing_is_off_unless_asked_for(config: Path, tmp_path: Path) -> None:
    content = json.loads(config.read_text())
    del content["laneChange"]
    config.write_text(json.dumps({**content, "saveReplay": False}))
    engines = [Engine(config), Engine.from_files(tmp_path / "roadnet.json", tmp_path / "flow.json", seed=4)]
    for engine in engines:
        with pytest.raises(AssertionError, match="no vehicle has changed lanes"):
            until_change(engine)
