"""What an engine says of single vehicles, by name and as arrays, against a plain reading of its tables; and names made once."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streetflow import Archive, Engine, InputError
from streetflow.engine import directory, tidy
from streetflow.engine.vehicles import VehicleTable, number_of_id
from streetflow.kernels import tables as t
from tests.helpers.drawn_networks import Case, cases, drawn
from tests.helpers.small_network import CAR, demand, grid, write


class Plain:
    """The same results, vehicle by vehicle."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        state = self.state = engine.state
        flip = int(state.counters[t.FLIP])
        self.speed, self.distance = getattr(state, f"speed_{flip}"), getattr(state, f"distance_{flip}")

    def name(self, v: int) -> str:
        flow, ordinal = int(self.state.flow[v]), int(self.state.ordinal[v])
        name = f"flow_{flow}_{ordinal}" if flow >= 0 else f"manually_pushed_{ordinal}"
        return name + "_shadow" * int(self.state.role[v] == t.SHADOW)

    def drivers(self, least: int = t.RUNNING) -> list[int]:
        state = self.state
        return [v for v in range(state.status.size) if state.status[v] >= least and state.role[v] != t.SHADOW]

    def vehicles(self, waiting: bool) -> list[str]:
        slots = self.drivers(t.PENDING if waiting else t.RUNNING)
        return [self.name(v) for v in sorted(slots, key=lambda v: int(self.state.priority[v]))]

    def by_vehicle(self, values: np.ndarray) -> dict[str, float]:
        return dict(sorted((self.name(v), float(values[v])) for v in self.drivers()))

    def on(self, drivable: int) -> list[int]:
        found, v = [], int(self.state.head[drivable])
        while v >= 0:
            found.append(v)
            v = int(self.state.behind[v])
        return found

    def lanes(self) -> dict[str, list[str]]:
        ids = self.engine.lane_ids
        return dict(sorted((ids[lane], [self.name(v) for v in self.on(lane)]) for lane in range(len(ids))))

    def leaders(self) -> dict[str, str]:
        result = {}
        for drivable in range(self.state.head.size):
            on = self.on(drivable)
            for v, ahead in zip(on, [int(self.state.leader[on[0]]) if on else -1, *on], strict=False):
                result[self.name(v)] = self.name(ahead) if ahead >= 0 else ""
        return result

    def infos(self) -> dict[str, dict[str, str]]:
        engine, state, roadnet = self.engine, self.state, self.engine.network.roadnet
        result = {}
        for v in range(state.status.size):
            if state.status[v] < t.PENDING:
                continue
            info = {"running": "0"}
            if state.status[v] == t.RUNNING:
                drivable = int(state.path[state.path_index[v]])
                roads = engine.demand.routes[state.route[v]][int(state.place[v]) :]
                info = {
                    "distance": f"{self.distance[v]:f}",
                    "speed": f"{self.speed[v]:f}",
                    "drivable": (engine.lane_ids + engine.network.link_ids)[drivable],
                    "route": "".join(roadnet.roads[road].id + " " for road in roads),
                    "running": "1",
                }
                if drivable < len(engine.lane_ids):
                    road = roadnet.roads[roadnet.lane_road[drivable]]
                    info |= {"road": road.id, "intersection": engine.intersection_ids[road.end_intersection]}
            result[self.name(v)] = dict(sorted(info.items()))
        return result


def check(engine: Engine) -> int:
    """Everything is equal, in order too. Returns the number of running vehicles."""
    plain = Plain(engine)
    lanes, speeds = engine.get_lane_vehicles(), engine.get_vehicle_speed()
    assert list(lanes.items()) == list(plain.lanes().items())
    assert list(speeds.items()) == list(plain.by_vehicle(plain.speed).items())
    assert list(engine.get_vehicle_distance().items()) == list(plain.by_vehicle(plain.distance).items())
    assert engine.get_vehicles() == plain.vehicles(False)
    assert engine.get_vehicles(include_waiting=True) == plain.vehicles(True)
    for name, info in plain.infos().items():
        assert list(engine.get_vehicle_info(name).items()) == list(info.items())
    leaders = plain.leaders()
    for name in speeds:
        assert engine.get_leader(name) == leaders[name]
    check_table(engine, plain, leaders)
    return len(speeds)


