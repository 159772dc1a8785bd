"""The student: the super-graph learns what each action loses, is pruned by its alphas, and what is left learns on.

As in the paper's search (Method, Algorithm 1) the first objective is the task's and the second the entropy of the alphas;
only the first is not a temporal difference here, but the regret that the planner has measured. With p the softmax of the
network's outputs and r the regrets of a state's actions, in vehicle-seconds,

    loss = w * (cross-entropy of p against softmax(-r / T) + sum_a p_a r_a / T)

with a weight w that grows with what is at stake in the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from model.planning.records import Seen
from model.planning.settings import PlanConfig
from model.policy.float_policy import GroupWeights
from model.quantise.quantise import FULL_GRID, Headroom
from model.search.rounding import RoundedSubGraph
from model.search.subgraph import Choice, SubGraph, kept_columns, strongest, trimmed
from model.search.supergraph import GraphShape, SuperGraph, entropies

MOST_REGRET_S = 1500.0
ROUND_HEADROOM = Headroom(1.25, 1.25)  # of the integers while it is trained
RANGE_ROWS, RANGE_STEPS = 2000, 50  # their ranges are taken from so many records, and so often
LEAST_SCALE = 0.05  # of a feature: half of its mean size, below which it isn't blown up further


class Data:
    """The records of all groups in one tensor, for minibatches: inputs over each feature's scale, regrets, weights."""

    def __init__(self, seen: Sequence[Seen], scale: Tensor, seed: int) -> None:
        """scale float32[S]: of a packed row's numbers."""
        self.inputs = torch.from_numpy(np.concatenate([each.inputs for each in seen]).astype(np.float32)) / scale
        regrets = torch.from_numpy(np.concatenate([each.regrets for each in seen]))
        self.missing = regrets < 0
        self.regrets = regrets.clamp(min=0.0, max=MOST_REGRET_S)
        middle = torch.where(self.missing, torch.nan, self.regrets).nanmedian(dim=1).values
        self.weights = middle.clamp(max=300.0) / 100.0 + 0.1
        self._counts = torch.tensor([len(each.inputs) for each in seen])
        self._first = torch.cumsum(self._counts, 0) - self._counts
        self._generator = torch.Generator().manual_seed(seed)

    def columns(self, kept: npt.NDArray[np.int64]) -> Tensor:
        """float32[rows, K]: the inputs at each group's columns int64[G, K], 0 where that is -1."""
        columns = torch.from_numpy(kept).repeat_interleave(self._counts, dim=0)
        return self.inputs.gather(1, columns.clamp(min=0)) * (columns >= 0)

    def rows(self, batch: int) -> Tensor:
        """int64[G, B]: rows of each group, drawn anew."""
        drawn = torch.rand((len(self._counts), batch), generator=self._generator)
        return self._first[:, None] + (drawn * self._counts[:, None]).long()

    def loss(self, values: Tensor, rows: Tensor, temperature_s: float) -> Tensor:
        """The sum over groups of the mean loss; values float32[G, B, A]."""
        missing, regrets = self.missing[rows], self.regrets[rows] / temperature_s
        target = torch.softmax((-regrets).masked_fill(missing, -torch.inf), dim=2)
        log_p = torch.log_softmax(values.masked_fill(missing, -1e9), dim=2)
        each = (log_p.exp() * regrets - target * log_p).sum(dim=2)
        return (each * self.weights[rows]).mean(dim=1).sum()


