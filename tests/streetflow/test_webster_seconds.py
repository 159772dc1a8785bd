"""Webster's plan in seconds: plans by hand, what the lights show, every network's plans."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from streetflow.control.environment import Environment
from streetflow.control.webster import START_UP_S, Stream, critical, flow_ratios, saturations, streams
from streetflow.control.webster_seconds import WebsterSeconds, plan_seconds
from streetflow.networks.catalogue import HORIZONS_S
from tests.helpers.shared_data import needs_data_set

TWO = [Stream(0, frozenset({0}), 0.3), Stream(1, frozenset({1}), 0.15)]
CHANGES_S = np.array([[0, 6], [4, 0]], np.int32)


def test_a_plan_by_hand() -> None:
    """Y = 0.45, L = (2 + 4) + (2 + 6): (1.5 * 14 + 5) / 0.55 = 47 s. With 28 s, of which 6 are lost, lane 0's saturation is
    0.3 * 47 / 22, lane 1's 0.15 * 47 / 11: the same."""
    assert plan_seconds(TWO, CHANGES_S, np.array([5, 5]), 120) == [(0, 28), (1, 19)]


def test_minimum_greens_and_the_longest_cycle() -> None:
    assert plan_seconds(TWO, CHANGES_S, np.array([5, 20]), 120) == [(0, 21), (1, 26)]
    assert plan_seconds(TWO, CHANGES_S, np.array([5, 20]), 10) == [(0, 9), (1, 26)]
    assert plan_seconds([], CHANGES_S, np.array([5, 5]), 120) == [(0, 1)]


def test_a_change_that_goes_on_serving_loses_the_start_alone() -> None:
    """(1.5 * 4 + 5) / 0.55 = 20 s: less than what the minimum greens and their changes take."""
    assert plan_seconds(TWO, CHANGES_S, np.array([1, 1]), 120, serves=True) == [(0, 12), (1, 8)]


def test_the_lights_show_the_plan() -> None:
    rule = WebsterSeconds()
    environment = Environment(
        "arterial", 0, features=rule.features, clearance="computed", horizon_s=900, decision_interval_s=rule.decision_interval_s
    )
    observation, done = environment.reset(), False
    rule.reset(environment)
    shown: list[list[int]] = [[] for _ in environment.intersections]
    while not done:
        observation, _, done = environment.step(rule.act(observation))
        for own, phase in zip(shown, environment.shown_phase, strict=True):
            own.append(int(phase))
    for i, (light, plan) in enumerate(zip(environment.intersections, rule.plans, strict=True)):
        runs = [(phase, len(list(group))) for phase, group in itertools.groupby(shown[i])]
        cycle_s = sum(seconds for _, seconds in plan)
        first = plan[0][1]  # it begins with its green, without a change
        greens = [(light.phases.index(phase), seconds) for phase, seconds in runs if phase in light.phases]
        expected = {
            action: seconds - environment.changes.seconds[i, before, action]
            for (before, _), (action, seconds) in itertools.pairwise([plan[-1], *plan])
        }
        assert greens[0] == (plan[0][0], first)
        assert all(seconds == expected[action] for action, seconds in greens[1:-1])
        assert [action for action, _ in greens[: len(plan)]] == [action for action, _ in plan]
        assert len(greens) >= len(plan) * (900 // cycle_s)


@pytest.mark.parametrize(
    "name", ["crossing", "arterial", *(pytest.param(name, marks=needs_data_set(name)) for name in HORIZONS_S)]
)
def test_every_light_of_every_network_serves_all_who_come(name: str) -> None:
    rule = WebsterSeconds()
    environment = Environment(name, 0, features=rule.features, clearance="computed")
    rule.reset(environment)
    ratios = flow_ratios(environment)
    for i, (light, plan) in enumerate(zip(environment.intersections, rule.plans, strict=True)):
        needed, actions = streams(light, ratios), [action for action, _ in plan]
        assert needed and all(each.actions & set(actions) for each in needed)
        changes_s = {b: int(environment.changes.seconds[i, a, b]) for a, b in itertools.pairwise([actions[-1], *actions])}
        least_s = {a: changes_s[a] + max(int(environment.changes.least_green_s[i, a]), 5) for a in actions}
        assert all(seconds >= least_s[action] for action, seconds in plan)
        assert sum(seconds for _, seconds in plan) <= max(120, sum(least_s.values()))
        # no second is better with another stage
        needs, lost_s = critical(needed, actions), {a: START_UP_S + changes_s[a] for a in actions}
        worst = max(saturations(needs, dict(plan), 1, lost_s))
        for a, b in itertools.permutations(actions, 2):
            other = dict(plan) | {a: dict(plan)[a] - 1, b: dict(plan)[b] + 1}
            assert other[a] < least_s[a] or max(saturations(needs, other, 1, lost_s)) >= worst
