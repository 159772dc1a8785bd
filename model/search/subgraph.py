"""The sub-graph (paper, Method and Appendix B.2): what is left when only the strongest of each layer stay,
batched over groups.

    h1 = sum over the kept features f of ReLU(x_f W1_f + b1_f);   h2 = ReLU(h1 W2 + b2);   Q = h2 W3 + b3

The alphas drop out (weight 1). Groups may keep features and components of different sizes; narrower ones are
zero padded, and padding stays zero (see `model/search/supergraph.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from model.dqn.value_graph import ValueGraph
from model.policy.float_policy import GroupWeights
from model.search.budget import Budget
from model.search.config import KEPT_FEATURES
from model.search.supergraph import GraphShape, SuperGraph


@dataclass(frozen=True)
class Choice:
    """What the extraction kept, per group."""

    features: npt.NDArray[np.int64]  # [G, K] feature numbers, ascending
    layer2: npt.NDArray[np.int64]  # [G] component of layer 2
    layer3: npt.NDArray[np.int64]  # [G] component of layer 3
    hidden: npt.NDArray[np.int64]  # [G, 2] their widths

    @classmethod
    def joined(cls, parts: Sequence[Choice]) -> Choice:
        """The choices of several batches of groups, one after the other."""
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])})


def strongest(supergraph: SuperGraph, kept_features: int = KEPT_FEATURES, budget: Budget | None = None) -> Choice:
    """The features and components of the greatest alphas; on a tie the lower number. Some path always exists: each layer's
    alphas sum to 1, so each layer has a greatest one, and every component is linked to all of the next layer (paper, Appendix
    B.2).

    budget: of an intersection's sub-graph. Features are taken in the order of their alphas, passing over those with which no
    components fit, and of the pairs of components that fit then, the one with the greatest product of alphas. ValueError if
    nothing fits."""
    budget = budget or Budget()
    shape = supergraph.shape
    alpha1, alpha2, alpha3 = (alpha.detach().cpu().numpy() for alpha in supergraph.alphas())
    order = np.argsort(-alpha1, axis=1, kind="stable")
    features = np.stack([_first_fitting(order[g], shape, g, kept_features, budget) for g in range(shape.n_groups)])
    widths = np.take_along_axis(shape.feature_widths, features, axis=1)
    dims2, dims3 = np.array(shape.layer2_dims), np.array(shape.layer3_dims)
    allowed = budget.allows(widths[:, None, None], dims2[None, :, None], dims3[None, None, :], shape.n_actions[:, None, None])
    weight = np.where(allowed, alpha2[:, :, None] * alpha3[:, None, :], -1.0)  # [G, C2, C3]
    best = weight.reshape(len(weight), -1).argmax(axis=1)
    layer2, layer3 = np.divmod(best, len(dims3))
    hidden = np.stack([dims2[layer2], dims3[layer3]], axis=1)
    return Choice(features, layer2.astype(np.int64), layer3.astype(np.int64), hidden.astype(np.int64))


def fitting_features(shape: GraphShape, kept_features: int, budget: Budget) -> npt.NDArray[np.bool_]:
    """bool[G, F]: whether the group could keep the feature, beside its narrowest others and with the smallest components."""
    if budget.is_free:
        return np.ones(shape.feature_widths.shape, np.bool_)
    return np.array(
        [[_fits([f], shape, g, kept_features, budget) for f in range(shape.n_features)] for g in range(shape.n_groups)]
    )


def _first_fitting(
    order: npt.NDArray[np.int64], shape: GraphShape, group: int, count: int, budget: Budget
) -> npt.NDArray[np.int64]:
    """The first `count` features of `order`, ascending, passing over those with which nothing would fit any more."""
    taken: list[int] = []
    for feature in order.tolist():
        if len(taken) < count and (budget.is_free or _fits([*taken, feature], shape, group, count, budget)):
            taken.append(feature)
    if len(taken) < count:
        raise ValueError(f"no {count} features fit {budget}")
    return np.sort(np.array(taken, np.int64))


def _fits(features: list[int], shape: GraphShape, group: int, count: int, budget: Budget) -> bool:
    """Whether some sub-graph with these features, filled up to `count` with the narrowest others, is within the budget."""
    widths = shape.feature_widths[group]
    others = np.sort(np.delete(widths, features))[: count - len(features)]
    dims2, dims3 = np.array(shape.layer2_dims)[:, None], np.array(shape.layer3_dims)[None, :]
    kept = np.concatenate([widths[features], others])
    return len(kept) == count and bool(budget.allows(kept, dims2, dims3, shape.n_actions[group]).any())


class SubGraph(ValueGraph):
    """A batch of G sub-graphs with the super-graph's weights. Its x holds only the kept features, each padded to the widest
    kept one's `width` W: float32[G, B, K * W]."""

    def __init__(self, supergraph: SuperGraph, choice: Choice) -> None:
        shape = supergraph.shape
        super().__init__(shape.n_actions, shape.max_actions)
        groups = torch.arange(shape.n_groups)
        layer2, layer3 = (torch.from_numpy(kept) for kept in (choice.layer2, choice.layer3))
        p2, p3 = max(shape.layer2_dims), max(shape.layer3_dims)
        self.width = kept_width(shape, choice)

        def taken(block: Tensor) -> nn.Parameter:
            return nn.Parameter(block.detach().clone().contiguous())

        device = supergraph.w2.device
        w1 = torch.zeros(shape.n_groups, choice.features.shape[1], self.width, p2, device=device)
        b1 = torch.zeros(shape.n_groups, choice.features.shape[1], 1, p2, device=device)
        for g, features in enumerate(choice.features):
            columns = slice(int(layer2[g]) * p2, int(layer2[g]) * p2 + p2)  # of the chosen component
            for k, feature in enumerate(features):
                weights, biases = supergraph.feature_weights(int(feature))
                held = min(self.width, weights.shape[1])
                w1[g, k, :held], b1[g, k] = weights[g, :held, columns], biases[g, :, columns]
        self.w1, self.b1 = taken(w1), taken(b1)  # [G, K, W, P2], [G, K, 1, P2]
        columns3 = (layer3[:, None] * p3 + torch.arange(p3))[:, None, :].to(device)  # [G, 1, P3]
        kept2, bias2 = supergraph.w2[groups, layer2], supergraph.b2[groups, layer2]
        self.w2 = taken(kept2.gather(2, columns3.expand(*kept2.shape[:2], p3)))  # [G, P2, P3]
        self.b2 = taken(bias2.gather(2, columns3.expand(*bias2.shape[:2], p3)))  # [G, 1, P3]
        self.w3 = taken(supergraph.w3[groups, layer3])  # [G, P3, A]
        self.b3 = taken(supergraph.b3[groups, layer3])  # [G, 1, A]

    def theta(self) -> list[nn.Parameter]:
        return [self.w1, self.b1, self.w2, self.b2, self.w3, self.b3]

    def activations(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Inputs [G * K, B, W], branches [G * K, B, P2], h1 [G, B, P2], h2 [G, B, P3]."""
        groups, kept = self.w1.shape[:2]
        batch = x.shape[1]
        inputs = x.view(groups, batch, kept, -1).transpose(1, 2).flatten(0, 1)
        branches = torch.relu_(torch.baddbmm(self.b1.flatten(0, 1), inputs, self.w1.flatten(0, 1)))
        h1 = branches.view(groups, kept, batch, -1).sum(dim=1)
        return inputs, branches, h1, torch.relu_(torch.baddbmm(self.b2, h1, self.w2))

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.b3, self.activations(x)[3], self.w3)


def kept_width(shape: GraphShape, choice: Choice) -> int:
    """The width that all kept features are padded to."""
    return int(np.take_along_axis(shape.feature_widths, choice.features, axis=1).max())


def kept_columns(shape: GraphShape, choice: Choice) -> npt.NDArray[np.int64]:
    """int64[G, K * W]: where a sub-graph's inputs lie in a packed row of the super-graph's; -1 for padding."""
    width = kept_width(shape, choice)
    columns = np.full((*choice.features.shape, width), -1, np.int64)
    for g, features in enumerate(choice.features):
        for k, feature in enumerate(features):
            own = int(shape.feature_widths[g, feature])
            columns[g, k, :own] = shape.packing.starts[feature] + np.arange(own)
    return columns.reshape(len(columns), -1)


def trimmed(
    theta: Sequence[npt.NDArray[np.float32]], hidden: npt.NDArray[np.int64], widths: Sequence[int], n_actions: int
) -> GroupWeights:
    """One group's weights (of `SubGraph.theta`, without the leading axis) without padding; widths: the numbers in each kept
    feature."""
    w1, b1, w2, b2, w3, b3 = theta
    h1, h2 = (int(width) for width in hidden)
    return GroupWeights(
        layer1_weights=[w1[k, :width, :h1].T.copy() for k, width in enumerate(widths)],
        layer1_biases=[b1[k, 0, :h1].copy() for k in range(len(widths))],
        layer2_weights=w2[:h1, :h2].T.copy(),
        layer2_biases=b2[0, :h2].copy(),
        layer3_weights=w3[:h2, :n_actions].T.copy(),
        layer3_biases=b3[0, :n_actions].copy(),
    )
