"""The parts of deep Q-learning: randomness, exploration, schedules, replay."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from model.kernels.gather import gather_frames

Float32 = npt.NDArray[np.float32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64's increment and multipliers (Steele, Lea, Flood 2014)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

STREAM_EXPLORE, STREAM_REPLAY = 1, 2


def group_seed(train_seed: int, intersection: int) -> np.uint64:
    """The seed of one intersection's random numbers in one replica."""
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
    """Exploration in the search: first * (1 - episode / last_episode), not below 0. (Refinement does not
    explore.)"""
    return max(0.0, first * (1.0 - episode / last_episode))


def refinement_learning_rate(episode: int, first: float = 1e-3, halve_every: int = 10) -> float:
    return first * 0.5 ** (episode // halve_every)


def explore(greedy: Int64, n_actions: Int64, epsilon: float, seeds: UInt64, step: int) -> Int64:
    """int64[G]: each group's greedy action, or with probability epsilon a uniformly drawn one."""
    if epsilon <= 0.0:
        return greedy
    drawn = uniforms(seeds, STREAM_EXPLORE, step, 2)
    return np.where(drawn[:, 0] < epsilon, (drawn[:, 1] * n_actions).astype(np.int64), greedy)


class ReplayMemory:
    """The last `capacity` transitions of G groups that step together, across episodes of equal length.

    Observations are stored once: an episode of D decisions leaves D + 1 frames, so transition t (counted
    from the start of training) goes from frame t + t // D to the next. Frames int16[n_frames, G, S];
    actions int64, rewards float32 [capacity, G].
    """

    def __init__(self, capacity: int, n_decisions: int, groups: int, size: int) -> None:
        self.capacity, self.n_decisions = capacity, n_decisions
        self.frames = np.zeros((capacity + capacity // n_decisions + 2, groups, size), dtype=np.int16)
        self.actions = np.zeros((capacity, groups), dtype=np.int64)
        self.rewards = np.zeros((capacity, groups), dtype=np.float32)
        self.count = 0  # transitions ever stored

    @property
    def size(self) -> int:
        return min(self.count, self.capacity)

    @property
    def last_frame(self) -> npt.NDArray[np.int16]:
        """int16[G, S]: the frame that the next transition starts from (within an episode)."""
        return np.asarray(self.frames[self._frame(self.count)])

    def start_episode(self, frame: npt.NDArray[np.integer]) -> None:
        if self.count % self.n_decisions:
            raise ValueError(f"an episode has {self.n_decisions} decisions; the last one stopped short")
        self.frames[self._frame(self.count)] = frame

    def add(self, actions: Int64, rewards: npt.NDArray[np.floating], frame: npt.NDArray[np.integer]) -> None:
        """One transition of all groups: from the last frame, by actions[G], to `frame` int[G, S], paying
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

    def gather(self, transitions: Int64, scale: Float32) -> tuple[Float32, Int64, Float32, Float32]:
        """(states float32[G, B, S], actions [G, B], rewards [G, B], next states) of transitions[G, B]; states are frames times
        scale[G, S]."""
        frame = transitions + transitions // self.n_decisions
        states, next_states = np.empty((2, *transitions.shape, scale.shape[1]), np.float32)
        gather_frames(self.frames, frame % len(self.frames), scale, states)
        gather_frames(self.frames, (frame + 1) % len(self.frames), scale, next_states)
        slots, groups = transitions % self.capacity, np.arange(len(transitions))[:, None]
        return states, self.actions[slots, groups], self.rewards[slots, groups], next_states

    def states(self, transitions: Int64) -> npt.NDArray[np.int16]:
        """int16[T, G, S]: the frames that the transitions [T] start from."""
        return np.asarray(self.frames[(transitions + transitions // self.n_decisions) % len(self.frames)])

    def keep(self, columns: Int64) -> None:
        """From now on frames hold only columns[G, S'] of what they held; -1 is a zero."""
        frames = np.zeros((len(self.frames), *columns.shape), np.int16)
        used = self._used_frames()
        groups = np.arange(columns.shape[0])[:, None]
        for first in range(0, used, 1024):
            part = slice(first, min(first + 1024, used))
            frames[part] = np.where(columns >= 0, self.frames[part][:, groups, columns], 0)
        self.frames = frames

    def _used_frames(self) -> int:
        return min(len(self.frames), self.count + self.count // self.n_decisions + 1)

    def state(self) -> dict[str, Tensor | int]:
        """State for a checkpoint: only the part in use."""
        return {
            "count": self.count,
            "frames": torch.from_numpy(self.frames[: self._used_frames()].copy()),
            "actions": torch.from_numpy(self.actions[: self.size].copy()),
            "rewards": torch.from_numpy(self.rewards[: self.size].copy()),
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        self.count = int(state["count"])
        for name in ("frames", "actions", "rewards"):
            saved = state[name].numpy()
            getattr(self, name)[: len(saved)] = saved
