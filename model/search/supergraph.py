"""The super-graph (paper, Method and Figure 2): every candidate feature and every layer component at once, under softmax
alphas.

    o_{j|J} = sum_i alpha_{i|I} * ReLU(Linear_ij(o_{i|I}))      alpha_{.|I} = softmax, shared by all that starts at component i

Layer 1 holds the features, layers 2 and 3 components of several widths, layer 4 the value of each action (linear, no ReLU).

Everything has a leading axis G (group = one intersection of one training replica), and a layer is one batched matrix product:
groups x components are the batch. Layer 1 has one product a class of equally wide features (`model/search/packing.py`). What is
narrower than its place is zero padded: a padded unit has zero weights and bias, so it gives ReLU(0) = 0 with gradient 0,
and stays zero for ever; only padded actions need a mask, in the max.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from model.dqn.value_graph import ValueGraph
from model.search.config import LAYER_DIMS
from model.search.packing import Packing

Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class GraphShape:
    """Dimensions of a batch of super-graphs; groups may differ in feature widths and number of actions."""

    feature_widths: npt.NDArray[np.int64]  # [G, F]
    n_actions: npt.NDArray[np.int64]  # [G]
    layer2_dims: tuple[int, ...] = LAYER_DIMS
    layer3_dims: tuple[int, ...] = LAYER_DIMS

    @property
    def n_groups(self) -> int:
        return len(self.n_actions)

    @property
    def n_features(self) -> int:
        return int(self.feature_widths.shape[1])

    @property
    def max_actions(self) -> int:
        return int(self.n_actions.max())

    @cached_property
    def packing(self) -> Packing:
        """Each feature as wide as its widest group has it."""
        return Packing([int(width) for width in self.feature_widths.max(axis=0)])

    def groups(self, part: slice) -> GraphShape:
        return GraphShape(self.feature_widths[part], self.n_actions[part], self.layer2_dims, self.layer3_dims)


class SuperGraph(ValueGraph):
    """A batch of G super-graphs. seeds[g] fixes group g's initial weights, whatever the other groups are."""

    def __init__(self, shape: GraphShape, seeds: Sequence[tuple[int, ...]]) -> None:
        super().__init__(shape.n_actions, shape.max_actions)
        self.shape = shape
        drawn = [_initial_weights(shape, g, seed) for g, seed in enumerate(seeds)]

        def stacked(name: str) -> nn.Parameter:
            return nn.Parameter(torch.from_numpy(np.stack([weights[name] for weights in drawn])))

        # Fc, w: features of a width class and their width; C2, C3: components of layers 2 and 3; P2, P3: the widest of each
        classes = range(len(shape.packing.classes))
        self.w1 = nn.ParameterList([stacked(f"w1_{c}") for c in classes])  # [G, Fc, w, C2 * P2]
        self.b1 = nn.ParameterList([stacked(f"b1_{c}") for c in classes])  # [G, Fc, 1, C2 * P2]
        self.w2, self.b2 = stacked("w2"), stacked("b2")  # [G, C2, P2, C3 * P3], [G, C2, 1, C3 * P3]
        self.w3, self.b3 = stacked("w3"), stacked("b3")  # [G, C3, P3, A], [G, C3, 1, A]
        ones = (shape.n_features, len(shape.layer2_dims), len(shape.layer3_dims))
        self.alpha_logits1, self.alpha_logits2, self.alpha_logits3 = (
            nn.Parameter(torch.ones(shape.n_groups, count)) for count in ones
        )

    def theta(self) -> list[nn.Parameter]:
        return [*self.w1, *self.b1, self.w2, self.b2, self.w3, self.b3]

    def alpha_logits(self) -> list[nn.Parameter]:
        return [self.alpha_logits1, self.alpha_logits2, self.alpha_logits3]

    def alphas(self) -> list[Tensor]:
        """Softmax weights of layers 1, 2, 3: [G, F], [G, C2], [G, C3]; each row sums to 1."""
        return [torch.softmax(logits, dim=1) for logits in self.alpha_logits()]

    def feature_weights(self, feature: int) -> tuple[Tensor, Tensor]:
        """Layer 1's weights [G, w, C2 * P2] and biases [G, 1, C2 * P2] of one feature."""
        for each, w, b in zip(self.shape.packing.classes, self.w1, self.b1, strict=True):
            if feature in each.features:
                place = each.features.index(feature)
                return w[:, place], b[:, place]
        raise IndexError(feature)

    def layer1(self, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Per width class: the inputs [G * Fc, B, w] and ReLU(Linear) of them [G * Fc, B, C2 * P2]."""
        groups, batch, _ = x.shape
        inputs, active = [], []
        for each, w, b in zip(self.shape.packing.classes, self.w1, self.b1, strict=True):
            part = x[:, :, each.start : each.end].view(groups, batch, len(each.features), each.width)
            inputs.append(part.transpose(1, 2).reshape(-1, batch, each.width))
            active.append(torch.relu_(torch.baddbmm(b.flatten(0, 1), inputs[-1], w.flatten(0, 1))))
        return inputs, active

    def mix1(self, active: Sequence[Tensor], alpha: Tensor) -> Tensor:
        """o2 [G, B, C2 * P2]: the sum of layer 1's features, weighed by alpha [G, F]."""
        groups = len(alpha)
        batch, width = active[0].shape[1:]
        mixed = [
            torch.bmm(alpha[:, None, list(each.features)], part.view(groups, len(each.features), batch * width))
            for each, part in zip(self.shape.packing.classes, active, strict=True)
        ]
        return (
            torch.stack(mixed).sum(dim=0).view(groups, batch, width) if len(mixed) > 1 else mixed[0].view(groups, batch, width)
        )

    def layer2(self, o2: Tensor) -> tuple[Tensor, Tensor]:
        """The inputs [G * C2, B, P2] and ReLU(Linear) of them [G * C2, B, C3 * P3]."""
        groups, batch, total = o2.shape
        components = self.w2.shape[1]
        inputs = o2.view(groups, batch, components, total // components).transpose(1, 2).flatten(0, 1)
        return inputs, torch.relu_(torch.baddbmm(self.b2.flatten(0, 1), inputs, self.w2.flatten(0, 1)))

    def mix2(self, active: Tensor, alpha: Tensor) -> Tensor:
        """o3 [G, B, C3 * P3]: the sum of layer 2's components, weighed by alpha [G, C2]."""
        groups, batch, width = len(alpha), *active.shape[1:]
        return torch.bmm(alpha[:, None, :], active.view(groups, -1, batch * width)).view(groups, batch, width)

    def layer3(self, o3: Tensor, alpha: Tensor) -> Tensor:
        """Q. The last layer is linear, so its alphas can weigh the weights: sum_i alpha_i (o_i W_i + b_i)."""
        w3 = (self.w3 * alpha[:, :, None, None]).flatten(1, 2)  # [G, C3 * P3, A]
        b3 = torch.bmm(alpha[:, None, :], self.b3[:, :, 0, :])  # [G, 1, A]
        return torch.baddbmm(b3, o3, w3)

    def forward(self, x: Tensor) -> Tensor:
        alpha1, alpha2, alpha3 = self.alphas()
        o2 = self.mix1(self.layer1(x)[1], alpha1)
        return self.layer3(self.mix2(self.layer2(o2)[1], alpha2), alpha3)


def entropies(alpha_logits: Sequence[Tensor]) -> Tensor:
    """Per layer and group, sum_i -alpha_i log alpha_i: float32[layers, G] (paper: the second objective is
    their sum).

    Taken from the logits, so that the gradient stays finite where an alpha underflows to 0."""
    terms = []
    for logits in alpha_logits:
        log_alpha = torch.log_softmax(logits, dim=1)
        terms.append(-(log_alpha.exp() * log_alpha).sum(dim=1))
    return torch.stack(terms)


def _initial_weights(shape: GraphShape, group: int, seed: tuple[int, ...]) -> dict[str, Float32]:
    """PyTorch's default for Linear: weights and biases uniform in +-1/sqrt(inputs); padding is zero.

    Drawn in true dimensions, so that a group starts the same whatever the padding."""
    rng = np.random.default_rng(list(seed))
    features = [int(width) for width in shape.feature_widths[group]]
    w1, b1 = _linear_block(rng, features, max(features), shape.layer2_dims)
    w2, b2 = _linear_block(rng, shape.layer2_dims, max(shape.layer2_dims), shape.layer3_dims)
    actions = int(shape.n_actions[group])
    w3, b3 = _linear_block(rng, shape.layer3_dims, max(shape.layer3_dims), (actions,), shape.max_actions)
    drawn = {"w2": w2, "b2": b2, "w3": w3, "b3": b3}
    for c, each in enumerate(shape.packing.classes):
        members = list(each.features)
        held = min(each.width, w1.shape[1])  # this group's own features may all be narrower than the class
        drawn[f"w1_{c}"] = np.zeros((len(members), each.width, w1.shape[2]), np.float32)
        drawn[f"w1_{c}"][:, :held] = w1[members, :held]
        drawn[f"b1_{c}"] = b1[members]
    return drawn


def _linear_block(
    rng: np.random.Generator,
    inputs: Sequence[int],
    padded_input: int,
    outputs: Sequence[int],
    padded_output: int | None = None,
) -> tuple[Float32, Float32]:
    """Weights [I, padded_input, O * padded_output] and biases [I, 1, O * padded_output] of all pairs of
    components."""
    padded = padded_output or max(outputs)
    weights = np.zeros((len(inputs), padded_input, len(outputs), padded), dtype=np.float32)
    biases = np.zeros((len(inputs), 1, len(outputs), padded), dtype=np.float32)
    for i, width in enumerate(inputs):
        for o, dimension in enumerate(outputs):
            bound = 1.0 / np.sqrt(width)
            weights[i, :width, o, :dimension] = rng.uniform(-bound, bound, (width, dimension))
            biases[i, 0, o, :dimension] = rng.uniform(-bound, bound, dimension)
    total = len(outputs) * padded
    return weights.reshape(len(inputs), padded_input, total), biases.reshape(len(inputs), 1, total)