def check_table(engine: Engine, plain: Plain, leaders: dict[str, str]) -> None:
    table = engine.vehicle_table()
    names = engine.vehicle_names(table.number)
    assert [number_of_id(name) for name in names] == table.number.tolist()
    on = [plain.on(drivable) for drivable in range(engine.state.head.size)]
    slots = [v for vehicles in on for v in vehicles]
    assert table.first.tolist() == np.cumsum([0] + [len(vehicles) for vehicles in on]).tolist()
    assert names == [plain.name(v) for v in slots]
    assert table.drivable.tolist() == np.repeat(np.arange(len(on)), [len(vehicles) for vehicles in on]).tolist()
    assert [names[row] if row >= 0 else "" for row in table.leader] == [leaders[name] for name in names]
    assert table.speed_mps.tolist() == plain.speed[slots].tolist()
    assert table.distance_m.tolist() == plain.distance[slots].tolist()
    state = engine.state
    for name, values in (("route", table.route), ("place", table.place), ("priority", table.priority)):
        assert values.tolist() == getattr(state, name)[slots].tolist()
    assert table.created_s.tolist() == (state.enter_step[slots] * engine.config.interval_s).tolist()
    sums = np.bincount(table.drivable, table.waiting_s, len(on))[: len(engine.lane_ids)]
    np.testing.assert_allclose(sums, engine.lane_waiting_time_sums_s(), rtol=1e-12)
    infos = plain.infos()
    for name, route, place in zip(names, table.route.tolist(), table.place.tolist(), strict=True):
        assert " ".join([*engine.route_road_ids(route)[place:], ""]) == infos[name]["route"]


def disturb(engine: Engine, case: Case, draw: random.Random) -> None:
    """One of all the ways in which vehicles come, go or move in memory other than by a step."""
    what = draw.choice(["push", "push", "route", "renumber", "snapshot", "copy", "reset"])
    roads = case.flows[0]["route"] if case.flows else []
    if what == "push" and roads:
        for _ in range(draw.choice([1, 80])):  # 80: the tables grow
            engine.push_vehicle({"speed": 1.0}, roads)
    elif what == "route":
        for name in engine.get_vehicles()[:5]:
            engine.set_vehicle_route(name, roads)
    elif what == "renumber":
        tidy.renumber(engine._tables, np.random.default_rng(draw.randrange(99)).permutation(engine._tables.sizes["slots"]))
        engine.next_step()
    elif what == "snapshot":
        archive = engine.snapshot()
        engine.step_many(draw.randrange(5))
        check(engine)
        engine.load(archive)
    elif what == "copy":
        archive = Archive(engine)
        engine.reset(seed=draw.random() < 0.5)
        engine.step_many(draw.randrange(9))
        check(engine)
        engine.load(archive)
    elif what == "reset":
        engine.reset()


@pytest.mark.parametrize("lane_change", [False, True], ids=["keeping lanes", "changing lanes"])
@drawn(max_examples=12)
@given(case=cases(), seed=st.integers(0, 999))
def test_reading_equals_a_plain_reading(tmp_path: Path, lane_change: bool, case: Case, seed: int) -> None:
    engine = Engine(case.write(tmp_path, laneChange=lane_change))
    draw = random.Random(seed)
    for _ in range(25):
        if not case.own_lights:
            engine.set_tl_phase(draw.choice(case.signals), draw.randrange(4))
        engine.step_many(draw.choice([1, 1, 1, 2, 30]))
        if draw.random() < 0.7:  # otherwise, the changes of several steps come at once
            check(engine)
        if draw.random() < 0.2:
            disturb(engine, case, draw)
            check(engine)


def test_names_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roadnet = grid(2, 1, seed=5)
    engine = Engine(write(tmp_path, roadnet, demand(roadnet, 60, 60, seed=5), seed=4))
    made: list[tuple[int, int, bool]] = []

    def note(flow: int, ordinal: int, is_shadow: bool) -> str:
        made.append((flow, ordinal, is_shadow))
        return original(flow, ordinal, is_shadow)

    original = directory.vehicle_id
    monkeypatch.setattr(directory, "vehicle_id", note)
    for _ in range(100):
        engine.next_step()
        assert check(engine) >= 0
    assert len(made) == len(set(made)) == engine.trips().flow.size > 50


