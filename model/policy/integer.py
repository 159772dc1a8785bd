"""The reference of the integer policy: chip, emulator and host build must equal it, logit for logit.

All arithmetic is on integers; `>>` only ever sees non-negative numbers. With x the kept features' int16
values:

    q[f][j]  = min(255, (max(0, x[f][j] - offset_f) * multiplier_f + round_f) >> shift_f)
    s[o]     = sum_f max(0, b1[f][o] + sum_j w1[f][o][j] * q[f][j])
    h1[o]    = min(255, (s[o] * m1[o] + (1 << (sh1[o] - 1))) >> sh1[o])
    h2[o]    = the same of max(0, b2[o] + sum_j w2[o][j] * h1[j])
    logit[a] = b3[a] + sum_j w3[a][j] * h2[j]
    action   = lowest index of the greatest logit

The policy file's loader has proved that no sum here leaves 24 bits and no product 32 (`model/policy/file.py`);
numpy's int64 is exact. The steps are functions of their own, since the quantisation (`model/quantise/quantise.py`) goes through
them as it chooses each layer's integers.

Two things can make the integers decide otherwise than the float network, and both are reported (`Saturation`):

    beyond    an input is beyond its range: x < offset, or ((x - offset) * multiplier + round) >> shift exceeds 255, so that
              it is clipped (`FeatureInput.covered` has the limits)
    at limit  a unit of h1 or h2 is 255; the quantiser leaves headroom, so that no state it was shown takes one so far

Layer 1 has a ReLU per branch, as the paper's o_J = sum_i alpha_i ReLU(Linear(o_i)); after the extraction alpha is 1. Where the
branches are `joined`, as in an ordinary network, there is one ReLU, of their sum:

    s[o]     = max(0, sum_f (b1[f][o] + sum_j w1[f][o][j] * q[f][j]))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from model.policy.file import INPUT_MAX, IntersectionPolicy

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

SATURATED_LIMIT = 0.01  # share of the decisions that may leave the integers' range


class Activations(NamedTuple):
    """Every intermediate of one inference (or of a batch: one more leading axis)."""

    q: Int64  # [n_inputs] 0..255
    h1: Int64  # [H1] 0..255
    h2: Int64  # [H2] 0..255
    logits: Int32  # [A]


class Saturation(NamedTuple):
    """What has left the integers' range in one inference (of a batch: bool[B] each)."""

    inputs: npt.NDArray[np.bool_] | np.bool_  # at least one input is beyond its range
    units: npt.NDArray[np.bool_] | np.bool_  # at least one unit of layer 1 or 2 is at its limit


class IntegerPolicy:
    """One intersection's policy in integers. `x` is int[n_inputs] (or int[B, n_inputs]): the kept features
    one after the other."""

    def __init__(self, part: IntersectionPolicy) -> None:
        widths = [feature.width for feature in part.features]
        self.n_inputs = part.n_inputs
        self.n_actions = len(part.phases)
        self._offset = np.repeat([feature.offset for feature in part.features], widths).astype(np.int64)
        self._multiplier = np.repeat([feature.multiplier for feature in part.features], widths).astype(np.int64)
        self._shift = np.repeat([feature.shift for feature in part.features], widths).astype(np.int64)
        covered = [feature.covered for feature in part.features]
        self._least, self._greatest = (np.repeat(limits, widths) for limits in zip(*covered, strict=True))
        self._slices = [branch.columns for branch in part.branches]
        self._w1 = [np.array(branch.weights, dtype=np.int64) for branch in part.branches]
        self._b1 = [np.array(branch.biases, dtype=np.int64) for branch in part.branches]
        self._m1, self._sh1 = _requantisation(part.layer1.multipliers, part.layer1.shifts)
        self._w2, self._b2 = (
            np.array(part.layer2.weights, dtype=np.int64),
            np.array(part.layer2.biases, dtype=np.int64),
        )
        self._m2, self._sh2 = _requantisation(part.layer2.multipliers, part.layer2.shifts)
        self._w3, self._b3 = (
            np.array(part.layer3.weights, dtype=np.int64),
            np.array(part.layer3.biases, dtype=np.int64),
        )

    def activations(self, x: npt.ArrayLike) -> Activations:
        """All layers' integers for x int[n_inputs] or int[B, n_inputs]; ValueError on another width or a
        value that does not fit int16."""
        values = np.asarray(x)
        if values.dtype.kind not in "iu":
            raise ValueError(f"features are integers, got {values.dtype}")
        if values.ndim not in (1, 2) or values.shape[-1] != self.n_inputs:
            raise ValueError(f"expected {self.n_inputs} feature values, got shape {values.shape}")
        if values.size and (values.min() < -(1 << 15) or values.max() >= 1 << 15):
            raise ValueError("a feature value does not fit int16")
        q = quantise_inputs(values, self._offset, self._multiplier, self._shift)
        h1 = requantise(branch_sums([q[..., columns] for columns in self._slices], self._w1, self._b1), self._m1, self._sh1)
        h2 = requantise(branch_sums([h1], [self._w2], [self._b2]), self._m2, self._sh2)
        return Activations(q, h1, h2, (h2 @ self._w3.T + self._b3).astype(np.int32))

    def saturation(self, x: npt.NDArray[np.integer], activations: Activations) -> Saturation:
        """What has left its range in the inference of x int[n_inputs] or int[B, n_inputs] that gave these activations."""
        beyond = ((x < self._least) | (x > self._greatest)).any(axis=-1)
        return Saturation(beyond, np.maximum(activations.h1.max(axis=-1), activations.h2.max(axis=-1)) == INPUT_MAX)

    def logits(self, x: npt.ArrayLike) -> Int32:
        """int32[A] for x int[n_inputs]; int32[B, A] for x int[B, n_inputs]."""
        return self.activations(x).logits

    def act(self, x: npt.ArrayLike) -> int:
        """The action for x int[n_inputs]: the lowest index of the greatest logit."""
        return int(np.argmax(self.logits(x)))

    def act_batch(self, x: npt.ArrayLike) -> Int64:
        """The actions int64[B] for x int[B, n_inputs]."""
        return np.argmax(self.logits(x), axis=-1)


def _requantisation(multipliers: list[int], shifts: list[int]) -> tuple[Int64, Int64]:
    return np.array(multipliers, dtype=np.int64), np.array(shifts, dtype=np.int64)


def quantise_inputs(x: npt.NDArray[np.integer], offset: Int64 | int, multiplier: Int64 | int, shift: Int64 | int) -> Int64:
    """q int64[..., n] from feature values int[..., n]; the scale is one for all of them, or int64[n]."""
    above = np.maximum(x.astype(np.int64) - offset, 0)
    return np.minimum((above * multiplier + ((1 << shift) >> 1)) >> shift, INPUT_MAX)


def branch_sums(inputs: Sequence[Int64], weights: Sequence[Int64], biases: Sequence[Int64]) -> Int64:
    """int64[..., rows]: the sum over the branches of ReLU(weights[b] @ inputs[b] + biases[b]). Layer 2 is one branch."""
    total: Int64 = np.maximum(inputs[0] @ weights[0].T + biases[0], 0)
    for values, w, b in zip(inputs[1:], weights[1:], biases[1:], strict=True):
        total += np.maximum(values @ w.T + b, 0)
    return total


def requantise(sums: Int64, multipliers: Int64, shifts: Int64) -> Int64:
    """h int64[..., rows] 0..255 from sums that are not negative."""
    return np.minimum((sums * multipliers + (1 << (shifts - 1))) >> shifts, INPUT_MAX)
