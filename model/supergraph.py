"""The super-graph (paper, Method and Figure 2): every candidate feature and every layer component at once, under softmax
alphas.

    o_{j|J} = sum_i alpha_{i|I} * ReLU(Linear_ij(o_{i|I}))      alpha_{.|I} = softmax, shared by all that starts at component i

Layer 1 holds the features, layers 2 and 3 components of several widths, layer 4 the value of each action (linear, no ReLU).

Everything has a leading axis G (group = one intersection of one training replica), and a layer is one batched matrix product:
groups x components are the batch. Features narrower than W and components narrower than P are zero padded. A padded unit has
zero weights and bias, so it gives ReLU(0) = 0, whose gradient is 0, and stays zero for ever; only padded actions need a mask,
in the max.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

Float32 = npt.NDArray[np.float32]

LAYER_DIMS = (16, 18, 20, 22, 24)  # paper, Appendix B: D_L2 and D_L3


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
    def max_width(self) -> int:
        return int(self.feature_widths.max())

    @property
    def max_actions(self) -> int:
        return int(self.n_actions.max())


class ValueGraph(nn.Module):
    """What super- and sub-graph share: Q-values from features, with actions that a group doesn't have masked
    out of the maximum."""

    missing_action: Tensor  # float32[G, 1, A]: 0, or -inf for an action that the group doesn't have

    def __init__(self, n_actions: npt.NDArray[np.int64], max_actions: int) -> None:
        super().__init__()
        missing = np.arange(max_actions)[None, :] >= n_actions[:, None]
        penalty = np.where(missing, -np.inf, 0.0).astype(np.float32)[:, None, :]
        self.register_buffer("missing_action", torch.from_numpy(penalty))

    def forward(self, x: Tensor) -> Tensor:
        """Q float32[G, B, A] of x float32[G, F, B, W]: B states a group."""
        raise NotImplementedError

    def values(self, x: Tensor) -> Tensor:
        return cast(Tensor, self(x))

    def best_values(self, x: Tensor) -> Tensor:
        """max over the group's actions of Q: float32[G, B]."""
        return (self.values(x) + self.missing_action).amax(dim=2)

    def best_actions(self, x: Tensor) -> Tensor:
        """The first action of the greatest Q: int64[G, B]."""
        return (self.values(x) + self.missing_action).argmax(dim=2)


class SuperGraph(ValueGraph):
    """A batch of G super-graphs. seeds[g] fixes group g's initial weights, whatever the other groups are."""

    def __init__(self, shape: GraphShape, seeds: Sequence[tuple[int, ...]]) -> None:
        super().__init__(shape.n_actions, shape.max_actions)
        self.shape = shape
        drawn = [_initial_weights(shape, g, seed) for g, seed in enumerate(seeds)]

        def stacked(name: str) -> nn.Parameter:
            return nn.Parameter(torch.from_numpy(np.stack([weights[name] for weights in drawn])))

        # C2, C3: components of layers 2 and 3; P2, P3: the widest of each
        self.w1, self.b1 = stacked("w1"), stacked("b1")  # [G, F, W, C2 * P2], [G, F, 1, C2 * P2]
        self.w2, self.b2 = stacked("w2"), stacked("b2")  # [G, C2, P2, C3 * P3], [G, C2, 1, C3 * P3]
        self.w3, self.b3 = stacked("w3"), stacked("b3")  # [G, C3, P3, A], [G, C3, 1, A]
        ones = (shape.n_features, len(shape.layer2_dims), len(shape.layer3_dims))
        self.alpha_logits1, self.alpha_logits2, self.alpha_logits3 = (
            nn.Parameter(torch.ones(shape.n_groups, count)) for count in ones
        )

    def theta(self) -> list[nn.Parameter]:
        return [self.w1, self.b1, self.w2, self.b2, self.w3, self.b3]

    def alpha_logits(self) -> list[nn.Parameter]:
        return [self.alpha_logits1, self.alpha_logits2, self.alpha_logits3]

    def alphas(self) -> list[Tensor]:
        """Softmax weights of layers 1, 2, 3: [G, F], [G, C2], [G, C3]; each row sums to 1."""
        return [torch.softmax(logits, dim=1) for logits in self.alpha_logits()]

    def forward(self, x: Tensor) -> Tensor:
        alpha1, alpha2, alpha3 = self.alphas()
        o2 = _mixed_layer(x, self.w1, self.b1, alpha1)  # [G, B, C2 * P2]
        o3 = _mixed_layer(_components_first(o2, self.w2.shape[1]), self.w2, self.b2, alpha2)  # [G, B, C3 * P3]
        # the last layer is linear, so its alphas can weigh the weights: sum_i alpha_i (o_i W_i + b_i)
        w3 = (self.w3 * alpha3[:, :, None, None]).flatten(1, 2)  # [G, C3 * P3, A]
        b3 = torch.bmm(alpha3[:, None, :], self.b3[:, :, 0, :])  # [G, 1, A]
        return torch.baddbmm(b3, o3, w3)


def entropies(alpha_logits: Sequence[Tensor]) -> Tensor:
    """Per layer and group, sum_i -alpha_i log alpha_i: float32[layers, G] (paper: the second objective is
    their sum).

    Taken from the logits, so that the gradient stays finite where an alpha underflows to 0."""
    terms = []
    for logits in alpha_logits:
        log_alpha = torch.log_softmax(logits, dim=1)
        terms.append(-(log_alpha.exp() * log_alpha).sum(dim=1))
    return torch.stack(terms)


def _mixed_layer(inputs: Tensor, weights: Tensor, biases: Tensor, alpha: Tensor) -> Tensor:
    """sum_i alpha[:, i] * ReLU(inputs_i @ weights_i + biases_i).

    inputs [G, I, B, K], weights [G, I, K, D], biases [G, I, 1, D], alpha [G, I] -> [G, B, D].
    """
    groups, sources, batch, width = inputs.shape
    flat = torch.baddbmm(biases.flatten(0, 1), inputs.reshape(groups * sources, batch, width), weights.flatten(0, 1))
    active = torch.relu_(flat).view(groups, sources, batch * weights.shape[3])
    return torch.bmm(alpha[:, None, :], active).view(groups, batch, weights.shape[3])


def _components_first(outputs: Tensor, components: int) -> Tensor:
    """[G, B, C * P] -> [G, C, B, P]."""
    groups, batch, total = outputs.shape
    return outputs.view(groups, batch, components, total // components).transpose(1, 2)


def _initial_weights(shape: GraphShape, group: int, seed: tuple[int, ...]) -> dict[str, Float32]:
    """PyTorch's default for Linear: weights and biases uniform in +-1/sqrt(inputs); padding is zero.

    Drawn in true dimensions, so that a group starts the same whatever the padding."""
    rng = np.random.default_rng(list(seed))
    features = [int(width) for width in shape.feature_widths[group]]
    w1, b1 = _linear_block(rng, features, shape.max_width, shape.layer2_dims)
    w2, b2 = _linear_block(rng, shape.layer2_dims, max(shape.layer2_dims), shape.layer3_dims)
    actions = int(shape.n_actions[group])
    w3, b3 = _linear_block(rng, shape.layer3_dims, max(shape.layer3_dims), (actions,), shape.max_actions)
    return {"w1": w1, "b1": b1, "w2": w2, "b2": b2, "w3": w3, "b3": b3}


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
