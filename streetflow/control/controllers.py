"""The rule-based controllers, with the settings of the paper's released experiment.

All see an ``Environment`` and answer with one action per signalled intersection, int32[N].
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streetflow.control.environment import Environment
from streetflow.control.features import resolve_features
from streetflow.control.observation import Observer


class Controller(Protocol):
    """Anything that chooses actions."""

    def reset(self, environment: Environment) -> None:
        """Prepare for a run of ``environment``, after its reset and before its first decision."""

    def act(self, environment: Environment) -> NDArray[np.int32]:
        """Actions int32[N] for the coming decision."""


class FixedTime:
    """The next phase at every decision, whatever the traffic; the first decision is action 0."""

    def reset(self, environment: Environment) -> None:
        self._counts = np.array([each.action_count for each in environment.intersections], np.int32)
        self._next = np.zeros_like(self._counts)

    def act(self, environment: Environment) -> NDArray[np.int32]:
        actions = self._next
        self._next = (actions + 1) % self._counts
        return actions


class MaxPressure:
    """The phase with the largest pressure over the lane links that it opens; the first of equals.

    A light whose ``elapsed`` is below ``min_elapsed_s`` keeps its phase.
    """

    def __init__(self, min_elapsed_s: int = 20) -> None:
        self.min_elapsed_s = min_elapsed_s

    def reset(self, environment: Environment) -> None:
        self._observer = _observer(environment, "phase_2_pressure")
        widths = self._observer.feature_widths[:, :1]
        self._no_action = np.arange(self._observer.max_width) >= widths

    def act(self, environment: Environment) -> NDArray[np.int32]:
        current = environment.current_action
        pressure = self._observer.observe(environment.engine, current)[0][:, 0]
        pressure[self._no_action] = np.iinfo(np.int32).min
        best = pressure.argmax(axis=1).astype(np.int32)
        return np.where(environment.elapsed_s < self.min_elapsed_s, current, best)


class SOTL:
    """Self-organising: leave a phase when few wait for it and somebody waits for another.

    At a light whose ``elapsed`` is at least ``min_elapsed_s``: if at most ``threshold`` vehicles wait on the in-lanes
    that the current phase serves, and any on the other in-lanes, the next phase, cyclically.
    """

    def __init__(self, min_elapsed_s: int = 10, threshold: int = 20) -> None:
        self.min_elapsed_s = min_elapsed_s
        self.threshold = threshold

    def reset(self, environment: Environment) -> None:
        self._observer = _observer(environment, "phase_2_num_waiting_vehicle", "inlane_2_num_waiting_vehicle")
        self._counts = np.array([each.action_count for each in environment.intersections], np.int32)
        self._rows = np.arange(len(self._counts))

    def act(self, environment: Environment) -> NDArray[np.int32]:
        current = environment.current_action
        waiting = self._observer.observe(environment.engine, current)[0]
        green = waiting[self._rows, 0, current]
        red = waiting[:, 1].sum(axis=1) - green
        leave = (environment.elapsed_s >= self.min_elapsed_s) & (green <= self.threshold) & (red > 0)
        return np.where(leave, (current + 1) % self._counts, current).astype(np.int32)


CONTROLLERS: dict[str, type[FixedTime] | type[MaxPressure] | type[SOTL]] = {
    "FixedTime": FixedTime,
    "MaxPressure": MaxPressure,
    "SOTL": SOTL,
}


def _observer(environment: Environment, *features: str) -> Observer:
    return Observer(environment.intersections, resolve_features(features), environment.engine)
