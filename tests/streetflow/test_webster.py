"""Webster's fixed time: volumes, plans worked out by hand, greens against all others, and every network's plans."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from itertools import pairwise

import pytest

from streetflow.control.environment import Environment
from streetflow.control.webster import (
    Stream,
    Webster,
    covers,
    critical,
    delay,
    flow_ratios,
    plan,
    saturations,
    share,
    streams,
    vehicles,
    webster_cycle_s,
)
from streetflow.networks.catalogue import HORIZONS_S
from streetflow.networks.write import single_vehicles
from streetflow.roadnet.flow import Flow, VehicleKind
from tests.helpers.shared_data import needs_data_set
from tests.streetflow.test_features import LIGHT

TWO = [Stream(0, frozenset({0}), 0.3), Stream(1, frozenset({1}), 0.2), Stream(2, frozenset({1}), 0.1)]
CAR = VehicleKind(5.0, 2.0, 2.0, 4.5, 2.0, 4.5, 2.5, 11.11, 2.0)


def test_streams_by_hand() -> None:
    ratios = {("a", "c"): 0.4, ("a", "d"): 0.2, ("b", "c"): 0.1, ("b", "d"): 0.05}
    found = streams(LIGHT, ratios)
    assert found == [
        Stream(0, frozenset({0, 2}), 0.4),
        Stream(1, frozenset({1}), 0.2),
        Stream(2, frozenset({2}), 0.1),
        Stream(2, frozenset({2}), 0.05),
    ]
    assert critical(found, (1, 2)) == {(0, frozenset({2})): 0.4, (1, frozenset({1})): 0.2, (2, frozenset({2})): 0.1 + 0.05}
    assert list(covers([each.actions for each in found], 3)) == [(1, 2), (0, 1, 2)]
    assert streams(LIGHT, {("a", "d"): 0.0}) == []


def test_a_lane_with_two_streams_needs_what_both_need() -> None:
    """Its left turn goes in action 0 alone, straight ahead in both: together they need both."""
    found = [Stream(7, frozenset({0}), 0.1), Stream(7, frozenset({0, 1}), 0.3)]
    assert critical(found, (0, 1)) == {(7, frozenset({0})): 0.1, (7, frozenset({0, 1})): 0.4}


def test_cycle_and_greens_by_hand() -> None:
    """Y = 0.3 + 0.2, L = 2 * 4 s: (1.5 * 8 + 5) / (1 - 0.5) = 34 s, seven decisions of 5 s, four of them for the heavier."""
    needs = critical(TWO, (0, 1))
    assert webster_cycle_s(needs, (0, 1), 8.0) == pytest.approx(34.0)
    assert plan(TWO, 2, 5, 4.0, 120) == [0, 0, 0, 0, 1, 1, 1]
    assert plan(TWO, 2, 20, 4.0, 120) == [0, 1]
    assert plan([], 2, 20, 4.0, 120) == [0]


def test_a_demand_beyond_capacity_takes_the_longest_cycle() -> None:
    heavy = [Stream(0, frozenset({0}), 0.8), Stream(1, frozenset({1}), 0.4)]
    assert plan(heavy, 2, 20, 2.0, 120) == [0] * 4 + [1] * 2
    assert plan(heavy, 2, 20, 2.0, 20) == [0, 1]  # both are needed


def test_delay_by_hand() -> None:
    """One lane that needs a quarter of the time and has 20 - 2 of 40 s, so x = 0.25 * 40 / 18: uniform part
    C (1 - 0.45)² / (2 (1 - 0.25)), weighted by 0.25; random part x² / (2 (1 - x))."""
    x = 0.25 * 40 / 18
    needs = {(0, frozenset({0})): 0.25}
    expected = 0.25 * 40 * 0.55**2 / 1.5 + x**2 / (2 * (1 - x))
    assert delay(needs, {0: 1, 1: 1}, 20, {0: 2.0, 1: 2.0}) == (pytest.approx(expected), pytest.approx(x))
    assert delay(needs, {0: 1, 1: 9}, 20, {0: 2.0, 1: 2.0}) == (math.inf, pytest.approx(0.25 * 200 / 18))


def test_phases_that_serve_more_at_once_are_preferred() -> None:
    """Action 0 serves both heavy lanes; 2 and 3 one each."""
    found = [Stream(0, frozenset({0, 2}), 0.3), Stream(1, frozenset({0, 3}), 0.3), Stream(2, frozenset({1}), 0.1)]
    assert set(plan(found, 4, 20, 2.0, 120)) == {0, 1}


def test_greens_are_the_best_of_all_of_that_cycle() -> None:
    rng = random.Random(3)
    for _ in range(60):
        stages, cycle = tuple(range(rng.randint(2, 4))), rng.randint(4, 9)
        found = [Stream(lane, frozenset({rng.choice(stages)}), rng.uniform(0.01, 0.4)) for lane in range(6)]
        needs = critical(found, stages)
        lost_s = {stage: rng.uniform(0.0, 8.0) for stage in stages}
        own = share(needs, dict.fromkeys(stages, 1), cycle, 20, lost_s)
        every = [counts for counts in itertools.product(range(1, cycle + 1), repeat=len(stages)) if sum(counts) == cycle]
        least = min(max(saturations(needs, dict(enumerate(counts)), 20, lost_s)) for counts in every)
        assert sum(own.values()) == cycle and max(saturations(needs, own, 20, lost_s)) == pytest.approx(least)


@pytest.mark.parametrize(
    ("start_s", "end_s", "interval_s"), [(5, 5, 1), (-1, -1, 7), (0, -1, 5), (10, 60, 7), (90, 400, 4), (300, 300, 1)]
)
def test_vehicles_of_a_flow(start_s: int, end_s: int, interval_s: float) -> None:
    entry = {"vehicle": {}, "route": [], "startTime": start_s, "endTime": end_s, "interval": interval_s}
    expected = [each for each in single_vehicles(entry, 100) if each["startTime"] < 100]
    assert vehicles(Flow(CAR, (0, 1), interval_s, start_s, end_s), 100) == len(expected)


def test_volumes_are_those_of_the_file() -> None:
    environment = Environment("arterial", 3, features=Webster.features)
    content = json.loads(environment.network.flow_file(3).read_bytes())
    assert len({json.dumps(each["vehicle"]) for each in content}) == 1
    kind = content[0]["vehicle"]
    needs_s = kind["headwayTime"] + kind["length"] / kind["maxSpeed"]
    counted = Counter(pair for each in content for pair in pairwise(each["route"]))
    found = flow_ratios(environment)
    assert found.keys() == counted.keys() and len(counted) > 12
    for pair, count in counted.items():
        assert found[pair] * 3600 / needs_s == pytest.approx(count)


@pytest.mark.parametrize(
    "name", ["crossing", "arterial", *(pytest.param(name, marks=needs_data_set(name)) for name in HORIZONS_S)]
)
def test_every_light_of_every_network_serves_all_who_come(name: str) -> None:
    rule = Webster()
    environment = Environment(name, 0, features=rule.features)
    rule.reset(environment)
    ratios = flow_ratios(environment)
    for light, own in zip(environment.intersections, rule.plans, strict=True):
        needed = streams(light, ratios)
        assert needed and all(each.actions & set(own) for each in needed)
        assert len(own) <= max(120 / environment.decision_interval_s, len(set(own)))
        assert [action for action, _ in itertools.groupby(own)] == sorted(set(own))
