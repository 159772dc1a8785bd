"""TLRP: TinyLight with a random path. The sub-graph's two features and two components are drawn, not searched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from model.dqn.value_graph import ValueGraph
from model.search.config import KEPT_FEATURES, LAYER_DIMS
from model.search.subgraph import Choice, SubGraph
from model.search.supergraph import GraphShape, SuperGraph

CHOICE_STREAM = 1  # separates the draws of a path from those of its weights


class RandomPath(ValueGraph):
    """A batch of sub-graphs, one a group; all features are padded to `width`."""

    kept: Tensor  # int64[G, 2] feature numbers, ascending
    hidden: Tensor  # int64[G, 2] widths of the two hidden layers

    def __init__(
        self,
        widths: npt.NDArray[np.int64],
        n_actions: npt.NDArray[np.int64],
        width: int,
        seeds: Sequence[tuple[int, ...]],
    ) -> None:
        shape = GraphShape(feature_widths=widths, n_actions=n_actions)
        super().__init__(n_actions, shape.max_actions)
        choice = random_choice(shape.n_features, seeds)
        self.subgraph = SubGraph(SuperGraph(shape, seeds), choice)
        self.register_buffer("kept", torch.from_numpy(choice.features))
        self.register_buffer("hidden", torch.from_numpy(choice.hidden))
        self.n_features = shape.n_features
        # the kept features' common width depends on what was drawn in the batch; a weights file's must not
        missing = width - self.subgraph.width
        self.subgraph.w1 = nn.Parameter(functional.pad(self.subgraph.w1.detach(), (0, 0, 0, missing)))

    def forward(self, x: Tensor) -> Tensor:
        groups, batch, _ = x.shape
        features = x.view(groups, batch, self.n_features, -1)
        kept = features[torch.arange(groups, device=x.device)[:, None], :, self.kept]  # [G, 2, B, W]
        out: Tensor = self.subgraph(kept.transpose(1, 2).reshape(groups, batch, -1))
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
