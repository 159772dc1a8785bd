"""A learner for a batch of value networks of any kind, with target network, optimiser and replay: the counterpart of
`model/search/learner.py` for the baselines, with gradients by autograd."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from model.dqn.replay import Float32, Int64, ReplayMemory, UInt64, explore
from model.dqn.rmsprop import RMSprop
from model.dqn.value_graph import ValueGraph


@dataclass(frozen=True)
class BaselineConfig:
    """The release's settings for the paper's baselines."""

    episodes: int = 64
    epsilon: float = 0.1
    epsilon_last_episode: int = 55
    learning_rate: float = 1e-3
    gamma: float = 0.9
    tau: float = 0.1
    batch: int = 32
    replay_capacity: int = 100_000


class ValueLearner:
    """G intersections. explore_seeds, replay_seeds uint64[G]: equal replay seeds draw the same moments. n_actions int64[G].
    scale [F * W]: feature value per unit of the observation's integers."""

    def __init__(
        self,
        graph: ValueGraph,
        explore_seeds: UInt64,
        replay_seeds: UInt64,
        n_actions: Int64,
        scale: Float32,
        n_decisions: int,
        config: BaselineConfig,
    ) -> None:
        self.graph, self.target, self.config = graph, copy.deepcopy(graph), config
        self._explore_seeds, self._replay_seeds, self._n_actions = explore_seeds, replay_seeds, n_actions
        self._scale = np.tile(scale, (len(n_actions), 1)).astype(np.float32)
        self._parameters, self._target_parameters = list(graph.parameters()), list(self.target.parameters())
        self._optimizer = RMSprop(self._parameters)
        capacity = min(config.replay_capacity, config.episodes * n_decisions)
        self.replay = ReplayMemory(capacity, n_decisions, len(n_actions), len(scale))

    def start_episode(self, frame: npt.NDArray[np.integer]) -> None:
        """frame int[G, F, W]: the first observation."""
        self.replay.start_episode(frame.reshape(len(frame), -1))

    def act(self, epsilon: float) -> Int64:
        """int64[G]: the action of each intersection in its current state."""
        greedy = greedy_actions(self.graph, self.replay.last_frame * self._scale)
        return explore(greedy, self._n_actions, epsilon, self._explore_seeds, self.replay.count)

    def observe(
        self, actions: Int64, rewards: npt.NDArray[np.floating], frame: npt.NDArray[np.integer], learning_rate: float
    ) -> Float32:
        """Takes the outcome of the actions: rewards [G] and the next observation int[G, F, W]. Learns from it and the past;
        returns the losses float32[G] before the update, NaN while there are too few samples."""
        self.replay.add(actions, rewards, frame.reshape(len(frame), -1))
        if self.replay.size < self.config.batch:
            return np.full(len(actions), np.nan, np.float32)
        return self.learn(learning_rate)

    def learn(self, learning_rate: float) -> Float32:
        """One update from a minibatch of the past; the losses float32[G] before it."""
        drawn = self.replay.draw(self._replay_seeds, self.replay.count, self.config.batch)
        states, taken, paid, following = (torch.from_numpy(part) for part in self.replay.gather(drawn, self._scale))
        with torch.no_grad():
            targets = paid + self.config.gamma * self.target.best_values(following)
        chosen = self.graph.values(states).gather(2, taken[:, :, None])[:, :, 0]
        losses = (targets - chosen).square().mean(dim=1)
        gradients = torch.autograd.grad(losses.sum(), self._parameters)
        self._optimizer.step(gradients, learning_rate, self._target_parameters, self.config.tau)
        return np.asarray(losses.detach().numpy())


@torch.no_grad()
def greedy_actions(graph: ValueGraph, states: Float32) -> Int64:
    """int64[G]: each group's best action in its state, states [G, F * W]."""
    best: Int64 = graph.best_actions(torch.from_numpy(np.ascontiguousarray(states, np.float32))[:, None, :])[:, 0].numpy()
    return best
