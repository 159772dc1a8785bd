"""The fast engine against the plain one of `oracle.py`: whole trajectories, bit for bit, on small seeded networks."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from streetflow import Engine
from tests.helpers.oracle import Oracle
from tests.helpers.small_network import CAR, TRUCK, demand, grid, line, write

EXERCISED: Counter[str] = Counter()


def assert_same(engine: Engine, oracle: Oracle) -> None:
    where = f"step {oracle.step}"
    running = sorted(oracle.running(), key=lambda v: v.priority)
    assert engine.get_vehicles() == [v.id for v in running], where
    assert engine.get_vehicle_speed() == {v.id: v.u for v in running}, where
    assert engine.get_vehicle_distance() == {v.id: v.x for v in running}, where
    lanes = engine.get_lane_vehicles()
    for lane, name in enumerate(engine.lane_ids):
        on_lane = oracle.lists[lane]
        assert lanes[name] == [v.id for v in on_lane], where
        assert engine.lane_vehicle_counts()[lane] == len(on_lane), where
        assert engine.lane_waiting_counts()[lane] == sum(v.u < 0.1 for v in on_lane), where
        assert engine.lane_waiting_time_sums_s()[lane] == sum(v.waited for v in on_lane) * oracle.dt, where
        speeds = 0.0
        for v in on_lane:
            speeds += v.u
        assert engine.lane_speed_sums_mps()[lane] == speeds, where
    assert {v.id: engine.get_leader(v.id) for v in running} == {v.id: v.leader.id if v.leader else "" for v in running}, where
    assert engine.get_average_travel_time() == oracle.average_travel_time(), where
    assert engine.finished_vehicle_count == oracle.finished, where


CASES = [  # columns, rows, lanes, road length in m, interval in s, own lights
    (1, 1, 2, 120.0, 1.0, False),
    (1, 1, 3, 60.0, 0.5, True),
    (2, 1, 2, 70.0, 1.0, False),
    (2, 2, 2, 60.0, 1.0, False),
    (2, 2, 1, 90.0, 0.5, False),
    (2, 1, 2, 80.0, 1.5, True),
    (2, 2, 2, 50.0, 0.25, False),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.filterwarnings("ignore::streetflow.errors.InputWarning")
def test_whole_trajectories_are_equal(tmp_path: Path, case: int) -> None:
    n_columns, n_rows, n_lanes, length_m, interval, own_lights = CASES[case]
    n_steps = 200
    roadnet = grid(n_columns, n_rows, seed=case, n_lanes=n_lanes, length_m=length_m)
    flows = demand(roadnet, 40 * n_columns * n_rows, int(n_steps * interval / 2), seed=case)
    flows.insert(3, {**flows[0], "route": [flows[0]["route"][0]]})  # invalid: it draws, then is dropped
    config = write(tmp_path, roadnet, flows, interval=interval, seed=case - 3, rlTrafficLight=not own_lights)
    engine = Engine(config)
    oracle = Oracle(tmp_path, interval, case - 3, own_lights)
    assert len(flows) > 40

    rng = random.Random(case)
    names = [road["id"] for road in roadnet["roads"]]
    signals = [i for i, x in enumerate(roadnet["intersections"]) if not x["virtual"]]
    for step in range(n_steps):
        if not own_lights and step % 10 == 0:
            for signal in signals:
                oracle.phase[signal] = rng.randrange(8)
                engine.set_phase_by_index(signal, oracle.phase[signal])
        known = {v.id: v for v in oracle.running()}
        for name in rng.sample(sorted(known), min(2, len(known))):
            known[name].custom = speed = rng.uniform(0, 12)
            engine.set_vehicle_speed(name, speed)
        if step % 7 == 0:
            kind, speed = dict(rng.choice([CAR, TRUCK])), rng.choice([0.0, 5.0])
            route = flows[rng.randrange(len(flows))]["route"]
            oracle.push(kind, route, speed)
            engine.push_vehicle({**kind, "speed": speed}, route)
        queued = {v.id: v for v in oracle.running() + [v for queue in oracle.queues for v in queue]}
        for name in rng.sample(sorted(queued), min(2, len(queued))):
            wanted = rng.sample(names, 1)
            accepted = oracle.set_route(queued[name], wanted)
            EXERCISED["route changed" if accepted else "route kept"] += 1
            assert engine.set_vehicle_route(name, wanted) == accepted
        oracle.next_step()
        engine.next_step()
        assert_same(engine, oracle)
    assert oracle.finished > 10
    EXERCISED.update(oracle.events)
    EXERCISED["run"] += 1


@pytest.mark.parametrize(("n_columns", "n_rows", "n_lanes", "length_m", "seed"), [(2, 1, 2, 60.0, 18), (2, 1, 3, 40.0, 14)])
def test_crowded_crossings(tmp_path: Path, n_columns: int, n_rows: int, n_lanes: int, length_m: float, seed: int) -> None:
    """Short roads full of standing vehicles, most phases all green: which vehicle blocks which decides the order."""
    roadnet = grid(n_columns, n_rows, seed=seed, n_lanes=n_lanes, length_m=length_m)
    config = write(tmp_path, roadnet, demand(roadnet, 160, 140, seed=seed), seed=seed)
    engine, oracle = Engine(config), Oracle(tmp_path, seed=seed)
    rng = random.Random(seed)
    signals = [i for i, x in enumerate(roadnet["intersections"]) if not x["virtual"]]
    for step in range(120):
        if step % 10 == 0:
            for signal in signals:
                oracle.phase[signal] = 7 if rng.random() < 0.7 else rng.randrange(8)
                engine.set_phase_by_index(signal, oracle.phase[signal])
        oracle.next_step()
        engine.next_step()
        assert_same(engine, oracle)
    assert oracle.events["deadlock"] > 10


@pytest.mark.parametrize("long_first", [True, False])
def test_of_leaders_at_one_distance_the_first_lane_link_wins(tmp_path: Path, long_first: bool) -> None:
    """A lorry and a car stand on two lane links from one lane, their rears 8 m along each: which one does the next follow?"""
    roadnet = line(100.0)
    mid, (lane_in, lane_out) = roadnet["intersections"][0], roadnet["roads"]
    roadnet["roads"].append({**lane_out, "id": "aside"})
    mid["roads"].append("aside")
    for link, end in zip([mid["roadLinks"][0], mid["roadLinks"][0]], ["out", "aside"], strict=True):
        points = [{"x": 0, "y": 0}, {"x": 60, "y": 30 if end == "aside" else 0}]
        lane_link = {"startLaneIndex": 0, "endLaneIndex": 0, "points": points}
        mid["roadLinks"] = [*mid["roadLinks"], {**link, "endRoad": end, "laneLinks": [lane_link]}]
    del mid["roadLinks"][0], lane_in
    mid["trafficLight"]["lightphases"][0]["availableRoadLinks"] = [0, 1]
    slow = {**CAR, "maxSpeed": 1.0, "maxPosAcc": 1.0, "usualPosAcc": 1.0, "maxNegAcc": 1.0, "usualNegAcc": 1.0}
    ends = ["out", "aside"] if long_first else ["aside", "out"]
    flows = [
        {"vehicle": {**slow, "length": length}, "route": ["in_0", end], "interval": 1, "startTime": start, "endTime": start}
        for length, end, start in ((12.0, ends[0], 0), (5.0, ends[1], 30), (5.0, ends[0], 60))
    ]
    config = write(tmp_path, roadnet, flows)
    engine, oracle = Engine(config), Oracle(tmp_path)
    stops = {"flow_0_0": 20.0, "flow_1_0": 13.0}
    for _ in range(150):
        known = {v.id: v for v in oracle.running()}
        for name, stop_m in stops.items():
            if name in known and known[name].drivable >= oracle.n_lanes and known[name].x >= stop_m - 0.5:
                known[name].custom = 0.0
                engine.set_vehicle_speed(name, 0.0)
        oracle.next_step()
        engine.next_step()
        assert_same(engine, oracle)
    assert [engine.get_vehicle_distance()[name] for name in stops] == list(stops.values())
    assert engine.get_leader("flow_2_0") == ("flow_0_0" if long_first else "flow_1_0")


def test_list_order_is_order_of_arrival_where_vehicles_overtake(tmp_path: Path) -> None:
    """Cars merge blindly into a very short lane before slow trucks and leave it first, from behind in its list."""
    slow, fast = {**TRUCK, "maxSpeed": 1.9}, {**CAR, "maxSpeed": 14.0, "maxNegAcc": 3.0}
    flows = [
        {"vehicle": slow, "route": ["in_0", "out"], "interval": 9, "startTime": 0, "endTime": -1},
        {"vehicle": fast, "route": ["in_1", "out"], "interval": 10, "startTime": 0, "endTime": -1},
    ]
    config = write(tmp_path, line(100.0, n_arms=2, exit_m=5.0), flows, interval=0.5)
    engine, oracle = Engine(config), Oracle(tmp_path, 0.5)
    for _ in range(600):
        engine.next_step()
        oracle.next_step()
        assert_same(engine, oracle)
    assert oracle.events["overtook"] > 0


def test_vehicles_that_arrive_in_one_step_are_ordered_by_distance(tmp_path: Path) -> None:
    """Three roads whose cars merge blindly into one lane, often two or three in a step."""
    kinds = [{**CAR, "maxSpeed": 8.0}, {**CAR, "maxSpeed": 11.0}, {**CAR, "maxSpeed": 14.0}]
    flows = [
        {"vehicle": kind, "route": [f"in_{i}", "out"], "interval": 3 + i, "startTime": i, "endTime": -1}
        for i, kind in enumerate(kinds)
    ]
    config = write(tmp_path, line(80.0, n_arms=3, exit_m=150.0), flows)
    engine, oracle = Engine(config), Oracle(tmp_path)
    for _ in range(300):
        engine.next_step()
        oracle.next_step()
        assert_same(engine, oracle)
    assert oracle.events["arrived in another order than found"] > 3


def test_the_runs_above_exercised_every_rule() -> None:
    if EXERCISED["run"] < len(CASES):
        pytest.skip("only meaningful after all runs of this file in one process")
    rare = {"yield": 500, "deadlock": 20, "tie": 20, "red": 500, "full exit": 20, "ran the red": 10, "entry refused": 50}
    rare |= {"dropped": 7, "route changed": 50, "route kept": 50}
    assert {name: EXERCISED[name] for name, least in rare.items() if EXERCISED[name] < least} == {}
