"""One episode of any learned model: environments step side by side, learners act on what they see and learn from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]
Observation = npt.NDArray[np.integer]


class EpisodeEnvironment(Protocol):
    """One replica with N intersections."""

    def reset(self) -> Observation: ...  # [N, F, W]
    def step(self, actions: Int64) -> tuple[Observation, npt.NDArray[np.floating], bool]: ...


class EpisodeLearner(Protocol):
    """Some intersections of some replicas; see `model/search/learner.py`."""

    def start_episode(self, frame: Observation) -> None: ...
    def act(self, epsilon: float) -> Int64: ...
    def observe(
        self, actions: Int64, rewards: npt.NDArray[np.floating], frame: Observation, learning_rate: float
    ) -> Float32: ...


def run_episode(
    environments: Sequence[EpisodeEnvironment],
    learners: Sequence[Any],
    parts: Sequence[slice],
    n_decisions: int,
    epsilon: float,
    learning_rate: float,
    each: Callable[..., Iterable[Any]] = map,
) -> Float32:
    """Runs one episode; returns the mean loss of each of the learners' groups, NaN where none has learnt yet.

    Intersections are numbered through all environments; parts[l] are those of learner l. each: `map`, or an executor's."""
    frames = [environment.reset() for environment in environments]
    edges = np.cumsum([0, *(len(frame) for frame in frames)])
    frame = np.concatenate(frames)
    for learner, part in zip(learners, parts, strict=True):
        learner.start_episode(frame[part])
    losses: list[Float32] = []
    for _ in range(n_decisions):
        actions = np.concatenate(list(each(_act, learners, repeat(epsilon))))
        by_replica = [actions[edges[r] : edges[r + 1]] for r in range(len(environments))]
        outcomes = list(each(_step, environments, by_replica))
        frame = np.concatenate([observation for observation, _, _ in outcomes])
        rewards = np.concatenate([reward for _, reward, _ in outcomes])
        seen = ([array[part] for part in parts] for array in (actions, rewards, frame))
        losses.append(np.concatenate(list(each(_observe, learners, *seen, repeat(learning_rate)))))
    learnt = [loss for loss in losses if not np.isnan(loss[0])]
    return np.stack(learnt).mean(axis=0) if learnt else np.full(len(losses[0]), np.nan, np.float32)


def _act(learner: EpisodeLearner, epsilon: float) -> Int64:
    return learner.act(epsilon)


def _step(environment: EpisodeEnvironment, actions: Int64) -> tuple[Observation, npt.NDArray[np.floating], bool]:
    return environment.step(actions)


def _observe(
    learner: EpisodeLearner, actions: Int64, rewards: npt.NDArray[np.floating], frame: Observation, learning_rate: float
) -> Float32:
    return learner.observe(actions, rewards, frame, learning_rate)
