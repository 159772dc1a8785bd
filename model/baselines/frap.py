"""FRAP's phase competition (Zheng et al. 2019; layers as in the paper's Appendix C), and MPLight's network, which is the same.

Per lane link: is it green, and how many vehicles (FRAP: on its two lanes together; MPLight: its pressure, in - out). Both are
embedded, joined and embedded again; a phase is the sum over the lane links that it opens. Each ordered pair of phases gives

    z_ij = Conv(h_i, h_j) * Conv(embedding of whether i and j share a lane link),    Q_i = sum over j of v' relu(V z_ij)

A lane link that every phase opens (right turns) says nothing about a pair, so it doesn't count as shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from model.baselines.linear_stack import LinearStack, by_feature
from model.baselines.widths import FRAP_CONV, FRAP_EMBEDDING, FRAP_HIDDEN
from model.dqn.value_graph import ValueGraph
from streetflow.control.intersection import Intersection

Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Layout:
    """How lanes, lane links and phases belong together, per group, zero padded; W is the widest feature."""

    in_lane_links: Float32  # [G, in-lanes, links]: 1 where the link starts
    out_lane_links: Float32  # [G, out-lanes, links]: where it ends, the weight of its out-lane
    phase_links: Float32  # [G, phases, links]: 1 where the phase opens the link
    related: Float32  # [G, phases, phases]: 1 if two phases share a lane link that not all have
    phase_exists: Float32  # [G, phases]

    @classmethod
    def of(cls, intersections: Sequence[Intersection], out_weight: float) -> Layout:
        """out_weight: 1 to count the vehicles of a link's two lanes together, -1 for its pressure."""
        n = len(intersections)
        lanes_in, lanes_out, links, phases = (
            max(sizes)
            for sizes in zip(
                *((len(i.in_lanes), len(i.out_lanes), len(i.lane_links), i.action_count) for i in intersections), strict=True
            )
        )
        starts, ends = np.zeros((n, lanes_in, links), np.float32), np.zeros((n, lanes_out, links), np.float32)
        opens, related = np.zeros((n, phases, links), np.float32), np.zeros((n, phases, phases), np.float32)
        exists = np.zeros((n, phases), np.float32)
        for g, each in enumerate(intersections):
            for number, (lane_in, lane_out) in enumerate(each.lane_links):
                starts[g, each.in_lanes.index(lane_in), number] = 1.0
                ends[g, each.out_lanes.index(lane_out), number] = out_weight
            opened = [set(numbers) for numbers in each.phase_lane_links]
            always = set.intersection(*opened)
            for p, own in enumerate(opened):
                opens[g, p, list(own)] = 1.0
                exists[g, p] = 1.0
                for q, other in enumerate(opened):
                    related[g, p, q] = float(bool((own & other) - always))
        return cls(starts, ends, opens, related, exists)

    def repeated(self, replicas: int) -> Layout:
        """The same network `replicas` times over."""
        return Layout(*(np.concatenate([getattr(self, field.name)] * replicas) for field in fields(self)))


