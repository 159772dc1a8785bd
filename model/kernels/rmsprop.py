"""The compiled step of RMSprop and of the target network, one pass over the weights."""

from __future__ import annotations

import numpy as np

from streetflow.kernels.jit import entry_point

SMOOTHING, EPSILON = 0.99, 1e-8


@entry_point
def step_weights(weights, gradients, squares, target, learning_rate, tau):  # type: ignore[no-untyped-def]
    # A dead unit's square decays for ever; below the normal range of float32 each operation would take 100 cycles.
    least = np.float32(1e-37)
    smoothing, rest, epsilon = np.float32(SMOOTHING), np.float32(1.0 - SMOOTHING), np.float32(EPSILON)
    for i in range(weights.size):
        g = gradients[i]
        square = smoothing * squares[i] + rest * g * g
        square = square if square > least else np.float32(0.0)
        squares[i] = square
        w = weights[i] - learning_rate * g / (np.sqrt(square) + epsilon)
        weights[i] = w
        target[i] += tau * (w - target[i])
