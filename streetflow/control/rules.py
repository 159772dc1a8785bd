"""Rules that need no training, each of them stronger than the paper's: opponents that count.

Each chooses at every decision the action with the greatest score; the first of equals. Two parameters can hold it back, and do
nothing by default: ``min_green_s``, below whose ``elapsed`` a light keeps its action, and ``lead``, by which the greatest score
must at least be above the current action's to take over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streetflow.control.environment import Environment
from streetflow.control.intersection import Intersection


class _GreatestScore:
    """The choice by scores float64 or int32[N, actions]."""

    def __init__(self, feature: str, min_green_s: int, lead: float) -> None:
        self.features = (feature,)
        self.min_green_s, self.lead = min_green_s, lead

    def reset(self, environment: Environment) -> None:
        self._lights = environment

    def _choose(self, scores: NDArray[np.float64] | NDArray[np.int32]) -> NDArray[np.int32]:
        best = scores.argmax(axis=1).astype(np.int32)
        if not (self.min_green_s or self.lead):
            return best
        rows, current = np.arange(len(best)), self._lights.current_action
        held = self._lights.elapsed_s < self.min_green_s
        held |= scores[rows, best] - scores[rows, current] < self.lead
        return np.where(held, current, best).astype(np.int32)


class GreatestFeature(_GreatestScore):
    """The action with the greatest value of a feature that has one value for each action.

    Args:
        feature: its name.
        min_green_s: see above.
        lead: in the feature's integers.
    """

    def __init__(self, feature: str, min_green_s: int = 0, lead: float = 0) -> None:
        super().__init__(feature, min_green_s, lead)

    def reset(self, environment: Environment) -> None:
        super().reset(environment)
        (self._column,) = environment.feature_columns(self.features)
        self._no_action = np.arange(environment.max_width) >= environment.feature_widths[:, [self._column]]

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        scores = np.where(self._no_action, np.iinfo(np.int32).min, observation[:, self._column])
        return self._choose(scores)


class EfficientPressure(_GreatestScore):
    """The action with the greatest sum, over the movements that it opens, of the mean on the movement's in-lanes minus the mean
    on its out-lanes (Wu et al., "Efficient pressure", 2021). A movement is a pair of an in-road and an out-road.

    Args:
        feature: what is counted on each lane: ``lane_2_num_waiting_vehicle`` or ``lane_2_num_vehicle``.
        min_green_s: see above.
        lead: in vehicles.
    """

    def __init__(self, feature: str, min_green_s: int = 0, lead: float = 0) -> None:
        super().__init__(feature, min_green_s, lead)

    def reset(self, environment: Environment) -> None:
        super().reset(environment)
        (self._column,) = environment.feature_columns(self.features)
        counts = [each.action_count for each in environment.intersections]
        self._weights = np.zeros((len(counts), max(counts), environment.max_width))
        self._no_action = np.arange(max(counts)) >= np.array(counts)[:, None]
        for i, each in enumerate(environment.intersections):
            weights = _pressure_weights(each)
            self._weights[i, : weights.shape[0], : weights.shape[1]] = weights

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        scores = np.einsum("naw,nw->na", self._weights, observation[:, self._column])
        # Means are fractions: what differs by less than this differs by rounding alone.
        scores = np.where(self._no_action, -np.inf, np.round(scores, 9))
        return self._choose(scores)


def _pressure_weights(intersection: Intersection) -> NDArray[np.float64]:
    """float64[actions, in-lanes and out-lanes]: by how much each lane's count raises each action's score."""
    lanes = (*intersection.in_lanes, *intersection.out_lanes)
    column = {lane: k for k, lane in enumerate(lanes)}
    road = _roads(intersection)
    weights = np.zeros((intersection.action_count, len(lanes)))
    for action, links in enumerate(intersection.phase_lane_links):
        movements: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for lane_in, lane_out in (intersection.lane_links[link] for link in links):
            movements.setdefault((road[lane_in], road[lane_out]), []).append((lane_in, lane_out))
        for pairs in movements.values():
            for side, sign in ((0, 1.0), (1, -1.0)):
                used = dict.fromkeys(pair[side] for pair in pairs)
                for lane in used:
                    weights[action, column[lane]] += sign / len(used)
    return weights


def _roads(intersection: Intersection) -> dict[int, int]:
    """A number for the road of each lane."""
    roads = (*intersection.in_road_lanes, *intersection.out_road_lanes)
    return {lane: number for number, lanes in enumerate(roads) for lane in lanes}
