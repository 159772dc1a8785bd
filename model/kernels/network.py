"""The integer policy of every light in compiled code, for planning: equal to `model/policy/integer.py`, action for action."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streetflow.kernels.jit import helper

INPUT_MAX = 255
# Columns of `Networks.shape`, of `first`, and of `inputs`.
INPUTS, FEATURES, HIDDEN_1, HIDDEN_2, ACTIONS = range(5)
FIRST_INPUT, FIRST_FEATURE, FIRST_NUMBER, FIRST_UNIT = range(4)
PLACE, OFFSET, MULTIPLIER, SHIFT = range(4)


class Networks(NamedTuple):
    """The integers of N lights, in the order in which they are used."""

    shape: NDArray[np.int32]  # [N, 5]
    first: NDArray[np.int32]  # [N, 4]: where each light's rows begin
    inputs: NDArray[np.int64]  # [inputs, 4]: place in the light's observation [F * W], offset, multiplier, shift
    widths: NDArray[np.int32]  # [features]
    numbers: NDArray[np.int64]  # per unit its bias, then its weights; layer 1 feature by feature
    units: NDArray[np.int64]  # [hidden units, 2]: multiplier, shift
    scratch: NDArray[np.int64]  # [3, widest]


@helper
def _requantised(total, units, row):  # type: ignore[no-untyped-def]
    if total <= 0:
        return np.int64(0)
    shift = units[row, 1]
    return min((total * units[row, 0] + (np.int64(1) << (shift - 1))) >> shift, np.int64(INPUT_MAX))


@helper
def network_action(net, light, seen, base):  # type: ignore[no-untyped-def]
    """The action of a light whose observation begins at ``seen[base]``."""
    n_inputs, n_features = net.shape[light, INPUTS], net.shape[light, FEATURES]
    n_1, n_2, n_actions = net.shape[light, HIDDEN_1], net.shape[light, HIDDEN_2], net.shape[light, ACTIONS]
    row, feature, at, unit = net.first[light, 0], net.first[light, 1], net.first[light, 2], net.first[light, 3]
    q, h_1, h_2 = net.scratch[0], net.scratch[1], net.scratch[2]
    for i in range(n_inputs):
        above = seen[base + net.inputs[row + i, PLACE]] - net.inputs[row + i, OFFSET]
        if above <= 0:
            above = np.int64(0)
        shift = net.inputs[row + i, SHIFT]
        half = (np.int64(1) << (shift - 1)) if shift > 0 else np.int64(0)
        q[i] = min((above * net.inputs[row + i, MULTIPLIER] + half) >> shift, np.int64(INPUT_MAX))
    for o in range(n_1):
        h_1[o] = 0
    begin = 0
    for f in range(n_features):
        width = net.widths[feature + f]
        for o in range(n_1):
            total = net.numbers[at]
            at += 1
            for j in range(width):
                total += net.numbers[at + j] * q[begin + j]
            at += width
            if total > 0:
                h_1[o] += total
        begin += width
    for o in range(n_1):
        h_1[o] = _requantised(h_1[o], net.units, unit + o)
    for o in range(n_2):
        total = net.numbers[at]
        at += 1
        for j in range(n_1):
            total += net.numbers[at + j] * h_1[j]
        at += n_1
        h_2[o] = _requantised(total, net.units, unit + n_1 + o)
    best, best_value = 0, np.int64(0)
    for a in range(n_actions):
        total = net.numbers[at]
        at += 1
        for j in range(n_2):
            total += net.numbers[at + j] * h_2[j]
        at += n_2
        if a == 0 or total > best_value:
            best, best_value = a, total
    return best
