"""Training of a baseline: deep Q-learning of one network per intersection, or one per replica, all side by side.

Replay, exploration, optimiser and the loop are TinyLight's; networks and settings are the baseline's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from model.baselines.registry import Baseline, build_graph
from model.dqn.episode import run_episode
from model.dqn.learner import BaselineConfig, ValueLearner
from model.dqn.replay import group_seed, search_epsilon
from model.dqn.value_graph import ValueGraph
from streetflow.control.environment import Environment
from streetflow.errors import InputError


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
        """The environment must have been made with the baseline's features. InputError for a network that it can't control."""
        baseline.require(environment.intersections, environment.network.name)
        self.baseline, self.environment = baseline, environment
        self._weights = waiting_weights(environment) if baseline.reward == "waiting" else None

    def reset(self) -> npt.NDArray[np.int32]:
        return self.environment.reset()

    def step(self, actions: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64], bool]:
        """(observation int32[N, F, W], reward float64[N], done) after the decision actions[N]."""
        observation, pressure_reward, done = self.environment.step(self.baseline.phases(actions, self.environment))
        if self._weights is None:
            return observation, pressure_reward, done
        return observation, -(self._weights @ self.environment.engine.lane_waiting_counts()), done


def waiting_weights(environment: Environment) -> npt.NDArray[np.float64]:
    """float64[N, lanes of the engine]: weight of each lane's waiting vehicles: 1 / lanes of its in-road / in-roads."""
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
    first = environments[0]
    count, groups = len(first.intersections), len(first.intersections) * len(environments)
    seeds = np.array([group_seed(seed, n) for seed in train_seeds for n in range(count)], np.uint64)
    learner = ValueLearner(
        build_graph(baseline, first.intersections, first.feature_widths, first.max_width, train_seeds),
        explore_seeds=seeds,
        # shared weights learn from whole states of the network: all its intersections draw the same moments
        replay_seeds=np.repeat(seeds[::count], count) if baseline.shared else seeds,
        n_actions=np.tile(baseline.n_actions(first.intersections), len(environments)),
        scale=feature_scale(first.lsb_per_unit, first.max_width),
        n_decisions=first.n_decisions,
        config=config,
    )
    for episode in range(config.episodes):
        epsilon = search_epsilon(episode, config.epsilon, config.epsilon_last_episode)
        losses = run_episode(views, [learner], [slice(0, groups)], first.n_decisions, epsilon, config.learning_rate)
        if progress is not None:
            progress(
                BaselineProgress(
                    done_episodes=episode + 1,
                    total_episodes=config.episodes,
                    losses=tuple(losses.reshape(len(views), count).mean(axis=1).tolist()),
                    average_travel_times_s=tuple(environment.average_travel_time_s() for environment in environments),
                )
            )
    return learner.graph


def feature_scale(lsb_per_unit: Sequence[int], width: int) -> npt.NDArray[np.float32]:
    """float32[F * W]: feature value per unit of the observation's integers."""
    return np.repeat(1.0 / np.array(lsb_per_unit, np.float32), width)


def replica_arrays(graph: ValueGraph, replica: int, replicas: int) -> dict[str, npt.NDArray[np.generic]]:
    """The parameters and kept choices of one replica, by name: the content of a weights file."""
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
