"""Pedestrians who press a button: drawn by a seeded process, and how long each waits for the walk."""

from __future__ import annotations

import random
from collections.abc import Sequence

from streetflow.control.signal_groups import SignalPlan

PRESS_S = 0.3


class Pedestrians:
    """Of one crossing: at each crosswalk, pedestrians come at random, `per_hour` on average."""

    def __init__(self, plan: SignalPlan, per_hour: float, seed: int) -> None:
        self._groups = [number for number, group in enumerate(plan.groups) if group.walk_and_clearance_s > 0]
        self._rate_hz = per_hour / 3600
        self._random = random.Random(seed)
        self._next_s = {group: self._gap_s() for group in self._groups}
        self._waiting: dict[int, list[float]] = {group: [] for group in self._groups}
        self.waits_s: list[float] = []

    @property
    def still_waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def step(self, second: int) -> list[tuple[float, int]]:
        """(when within this second, group) of each press, in the order of time."""
        presses = []
        for group in self._groups:
            while self._next_s[group] < second + 1:
                presses.append((self._next_s[group] - second, group))
                self._waiting[group].append(self._next_s[group])
                self._next_s[group] += self._gap_s()
        return sorted(presses)

    def walk(self, time_s: float, groups: Sequence[int]) -> None:
        """These groups' walk has begun: whoever came before goes."""
        for group in groups:
            waiting = self._waiting.get(group, [])
            self.waits_s += [time_s - came_s for came_s in waiting if came_s <= time_s]
            self._waiting[group] = [came_s for came_s in waiting if came_s > time_s]

    def _gap_s(self) -> float:
        return self._random.expovariate(self._rate_hz) if self._rate_hz > 0 else float("inf")