class Frap(ValueGraph):
    """A batch of networks. One seed a network: as many as groups, or fewer where neighbouring groups share their weights.
    Features: in-lanes' vehicles, out-lanes' vehicles, current phase."""

    in_lane_links: Tensor
    out_lane_links: Tensor
    phase_links: Tensor
    first: Tensor  # int64[G * pairs]: where phase i under the pair's relation lies among all groups' (phase, relation)
    second: Tensor  # the same for phase j
    pair_exists: Tensor  # [G, pairs, 1]

    def __init__(self, layout: Layout, n_actions: npt.NDArray[np.int64], seeds: Sequence[tuple[int, ...]]) -> None:
        phases = layout.phase_links.shape[1]
        super().__init__(n_actions, phases)
        pairs = [(i, j) for i in range(phases) for j in range(phases) if i != j]
        one, two = ([pair[k] for pair in pairs] for k in (0, 1))
        exists = layout.phase_exists
        kind = layout.related[:, one, two].astype(np.int64)  # [G, pairs]
        row = (np.arange(len(exists)) * phases)[:, None]
        buffers = {
            "in_lane_links": layout.in_lane_links,
            "out_lane_links": layout.out_lane_links,
            "phase_links": layout.phase_links,
            "first": ((row + one) * 2 + kind).ravel(),
            "second": ((row + two) * 2 + kind).ravel(),
            "pair_exists": (exists[:, one] * exists[:, two])[:, :, None],
        }
        for name, array in buffers.items():
            self.register_buffer(name, torch.from_numpy(array), persistent=False)
        self.phase_embedding = LinearStack(1, FRAP_EMBEDDING, seeds, 0)
        self.vehicle_embedding = LinearStack(1, FRAP_EMBEDDING, seeds, 1)
        self.link_embedding = LinearStack(2 * FRAP_EMBEDDING, FRAP_HIDDEN, seeds, 2)
        self.relation_embedding = LinearStack(1, FRAP_EMBEDDING, seeds, 3)
        self.pair_conv = LinearStack(2 * FRAP_HIDDEN, FRAP_CONV, seeds, 4)
        self.relation_conv = LinearStack(FRAP_EMBEDDING, FRAP_CONV, seeds, 5)
        self.value_hidden = LinearStack(FRAP_CONV, FRAP_CONV, seeds, 6)
        self.value_out = LinearStack(FRAP_CONV, 1, seeds, 7)

    def forward(self, x: Tensor) -> Tensor:
        lanes_in, lanes_out, phases = self.in_lane_links.shape[1], self.out_lane_links.shape[1], self.phase_links.shape[1]
        on_in_lanes, on_out_lanes, current = by_feature(x, 3)
        vehicles = torch.bmm(on_in_lanes[:, :, :lanes_in], self.in_lane_links)  # [G, B, L]
        vehicles = torch.baddbmm(vehicles, on_out_lanes[:, :, :lanes_out], self.out_lane_links)
        green = torch.bmm(current[:, :, :phases], self.phase_links)
        seen = torch.cat(
            [
                torch.relu(self.phase_embedding(green[..., None])),
                torch.relu(self.vehicle_embedding(vehicles[..., None])),
            ],
            dim=3,
        )
        links = torch.relu(self.link_embedding(seen))  # [G, B, L, D]
        groups, batch, n_links, width = links.shape
        by_link = links.transpose(1, 2).reshape(groups, n_links, batch * width)
        hidden = torch.bmm(self.phase_links, by_link).view(groups, phases, batch, width)
        values = self._values_of_pairs(hidden) * self.pair_exists
        return values.view(groups, phases, phases - 1, batch).sum(dim=2).transpose(1, 2)

    def _values_of_pairs(self, hidden: Tensor) -> Tensor:
        """v' relu(V z_ij) for all i != j: [G, pairs, B], of the phases' hidden [G, P, B, D].

        V z_ij is linear in (h_i, h_j), given the relation, of which there are two. So it is taken once a phase and relation,
        not once a pair: V diag(r) Conv's first half on h_i, and its second half on h_j.
        """
        groups, phases, batch, width = hidden.shape
        sets, conv = len(self.pair_conv.weights), self.pair_conv.weights.shape[2]
        kinds = torch.tensor([[0.0], [1.0]], device=hidden.device).expand(sets, 2, 1)
        relations = self.relation_conv(torch.relu(self.relation_embedding(kinds)))[:, :, None, :]  # [S, 2, 1, C]
        mixed = torch.matmul(self.pair_conv.weights[:, None] * relations, self.value_hidden.weights[:, None])
        biases = torch.matmul(self.pair_conv.biases[:, None] * relations, self.value_hidden.weights[:, None])
        biases = (biases + self.value_hidden.biases[:, None]).transpose(1, 2).reshape(sets, 1, 2 * conv)
        kernel = mixed.transpose(1, 2).reshape(sets, 2 * width, 2 * conv)  # [S, 2 D, kinds * C]
        flat = hidden.reshape(sets, -1, width)
        own, other = torch.baddbmm(biases, flat, kernel[:, :width]), torch.bmm(flat, kernel[:, width:])
        rows = (  # [G * P * kinds, B * C]
            part.view(groups, phases, batch, 2, conv).transpose(2, 3).reshape(-1, batch * conv) for part in (own, other)
        )
        first, second = (part.index_select(0, index) for part, index in zip(rows, (self.first, self.second), strict=True))
        active = torch.relu_(first + second).view(sets, -1, conv)
        return torch.baddbmm(self.value_out.biases, active, self.value_out.weights).view(groups, -1, batch)
