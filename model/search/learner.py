"""A block of groups that learns: a super-graph that is searched, then the sub-graph that is refined, with target network,
optimisers and replay.

There are no terminal states (docs/paper-protocol.md, "Learned models"). A group's loss is its own mean over its own
minibatch, so it learns the same as it would alone, in any block."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from model.dqn.replay import ReplayMemory, UInt64, explore, group_seed
from model.dqn.rmsprop import RMSprop
from model.search.config import TrainingConfig
from model.search.gradients import Minibatch, SuperGraphStep, subgraph_gradients
from model.search.rounding import RoundedSubGraph
from model.search.subgraph import Choice, SubGraph, kept_columns, strongest
from model.search.supergraph import Float32, GraphShape, SuperGraph, entropies

Int64 = npt.NDArray[np.int64]

RANGE_EPISODES = 4  # the last episodes, with states that show which ranges the rounding needs


class Learner:
    """G groups of `streams` intersections each: one, or all that share a network (as MPLight: docs/paper-protocol.md).

    numbers[i]: (train seed, intersection) of stream i, from which all of its randomness comes; a group's weights come from
    its first stream's. Frames, actions and rewards are given stream by stream, [G * streams, ...]. scale [F]: feature value a
    unit of a frame's integers."""

    def __init__(
        self,
        shape: GraphShape,
        numbers: Sequence[tuple[int, int]],
        scale: Float32,
        n_decisions: int,
        config: TrainingConfig,
        device: str = "cpu",
        streams: int = 1,
    ) -> None:
        self.shape, self.config, self.device, self.streams = shape, config, device, streams
        self.choice: Choice | None = None
        self.rounded: RoundedSubGraph | None = None  # acts and learns in the refinement's last episodes
        self.alphas: list[Float32] = []  # at the end of the search, per layer [G, components]
        self._seeds: UInt64 = np.array([group_seed(*pair) for pair in numbers], dtype=np.uint64)
        self._feature_scale = scale
        self._scale = np.tile(shape.packing.repeat(scale), (len(numbers), 1)).astype(np.float32)
        self._n_actions = np.repeat(shape.n_actions, streams)
        self.graph: Any = SuperGraph(shape, numbers[::streams]).to(device)
        self.target: Any = copy.deepcopy(self.graph)
        self._theta = RMSprop(self.graph.theta())
        self._alpha = RMSprop(self.graph.alpha_logits())
        decisions = (config.search_episodes + config.refine_episodes) * n_decisions
        self.replay = ReplayMemory(min(config.replay_capacity, decisions), n_decisions, len(numbers), shape.packing.size)

    @property
    def acting(self) -> Any:
        """The graph that chooses actions and gives the gradients."""
        return self.graph if self.rounded is None else self.rounded

    # ------------------------------------------------------------------ one decision

    def start_episode(self, frame: npt.NDArray[np.integer]) -> None:
        """frame int[G, F, W]: the first observation."""
        if self.rounded is not None:
            self.rounded.fit(self._late_states())
        self.replay.start_episode(self._packed(frame))

    def act(self, epsilon: float) -> Int64:
        """int64[G * streams]: the action of each intersection in its current state."""
        x = (self.replay.last_frame * self._scale).reshape(self.shape.n_groups, self.streams, -1)
        with torch.no_grad():
            greedy = self.acting.best_actions(torch.from_numpy(x).to(self.device)).cpu().numpy().reshape(-1)
        return explore(greedy, self._n_actions, epsilon, self._seeds, self.replay.count)

    def observe(
        self, actions: Int64, rewards: npt.NDArray[np.floating], frame: npt.NDArray[np.integer], learning_rate: float
    ) -> Float32:
        """Takes the outcome of the actions: rewards [G * streams] and the next observation int[G * streams, F, W]. Learns from
        it and the past; returns the losses float32[G] before the last update, NaN while there are too few samples."""
        self.replay.add(actions, rewards * self.config.reward_scale, self._packed(frame))
        losses = np.full(self.shape.n_groups, np.nan, np.float32)
        if self.replay.size >= self.config.batch:
            updates = self.config.updates_per_decision
            for update in range(updates):
                losses = self._learn(self.replay.count * updates + update, learning_rate)
        return losses

    @torch.no_grad()
    def _learn(self, step: int, learning_rate: float) -> Float32:
        """One update (of the alphas too, in the search) on a minibatch of each stream; step: its number, for the draw."""
        config = self.config
        drawn = self.replay.draw(self._seeds, step, config.batch)
        states, actions, rewards, following = (
            torch.from_numpy(part.reshape(self.shape.n_groups, self.streams * config.batch, *part.shape[2:])).to(self.device)
            for part in self.replay.gather(drawn, self._scale)
        )
        targets = rewards + config.gamma * self._future(following)
        minibatch = Minibatch(states, actions, targets)
        if self.choice is None:
            both = SuperGraphStep(self.graph, minibatch)
            self._alpha.step(both.alpha_gradients(config.beta), learning_rate, self.target.alpha_logits(), config.tau)
            gradients = both.theta_gradients()
            losses = both.losses
        else:
            losses, gradients = subgraph_gradients(self.acting, minibatch)
        self._theta.step(gradients, learning_rate, self.target.theta(), config.tau)
        if self.rounded is not None:
            self.rounded.follow()
        return np.asarray(losses.cpu().numpy())

    def _future(self, following: Tensor) -> Tensor:
        """float32[G, B]: the value of the next states: max_a Q_target, or with double Q-learning Q_target(argmax_a Q)."""
        if not self.config.double_q:
            values: Tensor = self.target.best_values(following)
            return values
        best = self.acting.best_actions(following)
        values = self.target.values(following).gather(2, best[:, :, None])[:, :, 0]
        return values

    def _packed(self, frame: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """int[G * streams, S] of int[G * streams, F, W]: as the graph wants it."""
        columns = self.shape.packing.columns(frame.shape[2])
        flat = frame.reshape(len(frame), -1)
        if self.choice is None:
            return flat[:, columns]
        return flat[np.arange(len(flat))[:, None], columns[self._columns]] * (self._columns >= 0)

    # ------------------------------------------------------------------ between episodes

    def entropies(self) -> npt.NDArray[np.float32]:
        """float32[3, G], or NaN when there are no alphas any more."""
        if self.choice is not None:
            return np.full((3, self.shape.n_groups), np.nan, np.float32)
        with torch.no_grad():
            return np.asarray(entropies(self.graph.alpha_logits()).cpu().numpy())

    def current_alphas(self) -> list[Float32]:
        """Per layer [G, components]; none when the search is over."""
        if self.choice is not None:
            return []
        with torch.no_grad():
            return [alpha.cpu().numpy() for alpha in self.graph.alphas()]

    def extract(self, choice: Choice | None = None) -> None:
        """Ends the search: keeps the strongest path (or `choice`, when resuming) and continues with that."""
        if choice is None:
            self.alphas = self.current_alphas()
            choice = strongest(self.graph, self.config.kept_features, self.config.budget)
        self.choice = choice
        self._columns = np.repeat(kept_columns(self.shape, choice), self.streams, axis=0)
        self.graph, self.target = (SubGraph(graph, choice).to(self.device) for graph in (self.graph, self.target))
        self._theta = RMSprop(self.graph.theta())
        width = self._columns.shape[1] // choice.features.shape[1]
        scale = np.repeat(self._feature_scale[choice.features], width, axis=1)
        self._scale = np.repeat(scale, self.streams, axis=0).astype(np.float32)
        self.replay.keep(self._columns)

    def round(self) -> None:
        """From the next episode on act and learn through the chip's rounding. The weights stay exact behind it, and the ranges
        are recomputed at each episode's start, so that checkpoints need not hold them."""
        assert self.choice is not None
        unit = self._feature_scale[self.choice.features].astype(np.float32)
        self.rounded = RoundedSubGraph(self.graph, torch.from_numpy(unit).to(self.device))

    def _late_states(self) -> Tensor:
        """float32[G, T, S]: some of the states of the last episodes, as the graph wants them."""
        replay = self.replay
        held = min(RANGE_EPISODES * replay.n_decisions, replay.size)
        frames = replay.states(np.arange(replay.count - held, replay.count)) * self._scale
        by_group = frames.reshape(held, self.shape.n_groups, self.streams, -1).transpose(1, 0, 2, 3)
        return torch.from_numpy(by_group.reshape(self.shape.n_groups, held * self.streams, -1)).to(self.device)

    def theta(self, group: int) -> list[Float32]:
        """A copy of one group's weights, as `SubGraph.theta` without the leading axis."""
        return [parameter[group].detach().cpu().numpy().copy() for parameter in self.graph.theta()]

    def visited_inputs(self, episodes: int, count: int) -> list[npt.NDArray[np.int16]]:
        """Per group int16[T, n_inputs]: the kept features of about `count` states, evenly spaced over the last episodes,
        without padding."""
        assert self.choice is not None
        replay = self.replay
        held = min(episodes * replay.n_decisions, replay.size)
        numbers = replay.count - 1 - np.arange(0, held, max(1, held * self.streams // count))
        frames = replay.states(numbers[::-1])  # [T, G * streams, S]
        shown = frames.reshape(len(numbers), self.shape.n_groups, self.streams, -1)
        columns = self._columns[:: self.streams] >= 0
        return [shown[:, g].reshape(-1, shown.shape[3])[:, columns[g]] for g in range(self.shape.n_groups)]

    # ------------------------------------------------------------------ checkpoints

    def state(self) -> dict[str, Any]:
        """Everything that learning has changed, as tensors and numbers."""
        choice = self.choice
        return {
            "choice": None if choice is None else {name: torch.from_numpy(kept) for name, kept in vars(choice).items()},
            "alphas": [torch.from_numpy(alpha) for alpha in self.alphas],
            "graph": self.graph.state_dict(),
            "target": self.target.state_dict(),
            "theta_squares": self._theta.squares,
            "alpha_squares": self._alpha.squares,
            "replay": self.replay.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Back to where `state` was taken, by a learner of the same groups and config."""
        self.alphas = [alpha.numpy() for alpha in state["alphas"]]
        if state["choice"] is not None:
            self.extract(Choice(**{name: kept.numpy() for name, kept in state["choice"].items()}))
        self.graph.load_state_dict(state["graph"])
        self.target.load_state_dict(state["target"])
        for optimiser, name in ((self._theta, "theta_squares"), (self._alpha, "alpha_squares")):
            for square, saved in zip(optimiser.squares, state[name], strict=True):
                square.copy_(saved)
        self.replay.restore(state["replay"])
