"""Training, top to bottom: search with the super-graph, extraction, refinement of the sub-graph (paper,
Algorithm 1).

Replicas (each its own environment and seed) and their intersections train side by side as one batched model:
group g is one intersection of one replica. A group neither sees nor disturbs another: own weights, own
minibatches, own random numbers.
"""

from __future__ import annotations

import dataclasses
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from model.dqn.episode import run_episode
from model.dqn.replay import refinement_learning_rate, search_epsilon
from model.policy.float_policy import GroupWeights
from model.search.budget import Budget
from model.search.config import TrainingConfig
from model.search.learner import Learner
from model.search.ranges import MOST
from model.search.subgraph import Choice, fitting_features, trimmed
from model.search.supergraph import GraphShape
from model.train.checkpoint import load_checkpoint, save_checkpoint
from model.train.flow_rotation import FlowRotation
from streetflow.errors import FieldError

__all__ = ["EpisodeRow", "Snapshot", "Trained", "TrainingConfig", "TrainingProgress", "train"]

CHECKPOINT_VERSION = 2
SHOWN_STATES = 1024  # from the refinement's second half, to show the integers what the policy meets
BLOCK_GROUPS = 12  # that are one batch: enough to share PyTorch's overhead, few enough for their weights to stay in the cache


class TrafficEnvironment(Protocol):
    """What training needs of `streetflow.control.environment.Environment`."""

    @property
    def intersections(self) -> Sequence[Any]: ...  # each with .phases
    @property
    def feature_widths(self) -> npt.NDArray[np.integer]: ...  # [N, F]
    @property
    def max_width(self) -> int: ...
    @property
    def n_decisions(self) -> int: ...
    def reset(self) -> npt.NDArray[np.integer]: ...  # [N, F, W]
    def step(self, actions: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.floating], bool]: ...
    def average_travel_time_s(self) -> float: ...


@dataclass(frozen=True)
class EpisodeRow:
    """One row of the training log: one replica in one episode. Means over its intersections and updates;
    entropies at the end."""

    replica: int
    train_seed: int
    stage: str  # "search" or "refine"
    episode: int  # within the stage
    epsilon: float
    learning_rate: float
    loss: float  # NaN while there are too few samples
    entropy_features: float  # NaN in refinement: no alphas left
    entropy_layer2: float
    entropy_layer3: float
    average_travel_time_s: float
    alphas: tuple[tuple[float, ...], ...]  # at the end, per layer, mean over the intersections; () in refinement


@dataclass(frozen=True)
class TrainingProgress:
    """Given to the progress callback after every episode, and once when a training is resumed."""

    done_episodes: int
    total_episodes: int
    elapsed_s: float  # in this process; a resumed run starts at 0
    expected_rest_s: float
    rows: list[EpisodeRow]  # since the last call: one per replica, or on resumption all earlier ones


@dataclass(frozen=True)
class Snapshot:
    """One replica's weights after an episode. episode: of the refinement; average_travel_time_s: of that episode; theta: per
    intersection the arrays of `SubGraph.theta`."""

    episode: int
    average_travel_time_s: float
    theta: list[list[npt.NDArray[np.float32]]]


@dataclass(frozen=True)
class Trained:
    """The outcome, group by group: all intersections of the first replica, then of the second, ... (one group a replica where
    they share)."""

    shape: GraphShape
    choice: Choice
    alphas: list[npt.NDArray[np.float32]]  # at the end of the search, per layer [G, components]
    snapshots: list[list[Snapshot]]  # per replica: the final one, then those of its best `kept_episodes` episodes
    rows: list[EpisodeRow]
    frames: list[npt.NDArray[np.int16]]  # per group [T, n_inputs]: the kept features of states of late episodes, in order
    share: bool  # a replica's intersections are one group

    def weights(self, group: int, theta: Sequence[npt.NDArray[np.float32]]) -> GroupWeights:
        """A snapshot's weights of one group, without padding."""
        return trimmed(theta, self.choice.hidden[group], self.kept_widths(group), int(self.shape.n_actions[group]))

    def kept_widths(self, group: int) -> list[int]:
        return [int(self.shape.feature_widths[group, feature]) for feature in self.choice.features[group]]


