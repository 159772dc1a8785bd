"""The pieces of deep Q-learning that training is made of: randomness, replay, exploration, the two
objectives, target network.

There are no terminal states (paper-protocol: "DQN without terminal states"). Every loss is summed over
groups, each group's share being its own mean over its minibatch, so a group learns exactly what it would
learn alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from model.supergraph import SuperGraph, ValueGraph, entropies

UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64's increment and multipliers (Steele, Lea, Flood 2014)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

STREAM_EXPLORE, STREAM_REPLAY = 1, 2


def group_seed(train_seed: int, intersection: int) -> np.uint64:
    """Where the random numbers of one intersection of one replica start."""
    return np.uint64(np.random.SeedSequence([train_seed, intersection]).generate_state(1, np.uint64)[0])


def uniforms(seeds: UInt64, stream: int, step: int, count: int) -> npt.NDArray[np.float64]:
    """float64[G, count] in [0, 1): a pure function of (seed, stream, step, position), so groups are
    independent of their neighbours and a resumed training needs no generator state."""
    with np.errstate(over="ignore"):
        start = _mix(seeds + np.uint64(stream) * _GOLDEN)
        start = _mix(start + np.uint64(step) * _GOLDEN)
        bits = _mix(start[:, None] + np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(z: UInt64) -> UInt64:
    z = (z ^ (z >> np.uint64(30))) * _MIX1
    z = (z ^ (z >> np.uint64(27))) * _MIX2
    return z ^ (z >> np.uint64(31))


def search_epsilon(episode: int, first: float = 0.1, last_episode: int = 59) -> float:
    """Exploration in the search: first * (1 - episode / last_episode), not below 0. (Refinement explores
    nothing.)"""
    return max(0.0, first * (1.0 - episode / last_episode))


def refinement_learning_rate(episode: int, first: float = 1e-3, halve_every: int = 10) -> float:
    return first * 0.5 ** (episode // halve_every)


def explore(greedy: Int64, n_actions: Int64, epsilon: float, seeds: UInt64, step: int) -> Int64:
    """int64[G]: each group's greedy action, or with probability epsilon a uniformly drawn one."""
    if epsilon <= 0.0:
        return greedy
    drawn = uniforms(seeds, STREAM_EXPLORE, step, 2)
    return np.where(drawn[:, 0] < epsilon, (drawn[:, 1] * n_actions).astype(np.int64), greedy)


