"""The learned baselines of the paper's Table 1: inputs, reward and actions of each, and the networks that it can control.

Inputs are features of `streetflow.control.features`. The networks (`ecolight.py`, `frap.py`, `colight.py`, `random_path.py`)
need torch; this module doesn't.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from streetflow.control.environment import Environment
from streetflow.control.features import RELEASE
from streetflow.control.intersection import Intersection, neighbours
from streetflow.errors import FieldError, InputError
from streetflow.near import or_else

if TYPE_CHECKING:
    from model.dqn.value_graph import ValueGraph

LANES_AND_PHASE = ("inlane_2_num_vehicle", "outlane_2_num_vehicle", "inter_2_current_phase")


@dataclass(frozen=True)
class Baseline:
    """One model. Rewards: "waiting" is minus the waiting vehicles per in-lane, averaged over the lanes of an in-road, then over
    the in-roads; "pressure" minus (vehicles on in-lanes - on out-lanes)."""

    name: str
    features: tuple[str, ...]
    reward: Literal["waiting", "pressure"]
    stay_or_next: bool = False  # its two actions: keep the phase, or take the next one
    shared: bool = False  # one set of weights for all intersections of a network, which must be alike
    needs_neighbours: bool = False

    def refusal(self, intersections: Sequence[Intersection]) -> str | None:
        """Why the model can't control a network (the paper's dashes), None if it can."""
        if self.shared:
            first = intersections[0]
            for other in intersections[1:]:
                if _outline(other) != _outline(first):
                    return (
                        f"{self.name} shares its weights, so all intersections must be alike; {first.id} has "
                        f"{_described(first)}, {other.id} {_described(other)}"
                    )
        if self.needs_neighbours and len(intersections) == 1:
            return f"{self.name} attends to neighbouring intersections, and there is only one"
        return None

    def require(self, intersections: Sequence[Intersection], network: str) -> None:
        """InputError for a network that the model can't control."""
        why = self.refusal(intersections)
        if why is not None:
            raise InputError(network, "intersections", why)

    def n_actions(self, intersections: Sequence[Intersection]) -> np.ndarray:
        """int64[N]."""
        return np.array([2 if self.stay_or_next else each.action_count for each in intersections], np.int64)

    def phases(self, actions: np.ndarray, environment: Environment) -> np.ndarray:
        """The environment's actions (phases) that the model's actions stand for, both int[N]."""
        if not self.stay_or_next:
            return actions
        counts = np.array([each.action_count for each in environment.intersections])
        return (environment.current_action + actions) % counts


BASELINES = {
    each.name: each
    for each in (
        Baseline(
            "EcoLight", ("inlane_2_num_vehicle", "phase_2_num_vehicle", "inter_2_current_phase"), "waiting", stay_or_next=True
        ),
        Baseline("CoLight", LANES_AND_PHASE, "waiting", shared=True, needs_neighbours=True),
        Baseline("FRAP", LANES_AND_PHASE, "waiting"),
        Baseline("MPLight", LANES_AND_PHASE, "pressure", shared=True),
        Baseline("TLRP", RELEASE, "pressure"),
    )
}


def require_baseline(name: str) -> None:
    """FieldError for an unknown model."""
    if name not in BASELINES:
        raise FieldError("model", f"unknown model {name!r}{or_else(name, ['TinyLight', *BASELINES])}")


def build_graph(
    baseline: Baseline,
    intersections: Sequence[Intersection],
    feature_widths: np.ndarray,
    width: int,
    seeds: Sequence[int],
) -> ValueGraph:
    """The model's network for one replica per seed, with fresh weights. Group r * N + n is intersection n of replica r. Its
    input is float32[G, B, F * W]: B states of `baseline.features` of the given widths [N, F], each padded to `width` W."""
    replicas = len(seeds)
    widths = np.tile(feature_widths, (replicas, 1)).astype(np.int64)
    n_actions = np.tile(baseline.n_actions(intersections), replicas)
    if baseline.name == "EcoLight":
        from model.baselines.ecolight import EcoLight

        return EcoLight(n_actions, _numbers(seeds, intersections))
    if baseline.name == "CoLight":
        from model.baselines.colight import CoLight

        near = [[n, *neighbours(intersections, n)] for n in range(len(intersections))]
        return CoLight(widths[0], n_actions, near, [(seed,) for seed in seeds])
    if baseline.name == "TLRP":
        from model.baselines.random_path import RandomPath

        return RandomPath(widths, n_actions, width, _numbers(seeds, intersections))
    from model.baselines.frap import Frap, Layout

    layout = Layout.of(intersections, out_weight=-1.0 if baseline.name == "MPLight" else 1.0).repeated(replicas)
    return Frap(layout, n_actions, [(seed,) for seed in seeds] if baseline.shared else _numbers(seeds, intersections))


def _numbers(seeds: Sequence[int], intersections: Sequence[Intersection]) -> list[tuple[int, ...]]:
    return [(seed, n) for seed in seeds for n in range(len(intersections))]


def _outline(each: Intersection) -> tuple[object, ...]:
    return (len(each.in_lanes), len(each.out_lanes), each.action_count, each.phase_lane_links, len(each.lane_links))


def _described(each: Intersection) -> str:
    return f"{len(each.in_lanes)} in-lanes, {len(each.out_lanes)} out-lanes, {each.action_count} phases"
