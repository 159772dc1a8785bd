"""The planner as a controller: at each decision it plays every action on the exact engine and takes the cheapest.

It is no opponent but a bound: it sees the engine's state, and `Planner` the flow file's future arrivals, too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from model.planning.rollouts import Rollouts
from streetflow.control.environment import Environment
from streetflow.control.rules import GreatestFeature

MAX_QUEUE = "phase_2_num_waiting_vehicle"
HORIZON = 11  # decisions


class Planner:
    """Rollouts from each state, one light after another, with MaxQueue as the base policy (Bertsekas' multiagent rollout).

    Args:
        base: a feature with a value for each action; its first greatest is what the base policy does.
        horizon: decisions that each rollout takes.
    """

    def __init__(self, base: str = MAX_QUEUE, horizon: int = HORIZON) -> None:
        self._base, self._horizon = base, horizon
        self._rule = GreatestFeature(base)
        self.features = self._rule.features

    def reset(self, environment: Environment) -> None:
        self._rule.reset(environment)
        self._rollouts = Rollouts(environment, self._base, horizon=self._horizon)

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        return self._rollouts.plan(self._rule.act(observation)).actions
