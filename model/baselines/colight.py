"""CoLight's graph attention (Wei et al. 2019; layers as in the paper's Appendix C): an intersection and those next to it.

    h_n = relu(relu(o_n))                          o_n: vehicles on in-lanes, on out-lanes, current phase
    a_nm = softmax over m of (relu(T h_n) . relu(S h_m)),   per head, m = n and its neighbours
    Q_n = linear(relu(mean over heads of sum over m of a_nm relu(V h_m)))

(each relu(.) around its own linear layer). One set of weights for all intersections of a network.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from model.baselines.linear_stack import LinearStack, by_feature
from model.baselines.widths import COLIGHT_HEADS, COLIGHT_WIDTH
from model.dqn.value_graph import ValueGraph


class CoLight(ValueGraph):
    """A batch of networks, one a replica; a replica's intersections are neighbouring groups.

    widths [3]: values of each feature. near[n]: intersection n itself, then those next to it. One seed a replica."""

    near: Tensor  # int64[N, K], padded with n
    missing: Tensor  # float32[N, K, 1, 1]: 0, or -inf where there is no such neighbour

    def __init__(
        self,
        widths: npt.NDArray[np.int64],
        n_actions: npt.NDArray[np.int64],
        near: Sequence[Sequence[int]],
        seeds: Sequence[tuple[int, ...]],
    ) -> None:
        phases = int(n_actions[0])
        super().__init__(n_actions, phases)
        self.widths = [int(width) for width in widths]
        most = max(len(each) for each in near)
        padded = [[*each, *[n] * (most - len(each))] for n, each in enumerate(near)]
        missing = [[0.0] * len(each) + [-np.inf] * (most - len(each)) for each in near]
        self.register_buffer("near", torch.tensor(padded), persistent=False)
        self.register_buffer("missing", torch.tensor(missing)[:, :, None, None], persistent=False)
        d, heads = COLIGHT_WIDTH, COLIGHT_WIDTH * COLIGHT_HEADS
        self.embed1, self.embed2 = LinearStack(sum(self.widths), d, seeds, 0), LinearStack(d, d, seeds, 1)
        self.target, self.source, self.value = (LinearStack(d, heads, seeds, layer) for layer in (2, 3, 4))
        self.out1, self.out2 = LinearStack(d, d, seeds, 5), LinearStack(d, phases, seeds, 6)

    def forward(self, x: Tensor) -> Tensor:
        groups, batch, _ = x.shape
        parts = zip(by_feature(x, len(self.widths)), self.widths, strict=True)
        seen = torch.cat([feature[:, :, :width] for feature, width in parts], dim=2)  # [G, B, in + out + P]
        h = torch.relu(self.embed2(torch.relu(self.embed1(seen))))
        count = len(self.near)
        target, source, value = (
            torch.relu(layer(h)).view(groups // count, count, batch, COLIGHT_HEADS, COLIGHT_WIDTH)
            for layer in (self.target, self.source, self.value)
        )
        logits = (target[:, :, None] * source[:, self.near]).sum(dim=5)  # [R, N, K, B, H]
        attention = torch.softmax(logits + self.missing, dim=2)
        mixed = (attention[..., None] * value[:, self.near]).sum(dim=2).mean(dim=3)  # [R, N, B, D]
        out: Tensor = self.out2(torch.relu(self.out1(mixed.flatten(0, 1))))
        return out
