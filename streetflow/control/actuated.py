"""Actuated control: hold a phase while vehicles approach its stop lines, then serve the next phase that somebody waits for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streetflow.control.environment import Environment
from streetflow.control.features import SEGMENTS
from streetflow.control.intersection import Intersection
from streetflow.control.stages import covers
from streetflow.errors import FieldError


class Actuated:
    """Gap-out and max-out with phase skipping, decided at every decision of the environment.

    Each light goes round the fewest of its phases that open all there is. A lane's detector shows the vehicles on its last
    part. A phase is called by vehicles on lanes of which it opens something that the current phase doesn't. The current phase
    goes on while no other is called; else for as long as more than ``few`` vehicles are on the lanes that could lose by a
    change, and one decision more stays within ``max_green_s``. Then the next phase in cyclic order that is called is served.

    Args:
        min_green_s: a light whose ``elapsed`` is below it keeps its phase.
        max_green_s: the longest green while another phase is called; if that is less than one decision, one decision.
        few: vehicles that are not worth holding for.
        zone: quarters of a lane that its detector covers, from the stop line back, 1 to 4.
    """

    features = (f"inlane_2_num_vehicle_seg_by_{SEGMENTS}",)

    def __init__(self, min_green_s: int = 0, max_green_s: int = 60, few: int = 2, zone: int = 1) -> None:
        if not 1 <= zone <= SEGMENTS:
            raise FieldError("zone", f"must be from 1 to {SEGMENTS}, is {zone}")
        self.min_green_s, self.max_green_s, self.few, self.zone = min_green_s, max_green_s, few, zone

    def reset(self, environment: Environment) -> None:
        self._lights = environment
        self._interval_s = environment.decision_interval_s
        (self._column,) = environment.feature_columns(self.features)
        self._gains = [gains_of(each) for each in environment.intersections]
        self._calls = [in_ring(gains, each) for gains, each in zip(self._gains, environment.intersections, strict=True)]

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        current, elapsed_s = self._lights.current_action, self._lights.elapsed_s
        actions = current.copy()
        for i, gains in enumerate(self._gains):
            now, lanes = int(current[i]), gains.shape[2]
            parts = observation[i, self._column, : lanes * SEGMENTS].reshape(lanes, SEGMENTS)
            vehicles = parts[:, SEGMENTS - self.zone :].sum(axis=1)
            called = np.flatnonzero(self._calls[i][now] @ vehicles)
            worth_it = gains[:, now].any(axis=0) @ vehicles > self.few
            held = worth_it and elapsed_s[i] + self._interval_s <= self.max_green_s
            if called.size and not held and elapsed_s[i] >= self.min_green_s:
                actions[i] = called[np.argmin((called - now) % len(gains))]
        return actions


def gains_of(intersection: Intersection) -> NDArray[np.bool_]:
    """bool[actions, actions, in-lanes]: whether the lane has something open in the second action that isn't in the first."""
    opened = np.zeros((intersection.action_count, len(intersection.lane_links)), bool)
    for action, links in enumerate(intersection.phase_lane_links):
        opened[action, list(links)] = True
    more = opened[None] & ~opened[:, None]
    start = np.array([lane for lane, _ in intersection.lane_links])
    return np.stack([more[:, :, start == lane].any(axis=2) for lane in intersection.in_lanes], axis=2)


def in_ring(gains: NDArray[np.bool_], intersection: Intersection) -> NDArray[np.bool_]:
    """The gains of the fewest phases that open all links that some phases open and others don't; none of the others."""
    count, every = intersection.action_count, range(len(intersection.lane_links))
    opened = [frozenset(a for a, links in enumerate(intersection.phase_lane_links) if k in links) for k in every]
    ring = next(covers([actions for actions in opened if 0 < len(actions) < count], count), ())
    return np.where(np.isin(np.arange(count), ring)[None, :, None], gains, False)
