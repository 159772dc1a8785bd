"""The planner as a controller: at each decision it plays every action on the exact engine and takes the cheapest.

It is no opponent but a bound: it sees the engine's state, vehicle by vehicle, and the flow file's future arrivals, too. The
blind one draws the arrivals from the demand's rates.
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
        blind_seed: None, or the seed of the arrivals that a blind planner draws.
    """

    def __init__(self, base: str = MAX_QUEUE, horizon: int = HORIZON, blind_seed: int | None = None) -> None:
        self._base, self._horizon, self._blind_seed = base, horizon, blind_seed
        self._rule = GreatestFeature(base)
        self.features = self._rule.features

    def reset(self, environment: Environment) -> None:
        self._rule.reset(environment)
        self._rollouts = Rollouts(environment, self._base, horizon=self._horizon, blind_seed=self._blind_seed)

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        return self._rollouts.plan(self._rule.act(observation)).actions
