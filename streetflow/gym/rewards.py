"""Rewards of a light, by name, as a weighted sum of names, or as a function of the environment.

All are made of features, so of what the detectors show after the decision's interval. More is better: what is bad has a minus.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streetflow.control.environment import Environment
from streetflow.errors import FieldError
from streetflow.near import or_else

Floats = NDArray[np.float64]
Reward = str | Mapping[str, float] | Sequence[tuple[str, float]] | Callable[[Environment], Any]
"""A name in `REWARDS`, names with weights, or a function from the environment, after a step, to a number for each light."""


@dataclass(frozen=True)
class RewardSpec:
    """One row of the table: ``of`` makes float64[lights] of the features' values float64[lights, width], one a feature."""

    features: tuple[str, ...]
    unit: str
    definition: str
    of: Callable[..., Floats]


def _minus_sum(values: Floats) -> Floats:
    return -values.sum(axis=1)


REWARDS: dict[str, RewardSpec] = {
    "pressure": RewardSpec(
        ("inlane_2_num_vehicle", "outlane_2_num_vehicle"),
        "vehicles",
        "minus (vehicles on the in-lanes - vehicles on the out-lanes)",
        lambda inside, outside: outside.sum(axis=1) - inside.sum(axis=1),
    ),
    "queue": RewardSpec(
        ("inlane_2_num_waiting_vehicle",), "vehicles", "minus vehicles on the in-lanes slower than 0.1 m/s", _minus_sum
    ),
    "waiting": RewardSpec(
        ("inlane_2_sum_waiting_time",),
        "20 s",
        "minus the time that the vehicles on the in-lanes have stood since their last stop, summed",
        _minus_sum,
    ),
    "delay": RewardSpec(
        ("inlane_2_num_vehicle", "inlane_2_delay"),
        "vehicles",
        "minus what the vehicles on the in-lanes lose a second: vehicles x (1 - mean speed / speed limit), summed over lanes",
        lambda vehicles, delay: -(vehicles * delay).sum(axis=1),
    ),
    "throughput": RewardSpec(
        ("inter_2_num_passed_vehicle_since_last_action",),
        "vehicles",
        "vehicles that have left the in-lanes since the decision before",
        lambda passed: passed.sum(axis=1),
    ),
}


class RewardSum:
    """A reward as it is computed at each step.

    Attributes:
        features: what the environment has to observe for it.

    Raises:
        FieldError: an unknown name, or a weight that is no number.
    """

    def __init__(self, reward: Reward) -> None:
        self._function = reward if callable(reward) else None
        self._weights = {} if callable(reward) else _weights(reward)
        self.features = list(dict.fromkeys(name for each in self._weights for name in REWARDS[each].features))

    def of(self, environment: Environment, observation: NDArray[np.int32]) -> Floats:
        """float64[lights], after a step that gave this observation int32[N, F, W]."""
        if self._function is not None:
            return self._checked(self._function(environment), len(observation))
        total = np.zeros(len(observation))
        for name, weight in self._weights.items():
            spec = REWARDS[name]
            columns = environment.feature_columns(spec.features)
            values = (observation[:, column] / environment.lsb_per_unit[column] for column in columns)
            total += weight * spec.of(*values)
        return total

    @staticmethod
    def _checked(values: Any, lights: int) -> Floats:
        rewards = np.asarray(values, np.float64)
        if rewards.shape not in ((), (lights,)):
            raise FieldError("reward", f"the function gave an array of shape {rewards.shape}; it must give {lights} numbers")
        return np.broadcast_to(rewards, lights)


def _weights(reward: str | Mapping[str, float] | Sequence[tuple[str, float]]) -> dict[str, float]:
    try:
        weights = {reward: 1.0} if isinstance(reward, str) else {name: float(weight) for name, weight in dict(reward).items()}
    except (TypeError, ValueError):
        raise FieldError("reward", f"must be a name, names with weights, or a function, is {reward!r}") from None
    for name in weights:
        if name not in REWARDS:
            raise FieldError("reward", f"unknown{or_else(name, REWARDS)}", str(name))
    if not weights or not np.isfinite(list(weights.values())).all():
        raise FieldError("reward", f"must have at least one name, with finite weights, is {reward!r}")
    return weights
