"""From a float sub-graph to the integers of the policy file.

Scales are free wherever something is rescaled anyway, so they are chosen to use the whole range and to be
exact:

* Inputs. Features differ by orders of magnitude (a one-hot phase, waiting-time sums of thousands). Each gets the multiplier
  that maps its visited range to 0..255; that scale and the offset go into layer 1's weights and biases.
* Hidden units. Each unit's visited maximum, with some headroom, is mapped to 255. The multiplier and shift are picked first,
  and the unit's scale *defined* by them, so requantisation adds no error of its own beyond rounding; the next layer's columns
  absorb the unit's scale.
* Weights. One scale per row in layers 1 and 2 (both branches of layer 1 share it: they are summed first), one for all of
  layer 3, since its outputs are compared. Only differences between actions matter there, so the mean over actions is removed
  first.

Biases are then corrected by the mean error that the rounding leaves on the calibration states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from model.policy.file import (
    ACCUMULATOR_LIMIT,
    INPUT_MAX,
    BranchLayer,
    FeatureInput,
    FloatWeights,
    HiddenLayer,
    IntersectionPolicy,
    OutputLayer,
)
from model.policy.float_policy import GroupWeights
from model.policy.integer import branch_sums, quantise_inputs, requantise

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

WEIGHT_MAX = 127
MULTIPLIER_MAX = 32767  # of an input
MAX_INPUT_SHIFT, MAX_HIDDEN_SHIFT = 16, 31
NARROW_LIMIT = 32767  # of a sum in 16 bits; several branches' sums, none negative, may be twice as large together
BOUND_ROOM = 1.02  # for rounding and the correction of the biases
BIAS_LIMIT = 1 << 21  # leaves room for 64 inputs * 127 * 255 in each of two branches below 2^23


@dataclass(frozen=True)
class KeptFeature:
    """A feature that the sub-graph kept at one intersection."""

    name: str
    width: int
    lsb_per_unit: int


@dataclass(frozen=True)
class Headroom:
    """How much further than the visited values the integer ranges reach, as a factor. What lies beyond saturates.

    Busier traffic than the training flow's drives hidden units beyond what they showed there; saturating them costs far more
    than the resolution that the headroom takes (measured: regret on unseen flows 0.19 without, 0.02 with a factor of 1.15)."""

    inputs: float = 1.0
    hidden: float = 1.15


@dataclass(frozen=True)
class Grid:
    """Which integers a policy may have: narrower ones are faster on the chip (docs/firmware.md)."""

    weight_limit: int = WEIGHT_MAX  # weights are -weight_limit..weight_limit
    shifts_only: bool = False  # hidden units are requantised by a shift alone: their multipliers are powers of two
    narrow_sums: bool = False  # no input takes a row's sum out of 16 bits


FULL_GRID = Grid()


def quantise(
    intersection_id: str,
    phases: Sequence[int],
    features: Sequence[KeptFeature],
    weights: GroupWeights,
    states: npt.NDArray[np.integer],
    headroom: Headroom,
    grid: Grid = FULL_GRID,
) -> IntersectionPolicy:
    """The integer policy of one intersection; states int[T, n_inputs]: the kept features of the visited
    states."""
    limit = grid.weight_limit
    ends = np.cumsum([feature.width for feature in features])
    columns = [slice(int(end) - feature.width, int(end)) for end, feature in zip(ends, features, strict=True)]
    inputs = [_input_scale(feature, states[:, part], headroom.inputs) for feature, part in zip(features, columns, strict=True)]

    w1, b1, q, float_sums = [], [], [], []
    for feature, scaled, part, weight, bias in zip(
        features, inputs, columns, weights.layer1_weights, weights.layer1_biases, strict=True
    ):
        values = states[:, part].astype(np.float64)
        step = (1 << scaled.shift) / scaled.multiplier / feature.lsb_per_unit  # feature value per LSB of q
        w1.append(weight.astype(np.float64) * step)
        b1.append(bias + weight.sum(axis=1, dtype=np.float64) * scaled.offset / feature.lsb_per_unit)
        q.append(quantise_inputs(states[:, part], scaled.offset, scaled.multiplier, scaled.shift))
        float_sums.append(values / feature.lsb_per_unit @ weight.T.astype(np.float64) + bias)
    if weights.joined:
        w1, b1, q = [np.concatenate(w1, axis=1)], [np.sum(b1, axis=0)], [np.concatenate(q, axis=1)]
        float_sums = [np.sum(float_sums, axis=0)]
    float_s = np.sum([np.maximum(each, 0.0) for each in float_sums], axis=0)
    scale1 = _row_scales(w1, b1, grid)
    int_w1 = [_rounded(weight / scale1[:, None], limit) for weight in w1]
    int_b1 = [
        _corrected_bias(values, weight, bias, integers, scale1)
        for values, weight, bias, integers in zip(q, w1, b1, int_w1, strict=True)
    ]
    m1, shift1, unit1 = _requantisation(scale1, float_s, headroom.hidden, grid)
    h1 = requantise(branch_sums(q, int_w1, int_b1), m1, shift1)
    if weights.joined:
        int_w1 = np.split(int_w1[0], ends[:-1], axis=1)
        int_b1 = [int_b1[0], *(np.zeros_like(int_b1[0]) for _ in int_w1[1:])]

    float_h1 = float_s / unit1
    w2, b2 = weights.layer2_weights.astype(np.float64) * unit1, weights.layer2_biases.astype(np.float64)
    scale2 = _row_scales([w2], [b2], grid)
    int_w2 = _rounded(w2 / scale2[:, None], limit)
    int_b2 = _corrected_bias(h1, w2, b2, int_w2, scale2, float_h1)
    float_h2 = np.maximum(float_h1 @ w2.T + b2, 0.0)
    m2, shift2, unit2 = _requantisation(scale2, float_h2, headroom.hidden, grid)
    h2 = requantise(branch_sums([h1], [int_w2], [int_b2]), m2, shift2)

    w3 = weights.layer3_weights.astype(np.float64) * unit2
    b3 = weights.layer3_biases.astype(np.float64)
    w3, b3 = w3 - w3.mean(axis=0), b3 - b3.mean()
    scale3 = np.full(len(w3), _row_scales([w3], [b3], grid).max())
    int_w3 = _rounded(w3 / scale3[:, None], limit)
    int_b3 = _corrected_bias(h2, w3, b3, int_w3, scale3, float_h2 / unit2)
    return IntersectionPolicy(
        id=intersection_id,
        phases=list(phases),
        features=inputs,
        hidden=[len(w2[0]), len(w2)],
        layer1=BranchLayer(
            weights=[weight.tolist() for weight in int_w1],
            biases=[bias.tolist() for bias in int_b1],
            multipliers=m1.tolist(),
            shifts=shift1.tolist(),
            joined=weights.joined,
        ),
        layer2=HiddenLayer(weights=int_w2.tolist(), biases=int_b2.tolist(), multipliers=m2.tolist(), shifts=shift2.tolist()),
        layer3=OutputLayer(weights=int_w3.tolist(), biases=int_b3.tolist()),
        float_weights=float_section(weights),
    )


def float_section(weights: GroupWeights) -> FloatWeights:
    """The float32 weights for the policy file, in the fewest digits that give the same float32 back."""

    def shortest(values: npt.NDArray[np.float32]) -> list:
        if values.ndim > 1:
            return [shortest(row) for row in values]
        return [float(str(value)) for value in values]

    return FloatWeights(
        layer1_weights=[shortest(branch) for branch in weights.layer1_weights],
        layer1_biases=[shortest(branch) for branch in weights.layer1_biases],
        layer2_weights=shortest(weights.layer2_weights),
        layer2_biases=shortest(weights.layer2_biases),
        layer3_weights=shortest(weights.layer3_weights),
        layer3_biases=shortest(weights.layer3_biases),
    )


def _input_scale(feature: KeptFeature, values: npt.NDArray[np.integer], headroom: float) -> FeatureInput:
    """Maps the visited range, with headroom, to 0..255. A range of up to 255 is scaled by a whole number: no rounding at
    all."""
    low = max(-(1 << 15), int(np.floor(headroom * min(0, int(values.min())))))  # what can't be negative starts at 0
    high = int(np.ceil(headroom * int(values.max())))
    span = max(1, high - low)
    if span <= INPUT_MAX:
        multiplier, shift = INPUT_MAX // span, 0
    else:
        shift = MAX_INPUT_SHIFT
        multiplier = int(INPUT_MAX * (1 << shift) / span)
        while multiplier > MULTIPLIER_MAX:
            shift -= 1
            multiplier = int(INPUT_MAX * (1 << shift) / span)
    return FeatureInput(
        name=feature.name,
        width=feature.width,
        lsb_per_unit=feature.lsb_per_unit,
        offset=low,
        multiplier=multiplier,
        shift=shift,
    )


def _row_scales(weights: Sequence[Float64], biases: Sequence[Float64], grid: Grid) -> Float64:
    """float64[rows]: the value of one LSB per row, so that weights [rows, inputs] and biases [rows] of each branch keep their
    limits.

    Grows where the sums over any input could otherwise reach the accumulator's limit (wide layers)."""
    greatest = np.abs(np.concatenate(weights, axis=1)).max(axis=1)
    bias = np.abs(biases)
    worst = bias.sum(axis=0) + INPUT_MAX * np.sum([np.abs(each).sum(axis=1) for each in weights], axis=0)
    scales = np.maximum(greatest / grid.weight_limit, bias.max(axis=0) / BIAS_LIMIT)
    scales = np.maximum(scales, BOUND_ROOM * worst / (ACCUMULATOR_LIMIT / len(weights) - 1))
    if grid.narrow_sums:
        highs, lows = (
            np.array([sign * b + INPUT_MAX * np.maximum(sign * w, 0).sum(axis=1) for w, b in zip(weights, biases, strict=True)])
            for sign in (1, -1)
        )
        scales = np.maximum(scales, BOUND_ROOM * np.maximum(highs, lows).max(axis=0) / NARROW_LIMIT)
        scales = np.maximum(scales, BOUND_ROOM * np.maximum(highs, 0).sum(axis=0) / (2 * NARROW_LIMIT))
    return np.maximum(scales, 1e-12)