@dataclass(frozen=True)
class Execution:
    """How a training is carried out. None of it changes the result, except `device`, which may round sums differently."""

    checkpoint: Path | None = None  # a file, written every `checkpoint_every` episodes and at the end
    checkpoint_every: int = 16
    resume_from: Path | None = None  # such a file, to resume from
    stop_after: int | None = None  # stop after this many episodes in all, as a kill would, but with a checkpoint
    threads: int = 1
    device: str = "cpu"  # of PyTorch, for the networks


def train(
    environments: Sequence[TrafficEnvironment],
    train_seeds: Sequence[int],
    lsb_per_unit: Sequence[int],
    config: TrainingConfig | None = None,
    *,
    task: Mapping[str, Any] | None = None,
    execution: Execution | None = None,
    progress: Callable[[TrainingProgress], None] | None = None,
) -> Trained | None:
    """Trains one replica per environment. Same environments, seeds and config: the same result to the last bit, resumed or not,
    whatever the number of threads.

    Args:
        environments: one a replica; replicas that train together need equally many decisions an episode.
        train_seeds: one a replica.
        lsb_per_unit: [F], the features' integers per unit; the graph sees integer / lsb_per_unit.
        config: the paper's where none is given.
        task: what the environments run (network, flow, ...), JSON values; a checkpoint of another task is refused.
        execution: checkpoints, threads, device.
        progress: called after every episode, and once when a training is resumed.

    Returns:
        What was trained; None where `execution.stop_after` ended it.

    Raises:
        InputError: the config is impossible with these environments, or the checkpoint belongs to another run.
    """
    config, execution = config or TrainingConfig(), execution or Execution()
    torch.set_num_threads(1)  # the matrices are tiny: threads inside a product only wait for each other
    started_s = time.monotonic()
    replicas = _Replicas(environments, train_seeds, lsb_per_unit, config, execution.device)
    identity = replicas.identity() | dict(task or {})
    total = config.search_episodes + config.refine_episodes
    first = 0
    if execution.resume_from is not None:
        first = replicas.restore(load_checkpoint(execution.resume_from, identity))
        if progress is not None and replicas.rows:
            progress(TrainingProgress(first, total, 0.0, float("nan"), list(replicas.rows)))

    def save(episodes_done: int) -> None:
        if execution.checkpoint is not None:
            save_checkpoint(execution.checkpoint, {"identity": identity, "episode": episodes_done} | replicas.state())

    for environment in environments:
        if isinstance(environment, FlowRotation):
            environment.episode = first
    with ThreadPoolExecutor(execution.threads) as pool:
        each = map if execution.threads == 1 else pool.map
        for episode in range(first, total):
            if episode == execution.stop_after:
                save(episode)
                return None
            episode_rows = replicas.run_episode(episode, each)
            if (episode + 1) % execution.checkpoint_every == 0 or episode + 1 == total:
                save(episode + 1)
            if progress is not None:
                elapsed_s = time.monotonic() - started_s
                rest_s = elapsed_s / (episode + 1 - first) * (total - episode - 1)
                progress(TrainingProgress(episode + 1, total, elapsed_s, rest_s, episode_rows))
    return replicas.outcome()