class Replay:
    """The last `capacity` transitions of G groups that step together, across episodes of equal length.

    Observations are stored once: an episode of D decisions leaves D + 1 frames, so transition t (counted
    from the start of training) goes from frame t + t // D to the next. Frames int16[n_frames, G, F, W];
    actions int64, rewards float32 [capacity, G].
    """

    def __init__(self, capacity: int, n_decisions: int, frame_shape: tuple[int, int, int]) -> None:
        self.capacity, self.n_decisions = capacity, n_decisions
        self.frames = np.zeros((capacity + capacity // n_decisions + 2, *frame_shape), dtype=np.int16)
        self.actions = np.zeros((capacity, frame_shape[0]), dtype=np.int64)
        self.rewards = np.zeros((capacity, frame_shape[0]), dtype=np.float32)
        self.count = 0  # transitions ever stored

    @property
    def size(self) -> int:
        return min(self.count, self.capacity)

    def start_episode(self, frame: npt.NDArray[np.integer]) -> None:
        if self.count % self.n_decisions:
            raise ValueError(f"an episode has {self.n_decisions} decisions; the last one stopped short")
        self.frames[self._frame(self.count)] = frame

    def add(self, actions: Int64, rewards: npt.NDArray[np.floating], frame: npt.NDArray[np.integer]) -> None:
        """One transition of all groups: from the last frame, by actions[G], to `frame` int[G, F, W], paying
        rewards[G]."""
        slot = self.count % self.capacity
        self.actions[slot], self.rewards[slot] = actions, rewards
        self.frames[self._frame(self.count, offset=1)] = frame
        self.count += 1

    def _frame(self, transition: int, offset: int = 0) -> int:
        return (transition + transition // self.n_decisions + offset) % len(self.frames)

    def draw(self, seeds: UInt64, step: int, batch: int) -> Int64:
        """int64[G, batch] transition numbers, uniform over those held, with replacement."""
        places = (uniforms(seeds, STREAM_REPLAY, step, batch) * self.size).astype(np.int64)
        return self.count - self.size + places

    def gather(
        self, transitions: Int64, features: Int64 | None = None
    ) -> tuple[npt.NDArray[np.int16], Int64, npt.NDArray[np.float32], npt.NDArray[np.int16]]:
        """(states int16[G, F, B, W], actions [G, B], rewards [G, B], next states) of transitions[G, B].

        features [G, K] limits states to those features."""
        groups = np.arange(len(transitions))
        frame = transitions + transitions // self.n_decisions
        kept = np.arange(self.frames.shape[2])[None, :] if features is None else features
        place = (groups[:, None, None], kept[:, :, None])
        states = self.frames[(frame % len(self.frames))[:, None, :], *place]
        next_states = self.frames[((frame + 1) % len(self.frames))[:, None, :], *place]
        slots = transitions % self.capacity
        return states, self.actions[slots, groups[:, None]], self.rewards[slots, groups[:, None]], next_states

    def state(self) -> dict[str, Tensor | int]:
        """What a checkpoint needs: only the part in use."""
        frames = min(len(self.frames), self.count + self.count // self.n_decisions + 1)
        return {
            "count": self.count,
            "frames": torch.from_numpy(self.frames[:frames].copy()),
            "actions": torch.from_numpy(self.actions[: self.size].copy()),
            "rewards": torch.from_numpy(self.rewards[: self.size].copy()),
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        self.count = int(state["count"])
        for name in ("frames", "actions", "rewards"):
            saved = state[name].numpy()
            getattr(self, name)[: len(saved)] = saved


class Minibatch:
    """One minibatch per group as tensors, with the targets y = r + gamma * max_a Q_target(s', a) already
    worked out."""

    def __init__(
        self,
        states: Tensor,  # float32[G, F, B, W] feature values
        actions: Tensor,  # int64[G, B]
        rewards: Tensor,  # float32[G, B]
        next_states: Tensor,  # float32[G, F, B, W]
        target: ValueGraph,
        gamma: float,
    ) -> None:
        self.states, self.actions = states, actions
        with torch.no_grad():
            self.targets = rewards + gamma * target.best_values(next_states)


def td_losses(graph: ValueGraph, minibatch: Minibatch) -> Tensor:
    """The first objective, per group: mean over the minibatch of (y - Q(s, a))^2, float32[G]."""
    chosen = graph.values(minibatch.states).gather(2, minibatch.actions[:, :, None])[:, :, 0]
    return (minibatch.targets - chosen).square().mean(dim=1)


def alpha_step(graph: SuperGraph, minibatch: Minibatch, optimizer: torch.optim.Optimizer, beta: float) -> None:
    """One step of the alphas on both objectives: squared error + beta * sum of the layers' entropies. The
    weights don't move."""
    parameters = graph.alpha_logits()
    loss = td_losses(graph, minibatch).sum() + beta * entropies(parameters).sum()
    _step(loss, parameters, optimizer)


def theta_step(
    graph: ValueGraph, theta: Sequence[nn.Parameter], minibatch: Minibatch, optimizer: torch.optim.Optimizer
) -> Tensor:
    """One step of the weights on the first objective; the alphas don't move. Returns the losses before the
    step, float32[G]."""
    losses = td_losses(graph, minibatch)
    _step(losses.sum(), theta, optimizer)
    return losses.detach()


def _step(loss: Tensor, parameters: Sequence[nn.Parameter], optimizer: torch.optim.Optimizer) -> None:
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = gradient
    optimizer.step()


@torch.no_grad()
def update_target(target: Iterable[Tensor], online: Iterable[Tensor], tau: float) -> None:
    """target += tau * (online - target), for every parameter."""
    torch._foreach_lerp_(list(target), list(online), tau)
