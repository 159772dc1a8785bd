"""Training on several flows in turn, so that others can be held out: one environment that changes its demand at every reset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from streetflow.control.environment import Environment


class FlowRotation:
    """`environments` of one network, episode by episode in turn. `episode`: the number of the next one."""

    def __init__(self, environments: Sequence[Environment]) -> None:
        self._environments = list(environments)
        first = environments[0]
        self.intersections: Sequence[Any] = first.intersections
        self.feature_widths, self.max_width, self.n_decisions = first.feature_widths, first.max_width, first.n_decisions
        self.episode = 0
        self._current = first

    def reset(self) -> npt.NDArray[np.int32]:
        self._current = self._environments[self.episode % len(self._environments)]
        self.episode += 1
        return self._current.reset()

    def step(self, actions: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64], bool]:
        return self._current.step(actions)

    def average_travel_time_s(self) -> float:
        return self._current.average_travel_time_s()
