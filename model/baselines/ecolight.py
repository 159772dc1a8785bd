"""EcoLight (Chauhan et al. 2020; here the paper's Appendix C): two numbers in, stay or next phase out.

Inputs: vehicles on the in-lanes that the current phase serves, and on all others. Layers 2-10-10-2.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from model.baselines.linear_stack import LinearStack, by_feature
from model.baselines.widths import ECOLIGHT_WIDTHS
from model.dqn.value_graph import ValueGraph


class EcoLight(ValueGraph):
    """A batch of networks, one a group. Features: in-lanes' vehicles, phases' vehicles, current phase."""

    def __init__(self, n_actions: npt.NDArray[np.int64], seeds: Sequence[tuple[int, ...]]) -> None:
        super().__init__(n_actions, ECOLIGHT_WIDTHS[-1])
        pairs = itertools.pairwise(ECOLIGHT_WIDTHS)
        self.layers = nn.ModuleList(LinearStack(i, o, seeds, k) for k, (i, o) in enumerate(pairs))

    def forward(self, x: Tensor) -> Tensor:
        in_lanes, phases, current = by_feature(x, 3)
        total = in_lanes.sum(dim=2)
        green = (phases * current).sum(dim=2)
        hidden = torch.stack([green, total - green], dim=2)  # [G, B, 2]
        *inner, last = self.layers
        for layer in inner:
            hidden = torch.relu(layer(hidden))
        out: Tensor = last(hidden)
        return out