class _Replicas:
    """The state of a training: replicas with their learners, the log's rows, and each replica's best snapshots so far."""

    def __init__(
        self,
        environments: Sequence[TrafficEnvironment],
        train_seeds: Sequence[int],
        lsb_per_unit: Sequence[int],
        config: TrainingConfig,
        device: str,
    ) -> None:
        self.environments, self.train_seeds, self.lsb_per_unit, self.config = environments, train_seeds, lsb_per_unit, config
        counts = [len(environment.intersections) for environment in environments]
        self.n_decisions = environments[0].n_decisions
        if any(environment.n_decisions != self.n_decisions for environment in environments):
            raise ValueError("replicas that train together need equally many decisions per episode")
        streams = shared_streams(environments) if config.share else 1
        widths = np.concatenate([environment.feature_widths for environment in environments])
        n_actions = [len(each.phases) for environment in environments for each in environment.intersections]
        self.shape = GraphShape(  # of the groups: of every intersection, or of one for all of a replica
            feature_widths=widths[::streams].astype(np.int64),
            n_actions=np.array(n_actions)[::streams],
            layer2_dims=config.layer2_dims,
            layer3_dims=config.layer3_dims,
        )
        _require_possible(self.shape, config, self.n_decisions)
        self.owner = np.repeat(np.arange(len(environments)), counts)[::streams]  # replica of each group
        numbers = [(seed, i) for seed, count in zip(train_seeds, counts, strict=True) for i in range(count)]
        scale = 1.0 / np.array(lsb_per_unit, dtype=np.float32)
        self.blocks = _blocks(self.shape.n_groups)
        self.parts = [slice(block.start * streams, block.stop * streams) for block in self.blocks]  # their intersections
        self.learners = [
            Learner(self.shape.groups(block), numbers[part], scale, self.n_decisions, config, device, streams)
            for block, part in zip(self.blocks, self.parts, strict=True)
        ]
        self.rows: list[EpisodeRow] = []
        self.best: list[list[Snapshot]] = [[] for _ in environments]

    def run_episode(self, episode: int, each: Callable[..., Iterable[Any]]) -> list[EpisodeRow]:
        """One episode of all replicas, `episode` counted through both stages; its rows, which are added to `rows`."""
        config = self.config
        searching = episode < config.search_episodes
        stage_episode = episode if searching else episode - config.search_episodes
        epsilon, learning_rate = 0.0, config.learning_rate
        if searching:
            epsilon = search_epsilon(episode, config.epsilon, config.epsilon_last_episode)
        else:
            learning_rate = refinement_learning_rate(stage_episode, config.learning_rate, config.halve_every)
            self._prepare_refinement(stage_episode)
        loss = run_episode(self.environments, self.learners, self.parts, self.n_decisions, epsilon, learning_rate, each)
        entropies = np.concatenate([learner.entropies() for learner in self.learners], axis=1)
        alphas = [np.concatenate(layer) for layer in zip(*(each.current_alphas() for each in self.learners), strict=True)]
        rows = []
        for replica, environment in enumerate(self.environments):
            mine = self.owner == replica
            mean_loss, *mean_entropies = (float(values[mine].mean()) for values in (loss, *entropies))
            row = EpisodeRow(
                replica=replica,
                train_seed=int(self.train_seeds[replica]),
                stage="search" if searching else "refine",
                episode=stage_episode,
                epsilon=epsilon,
                learning_rate=learning_rate,
                loss=mean_loss,
                entropy_features=mean_entropies[0],
                entropy_layer2=mean_entropies[1],
                entropy_layer3=mean_entropies[2],
                average_travel_time_s=environment.average_travel_time_s(),
                alphas=tuple(tuple(layer[mine].mean(axis=0).tolist()) for layer in alphas),
            )
            rows.append(row)
            if not searching and config.kept_episodes:
                snapshots = [*self.best[replica], self._snapshot(replica, stage_episode)]
                self.best[replica] = sorted(snapshots, key=lambda kept: kept.average_travel_time_s)[: config.kept_episodes]
        self.rows.extend(rows)
        return rows

    def _prepare_refinement(self, stage_episode: int) -> None:
        """Extracts the sub-graphs once the search is over; rounds as the chip does in the last episodes."""
        for learner in self.learners:
            if learner.choice is None:
                learner.extract()
            if learner.rounded is None and stage_episode >= self.config.refine_episodes - self.config.rounded_episodes:
                learner.round()

    def _snapshot(self, replica: int, episode: int) -> Snapshot:
        theta = [
            learner.theta(int(g) - block.start)
            for learner, block in zip(self.learners, self.blocks, strict=True)
            for g in np.flatnonzero(self.owner == replica)
            if block.start <= g < block.stop
        ]
        return Snapshot(episode, self.environments[replica].average_travel_time_s(), theta)

    def outcome(self) -> Trained:
        last, shown_episodes = self.config.refine_episodes - 1, (self.config.refine_episodes + 1) // 2
        return Trained(
            shape=self.shape,
            choice=Choice.joined([learner.choice for learner in self.learners if learner.choice is not None]),
            alphas=[np.concatenate(layer) for layer in zip(*(learner.alphas for learner in self.learners), strict=True)],
            snapshots=[[self._snapshot(r, last), *self.best[r]] for r in range(len(self.environments))],
            rows=self.rows,
            frames=[frame for learner in self.learners for frame in learner.visited_inputs(shown_episodes, SHOWN_STATES)],
            share=self.config.share,
        )

    def identity(self) -> dict[str, Any]:
        """The values that must be equal for a checkpoint to belong to a run."""
        return {
            "version": CHECKPOINT_VERSION,
            "block_groups": BLOCK_GROUPS,
            "config": dataclasses.asdict(self.config),
            "train_seeds": [int(seed) for seed in self.train_seeds],
            "feature_widths": self.shape.feature_widths.tolist(),
            "n_actions": self.shape.n_actions.tolist(),
            "n_decisions": self.n_decisions,
            "lsb_per_unit": list(self.lsb_per_unit),
        }

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            "rows": [dataclasses.asdict(row) for row in self.rows],
            "learners": [learner.state() for learner in self.learners],
            "best": [[_snapshot_state(each) for each in kept] for kept in self.best],
        }

    def restore(self, saved: Mapping[str, Any]) -> int:
        """Restores the state of a checkpoint; returns the number of finished episodes."""
        self.rows = [EpisodeRow(**row) for row in saved["rows"]]
        for learner, state in zip(self.learners, saved["learners"], strict=True):
            learner.restore(state)
        self.best = [[_snapshot_restored(each) for each in kept] for kept in saved["best"]]
        return int(saved["episode"])


