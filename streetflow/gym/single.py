"""One light as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from streetflow.errors import FieldError
from streetflow.gym.episodes import Episodes, Layout
from streetflow.gym.rewards import Reward
from streetflow.networks.catalogue import Network

FEATURES = ("phase_2_num_vehicle", "phase_2_num_waiting_vehicle", "inter_2_current_phase")
"""Observed by default."""


def observation_space(layout: Layout) -> spaces.Box:
    """A light's observation float32[D]: its features' values, one feature after the other, in their own units."""
    return spaces.Box(layout.low, layout.high, dtype=np.float32)


class SignalEnv(gymnasium.Env[Any, Any]):
    """A network with one light. An action is one of its phases; a step is a decision's interval (`decision_interval_s`).

    An episode ends at the horizon, as a truncation. `reset` draws the flow and the engine's seed from the environment's own
    generator, so that `reset(seed=...)` makes all that follows repeatable. At the end `info` has the episode's flow, average
    travel time and throughput.

    Args:
        network: its name, or itself.
        features: a preset or names of the features that are observed (docs/training.md).
        flows: the demand files; each episode's is drawn from these.
        reward: a name (see `REWARDS`), names with weights, or a function of the `Environment` after the step.
        options: further arguments of `streetflow.control.environment.Environment`: clearance, min_green_s, horizon_s ...

    Raises:
        InputError: an argument is wrong, or the network has several lights.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (as declared there)

    def __init__(
        self,
        network: str | Network = "crossing",
        *,
        features: str | Sequence[str] = FEATURES,
        flows: Sequence[int] = (0,),
        reward: Reward = "queue",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        if render_mode is not None:
            raise FieldError("render_mode", "there is none; `tinylight replay` shows a run", str(render_mode))
        self._episodes = Episodes(network, features, flows, reward, options)
        lights = self._episodes.lights
        if len(lights) != 1:
            what = f"has {len(lights)} lights; this environment is for one: take SignalParallelEnv or SignalVectorEnv"
            raise FieldError("network", what, self._episodes.environment.network.name)
        self.observation_space = observation_space(self._episodes.layouts[0])
        self.action_space = spaces.Discrete(self._episodes.action_counts[0])

    @property
    def episodes(self) -> Episodes:
        """What runs underneath; its `environment` has all else there is to know of the traffic."""
        return self._episodes

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        (seen,) = self._episodes.begin(self.np_random)
        return seen, {}

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        (seen,), rewards, done = self._episodes.step(np.array([action]))
        return seen, float(rewards[0]), False, done, self._episodes.figures() if done else {}
