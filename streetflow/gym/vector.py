"""Many replicas of a network stepped in one call of one process, as a Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from streetflow.errors import FieldError, whole_number
from streetflow.gym.episodes import Episodes
from streetflow.gym.rewards import Reward
from streetflow.gym.single import FEATURES, observation_space
from streetflow.networks.catalogue import Network

Float32 = NDArray[np.float32]


class SignalVectorEnv(VectorEnv[Float32, NDArray[np.int64], NDArray[Any]]):
    """Each light of each replica is one environment of the batch: replica by replica, in it light by light.

    The lights must be alike (as many phases, features as wide). The replicas' engines share the network's tables; with several
    threads they are stepped side by side, as compiled code runs outside of Python's lock. A replica that has ended begins anew
    at the next step, whose actions and rewards don't count (Gymnasium's `NEXT_STEP`). Replica r is seeded with seed + r.

    Args:
        network: its name, or itself.
        num_envs: lights in all: replicas times the network's lights.
        threads: that step the replicas; worth it where a step of a replica takes some 100 µs.
        options: as for `SignalEnv`, and further arguments of `Environment`.

    Raises:
        InputError: an argument is wrong, the lights differ, or num_envs isn't a multiple of their number.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        network: str | Network = "crossing",
        num_envs: int = 1,
        *,
        features: str | Sequence[str] = FEATURES,
        flows: Sequence[int] = (0,),
        reward: Reward = "queue",
        threads: int = 1,
        **options: Any,
    ) -> None:
        first = Episodes(network, features, flows, reward, options)
        lights = len(first.lights)
        if whole_number(num_envs, "num_envs") < 1 or num_envs % lights:
            raise FieldError("num_envs", f"must be a multiple of the network's {lights} lights, is {num_envs}")
        if whole_number(threads, "threads") < 1:
            raise FieldError("threads", f"must be 1 or more, is {threads}")
        seen = observation_space(first.layouts[0])
        if any(observation_space(each) != seen for each in first.layouts) or len(set(first.action_counts)) > 1:
            raise FieldError(
                "network", "its lights differ in phases or lanes; take SignalParallelEnv", first.environment.network.name
            )
        rest = range(num_envs // lights - 1)
        self._replicas = [first, *(Episodes(network, features, flows, reward, options) for _ in rest)]
        self._lights = lights
        self._rngs = [seeding.np_random()[0] for _ in self._replicas]
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._parts = np.array_split(np.arange(len(self._replicas)), min(threads, len(self._replicas)))
        self._ended = np.ones(len(self._replicas), bool)
        self._seen = np.zeros((len(self._replicas), lights, *seen.shape), np.float32)
        self._rewards = np.zeros((len(self._replicas), lights))
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = seen, spaces.Discrete(first.action_counts[0])
        self.observation_space = batch_space(seen, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    @property
    def replicas(self) -> Sequence[Episodes]:
        """What runs underneath."""
        return self._replicas

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float32, dict[str, Any]]:
        """Begins all replicas anew; seed: of the first replica (the next ones have the next numbers), or one a replica."""
        count = len(self._replicas)
        seeds = [seed + r for r in range(count)] if isinstance(seed, int) else [None] * count if seed is None else list(seed)
        if len(seeds) != count:
            raise FieldError("seed", f"must be one number, or one for each of {count} replicas, is {seed}")
        self._rngs = [rng if each is None else seeding.np_random(each)[0] for rng, each in zip(self._rngs, seeds, strict=True)]
        self._ended[:] = True
        self._side_by_side(np.zeros((count, self._lights), np.int64))
        return self._batch(), {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Float32, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        self._side_by_side(np.asarray(actions).reshape(len(self._replicas), self._lights))
        truncated = np.repeat(self._ended, self._lights)
        return self._batch(), self._rewards.reshape(-1).copy(), np.zeros(self.num_envs, bool), truncated, self._infos()

    def close_extras(self, **_: Any) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def _side_by_side(self, actions: NDArray[np.int64]) -> None:
        """One step of every replica, into the arrays that they share."""

        def run(part: NDArray[np.int64]) -> None:
            for r in part:
                self._advance(r, actions[r])

        if self._pool is None:
            run(self._parts[0])
        else:
            list(self._pool.map(run, self._parts))

    def _advance(self, r: int, actions: NDArray[np.int64]) -> None:
        replica = self._replicas[r]
        if self._ended[r]:
            self._seen[r], self._rewards[r], self._ended[r] = replica.begin(self._rngs[r]), 0.0, False
        else:
            self._seen[r], self._rewards[r], self._ended[r] = replica.step(actions)

    def _batch(self) -> Float32:
        return self._seen.reshape(self.num_envs, -1).copy()

    def _infos(self) -> dict[str, Any]:
        """The figures of the episodes that have ended, each as an array over the batch, and which entries count."""
        infos: dict[str, Any] = {}
        for r in np.flatnonzero(self._ended):
            figures = self._replicas[r].figures()
            for number in range(r * self._lights, (r + 1) * self._lights):
                infos = self._add_info(infos, figures, number)
        return infos