def _blocks(n_groups: int) -> list[slice]:
    """Groups in blocks of about equal size, so that none is left alone: PyTorch sums a batch of one in another order."""
    edges = np.linspace(0, n_groups, -(-n_groups // BLOCK_GROUPS) + 1).astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


def shared_streams(environments: Sequence[TrafficEnvironment]) -> int:
    """How many intersections each replica has; FieldError unless all are alike."""
    widths = np.concatenate([environment.feature_widths for environment in environments])
    n_actions = {len(each.phases) for environment in environments for each in environment.intersections}
    counts = {len(environment.intersections) for environment in environments}
    if len(n_actions) > 1 or (widths != widths[0]).any() or len(counts) > 1:
        raise FieldError("share", "the intersections differ in phases or lanes, so they can't share one network")
    return counts.pop()


def _require_possible(shape: GraphShape, config: TrainingConfig, n_decisions: int) -> None:
    """FieldError unless there will be a minibatch to learn from, and some sub-graph of each intersection is within the budget:
    better reported now than after the search."""
    decisions = (config.search_episodes + config.refine_episodes) * n_decisions
    if config.batch > decisions:
        raise FieldError("batch", f"{config.batch}, but there are only {decisions} decisions to learn from")
    kept = config.kept_features
    if kept > shape.n_features:
        raise FieldError("kept_features", f"{kept}, but only {shape.n_features} are searched")

    def enough(budget: Budget) -> bool:
        return bool((fitting_features(shape, kept, budget).sum(axis=1) >= kept).all())

    if enough(config.budget):
        return
    limits = {name: limit for name, limit in vars(config.budget).items() if limit is not None}
    least = {name: 1 + bisect_left(range(1, MOST), True, key=lambda n: enough(Budget(**{name: n}))) for name in limits}
    faults = [
        (name, f"{limit} is too little for {kept} features at an intersection: at least {least[name]}")
        for name, limit in limits.items()
        if limit < least[name]
    ]
    if not faults:
        name, *others = limits
        both = " and ".join(f"{other} {limits[other]}" for other in others)
        faults = [(name, f"{limits[name]} is too little for {kept} features at an intersection within {both} as well")]
    (field, fault), *rest = faults
    raise FieldError(field, fault, others=tuple(rest))


def _snapshot_state(each: Snapshot) -> dict[str, Any]:
    theta = [[torch.from_numpy(array) for array in group] for group in each.theta]
    return {"episode": each.episode, "average_travel_time_s": each.average_travel_time_s, "theta": theta}


def _snapshot_restored(state: dict[str, Any]) -> Snapshot:
    theta = [[tensor.numpy() for tensor in group] for group in state["theta"]]
    return Snapshot(state["episode"], state["average_travel_time_s"], theta)
