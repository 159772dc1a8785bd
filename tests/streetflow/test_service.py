"""Longest red and maximum green in the environment, against the shell's rule in plain sets, and in the planner's rollouts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from model.planning.planner import MAX_QUEUE
from model.planning.rollouts import Rollouts
from streetflow.control.environment import Environment
from streetflow.control.rules import GreatestFeature
from streetflow.control.signal_groups import SignalPlan, signal_plans
from streetflow.control.signal_times import LIGHT_RULES, SignalRules
from streetflow.roadnet.network_tables import load_network


class Plain:
    """One light: action shown, seconds of it, change under way, who calls since when, whose green is waited for since when."""

    def __init__(self, plan: SignalPlan, seconds: np.ndarray, least_green_s: np.ndarray) -> None:
        self.plan, self.seconds, self.least_green_s = plan, seconds, least_green_s
        self.phases = [set(groups) for groups in plan.phases]
        self.served = {number for number, group in enumerate(plan.groups) if group.is_served}
        self.now, self.to, self.elapsed_s = 0, None, 0
        self.called, self.due, self.clocks = self.served - self.phases[0], set(), dict.fromkeys(range(len(plan.groups)), 0)
        self.forced, self.wish = 0, None

    def conflicts(self, groups: set[int], others: set[int]) -> set[int]:
        return {group for group in groups if self.plan.conflicts_of(group) & others}

    def restart(self, groups: set[int]) -> None:
        self.due -= groups
        self.clocks |= dict.fromkeys(groups, 0)

    def second(self, decided: int | None, occupied: set[int]) -> tuple[int, int | None]:
        """decided: the wish where there has just been a decision. It holds until somebody who is due is served."""
        if decided is not None:
            self.wish = decided
        green = self.phases[self.now] & (self.phases[self.now] if self.to is None else self.phases[self.to])
        for lane, groups in zip(self.plan.in_lanes, self.plan.lane_groups, strict=True):
            if lane in occupied:
                self.called |= (set(groups) & self.served) - green
        running = self.called | self.conflicts(green, self.called)
        for group in self.clocks:
            limit_s = self.plan.longest_red_s if group in self.called else self.plan.groups[group].max_green_s
            if group not in running:
                self.clocks[group] = 0
            elif self.clocks[group] >= limit_s:
                self.due.add(group)
            else:
                self.clocks[group] += 1
        if self.to is not None:
            if self.elapsed_s < self.seconds[self.now, self.to]:
                self.elapsed_s += 1
            else:
                self.begin(self.to)
            return self.now, self.to
        wanted = (self.due & self.called) | self.conflicts(self.called, self.due & green)
        order = [(self.now + k) % len(self.phases) for k in range(1, len(self.phases))]
        must = [action for action in order if self.phases[action] & wanted]
        asked = must[0] if must else self.now if self.wish is None else self.wish
        if asked == self.now or self.elapsed_s < self.least_green_s[self.now]:
            self.elapsed_s += 1
        else:
            self.forced += bool(must) and asked != self.wish
            if must:
                self.wish = None
            self.restart(self.phases[self.now] - self.phases[asked])
            if self.seconds[self.now, asked] == 0:
                self.begin(asked)
            else:
                self.to, self.elapsed_s = asked, 1
        return self.now, self.to

    def begin(self, action: int) -> None:
        self.restart(self.phases[action] - self.phases[self.now])
        self.called -= self.phases[action]
        self.now, self.to, self.elapsed_s = action, None, 1


@pytest.mark.parametrize("name", ["crossing", "arterial"])
@pytest.mark.parametrize("rules", [SignalRules(), LIGHT_RULES])
def test_lights_serve_who_is_due_as_the_shell_does(name: str, rules: SignalRules) -> None:
    """Wishes that stay for a minute and leave some out."""
    environment = Environment(name, 1, clearance="shell", rules=rules)
    environment.reset()
    plans = signal_plans(load_network(environment.network.roadnet_file), rules)
    changes, signals = environment.changes, environment.signals
    lights = [Plain(plan, changes.seconds[i], changes.least_green_s[i]) for i, plan in enumerate(plans)]
    rng = np.random.default_rng(4)
    waited_s = np.zeros((len(plans), 16), np.int64)
    for second in range(2400):
        decides = second % 60 == 0
        if decides:
            wishes = rng.integers(0, 3, len(plans)).astype(np.int32)
        counts = environment.traffic.lane_vehicle_counts()
        occupied = set(np.flatnonzero(counts).tolist())
        expected = [light.second(int(wish) if decides else None, occupied) for light, wish in zip(lights, wishes, strict=True)]
        for phases, run_s in signals.advance(signals.asked(wishes, counts, is_new=decides), 1):
            if phases is not None:
                environment.engine.set_phases(phases)
            environment.engine.step_many(run_s)
        pending = [int(row[1]) if row[3] else None for row in signals.state]
        assert list(zip(signals.current_action.tolist(), pending, strict=True)) == expected
        for i, light in enumerate(lights):
            for group in range(len(light.plan.groups)):
                waited_s[i, group] = waited_s[i, group] + 1 if group in light.called else 0
        assert waited_s.max() < rules.longest_red_s + 130  # what docs/controller.md says at worst
    assert all(light.forced > (5 if rules == SignalRules() else 1) for light in lights)


def test_an_environment_does_it_at_every_step() -> None:
    """A wish that never changes: others are served all the same, and greens last no longer than their maximum."""
    environment = Environment("crossing", 0, clearance="shell", horizon_s=1800, rules=SignalRules())
    environment.reset()
    shown, done = [], False
    while not done:
        _, _, done = environment.step([0])
        shown.append(int(environment.current_action[0]))
    assert len(set(shown)) > 3 and shown.count(0) > 10
    still = Environment("crossing", 0, clearance="computed", horizon_s=1800)
    still.reset()
    assert all(still.step([0]) and still.current_action[0] == 0 for _ in range(20))


@pytest.mark.parametrize("network", ["crossing", "arterial"])
def test_rollouts_serve_too(network: str) -> None:
    """Costs are those of a simulation with the environment, in which lights are forced."""
    environment = Environment(network, 0, features=[MAX_QUEUE], clearance="shell", rules=SignalRules())

    def driven(each: Environment) -> np.ndarray:
        observation = each.reset()
        for decision in range(25):
            observation, _, _ = each.step(np.full(len(each.intersections), decision // 2 % 4, np.int32))
        return observation

    rule = GreatestFeature(MAX_QUEUE)
    observation = driven(environment)
    rule.reset(environment)
    wishes = rule.act(observation)
    planned = Rollouts(environment, MAX_QUEUE, horizon=5).plan(wishes)
    decided = wishes.copy()
    for light, each in enumerate(environment.intersections):
        costs = []
        for action in range(each.action_count):
            copy = Environment(network, 0, features=[MAX_QUEUE], clearance="shell", rules=SignalRules())
            driven(copy)
            rule.reset(copy)
            before_s = float(copy.engine.trips().travel_time_s.sum())
            actions = decided.copy()
            actions[light] = action
            for _ in range(5):
                seen, _, _ = copy.step(actions)
                actions = rule.act(seen)
            costs.append(float(copy.engine.trips().travel_time_s.sum()) - before_s)
        assert planned.costs_s[light, : each.action_count].tolist() == costs
        decided[light] = planned.actions[light]
    assert any(a != b for a, b in itertools.pairwise(planned.costs_s[0]))
    free = Environment(network, 0, features=[MAX_QUEUE], clearance="computed")
    driven(free)
    assert Rollouts(free, MAX_QUEUE, horizon=5).plan(wishes).costs_s.tolist() != planned.costs_s.tolist()
