"""The parameter-free rules against scores worked out by hand, and against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from streetflow.control.controllers import CONTROLLERS, PAPER_RULES, run
from streetflow.control.environment import Environment
from streetflow.control.rules import EfficientPressure
from tests.streetflow.test_features import LIGHT


class Lights:
    """What a rule reads of an environment: one light, one feature."""

    intersections = (LIGHT,)
    max_width = 6

    @staticmethod
    def feature_columns(_names: tuple[str, ...]) -> list[int]:
        return [0]


@pytest.mark.parametrize(
    ("counts", "action"),
    [
        # in-lanes 0, 1 (road a), 2 (road b); out-lanes 3, 4 (road c), 5 (road d). Action 0: a -> c, from lane 0 into 3 and 4;
        # action 1: a -> d, from lane 1 into 5; action 2: both of a -> c and b -> c (2 into 3), b -> d (2 into 5).
        ([4, 0, 0, 0, 0, 0], 0),  # action 0: 4; action 2: 4 as well, and comes later
        ([0, 3, 0, 0, 0, 0], 1),
        ([4, 0, 1, 0, 0, 0], 2),  # 4 + 1 + 1 against 4
        ([4, 0, 1, 0, 8, 0], 2),  # action 0: 4 - 4 = 0; action 2: 0 + 1 + 1
        ([4, 3, 0, 2, 2, 0], 1),  # action 0: 4 - 2; action 1: 3; action 2: 4 - 2 - 2 + 0
        ([0, 0, 0, 0, 0, 0], 0),
    ],
)
def test_efficient_pressure(counts: list[int], action: int) -> None:
    rule = EfficientPressure("lane_2_num_vehicle")
    rule.reset(Lights())  # type: ignore[arg-type]
    assert rule.act(np.array([[counts]], np.int32)).tolist() == [action]


@pytest.mark.parametrize("name", [name for name in CONTROLLERS if name not in PAPER_RULES])
def test_every_rule_drives_lights_that_differ(name: str) -> None:
    rule = CONTROLLERS[name]()
    environment = Environment("arterial", 0, features=rule.features, horizon_s=600)
    run(environment, rule)
    assert 0 < environment.average_travel_time_s() < 300


def test_the_queue_rule_is_what_it_says() -> None:
    """MaxQueue against a loop over the engine's own lane counts."""
    rule = CONTROLLERS["MaxQueue"]()
    environment = Environment("crossing", 0, features=rule.features, horizon_s=900)
    observation, done = environment.reset(), False
    rule.reset(environment)
    (light,) = environment.intersections
    served = set()
    while not done:
        waiting = environment.engine.lane_waiting_counts()
        queues = [sum(int(waiting[lane]) for lane in lanes) for lanes in light.phase_in_lanes]
        (action,) = rule.act(observation)
        assert action == queues.index(max(queues))
        served.add(int(action))
        observation, _, done = environment.step(np.array([action], np.int32))
    assert len(served) > 3
