"""A planner's rollouts meet the shut lane, from the decision on at which it is shut to the one at which it opens."""

from __future__ import annotations

import numpy as np
import pytest

from model.planning.planner import MAX_QUEUE
from model.planning.rollouts import Rollouts
from streetflow.control.conditions import Conditions
from streetflow.control.environment import Environment
from streetflow.control.rules import GreatestFeature
from streetflow.engine.core import EngineCore

HORIZON = 4
SHUT = Conditions(shut_s=200, seed=1)


def driven_to(time_s: int) -> tuple[Environment, np.ndarray]:
    """An environment at this second, after decisions in turn, and what it sees."""
    environment = Environment("crossing", 0, features=[MAX_QUEUE], horizon_s=1200, conditions=SHUT)
    observation = environment.reset()
    while environment.time_s < time_s:
        observation, _, _ = environment.step([environment.decision // 2 % 8])
    return environment, observation


@pytest.mark.parametrize("after_s", [0, 20, 200])
def test_rollouts_meet_the_shut_lane(after_s: int) -> None:
    first, _ = driven_to(0)
    shut = first._shut_lane
    assert shut is not None
    time_s = shut.start_s + after_s
    rule = GreatestFeature(MAX_QUEUE)

    def simulated_s(conditions: Conditions) -> list[float]:
        """Vehicle-seconds of each action now, then the rule's, over the horizon."""
        costs = []
        for action in range(8):
            environment, _ = driven_to(time_s)
            engine = environment.engine
            assert isinstance(engine, EngineCore) and environment._shut_lane is not None
            if not conditions.shut_s:
                environment._shut_lane.at(-1)  # open it
                environment._shut_lane = None
            rule.reset(environment)
            before_s, actions = engine.trips().travel_time_s.sum(), np.array([action], np.int32)
            for _ in range(HORIZON):
                seen, _, _ = environment.step(actions)
                actions = rule.act(seen)
            costs.append(float(engine.trips().travel_time_s.sum() - before_s))
        return costs

    environment, observation = driven_to(time_s)
    rule.reset(environment)
    rollouts = Rollouts(environment, MAX_QUEUE, horizon=HORIZON)
    planned = rollouts.plan(rule.act(observation))
    assert planned.costs_s[0].tolist() == simulated_s(SHUT)
    assert (simulated_s(Conditions()) != simulated_s(SHUT)) == (after_s < 200)