class Student:
    """The networks of G groups, from the super-graph to the sub-graph's weights.

    Args:
        shape: of the super-graph: feature widths and numbers of actions by group.
        lsb_per_unit: of each feature; weights act on feature values, i.e. integer / lsb_per_unit.
        settings: how it learns.
        seed: of the initial weights and minibatches.
    """

    def __init__(self, shape: GraphShape, lsb_per_unit: Sequence[int], settings: PlanConfig, seed: int) -> None:
        self._shape, self._settings, self._seed = shape, settings, seed
        self._lsb = np.array(lsb_per_unit, np.float64)
        self._scale: Tensor | None = None
        self._fits = 0
        self.choice: Choice | None = None
        self.alphas: list[npt.NDArray[np.float32]] = []
        self._subgraph: SubGraph | None = None

    def search(self, seen: Sequence[Seen]) -> None:
        """Train a new super-graph on the records and keep its strongest sub-graph."""
        self._scale = torch.from_numpy(self._scales(seen))
        data, settings = self._data(seen), self._settings
        supergraph = self._supergraph()
        optimiser = torch.optim.AdamW(
            [
                {"params": supergraph.theta(), "lr": settings.learning_rate / 2, "weight_decay": settings.weight_decay},
                {"params": supergraph.alpha_logits(), "lr": settings.alpha_rate, "weight_decay": 0.0},
            ],
            fused=True,
        )
        for step in range(settings.search_steps):
            rows = data.rows(settings.batch // 2)
            loss = data.loss(supergraph(data.inputs[rows]), rows, settings.temperature_s)
            ramp = max(0.0, step / settings.search_steps - 0.3) / 0.7
            loss = loss + settings.entropy * ramp * entropies(supergraph.alpha_logits()).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        self.alphas = [alpha.detach().numpy() for alpha in supergraph.alphas()]
        self.choice = strongest(supergraph, settings.kept_features, settings.budget)
        self._subgraph = SubGraph(supergraph, self.choice)

    def refine(self, seen: Sequence[Seen], steps: int) -> float:
        """Train the sub-graph on the records. Returns the mean regret of its actions there, in vehicle-seconds."""
        assert self._subgraph is not None and self.choice is not None  # after a search
        data, settings, subgraph = self._data(seen), self._settings, self._subgraph
        inputs = data.columns(kept_columns(self._shape, self.choice))
        optimiser = torch.optim.AdamW(
            subgraph.theta(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, settings.learning_rate, total_steps=max(steps, 2))
        rounded = None if settings.grid == FULL_GRID else self._rounded(subgraph)
        for step in range(steps):
            rows = data.rows(settings.batch)
            if rounded is not None:
                rounded.fit(inputs[data.rows(RANGE_ROWS)]) if step % RANGE_STEPS == 0 else rounded.follow()
            loss = data.loss((rounded or subgraph)(inputs[rows]), rows, settings.temperature_s)
            optimiser.zero_grad()
            loss.backward()
            if rounded is not None:
                rounded.hand_over()
            optimiser.step()
            schedule.step()
        with torch.no_grad():
            rows = data.rows(2000)
            if rounded is not None:
                rounded.fit(inputs[rows])
            actions = (
                (rounded or subgraph)(inputs[rows]).masked_fill(data.missing[rows], -torch.inf).argmax(dim=2, keepdim=True)
            )
            return float(data.regrets[rows].gather(2, actions).mean())

    def _rounded(self, subgraph: SubGraph) -> RoundedSubGraph:
        """The sub-graph with the chip's rounding: what it learns, the sub-graph does (`RoundedSubGraph.hand_over`)."""
        assert self._scale is not None and self.choice is not None
        starts = torch.tensor(self._shape.packing.starts)
        unit = 1.0 / self._scale[starts[torch.from_numpy(self.choice.features)]]
        rounded = RoundedSubGraph(subgraph, unit, ROUND_HEADROOM, self._settings.grid)
        rounded.requires_grad_(True)
        return rounded

    def state(self) -> dict[str, Any]:
        """What `restore` needs to go on from here (tensors and numbers)."""
        assert self._subgraph is not None and self.choice is not None
        choice = {name: torch.from_numpy(kept) for name, kept in vars(self.choice).items()}
        theta = [each.detach().clone() for each in self._subgraph.theta()]
        alphas = [torch.from_numpy(each) for each in self.alphas]
        return {"fits": self._fits, "scale": self._scale, "choice": choice, "theta": theta, "alphas": alphas}

    def restore(self, state: dict[str, Any]) -> None:
        self._fits, self._scale = state["fits"], state["scale"]
        self.choice = Choice(**{name: kept.numpy() for name, kept in state["choice"].items()})
        self.alphas = [each.numpy() for each in state["alphas"]]
        self._subgraph = SubGraph(self._supergraph(), self.choice)
        with torch.no_grad():
            for own, kept in zip(self._subgraph.theta(), state["theta"], strict=True):
                own.copy_(kept)

    def features(self, group: int) -> list[int]:
        """Numbers of the features that a group keeps."""
        assert self.choice is not None
        return [int(feature) for feature in self.choice.features[group]]

    def widths(self, group: int) -> list[int]:
        return [int(self._shape.feature_widths[group, feature]) for feature in self.features(group)]

    def columns(self, group: int) -> npt.NDArray[np.int64]:
        """int64[inputs]: where the kept features' numbers lie in a packed row."""
        starts = self._shape.packing.starts
        parts = zip(self.features(group), self.widths(group), strict=True)
        return np.concatenate([starts[feature] + np.arange(width) for feature, width in parts])

    def weights(self, group: int) -> GroupWeights:
        """A group's weights, which act on feature values."""
        assert self._subgraph is not None and self.choice is not None and self._scale is not None
        theta = [each.detach().numpy()[group].copy() for each in self._subgraph.theta()]
        starts = self._shape.packing.starts
        for k, feature in enumerate(self.features(group)):
            theta[0][k] *= self._lsb[feature] / float(self._scale[starts[feature]])
        return trimmed(theta, self.choice.hidden[group], self.widths(group), int(self._shape.n_actions[group]))

    def _supergraph(self) -> SuperGraph:
        return SuperGraph(self._shape, [(self._seed, group) for group in range(self._shape.n_groups)])

    def _data(self, seen: Sequence[Seen]) -> Data:
        self._fits += 1
        assert self._scale is not None
        return Data(seen, self._scale, self._seed * 1000 + self._fits)

    def _scales(self, seen: Sequence[Seen]) -> npt.NDArray[np.float32]:
        """float32[S]: twice the mean size of each feature's numbers, as integers."""
        packing = self._shape.packing
        size = np.mean([np.abs(each.inputs.astype(np.float64)).mean(axis=0) for each in seen], axis=0)
        mean = np.array(
            [size[start : start + width].mean() for start, width in zip(packing.starts, packing.widths, strict=True)]
        )
        return packing.repeat(np.maximum(2.0 * mean, LEAST_SCALE * self._lsb)).astype(np.float32)
