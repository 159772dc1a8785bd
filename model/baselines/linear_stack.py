"""Linear layers of many networks at once: one batched matrix product a layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn


class LinearStack(nn.Module):
    """S layers of `inputs` to `outputs`, each with own weights, uniform in +-1/sqrt(inputs) as PyTorch's default for Linear.

    seeds[s] fixes layer s, whatever the others are; `layer` distinguishes the layers of one network."""

    def __init__(self, inputs: int, outputs: int, seeds: Sequence[tuple[int, ...]], layer: int) -> None:
        super().__init__()
        weights, biases = [], []
        bound = 1.0 / np.sqrt(inputs)
        for seed in seeds:
            rng = np.random.default_rng([*seed, layer])
            weights.append(rng.uniform(-bound, bound, (inputs, outputs)).astype(np.float32))
            biases.append(rng.uniform(-bound, bound, (1, outputs)).astype(np.float32))
        self.weights = nn.Parameter(torch.from_numpy(np.stack(weights)))  # [S, inputs, outputs]
        self.biases = nn.Parameter(torch.from_numpy(np.stack(biases)))  # [S, 1, outputs]

    def forward(self, x: Tensor) -> Tensor:
        """x [G, ..., inputs] with G a multiple of S: the networks' groups lie next to each other. -> [G, ..., outputs]."""
        sets, inputs, outputs = self.weights.shape
        flat = torch.baddbmm(self.biases, x.reshape(sets, -1, inputs), self.weights)
        return flat.view(*x.shape[:-1], outputs)


def by_feature(x: Tensor, features: int) -> tuple[Tensor, ...]:
    """x float32[G, B, F * W] as one [G, B, W] a feature."""
    return x.chunk(features, dim=2)
