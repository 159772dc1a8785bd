"""Which phases a light needs: sets of actions that leave nothing shut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

MORE_STAGES = 2


def covers(needed: Sequence[frozenset[int]], actions: int) -> Iterator[tuple[int, ...]]:
    """Sets of actions of which each of ``needed`` has one, from the smallest up to MORE_STAGES more."""
    smallest = actions
    for size in range(1, actions + 1):
        if size > smallest + MORE_STAGES:
            return
        for stages in combinations(range(actions), size):
            if all(not each.isdisjoint(stages) for each in needed):
                smallest = min(smallest, size)
                yield stages
