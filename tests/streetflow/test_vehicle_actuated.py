"""The vehicle-actuated rule: a light decided by hand, a street against the same in plain sets, its loops against the engine."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from streetflow.control.conditions import Conditions
from streetflow.control.controllers import run
from streetflow.control.environment import Environment
from streetflow.control.intersection import Intersection
from streetflow.control.vehicle_actuated import LONG_AGO_S, StopLines, VehicleActuated
from streetflow.engine.vehicles import Vehicles
from streetflow.errors import FieldError
from tests.streetflow.test_features import LIGHT


class Road:
    """A light and its lanes as the rule reads them, set by the test. In-lanes are 0 and 1 (road a) and 2 (road b)."""

    intersections = (LIGHT,)
    decision_interval_s = 1

    def __init__(self) -> None:
        self.lane_length_m = np.full(5, 100.0)
        self.on_lanes: dict[int, int] = {}  # lane by vehicle
        self.current_action, self.elapsed_s = np.array([2], np.int32), np.array([0], np.int32)

    @property
    def traffic(self) -> Road:
        return self

    def lane_vehicle_counts(self) -> np.ndarray:
        return np.bincount(np.array([*self.on_lanes.values()], np.int64), minlength=5).astype(np.int32)

    def running_vehicles(self) -> Vehicles:
        order = sorted(self.on_lanes, key=lambda serial: (self.on_lanes[serial], -serial))
        lanes = np.array([self.on_lanes[serial] for serial in order], np.int32)
        return Vehicles(lanes, np.array(order, np.int64), np.zeros(len(order)), np.zeros(len(order)))

    def second(self, rule: VehicleActuated, *leave: int) -> int:
        for serial in leave:
            del self.on_lanes[serial]
        self.elapsed_s += 1
        return int(rule.act(np.zeros((1, 1, 1), np.int32))[0])


def started(vehicles: dict[int, int], **parameters: int) -> tuple[VehicleActuated, Road]:
    """Action 2 is on, which opens lanes 0 and 2; action 1 opens lane 1: these two are the ring."""
    road = Road()
    road.on_lanes = dict(vehicles)
    rule = VehicleActuated(**parameters)
    rule.reset(road)  # type: ignore[arg-type]
    return rule, road


def test_it_rests_while_nobody_calls() -> None:
    rule, road = started({1: 0, 2: 2})
    assert [road.second(rule) for _ in range(100)] == [2] * 100


def test_it_gaps_out_when_nobody_has_passed_for_the_passage_time() -> None:
    rule, road = started({1: 0, 2: 0, 3: 0, 9: 1}, min_green_s=5)
    assert [road.second(rule) for _ in range(3)] == [2] * 3  # minimum green
    assert [road.second(rule, 1), *(road.second(rule) for _ in range(2))] == [2] * 3  # 1 has passed: three seconds
    assert [road.second(rule, 2), *(road.second(rule) for _ in range(2))] == [2] * 3  # so has 2
    assert road.second(rule) == 1  # 3 is on its way, far from the stop line


def test_an_empty_lane_holds_nothing() -> None:
    rule, road = started({1: 0, 9: 1})
    assert [road.second(rule) for _ in range(4)] == [2] * 4
    assert road.second(rule, 1) == 1


def test_it_maxes_out_after_the_first_call() -> None:
    rule, road = started({serial: 0 for serial in range(1, 60)}, max_green_s=10)
    assert [road.second(rule, serial) for serial in range(1, 21)] == [2] * 20  # nobody calls
    road.on_lanes[99] = 1
    assert [road.second(rule, serial) for serial in range(21, 32)] == [2] * 10 + [1]


def test_a_change_begins_the_maximum_anew() -> None:
    rule, road = started({**{serial: 0 for serial in range(1, 20)}, **{serial: 1 for serial in range(20, 90)}}, max_green_s=10)
    assert [road.second(rule, serial) for serial in range(1, 12)] == [2] * 10 + [1]
    road.current_action, road.elapsed_s = np.array([1], np.int32), np.array([0], np.int32)
    assert [road.second(rule, serial) for serial in range(20, 31)] == [1] * 10 + [2]


@pytest.mark.parametrize("name", ["passage_s", "max_green_s", "min_green_s"])
def test_no_times_below_a_second(name: str) -> None:
    with pytest.raises(FieldError, match=name):
        VehicleActuated(**{name: 0})


class Plain:
    """The rule again, one light, in sets of lane links: passage 3 s, 60 s of green at most."""

    def __init__(self, light: Intersection, ring: list[int]) -> None:
        self.opened = [set(links) for links in light.phase_lane_links]
        self.light, self.ring, self.now, self.called_s = light, ring, 0, 0

    def gains(self, old: int, new: int) -> set[int]:
        return {self.light.lane_links[link][0] for link in self.opened[new] - self.opened[old]}

    def choice(self, now: int, elapsed_s: int, counts: dict[int, int], quiet_s: dict[int, int]) -> int:
        if now != self.now:
            self.now, self.called_s = now, 0
        order = [(now + k) % len(self.opened) for k in range(1, len(self.opened))]
        called = [a for a in order if a in self.ring and any(counts[lane] for lane in self.gains(now, a))]
        if not called:
            self.called_s = 0
            return now
        losers = set().union(*(self.gains(a, now) for a in range(len(self.opened))))
        held = any(counts[lane] and quiet_s[lane] < 3 for lane in losers) and self.called_s < 60
        self.called_s += 1
        return now if held or elapsed_s < 5 else called[0]


def test_a_street_of_lights() -> None:
    rule = VehicleActuated()
    environment = Environment(
        "arterial", 0, features=rule.features, clearance="computed", horizon_s=1200, decision_interval_s=1
    )
    environment.reset()
    rule.reset(environment)
    lights = environment.intersections
    plain = [Plain(light, [0, 1, 2, 3]) for light in lights]
    in_lanes = {lane for light in lights for lane in light.in_lanes}
    before: dict[int, int] = {}
    quiet_s = dict.fromkeys(in_lanes, 10**6)
    served: list[set[int]] = [set() for _ in lights]
    greens, done = defaultdict(list), False
    while not done:
        vehicles = environment.engine.running_vehicles()
        after = {s: d for s, d in zip(vehicles.serial.tolist(), vehicles.drivable.tolist(), strict=True) if d in in_lanes}
        quiet_s = {lane: seconds + 1 for lane, seconds in quiet_s.items()}
        quiet_s |= {lane: 0 for serial, lane in before.items() if after.get(serial) != lane}
        before = after
        counts = dict.fromkeys(in_lanes, 0)
        for lane in after.values():
            counts[lane] += 1
        actions = rule.act(np.zeros((3, 1, 1), np.int32))
        for i in range(3):
            now, elapsed_s = int(environment.current_action[i]), int(environment.elapsed_s[i])
            assert actions[i] == plain[i].choice(now, elapsed_s, counts, quiet_s)
            served[i].add(now)
            greens[i].append(now)
        _, _, done = environment.step(actions)
    assert served == [{0, 1, 2, 3}] * 3
    changes = [sum(a != b for a, b in pairwise(each)) for each in greens.values()]
    assert all(1200 / 70 < count < 1200 / 17 for count in changes)  # maxima and minima with their clearances


def test_loops_notice_each_vehicle_that_leaves() -> None:
    environment = Environment("crossing", 0, decision_interval_s=1, horizon_s=600)
    environment.reset()
    (light,) = environment.intersections
    loops = StopLines([light], environment.traffic)
    assert (loops.quiet_s >= LONG_AGO_S).all()
    noticed, rng = 0, np.random.default_rng(1)
    for second in range(600):
        before = environment.engine.running_vehicles()
        environment.step([int(rng.integers(8)) if second % 30 == 0 else int(environment.current_action[0])])
        after = dict(zip(*(array.tolist() for array in environment.engine.running_vehicles()[1::-1]), strict=True))
        left = {d for d, s in zip(*(array.tolist() for array in before[:2]), strict=True)
                if d in light.in_lanes and after.get(s) != d}  # fmt: skip
        loops.look(1)
        assert set(np.flatnonzero(loops.quiet_s == 0)) == left
        noticed += len(left)
    assert noticed > 100


def test_dead_loops_call_nobody() -> None:
    rule = VehicleActuated()
    environment = Environment(
        "crossing", 0, features=rule.features, conditions=Conditions(dead_lanes=12), horizon_s=300, decision_interval_s=1
    )
    run(environment, rule)
    assert environment.current_action.tolist() == [0] and environment.elapsed_s.tolist() == [300]
