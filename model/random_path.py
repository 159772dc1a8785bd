"""TLRP: TinyLight with a random path. The sub-graph's two features and two components are drawn, not searched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from model.subgraph import KEPT_FEATURES, Choice, SubGraph
from model.supergraph import LAYER_DIMS, GraphShape, SuperGraph, ValueGraph

CHOICE_STREAM = 1  # keeps the draws of a path apart from those of its weights


class RandomPath(ValueGraph):
    """A batch of sub-graphs, one a group. lsb_per_unit [F]: the features' integers per unit."""

    kept: Tensor  # int64[G, 2] feature numbers, ascending
    hidden: Tensor  # int64[G, 2] widths of the two hidden layers
    scale: Tensor  # float32[F, 1, 1]

    def __init__(
        self,
        widths: npt.NDArray[np.int64],
        n_actions: npt.NDArray[np.int64],
        lsb_per_unit: Sequence[int],
        seeds: Sequence[tuple[int, ...]],
    ) -> None:
        shape = GraphShape(feature_widths=widths, n_actions=n_actions)
        super().__init__(n_actions, shape.max_actions)
        choice = random_choice(shape.n_features, seeds)
        self.subgraph = SubGraph(SuperGraph(shape, seeds), choice)
        self.register_buffer("kept", torch.from_numpy(choice.features))
        self.register_buffer("hidden", torch.from_numpy(choice.hidden))
        scale = 1.0 / np.array(lsb_per_unit, np.float32)
        self.register_buffer("scale", torch.from_numpy(scale)[:, None, None], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        groups = torch.arange(len(x), device=x.device)[:, None]
        out: Tensor = self.subgraph((x * self.scale)[groups, self.kept])
        return out


def random_choice(n_features: int, seeds: Sequence[tuple[int, ...]]) -> Choice:
    """Uniformly drawn: two different features, one component in each of layers 2 and 3."""
    drawn = []
    for seed in seeds:
        rng = np.random.default_rng([*seed, CHOICE_STREAM])
        features = np.sort(rng.permutation(n_features)[:KEPT_FEATURES])
        layer2, layer3 = rng.integers(len(LAYER_DIMS), size=2)
        drawn.append((features, layer2, layer3))
    features, layer2, layer3 = (np.array(column, np.int64) for column in zip(*drawn, strict=True))
    dims = np.array(LAYER_DIMS, np.int64)
    return Choice(features, layer2, layer3, np.stack([dims[layer2], dims[layer3]], axis=1))
