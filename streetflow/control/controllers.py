"""The rule-based controllers, with the settings of the paper's released experiment.

A controller maps an environment's observation to one action per signalled intersection. It reads what the lights show from
the environment itself, since any controller knows its own lights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streetflow.control.actuated import Actuated
from streetflow.control.environment import Environment
from streetflow.control.rules import EfficientPressure, GreatestFeature
from streetflow.control.vehicle_actuated import VehicleActuated
from streetflow.control.webster import Webster
from streetflow.control.webster_seconds import WebsterSeconds


class Controller(Protocol):
    """Anything that chooses actions."""

    @property
    def features(self) -> Sequence[str]:
        """The features that it observes: the environment must be made with these (and may have others)."""

    def reset(self, environment: Environment) -> None:
        """Prepare for a run of ``environment``, after its reset and before its first decision.

        Raises:
            InputError: the environment isn't one for this controller, or lacks one of its features.
        """

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        """Actions int32[N] for the coming decision, from the environment's latest observation int32[N, F, W]."""


def run(environment: Environment, controller: Controller) -> None:
    """One run from reset to horizon.

    Args:
        environment: made with the controller's features (``Environment(..., features=controller.features)``).
        controller: sets the lights.

    Raises:
        InputError: as `Controller.reset`.
    """
    observation = environment.reset()
    controller.reset(environment)
    done = False
    while not done:
        observation, _, done = environment.step(controller.act(observation))


def interval_of(controller: Controller) -> int | None:
    """Seconds between the decisions of a rule that keeps its own time; None: those of the network."""
    interval_s: int | None = getattr(controller, "decision_interval_s", None)
    return interval_s


class FixedTime:
    """The next phase at every decision, whatever the traffic; the first decision is action 0."""

    features = ("inter_2_current_phase",)  # unused: an environment observes at least one feature

    def reset(self, environment: Environment) -> None:
        self._counts = np.array([each.action_count for each in environment.intersections], np.int32)
        self._next = np.zeros_like(self._counts)

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        actions = self._next
        self._next = (actions + 1) % self._counts
        return actions


class MaxPressure:
    """The phase with the largest pressure over the lane links that it opens; the first one if several are equal.

    A light whose ``elapsed`` is below ``min_elapsed_s`` keeps its phase.
    """

    features = ("phase_2_pressure",)

    def __init__(self, min_elapsed_s: int = 20) -> None:
        self.min_elapsed_s = min_elapsed_s

    def reset(self, environment: Environment) -> None:
        self._lights = environment
        (self._pressure,) = environment.feature_columns(self.features)
        self._no_action = np.arange(environment.max_width) >= environment.feature_widths[:, [self._pressure]]

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        pressure = np.where(self._no_action, np.iinfo(np.int32).min, observation[:, self._pressure])
        best = pressure.argmax(axis=1).astype(np.int32)
        return np.where(self._lights.elapsed_s < self.min_elapsed_s, self._lights.current_action, best)


class SOTL:
    """Self-organising: leave a phase when few vehicles wait for it and at least one waits for another.

    At a light whose ``elapsed`` is at least ``min_elapsed_s``: if at most ``threshold`` vehicles wait on the in-lanes
    that the current phase serves, and any on the other in-lanes, the next phase, cyclically.
    """

    features = ("phase_2_num_waiting_vehicle", "inlane_2_num_waiting_vehicle")

    def __init__(self, min_elapsed_s: int = 10, threshold: int = 20) -> None:
        self.min_elapsed_s = min_elapsed_s
        self.threshold = threshold

    def reset(self, environment: Environment) -> None:
        self._lights = environment
        self._by_phase, self._by_lane = environment.feature_columns(self.features)
        self._counts = np.array([each.action_count for each in environment.intersections], np.int32)
        self._rows = np.arange(len(self._counts))

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        current = self._lights.current_action
        green = observation[self._rows, self._by_phase, current]
        red = observation[:, self._by_lane].sum(axis=1) - green
        leave = (self._lights.elapsed_s >= self.min_elapsed_s) & (green <= self.threshold) & (red > 0)
        return np.where(leave, (current + 1) % self._counts, current).astype(np.int32)


PAPER_RULES: dict[str, Callable[..., Controller]] = {
    "FixedTime": FixedTime,
    "MaxPressure": MaxPressure,
    "SOTL": SOTL,
}
"""The rules of the paper's tables, with its settings."""

CONTROLLERS: dict[str, Callable[..., Controller]] = PAPER_RULES | {
    "MaxQueue": partial(GreatestFeature, "phase_2_num_waiting_vehicle"),
    "MaxCount": partial(GreatestFeature, "phase_2_num_vehicle"),
    "MaxPressure0": partial(GreatestFeature, "phase_2_pressure"),
    "EfficientPressure": partial(EfficientPressure, "lane_2_num_vehicle"),
    "EfficientQueue": partial(EfficientPressure, "lane_2_num_waiting_vehicle"),
    "Actuated": Actuated,
    "Webster": Webster,
}
"""All rules that decide when the network's decisions are due, by name: the paper's, and stronger ones (``rules.py``,
``actuated.py``, ``webster.py``). Each takes its parameters by keyword."""

SECOND_BY_SECOND: dict[str, Callable[..., Controller]] = {
    "VehicleActuated": VehicleActuated,
    "WebsterSeconds": WebsterSeconds,
}
"""Rules that decide each second (``vehicle_actuated.py``, ``webster_seconds.py``): what stands at crossings."""