def _rounded(values: Float64, limit: int) -> Int64:
    return np.clip(np.rint(values), -limit, limit).astype(np.int64)


def _corrected_bias(
    inputs: Int64,
    weights: Float64,
    biases: Float64,
    int_weights: Int64,
    scales: Float64,
    float_inputs: Float64 | None = None,
) -> Int64:
    """The bias in LSB, corrected by the mean error of the rounded sums over the states (at most 2 % of the
    accumulator's range)."""
    exact = (inputs if float_inputs is None else float_inputs) @ weights.T / scales
    error = (exact - inputs @ int_weights.T).mean(axis=0)
    return np.rint(biases / scales + np.clip(error, -WEIGHT_MAX * INPUT_MAX, WEIGHT_MAX * INPUT_MAX)).astype(np.int64)


def _requantisation(scales: Float64, values: Float64, headroom: float, grid: Grid) -> tuple[Int64, Int64, Float64]:
    """(multipliers, shifts, value of one LSB of the unit), all [rows]; values float[T, rows]: the unit's real outputs.

    factor = multiplier / 2^shift takes a sum in units of `scales` to 0..255; multipliers have 8 significant bits, or one."""
    covered = headroom * values.max(axis=0)
    covered = np.maximum(covered, max(1e-3 * float(covered.max(initial=0.0)), 1e-9))  # a unit that never fires
    factor = np.clip(INPUT_MAX * scales / covered, 1.0 / (1 << MAX_HIDDEN_SHIFT), 127.0)
    shifts = np.clip(np.floor(np.log2(255.0 / factor)), 1, MAX_HIDDEN_SHIFT).astype(np.int64)
    multipliers = np.clip(np.floor(factor * 2.0**shifts), 1, 255).astype(np.int64)
    if grid.shifts_only:
        multipliers = 1 << np.floor(np.log2(multipliers)).astype(np.int64)
    return multipliers, shifts, scales * 2.0**shifts / multipliers


