"""Takes out of a policy what no traffic moves: in all states that were looked at the chip decides as before, in less time.

A unit of layer 1 or 2 whose byte is the same in every state goes, and its part of the next layer's sums joins that layer's
biases; 0 is the usual case. A branch of layer 1 that is never above 0 gets weights of 0, which cost the chip nothing. The
weights in float go the same way, a unit's part there being its mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from model.policy.file import FloatWeights, IntersectionPolicy
from model.policy.integer import IntegerPolicy, branch_sums, quantise_inputs

Int64 = npt.NDArray[np.int64]


def without_silent(part: IntersectionPolicy, states: npt.NDArray[np.integer]) -> IntersectionPolicy:
    """The policy without what is the same in all states int[T, n_inputs]; there every logit stays as it is. One unit of each
    layer stays in any case."""
    part = _without_branches(part, states)
    activations = IntegerPolicy(part).activations(states)
    for layer, units in ((1, activations.h1), (2, activations.h2)):
        constant = units.min(axis=0) == units.max(axis=0)
        constant[0] &= not constant.all()
        if constant.any():
            part = _without_units(part, layer, constant, units[0], states)
    return part


def _without_branches(part: IntersectionPolicy, states: npt.NDArray[np.integer]) -> IntersectionPolicy:
    """With branches of layer 1 that are above 0 in no state, neither in integers nor in float, set to 0."""
    fields = part.model_dump()
    begin = 0
    for number, feature in enumerate(part.features):
        values = states[:, begin : begin + feature.width]
        begin += feature.width
        q = quantise_inputs(values, feature.offset, feature.multiplier, feature.shift)
        weights, biases = (np.array(each[number], np.int64) for each in (part.layer1.weights, part.layer1.biases))
        awake = branch_sums([q], [weights], [biases]).any(axis=0)
        floats = fields["float_weights"]
        if floats is not None:
            awake |= (_float_branch(part, number, values) > 0).any(axis=0)
        for unit in np.flatnonzero(~awake):
            for layer, kind in (
                ((fields["layer1"], ""), (floats, "layer1_")) if floats is not None else ((fields["layer1"], ""),)
            ):
                layer[f"{kind}weights"][number][unit] = [0] * feature.width
                layer[f"{kind}biases"][number][unit] = 0
    return IntersectionPolicy(**fields)


def _without_units(
    part: IntersectionPolicy, layer: int, gone: npt.NDArray[np.bool_], values: Int64, states: npt.NDArray[np.integer]
) -> IntersectionPolicy:
    """Without those units of a layer, each of which always has its value."""
    fields = part.model_dump()
    stays, hidden = np.flatnonzero(~gone), np.flatnonzero(gone)
    own, following = fields[f"layer{layer}"], fields[f"layer{layer + 1}"]
    weights = np.array(following["weights"], np.int64)
    following["biases"] = (np.array(following["biases"], np.int64) + weights[:, hidden] @ values[hidden]).tolist()
    following["weights"] = weights[:, stays].tolist()
    for name in ("multipliers", "shifts"):
        own[name] = _some(own[name], stays)
    for name in ("weights", "biases"):
        own[name] = [_some(branch, stays) for branch in own[name]] if layer == 1 else _some(own[name], stays)
    fields["hidden"][layer - 1] = len(stays)
    if part.float_weights is not None:
        fields["float_weights"] = _floats_without_units(part, layer, stays, hidden, states)
    return IntersectionPolicy(**fields)


def _floats_without_units(
    part: IntersectionPolicy, layer: int, stays: Int64, hidden: Int64, states: npt.NDArray[np.integer]
) -> dict[str, list]:
    floats = part.float_weights
    assert floats is not None
    fields, own, following = floats.model_dump(), f"layer{layer}", f"layer{layer + 1}"
    weights, biases = (np.array(fields[f"{following}_{name}"], np.float32) for name in ("weights", "biases"))
    means = _float_units(part, floats, layer, states).mean(axis=0, dtype=np.float64)[hidden]
    fields[f"{following}_biases"] = [float(str(np.float32(each))) for each in biases + weights[:, hidden] @ means]
    fields[f"{following}_weights"] = [_some(row, stays) for row in fields[f"{following}_weights"]]
    for name in (f"{own}_weights", f"{own}_biases"):
        fields[name] = [_some(branch, stays) for branch in fields[name]] if layer == 1 else _some(fields[name], stays)
    return fields


def _float_units(
    part: IntersectionPolicy, floats: FloatWeights, layer: int, states: npt.NDArray[np.integer]
) -> npt.NDArray[np.float64]:
    """float64[T, units] of layer 1 or 2."""
    ends = np.cumsum([feature.width for feature in part.features])
    columns = [states[:, end - feature.width : end] for end, feature in zip(ends, part.features, strict=True)]
    units = np.sum([np.maximum(_float_branch(part, k, values), 0) for k, values in enumerate(columns)], axis=0)
    if layer == 1:
        return np.asarray(units)
    return np.asarray(np.maximum(units @ np.array(floats.layer2_weights).T + np.array(floats.layer2_biases), 0))


def _float_branch(part: IntersectionPolicy, number: int, values: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """float64[T, units]: the sums of one feature's branch, before the ReLU."""
    floats = part.float_weights
    assert floats is not None
    weights, biases = np.array(floats.layer1_weights[number]), np.array(floats.layer1_biases[number])
    return np.asarray(values / part.features[number].lsb_per_unit @ weights.T + biases)


def _some(values: Sequence, chosen: Int64) -> list:
    return [values[number] for number in chosen]
