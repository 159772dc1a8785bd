"""RMSprop (PyTorch's defaults: smoothing 0.99, epsilon 1e-8) and the target network's step, in one pass over the weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from model.kernels.rmsprop import EPSILON, SMOOTHING, step_weights


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
                step_weights(w, grad, sq, slw, np.float32(learning_rate), np.float32(tau))
            else:
                square.mul_(SMOOTHING).addcmul_(g, g, value=1.0 - SMOOTHING)
                weights.addcdiv_(g, square.sqrt().add_(EPSILON), value=-learning_rate)
                slow.lerp_(weights, tau)
