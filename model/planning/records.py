"""What planned decisions have shown: what each light saw, and by how much each of its actions is worse than its best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from model.search.packing import Packing

UNPLANNED = -1.0
"""In place of a regret, of an action that the light doesn't have."""


class Seen(NamedTuple):
    """The records of one light, or of all that share a network. S numbers in a packed row, A actions."""

    inputs: npt.NDArray[np.int16]  # [T, S]
    regrets: npt.NDArray[np.float32]  # [T, A] vehicle-seconds; UNPLANNED where there is no such action


class Records:
    """Records of G groups (lights, or all lights together where they share a network), added to decision by decision."""

    def __init__(self, packing: Packing, action_counts: Sequence[int], *, share: bool) -> None:
        self._packing, self._action_counts, self._share = packing, action_counts, share
        self._inputs: list[list[npt.NDArray[np.int16]]] = [[] for _ in range(self.groups)]
        self._regrets: list[list[npt.NDArray[np.float32]]] = [[] for _ in range(self.groups)]

    @property
    def groups(self) -> int:
        return 1 if self._share else len(self._action_counts)

    def add(
        self, observation: npt.NDArray[np.int32], costs_s: npt.NDArray[np.float64], lights: Sequence[int] | npt.NDArray
    ) -> None:
        """One decision: observation int32[N, F, W], costs_s float64[N, A]; lights: those that were planned."""
        rows = self._packing.pack(observation).astype(np.int16)
        for light in lights:
            group, count = 0 if self._share else int(light), self._action_counts[light]
            regrets = np.full(costs_s.shape[1], UNPLANNED, np.float32)
            regrets[:count] = costs_s[light, :count] - costs_s[light, :count].min()
            self._inputs[group].append(rows[light])
            self._regrets[group].append(regrets)

    def seen(self, group: int) -> Seen:
        return Seen(np.stack(self._inputs[group]), np.stack(self._regrets[group]))

    def restore(self, seen: Sequence[Seen]) -> None:
        """Takes over the records of an earlier run."""
        self._inputs, self._regrets = [list(each.inputs) for each in seen], [list(each.regrets) for each in seen]