def with_own_floats(part: IntersectionPolicy) -> IntersectionPolicy:
    """The policy with the float weights that its integers stand for: the same network without the rounding of inputs and units,
    and without their limits. A unit's value is its byte's, an output's its logit's; ReLUs don't mind such scales."""
    scale1, scale2 = (
        np.array(layer.multipliers) / 2.0 ** np.array(layer.shifts, np.float64) for layer in (part.layer1, part.layer2)
    )
    layer1_weights, layer1_biases = [], []
    for feature, rows, biases in zip(part.features, part.layer1.weights, part.layer1.biases, strict=True):
        lsb = feature.multiplier / (1 << feature.shift)  # of the scaled input, for 1 of the feature's integer
        per_integer = np.array(rows, np.float64) * scale1[:, None] * lsb
        layer1_weights.append((per_integer * feature.lsb_per_unit).astype(np.float32))
        layer1_biases.append((np.array(biases) * scale1 - feature.offset * per_integer.sum(axis=1)).astype(np.float32))
    weights = GroupWeights(
        layer1_weights=layer1_weights,
        layer1_biases=layer1_biases,
        layer2_weights=(np.array(part.layer2.weights) * scale2[:, None]).astype(np.float32),
        layer2_biases=(np.array(part.layer2.biases) * scale2).astype(np.float32),
        layer3_weights=np.array(part.layer3.weights, np.float32),
        layer3_biases=np.array(part.layer3.biases, np.float32),
    )
    return part.model_copy(update={"float_weights": float_section(weights)})
