"""The interface of every batch of value networks: Q-values from features, for many groups at once."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn


class ValueGraph(nn.Module):
    """The common base of value networks: Q-values from features, with actions that a group doesn't have
    masked out of the maximum."""

    missing_action: Tensor  # float32[G, 1, A]: 0, or -inf for an action that the group doesn't have

    def __init__(self, n_actions: npt.NDArray[np.int64], max_actions: int) -> None:
        super().__init__()
        missing = np.arange(max_actions)[None, :] >= n_actions[:, None]
        penalty = np.where(missing, -np.inf, 0.0).astype(np.float32)[:, None, :]
        self.register_buffer("missing_action", torch.from_numpy(penalty))

    def forward(self, x: Tensor) -> Tensor:
        """Q float32[G, B, A] of packed x float32[G, B, S]: B states a group."""
        raise NotImplementedError

    def theta(self) -> list[nn.Parameter]:
        """The weights and biases, without alphas."""
        raise NotImplementedError

    def values(self, x: Tensor) -> Tensor:
        return cast(Tensor, self(x))

    def best_values(self, x: Tensor) -> Tensor:
        """max over the group's actions of Q: float32[G, B]."""
        return (self.values(x) + self.missing_action).amax(dim=2)

    def best_actions(self, x: Tensor) -> Tensor:
        """The first action of the greatest Q: int64[G, B]."""
        return (self.values(x) + self.missing_action).argmax(dim=2)
