"""RMSprop (PyTorch's defaults: smoothing 0.99, epsilon 1e-8) and the target network's step, in one pass over the weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numba import njit
from torch import Tensor

SMOOTHING, EPSILON = 0.99, 1e-8


class RMSprop:
    """The state of one optimiser: a running mean square for each weight."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.parameters = list(parameters)
        self.squares = [torch.zeros_like(each, requires_grad=False) for each in self.parameters]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float, target: Sequence[Tensor], tau: float) -> None:
        """parameters -= learning_rate * g / (sqrt(mean square) + epsilon), then target += tau * (parameters - target)."""
        for weights, g, square, slow in zip(self.parameters, gradients, self.squares, target, strict=True):
            if weights.device.type == "cpu":
                w, grad, sq, slw = (each.detach().numpy().reshape(-1) for each in (weights, g.contiguous(), square, slow))
                _step(w, grad, sq, slw, np.float32(learning_rate), np.float32(tau))
            else:
                square.mul_(SMOOTHING).addcmul_(g, g, value=1.0 - SMOOTHING)
                weights.addcdiv_(g, square.sqrt().add_(EPSILON), value=-learning_rate)
                slow.lerp_(weights, tau)


@njit(cache=True, nogil=True, error_model="numpy")
def _step(weights, gradients, squares, target, learning_rate, tau):  # type: ignore[no-untyped-def]
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
