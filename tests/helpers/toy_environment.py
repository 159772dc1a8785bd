"""A tiny seeded environment with `streetflow.control.environment.Environment`'s interface: queues that grow and are served.

Approach a of an intersection has a queue; action a serves up to 6 vehicles of queue a (4 if the action changed), and every
approach gains a random number at each decision. The best policy is near "serve the longest queue".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ToyIntersection:
    id: str
    phases: tuple[int, ...]


class ToyEnvironment:
    feature_names = ("queues", "delays", "current_phase", "noise")
    lsb_per_unit = (1, 256, 1, 1)

    def __init__(self, phases: tuple[int, ...] = (3, 2), n_decisions: int = 20, seed: int = 0) -> None:
        """phases: the number of actions of each intersection."""
        self.intersections = tuple(ToyIntersection(f"toy_{n}", tuple(range(1, a + 1))) for n, a in enumerate(phases))
        self.n_actions = phases
        self.n_decisions = n_decisions
        self.seed = seed
        self.max_width = max(phases)
        self.feature_widths = np.array([[a, a, a, 1] for a in phases], dtype=np.int32)

    def reset(self, seed: int | None = None) -> np.ndarray:
        self._rng = np.random.default_rng(self.seed if seed is None else seed)
        self._queues = [self._rng.integers(0, 4, a) for a in self.n_actions]
        self.current_action = np.zeros(len(self.n_actions), dtype=np.int32)
        self.decision = 0
        self._waited = 0
        return self._observe()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        if self.decision >= self.n_decisions:
            raise RuntimeError("the episode is over")
        rewards = np.zeros(len(self.n_actions))
        for n, action in enumerate(actions):
            served = 6 if action == self.current_action[n] else 4
            self._queues[n] = self._queues[n] + self._rng.integers(0, 3, self.n_actions[n])
            self._queues[n][action] = max(0, self._queues[n][action] - served)
            rewards[n] = -float(self._queues[n].sum())
            self._waited += int(self._queues[n].sum())
        self.current_action = np.asarray(actions, dtype=np.int32).copy()
        self.decision += 1
        return self._observe(), rewards, self.decision == self.n_decisions

    def average_travel_time_s(self) -> float:
        return self._waited / self.n_decisions

    def _observe(self) -> np.ndarray:
        observation = np.zeros((len(self.n_actions), 4, self.max_width), dtype=np.int32)
        for n, a in enumerate(self.n_actions):
            observation[n, 0, :a] = self._queues[n]
            observation[n, 1, :a] = np.minimum(256, 40 * self._queues[n])
            observation[n, 2, self.current_action[n]] = 1
            observation[n, 3, 0] = self._rng.integers(-5, 5)
        return observation
