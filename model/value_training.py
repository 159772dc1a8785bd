"""Training of a baseline: deep Q-learning of one network per intersection, or one per replica, all side by side.

The pieces are TinyLight's (`model/learning.py`), so baselines and TinyLight differ in their networks and settings only.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from model.baselines import Baseline, build_graph
from model.learning import Minibatch, Replay, explore, group_seed, search_epsilon, theta_step, update_target
from model.supergraph import ValueGraph
from streetflow.environment import Environment
from streetflow.errors import InputError


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


@dataclass(frozen=True)
class BaselineProgress:
    """Given to the progress callback after every episode. Losses and travel times by replica."""

    done_episodes: int
    total_episodes: int
    losses: tuple[float, ...]  # mean over updates and intersections; NaN while there are too few samples
    average_travel_times_s: tuple[float, ...]


class BaselineEnvironment:
    """An environment as a baseline sees it: its features, its reward, its actions."""

    def __init__(self, baseline: Baseline, environment: Environment) -> None:
        """The environment must have been made with the baseline's features. InputError for a network that it can't do."""
        baseline.require(environment.intersections, environment.network.name)
        self.baseline, self.environment = baseline, environment
        self._weights = waiting_weights(environment) if baseline.reward == "waiting" else None

    def reset(self) -> npt.NDArray[np.int32]:
        return self.environment.reset()

    def step(self, actions: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """(observation int32[N, F, W], reward float64[N]) after the decision actions[N]."""
        observation, pressure_reward, _ = self.environment.step(self.baseline.phases(actions, self.environment))
        if self._weights is None:
            return observation, pressure_reward
        return observation, -(self._weights @ self.environment.engine.lane_waiting_counts())

    def average_travel_time_s(self) -> float:
        return self.environment.average_travel_time_s()


def waiting_weights(environment: Environment) -> npt.NDArray[np.float64]:
    """float64[N, lanes of the engine]: what each lane's waiting vehicles count: 1 / lanes of its in-road / in-roads."""
    weights = np.zeros((len(environment.intersections), len(environment.engine.lane_ids)))
    for n, each in enumerate(environment.intersections):
        for lanes in each.in_road_lanes:
            weights[n, list(lanes)] = 1.0 / len(lanes) / len(each.in_road_lanes)
    return weights


def train_baseline(
    baseline: Baseline,
    environments: Sequence[Environment],
    train_seeds: Sequence[int],
    config: BaselineConfig | None = None,
    progress: Callable[[BaselineProgress], None] | None = None,
) -> ValueGraph:
    """Trains one replica per environment, which must be of one network. Group r * N + n of the result is intersection n of
    replica r; weights that are shared have one set a replica. Same environments, seeds and config: the same result."""
    config = config or BaselineConfig()
    torch.set_num_threads(1)  # the matrices are small: cores are better used by processes
    views = [BaselineEnvironment(baseline, environment) for environment in environments]
    count, n_decisions = len(environments[0].intersections), environments[0].n_decisions
    first = environments[0]
    graph = build_graph(baseline, first.intersections, first.feature_widths, first.lsb_per_unit, train_seeds)
    target = copy.deepcopy(graph)
    parameters = list(graph.parameters())
    optimizer = torch.optim.RMSprop(parameters, lr=config.learning_rate)
    seeds = np.array([group_seed(seed, n) for seed in train_seeds for n in range(count)], np.uint64)
    # shared weights learn from whole states of the network: the same moments for all its intersections
    replay_seeds = np.repeat(seeds[::count], count) if baseline.shared else seeds
    n_actions = np.tile(baseline.n_actions(first.intersections), len(environments))
    frame = np.concatenate([view.reset() for view in views])
    capacity = min(config.replay_capacity, config.episodes * n_decisions)
    replay = Replay(capacity, n_decisions, (frame.shape[0], frame.shape[1], frame.shape[2]))

    for episode in range(config.episodes):
        epsilon = search_epsilon(episode, config.epsilon, config.epsilon_last_episode)
        frame = np.concatenate([view.reset() for view in views])
        replay.start_episode(frame)
        losses: list[Tensor] = []
        for _ in range(n_decisions):
            actions = explore(best_actions(graph, frame), n_actions, epsilon, seeds, replay.count)
            outcomes = [view.step(actions[r * count : (r + 1) * count]) for r, view in enumerate(views)]
            frame = np.concatenate([observation for observation, _ in outcomes])
            replay.add(actions, np.concatenate([reward for _, reward in outcomes]), frame)
            if replay.size < config.batch:
                continue
            states, taken, rewards, next_states = replay.gather(replay.draw(replay_seeds, replay.count, config.batch))
            minibatch = Minibatch(
                torch.from_numpy(states).float(),
                torch.from_numpy(taken),
                torch.from_numpy(rewards),
                torch.from_numpy(next_states).float(),
                target,
                config.gamma,
            )
            losses.append(theta_step(graph, parameters, minibatch, optimizer))
            update_target(target.parameters(), parameters, config.tau)
        if progress is not None:
            mean = torch.stack(losses).mean(dim=0) if losses else torch.full((len(seeds),), float("nan"))
            progress(
                BaselineProgress(
                    done_episodes=episode + 1,
                    total_episodes=config.episodes,
                    losses=tuple(mean.view(len(views), count).mean(dim=1).tolist()),
                    average_travel_times_s=tuple(view.average_travel_time_s() for view in views),
                )
            )
    return graph


@torch.no_grad()
def best_actions(graph: ValueGraph, frame: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """int64[G]: each group's best action for frame int[G, F, W]."""
    return graph.best_actions(torch.from_numpy(frame.astype(np.float32))[:, :, None, :])[:, 0].numpy()


def replica_arrays(graph: ValueGraph, replica: int, replicas: int) -> dict[str, npt.NDArray[np.generic]]:
    """The parameters and kept choices of one replica, by name: what a weights file holds."""
    arrays = {}
    for name, tensor in graph.state_dict().items():
        if name.split(".")[-1] == "missing_action":
            continue
        share = len(tensor) // replicas
        arrays[name] = tensor[replica * share : (replica + 1) * share].cpu().numpy().copy()
    return arrays


def load_arrays(graph: ValueGraph, arrays: dict[str, npt.NDArray[np.generic]], source: str) -> None:
    """Puts a weights file's arrays into a graph of one replica; InputError if they aren't this graph's."""
    own = {name: tensor for name, tensor in graph.state_dict().items() if name.split(".")[-1] != "missing_action"}
    for name in sorted(own.keys() ^ arrays.keys()):
        raise InputError(source, name, "missing" if name in own else "not an array of this model")
    for name, tensor in own.items():
        array = arrays[name]
        if array.shape != tuple(tensor.shape) or array.dtype != tensor.numpy().dtype:
            raise InputError(source, name, f"{array.dtype}{list(array.shape)}, not {tensor.dtype}{list(tensor.shape)}")
        tensor.copy_(torch.from_numpy(array))
