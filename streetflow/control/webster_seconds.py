"""Webster's fixed time in whole seconds, with what each change of the lights takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from streetflow.control.environment import Environment
from streetflow.control.webster import START_UP_S, Stream, Times, best_plan, flow_ratios, streams


class WebsterSeconds:
    """Each light repeats a plan of its own, made before the run: which phases, and for how many seconds each, the change into
    it included.

    Like `Webster` it knows the volumes of the very run, and the plans aren't coordinated. Every phase keeps its minimum green,
    and loses its change and a start-up.

    Args:
        max_cycle_s: the longest cycle, unless the phases that are needed take longer with their minimum greens.
        min_green_s: the shortest green, where the environment's lights have no longer one.
    """

    features = ("inter_2_current_phase",)  # unused: an environment observes at least one feature
    decision_interval_s = 1

    def __init__(self, max_cycle_s: int = 120, min_green_s: int = 5) -> None:
        self.max_cycle_s, self.min_green_s = max_cycle_s, min_green_s

    def reset(self, environment: Environment) -> None:
        """Attributes set: `plans`, by light: (action, seconds), in the order in which they are shown."""
        ratios, changes = flow_ratios(environment), environment.changes
        serves = environment.clearance == "hold"
        self.plans = [
            plan_seconds(
                streams(each, ratios),
                changes.seconds[i, : each.action_count, : each.action_count],
                np.maximum(changes.least_green_s[i, : each.action_count], self.min_green_s),
                self.max_cycle_s,
                serves=serves,
            )
            for i, each in enumerate(environment.intersections)
        ]
        self._cycles = [[action for action, seconds in own for _ in range(seconds)] for own in self.plans]
        self._environment = environment

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        second = self._environment.time_s
        return np.array([cycle[second % len(cycle)] for cycle in self._cycles], np.int32)


def plan_seconds(
    found: Sequence[Stream],
    changes_s: NDArray[np.int32],
    least_green_s: NDArray[np.int32],
    max_cycle_s: int,
    *,
    serves: bool = False,
) -> list[tuple[int, int]]:
    """A light's plan: of all sets of phases that cover the streams, the one with the least delay.

    Args:
        found: the light's streams; without any, it rests in action 0.
        changes_s: [A, A], seconds between two actions.
        least_green_s: [A].
        max_cycle_s: as in `WebsterSeconds`.
        serves: a change goes on serving what ends, and so loses nothing.

    Returns:
        (action, seconds) of each stage, the change into it included.
    """
    if not found:
        return [(0, 1)]

    def into_s(stages: Sequence[int]) -> dict[int, int]:
        return {end: int(changes_s[start, end]) if start != end else 0 for start, end in pairwise([stages[-1], *stages])}

    def lost_s(stages: Sequence[int]) -> Times:
        return {stage: START_UP_S + (0 if serves else change_s) for stage, change_s in into_s(stages).items()}

    def least(stages: Sequence[int]) -> dict[int, int]:
        return {stage: change_s + int(least_green_s[stage]) for stage, change_s in into_s(stages).items()}

    return list(best_plan(found, len(changes_s), 1, max_cycle_s, lost_s, least).items())
