"""All lights of a network as a PettingZoo parallel environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray

from streetflow.gym.episodes import Episodes
from streetflow.gym.rewards import Reward
from streetflow.gym.single import FEATURES, observation_space
from streetflow.networks.catalogue import Network

try:
    from pettingzoo import ParallelEnv
except ImportError as fault:
    raise ImportError("SignalParallelEnv needs PettingZoo: pip install 'tinylight-hil[pettingzoo]'") from fault

Observations = dict[str, NDArray[np.float32]]


class SignalParallelEnv(ParallelEnv[str, NDArray[np.float32], int]):
    """Each light is an agent under its intersection's id, with its own observation, reward and phases. All decide at once.

    An episode ends for all lights at the horizon, as a truncation. Arguments as for `SignalEnv`.

    Raises:
        InputError: an argument is wrong.
    """

    metadata: dict[str, Any] = {"name": "streetflow_signals_v0", "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        network: str | Network = "arterial",
        *,
        features: str | Sequence[str] = FEATURES,
        flows: Sequence[int] = (0,),
        reward: Reward = "queue",
        **options: Any,
    ) -> None:
        self.render_mode = None
        self._episodes = Episodes(network, features, flows, reward, options)
        self.possible_agents = list(self._episodes.lights)
        self.agents: list[str] = []
        layouts = zip(self.possible_agents, self._episodes.layouts, strict=True)
        self.observation_spaces = {agent: observation_space(layout) for agent, layout in layouts}
        counts = zip(self.possible_agents, self._episodes.action_counts, strict=True)
        self.action_spaces = {agent: spaces.Discrete(count) for agent, count in counts}
        self._rng, _ = seeding.np_random()

    @property
    def episodes(self) -> Episodes:
        """What runs underneath; its `environment` has all else there is to know of the traffic."""
        return self._episodes

    def observation_space(self, agent: str) -> spaces.Box:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observations, dict[str, dict]]:
        if seed is not None:
            self._rng, _ = seeding.np_random(seed)
            for number, agent in enumerate(self.possible_agents):
                self.action_spaces[agent].seed(seed + number)
        seen = self._episodes.begin(self._rng)
        self.agents = list(self.possible_agents)
        return dict(zip(self.agents, seen, strict=True)), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict]]:
        agents = self.agents
        if not agents:
            raise RuntimeError("the run is over: call reset() before the next step()")
        seen, rewards, done = self._episodes.step(np.array([int(actions[agent]) for agent in agents]))
        figures = self._episodes.figures() if done else {}
        if done:
            self.agents = []
        return (
            dict(zip(agents, seen, strict=True)),
            dict(zip(agents, rewards.tolist(), strict=True)),
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, done),
            {agent: dict(figures) for agent in agents},
        )
