"""Chooses the quantisation that decides best on the states that a trained sub-graph visits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from model.policy.file import IntersectionPolicy
from model.policy.float_policy import FloatPolicy, GroupWeights
from model.policy.integer import IntegerPolicy
from model.quantise.quantise import FULL_GRID, Grid, Headroom, KeptFeature, quantise

INPUT_HEADROOMS = (1.0, 1.25, 1.5)
HIDDEN_HEADROOMS = (1.15, 1.2, 1.25, 1.3)


@dataclass(frozen=True)
class Calibrated:
    """The chosen integer policy and how it decides on the calibration states."""

    part: IntersectionPolicy
    headroom: Headroom
    agreement: float  # share of the states on which integers and float choose the same action
    regret: float  # mean loss of the float policy's own value by the integers' choices


def calibrate(
    intersection_id: str,
    phases: Sequence[int],
    features: Sequence[KeptFeature],
    weights: GroupWeights,
    states: npt.NDArray[np.integer],
    grid: Grid = FULL_GRID,
) -> Calibrated:
    """Quantises with every pair of headrooms and keeps the one of least regret on states int[T, n_inputs]
    (first on a tie)."""
    tried = []
    for inputs in INPUT_HEADROOMS:
        for hidden in HIDDEN_HEADROOMS:
            headroom = Headroom(inputs, hidden)
            part = quantise(intersection_id, phases, features, weights, states, headroom, grid)
            tried.append(Calibrated(part, headroom, *agreement_and_regret(part, states)))
    return min(tried, key=lambda calibrated: calibrated.regret)


def agreement_and_regret(part: IntersectionPolicy, states: npt.NDArray[np.integer]) -> tuple[float, float]:
    """(share of equal actions, mean of Q(float's action) - Q(integers' action) in the float policy) over
    states int[T, n_inputs]."""
    values = FloatPolicy(part).logits(states)
    float_actions, int_actions = values.argmax(axis=1), IntegerPolicy(part).act_batch(states)
    rows = np.arange(len(states))
    regret = (values[rows, float_actions] - values[rows, int_actions]).mean()
    return float((float_actions == int_actions).mean()), float(regret)
