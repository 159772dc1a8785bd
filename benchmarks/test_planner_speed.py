"""The planner: one decision's rollouts in one compiled call, against the same rollouts step by step from Python.

pytest benchmarks/test_planner_speed.py --benchmark-only. Both are timed in turn in one run; their ratio is printed."""

import time
from collections.abc import Callable

import numpy as np
import pytest

from model.planning.planner import HORIZON, MAX_QUEUE
from model.planning.rollouts import Rollouts
from streetflow.control.environment import Environment
from streetflow.control.rules import GreatestFeature
from streetflow.engine.cityflow_names import Engine
from streetflow.errors import InputError
from streetflow.networks.catalogue import find_network

DECISIONS = 60  # before the one that is planned: the network is full then
TURNS = 7


def in_python(environment: Environment, rule: GreatestFeature, wishes: np.ndarray) -> np.ndarray:
    """Costs of all actions of light 0, by snapshots of the engine."""
    engine = environment.engine
    assert isinstance(engine, Engine)
    start, lights, decision = engine.snapshot(), environment.signals.state.copy(), environment.decision
    costs_s = []
    for action in range(environment.intersections[0].action_count):
        actions = wishes.copy()
        actions[0] = action
        for _ in range(HORIZON):
            seen, _, _ = environment.step(actions)
            actions = rule.act(seen)
        costs_s.append(float(engine.trips().travel_time_s.sum()))
        engine.load(start)
        environment.signals.state[:], environment.decision = lights, decision
    return np.array(costs_s)


@pytest.mark.benchmark(group="planner")
@pytest.mark.parametrize("network", ["crossing", "Hangzhou1"])
def test_a_planned_decision(network: str, benchmark, say: Callable[[str], None]) -> None:
    try:
        find_network(network)
    except InputError as missing:
        pytest.skip(f"needs a data set in TINYLIGHT_DATA: {missing}")
    environment = Environment(network, 0, features=[MAX_QUEUE])
    rule, observation = GreatestFeature(MAX_QUEUE), environment.reset()
    rule.reset(environment)
    for _ in range(DECISIONS):
        observation, _, _ = environment.step(rule.act(observation))
    wishes, rollouts = rule.act(observation), Rollouts(environment, MAX_QUEUE, horizon=HORIZON)
    planned = rollouts.plan(wishes)  # compiled
    expected = in_python(environment, rule, wishes)
    assert np.allclose(planned.costs_s[0] - planned.costs_s[0].min(), expected - expected.min())
    compiled_s, python_s = [], []
    for _ in range(TURNS):
        for times_s, work in (
            (compiled_s, lambda: rollouts.plan(wishes)),
            (python_s, lambda: in_python(environment, rule, wishes)),
        ):
            begin_s = time.perf_counter()
            work()
            times_s.append(time.perf_counter() - begin_s)
    benchmark(rollouts.plan, wishes)
    ratio = min(python_s) / min(compiled_s)
    benchmark.extra_info["times_python"] = round(ratio, 1)
    say(f"{network}: a decision planned in {1000 * min(compiled_s):.2f} ms, {ratio:.0f} times as fast as from Python")
