"""The actuated rule on one light decided by hand, and on a street against the same in plain sets."""

from __future__ import annotations

import numpy as np
import pytest

from streetflow.control.actuated import Actuated
from streetflow.control.environment import Environment
from streetflow.control.intersection import Intersection
from streetflow.errors import FieldError
from tests.streetflow.test_features import LIGHT


class Lights:
    """What the rule reads of an environment: one light. Its ring is actions 1 and 2: they open everything."""

    intersections = (LIGHT,)
    decision_interval_s = 20

    def __init__(self, current: int, elapsed_s: int) -> None:
        self.current_action = np.array([current], np.int32)
        self.elapsed_s = np.array([elapsed_s], np.int32)

    @staticmethod
    def feature_columns(_names: tuple[str, ...]) -> list[int]:
        return [0]


@pytest.mark.parametrize(
    ("current", "elapsed_s", "near", "far", "action"),
    [
        # in-lanes 0 and 1 (road a) and 2 (road b); action 1 opens lane 1, action 2 lanes 0 and 2
        (2, 17, (5, 0, 0), (0, 0, 0), 2),  # nobody calls another phase
        (2, 97, (5, 0, 0), (0, 0, 0), 2),  # so the maximum doesn't count
        (2, 17, (3, 1, 0), (0, 0, 0), 2),  # 3 on the way: hold
        (2, 17, (2, 1, 0), (9, 0, 9), 1),  # gap: 2 are few, and those far away don't count
        (2, 37, (9, 1, 0), (0, 0, 0), 2),  # 57 s are within the maximum
        (2, 40, (9, 1, 0), (0, 0, 0), 2),  # nor are 60 s too long
        (2, 57, (9, 1, 0), (0, 0, 0), 1),  # 77 s are
        (1, 17, (1, 0, 0), (0, 0, 0), 2),  # action 0 would open lane 0 as well, but isn't in the ring
        (1, 17, (0, 0, 1), (0, 0, 0), 2),
        (1, 17, (0, 0, 0), (9, 9, 9), 1),  # nobody is near
        (0, 17, (0, 1, 1), (0, 0, 0), 1),  # the next in cyclic order
    ],
)
def test_one_decision(current: int, elapsed_s: int, near: tuple[int, ...], far: tuple[int, ...], action: int) -> None:
    rule = Actuated(max_green_s=60, few=2, zone=1)
    rule.reset(Lights(current, elapsed_s))  # type: ignore[arg-type]
    observation = [[quarter for pair in zip(far, near, strict=True) for quarter in (0, 0, *pair)]]
    assert rule.act(np.array([observation], np.int32)).tolist() == [action]


def test_a_minimum_green_and_a_longer_zone() -> None:
    rule = Actuated(min_green_s=20, zone=2)
    observation = np.array([[[0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]]], np.int32)  # one in the third quarter of lane 1
    for elapsed_s, action in ((17, 2), (37, 1)):
        rule.reset(Lights(2, elapsed_s))  # type: ignore[arg-type]
        assert rule.act(observation).tolist() == [action]
    with pytest.raises(FieldError, match="zone"):
        Actuated(zone=5)


def plain_choice(light: Intersection, ring: list[int], near: dict[int, int], now: int, elapsed_s: int) -> int:
    """The rule again, in sets of lane links: 2 are few, at most 60 s of green."""
    opened = [set(links) for links in light.phase_lane_links]

    def lanes_that_gain(old: int, new: int) -> set[int]:
        return {light.lane_links[link][0] for link in opened[new] - opened[old]}

    order = [(now + k) % len(opened) for k in range(1, len(opened)) if (now + k) % len(opened) in ring]
    called = [action for action in order if any(near[lane] for lane in lanes_that_gain(now, action))]
    losers = set().union(*(lanes_that_gain(action, now) for action in range(len(opened))))
    if not called or (sum(near[lane] for lane in losers) > 2 and elapsed_s + 20 <= 60):
        return now
    return called[0]


def test_a_street_of_lights() -> None:
    rule = Actuated()
    environment = Environment("arterial", 0, features=rule.features, horizon_s=1800)
    observation, done = environment.reset(), False
    rule.reset(environment)
    served: list[set[int]] = [set() for _ in environment.intersections]
    longest_s = 0
    while not done:
        vehicles, near = environment.engine.running_vehicles(), {}
        for lane, length_m in enumerate(environment.engine.lane_length_m):
            near[lane] = int((vehicles.distance_m[vehicles.drivable == lane] >= 0.75 * length_m).sum())
        actions = rule.act(observation)
        for i, light in enumerate(environment.intersections):
            now, elapsed_s = int(environment.current_action[i]), int(environment.elapsed_s[i])
            assert actions[i] == plain_choice(light, [0, 1, 2, 3], near, now, elapsed_s)
            served[i].add(int(actions[i]))
            longest_s = max(longest_s, elapsed_s)
        observation, _, done = environment.step(actions)
    assert served == [{0, 1, 2, 3}] * 3 and longest_s > 40