def test_many_vehicles_at_once_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Numbers of one to four digits, before, behind and between those that are known; and pushed vehicles after all."""
    roadnet = grid()
    flow = {"vehicle": dict(CAR), "route": ["r_-1_0_0", "r_0_0_0"], "interval": 1, "startTime": 0, "endTime": 1200}
    flows = [flow | {"startTime": 40 * (number % 3)} for number in range(12)]
    engine = Engine(write(tmp_path, roadnet, flows))
    engine.step_many(20)
    check(engine)
    engine.step_many(1000)
    engine.push_vehicle({}, ["r_-1_0_0", "r_0_0_0"])
    present = engine.get_vehicles(include_waiting=True)
    assert len(present) > 8000
    slots, by_name = engine._directory, sorted(present)
    names = slots.read(engine.memory, engine.state).names
    assert names[slots._by_name[: len(present)]].tolist() == by_name and by_name[-1] == "manually_pushed_0"
    assert [key for key, _ in sorted(slots.slots(engine.memory, engine.state).items())] == by_name


def test_results_belong_to_the_caller(tmp_path: Path) -> None:
    roadnet = grid(seed=5)
    engine = Engine(write(tmp_path, roadnet, demand(roadnet, 60, 60, seed=5)))
    engine.step_many(30)
    kept = engine.vehicle_table()
    speeds, lanes, vehicles = engine.get_vehicle_speed(), engine.get_lane_vehicles(), engine.get_vehicles()
    before = [values.copy() for values in kept]
    assert len(vehicles) > 10
    engine.get_vehicle_speed().clear()
    engine.get_vehicles().clear()
    for ids in engine.get_lane_vehicles().values():
        ids.clear()
    assert (engine.get_vehicle_speed(), engine.get_lane_vehicles(), engine.get_vehicles()) == (speeds, lanes, vehicles)
    engine.step_many(10)
    assert all((values == copy).all() for values, copy in zip(kept, before, strict=True))
    assert engine.get_vehicle_speed() != speeds


def test_numbers_of_ids() -> None:
    ids = ["flow_0_0", "flow_0_1_shadow", "flow_123456_7890", "manually_pushed_0", "manually_pushed_9_shadow"]
    assert Engine.vehicle_names(None, np.array([number_of_id(name) for name in ids])) == ids  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'car' can't be the id of a vehicle"):
        number_of_id("car")
    assert VehicleTable._fields[:2] == ("first", "number")


def test_names_of_the_authors_fork(tmp_path: Path) -> None:
    """A config as text; the count of finished vehicles and the deviation of travel times."""
    roadnet = grid(2, 1, seed=5)
    config = write(tmp_path, roadnet, demand(roadnet, 60, 60, seed=5), seed=4)
    engine, same = Engine(config), Engine(f"\n {config.read_text()}", thread_num=1)
    assert engine.get_std_travel_time() == 0.0
    for each in (engine, same):
        each.step_many(80)
    assert engine.get_vehicle_speed() == same.get_vehicle_speed() != {}
    assert engine.get_finished_vehicle_cnt() == engine.finished_vehicle_count > 0
    times = engine.trips().travel_time_s.tolist()
    mean = sum(times) / len(times)
    assert engine.get_std_travel_time() == pytest.approx((sum((x - mean) ** 2 for x in times) / len(times)) ** 0.5)
    content = json.loads(config.read_text())
    del content["seed"]
    with pytest.raises(InputError, match=r"^config: seed: is missing"):
        Engine(json.dumps(content))
    with pytest.raises(InputError, match=r"^config: line 1, column 2: not JSON"):
        Engine("{")


def test_archive_of_an_engine(tmp_path: Path) -> None:
    roadnet = grid(seed=5)
    config = write(tmp_path, roadnet, demand(roadnet, 60, 60, seed=5))
    engine, other = Engine(config), Engine(config)
    engine.step_many(30)
    archive = Archive(engine)
    engine.step_many(7)
    other.load(archive)
    other.step_many(7)
    assert engine.get_vehicle_speed() == other.get_vehicle_speed() != {}
    with pytest.raises(TypeError, match="an Archive is made of an Engine"):
        Archive("archive.json")  # type: ignore[arg-type]
