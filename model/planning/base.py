"""The base policy of rollouts: a rule by one feature, or a policy in integers, as tables for the compiled planner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model.kernels.network import Networks
from model.policy.file import IntersectionPolicy

NO_NETWORKS = Networks(
    np.zeros((0, 5), np.int32),
    np.zeros((0, 4), np.int32),
    np.zeros((0, 4), np.int64),
    np.zeros(0, np.int32),
    np.zeros(0, np.int64),
    np.zeros((0, 2), np.int64),
    np.zeros((3, 1), np.int64),
)


def packed(parts: Sequence[IntersectionPolicy], places: Sequence[NDArray[np.int64]]) -> Networks:
    """parts: of each light; places: where each of its inputs lies in its observation (`model.policy.inputs`)."""
    shape, first = [], []
    inputs: list[tuple[int, ...]] = []
    widths: list[int] = []
    numbers: list[int] = []
    units: list[tuple[int, int]] = []
    for part, place in zip(parts, places, strict=True):
        first.append((len(inputs), len(widths), len(numbers), len(units)))
        shape.append((part.n_inputs, len(part.features), *part.hidden, len(part.phases)))
        begin = 0
        for feature in part.features:
            row = (feature.offset, feature.multiplier, feature.shift)
            inputs += [(int(at), *row) for at in place[begin : begin + feature.width]]
            widths.append(feature.width)
            begin += feature.width
        for weights, biases in zip(part.layer1.weights, part.layer1.biases, strict=True):
            for bias, row_weights in zip(biases, weights, strict=True):
                numbers += [bias, *row_weights]
        for layer in (part.layer2, part.layer3):
            for bias, row_weights in zip(layer.biases, layer.weights, strict=True):
                numbers += [bias, *row_weights]
        for hidden in (part.layer1, part.layer2):
            units += zip(hidden.multipliers, hidden.shifts, strict=True)
    widest = max(max(row[:4]) for row in shape)
    return Networks(
        np.array(shape, np.int32),
        np.array(first, np.int32),
        np.array(inputs, np.int64).reshape(-1, 4),
        np.array(widths, np.int32),
        np.array(numbers, np.int64),
        np.array(units, np.int64).reshape(-1, 2),
        np.zeros((3, widest), np.int64),
    )
