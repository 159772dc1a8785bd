"""The gradients of the squared error, written out (tests hold them against autograd).

Written out for speed: the alphas' and the weights' step share a minibatch, and the alphas' step leaves layer 1's sums as they
were, so these are taken once. The loss of a group is its own mean over its minibatch of (y - Q(s, a))^2; groups don't touch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from model.search.subgraph import SubGraph
from model.search.supergraph import SuperGraph

_masked = torch.ops.aten.threshold_backward  # gradient where the activation is above 0, else 0


@dataclass(frozen=True)
class Minibatch:
    """B transitions a group, with their targets y = r + gamma * max_a Q_target(s', a) worked out."""

    states: Tensor  # float32[G, B, S], packed
    actions: Tensor  # int64[G, B]
    targets: Tensor  # float32[G, B]


def value_gradient(values: Tensor, minibatch: Minibatch) -> tuple[Tensor, Tensor]:
    """(losses float32[G], dLoss/dQ float32[G, B, A]) of Q float32[G, B, A]."""
    chosen = values.gather(2, minibatch.actions[:, :, None])
    error = chosen - minibatch.targets[:, :, None]
    gradient = torch.zeros_like(values).scatter_(2, minibatch.actions[:, :, None], error * (2.0 / error.shape[1]))
    return error.square().mean(dim=(1, 2)), gradient


class SuperGraphStep:
    """The gradients of one minibatch at a super-graph: the alphas' first, then, when these have moved, the weights'."""

    def __init__(self, graph: SuperGraph, minibatch: Minibatch) -> None:
        self.graph, self.minibatch = graph, minibatch
        self._inputs1, self._active1 = graph.layer1(minibatch.states)
        self._forward()

    def _forward(self) -> None:
        graph = self.graph
        self._alpha = graph.alphas()
        self._inputs2, self._active2 = graph.layer2(graph.mix1(self._active1, self._alpha[0]))
        self._o3 = graph.mix2(self._active2, self._alpha[1])
        values = graph.layer3(self._o3, self._alpha[2])
        self.losses, self._dq = value_gradient(values, self.minibatch)

    def _backward(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Gradients of o3_i W3_i's output [G, B, C3, P3] (before alpha), o3 [G, B, C3 * P3], layer 2's sums [G * C2, B,
        C3 * P3] (before alpha), o2 [G, B, C2 * P2]."""
        graph, dq = self.graph, self._dq
        groups, batch, _ = dq.shape
        d_out = torch.bmm(dq, graph.w3.flatten(1, 2).transpose(1, 2)).view(groups, batch, *graph.w3.shape[1:3])
        d_o3 = (d_out * self._alpha[2][:, None, :, None]).view(groups, batch, -1)
        components = graph.w2.shape[1]
        spread = d_o3[:, None].expand(groups, components, *d_o3.shape[1:]).reshape(self._active2.shape)
        d_sums2 = _masked(spread, self._active2, 0)
        d_o2 = torch.bmm(d_sums2, graph.w2.flatten(0, 1).transpose(1, 2)).view(groups, components, batch, -1)
        d_o2 = (d_o2 * self._alpha[1][:, :, None, None]).transpose(1, 2).reshape(groups, batch, -1)
        return d_out, d_o3, d_sums2, d_o2

    def alpha_gradients(self, beta: float) -> list[Tensor]:
        """Of squared error + beta * sum of the entropies, for the three layers' logits."""
        graph, dq = self.graph, self._dq
        groups = len(dq)
        d_out, d_o3, _, d_o2 = self._backward()
        d_alpha1 = torch.empty_like(self._alpha[0])
        for each, active in zip(graph.shape.packing.classes, self._active1, strict=True):
            flat = active.view(groups, len(each.features), -1)
            d_alpha1[:, list(each.features)] = torch.bmm(flat, d_o2.view(groups, -1, 1))[:, :, 0]
        d_alpha2 = torch.bmm(self._active2.view(groups, graph.w2.shape[1], -1), d_o3.view(groups, -1, 1))[:, :, 0]
        d_alpha3 = (d_out * self._o3.view(d_out.shape)).sum(dim=(1, 3))
        d_alpha3 = d_alpha3 + torch.bmm(graph.b3[:, :, 0, :], dq.sum(dim=1)[:, :, None])[:, :, 0]
        gradients = []
        for alpha, d_alpha, logits in zip(self._alpha, (d_alpha1, d_alpha2, d_alpha3), graph.alpha_logits(), strict=True):
            log_alpha = torch.log_softmax(logits, dim=1)
            entropy = -(alpha * log_alpha).sum(dim=1, keepdim=True)
            error = alpha * (d_alpha - (alpha * d_alpha).sum(dim=1, keepdim=True))
            gradients.append(error - beta * alpha * (log_alpha + entropy))
        return gradients

    def theta_gradients(self) -> list[Tensor]:
        """Of the squared error under the alphas as they are now, in the order of `SuperGraph.theta`."""
        self._forward()
        graph, dq = self.graph, self._dq
        groups = len(dq)
        _, _, d_sums2, d_o2 = self._backward()
        d_w1, d_b1 = [], []
        for each, inputs, active in zip(graph.shape.packing.classes, self._inputs1, self._active1, strict=True):
            count = len(each.features)
            spread = d_o2[:, None].expand(groups, count, *d_o2.shape[1:]).reshape(active.shape)
            d_sums = _masked(spread, active, 0)
            alpha = self._alpha[0][:, list(each.features)].reshape(-1, 1, 1)
            d_w1.append(torch.bmm(inputs.transpose(1, 2), d_sums).mul_(alpha).view(groups, count, each.width, -1))
            d_b1.append(d_sums.sum(dim=1, keepdim=True).mul_(alpha).view(groups, count, 1, -1))
        alpha2 = self._alpha[1].reshape(-1, 1, 1)
        d_w2 = torch.bmm(self._inputs2.transpose(1, 2), d_sums2).mul_(alpha2).view(graph.w2.shape)
        d_b2 = d_sums2.sum(dim=1, keepdim=True).mul_(alpha2).view(graph.b2.shape)
        alpha3 = self._alpha[2][:, :, None, None]
        d_w3 = torch.bmm(self._o3.transpose(1, 2), dq).view(graph.w3.shape) * alpha3
        d_b3 = dq.sum(dim=1)[:, None, None, :] * alpha3
        return [*d_w1, *d_b1, d_w2, d_b2, d_w3, d_b3]


def subgraph_gradients(graph: SubGraph, minibatch: Minibatch) -> tuple[Tensor, list[Tensor]]:
    """(losses float32[G], gradients in the order of `SubGraph.theta`)."""
    inputs, branches, h1, h2 = graph.activations(minibatch.states)
    losses, dq = value_gradient(torch.baddbmm(graph.b3, h2, graph.w3), minibatch)
    groups, kept = graph.w1.shape[:2]
    d_h2 = _masked(torch.bmm(dq, graph.w3.transpose(1, 2)), h2, 0)
    d_h1 = torch.bmm(d_h2, graph.w2.transpose(1, 2))
    d_branches = _masked(d_h1[:, None].expand(groups, kept, *d_h1.shape[1:]).reshape(branches.shape), branches, 0)
    return losses, [
        torch.bmm(inputs.transpose(1, 2), d_branches).view(graph.w1.shape),
        d_branches.sum(dim=1).view(graph.b1.shape),
        torch.bmm(h1.transpose(1, 2), d_h2),
        d_h2.sum(dim=1, keepdim=True),
        torch.bmm(h2.transpose(1, 2), dq),
        dq.sum(dim=1, keepdim=True),
    ]
