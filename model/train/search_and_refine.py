"""Training, top to bottom: search with the super-graph, extraction, refinement of the sub-graph (paper,
Algorithm 1).

Replicas (each its own environment and seed) and their intersections train side by side as one batched model:
group g is one intersection of one replica. A group neither sees nor disturbs another: own weights, own
minibatches, own random numbers.
"""

from __future__ import annotations

import dataclasses
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
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
from model.search.config import MOST, TRAINING, TrainingConfig
from model.search.learner import Learner
from model.search.subgraph import Choice, fitting_features, trimmed
from model.search.supergraph import GraphShape
from model.train.flow_rotation import FlowRotation
from streetflow.errors import InputError

__all__ = ["EpisodeRow", "Snapshot", "Trained", "TrainingConfig", "TrainingProgress", "train"]

CHECKPOINT_VERSION = 2
CHECKPOINT_KEYS = {"identity", "episode", "rows", "learners", "best"}
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


def train(
    environments: Sequence[TrafficEnvironment],
    train_seeds: Sequence[int],
    lsb_per_unit: Sequence[int],
    config: TrainingConfig | None = None,
    *,
    task: Mapping[str, Any] | None = None,
    progress: Callable[[TrainingProgress], None] | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: int = 16,
    resume_from: Path | None = None,
    stop_after: int | None = None,
    threads: int = 1,
    device: str = "cpu",
) -> Trained | None:
    """Trains one replica per environment. Same environments, seeds and config: the same result to the last bit, resumed or not,
    whatever the number of threads.

    lsb_per_unit [F]: the features' integers per unit; the graph sees integer / lsb_per_unit. checkpoint: a file, written every
    `checkpoint_every` episodes and at the end. resume_from: such a file; InputError if it belongs to another run. task: what
    the environments run (network, flow, ...), JSON values; a checkpoint of another task is refused. stop_after: give up after
    so many episodes in all (as a kill would, but with a checkpoint) and return None. device: of PyTorch, for the networks.
    """
    config = config or TrainingConfig()
    torch.set_num_threads(1)  # the matrices are tiny: threads inside a product only wait for each other
    started_s = time.monotonic()
    counts = [len(environment.intersections) for environment in environments]
    owner = np.repeat(np.arange(len(environments)), counts)  # replica of each group
    edges = np.concatenate([[0], np.cumsum(counts)])
    n_decisions = environments[0].n_decisions
    if any(environment.n_decisions != n_decisions for environment in environments):
        raise ValueError("replicas that train together need equally many decisions per episode")

    streams = _streams(environments) if config.share else 1
    shape = GraphShape(  # of the groups: of every intersection, or of one for all of a replica
        feature_widths=np.concatenate([environment.feature_widths for environment in environments])[::streams].astype(np.int64),
        n_actions=np.array([len(each.phases) for environment in environments for each in environment.intersections])[::streams],
        layer2_dims=config.layer2_dims,
        layer3_dims=config.layer3_dims,
    )
    _require_possible(shape, config, n_decisions)
    numbers = [(seed, i) for seed, count in zip(train_seeds, counts, strict=True) for i in range(count)]
    scale = 1.0 / np.array(lsb_per_unit, dtype=np.float32)
    blocks = _blocks(shape.n_groups)
    parts = [slice(block.start * streams, block.stop * streams) for block in blocks]  # the blocks' intersections
    learners = [
        Learner(shape.groups(block), numbers[part], scale, n_decisions, config, device, streams)
        for block, part in zip(blocks, parts, strict=True)
    ]
    rows: list[EpisodeRow] = []
    best: list[list[Snapshot]] = [[] for _ in environments]
    total = config.search_episodes + config.refine_episodes
    identity = _identity(config, shape, train_seeds, n_decisions) | {"lsb_per_unit": list(lsb_per_unit)} | dict(task or {})
    first = 0
    if resume_from is not None:
        saved = _load_checkpoint(resume_from, identity)
        first, rows = saved["episode"], [EpisodeRow(**row) for row in saved["rows"]]
        for learner, state in zip(learners, saved["learners"], strict=True):
            learner.restore(state)
        best = [[_snapshot_restored(each) for each in kept] for kept in saved["best"]]
        if progress is not None and rows:
            progress(TrainingProgress(first, total, 0.0, float("nan"), list(rows)))

    def snapshot(replica: int, episode: int) -> Snapshot:
        groups = range(edges[replica] // streams, edges[replica + 1] // streams)
        held_by = [
            (learner, g - block.start)
            for learner, block in zip(learners, blocks, strict=True)
            for g in groups
            if block.start <= g < block.stop
        ]
        theta = [learner.theta(g) for learner, g in held_by]
        return Snapshot(episode, environments[replica].average_travel_time_s(), theta)

    def save(episodes_done: int) -> None:
        if checkpoint is None:
            return
        state = {
            "identity": identity,
            "episode": episodes_done,
            "rows": [dataclasses.asdict(row) for row in rows],
            "learners": [learner.state() for learner in learners],
            "best": [[_snapshot_state(each) for each in kept] for kept in best],
        }
        temporary = checkpoint.with_name(f".{checkpoint.name}.{os.getpid()}.tmp")
        try:
            torch.save(state, temporary)
            temporary.replace(checkpoint)
        finally:
            temporary.unlink(missing_ok=True)  # stopped while it was written

    for environment in environments:
        if isinstance(environment, FlowRotation):
            environment.episode = first
    with ThreadPoolExecutor(threads) as pool:
        each = map if threads == 1 else pool.map
        for episode in range(first, total):
            if episode == stop_after:
                save(episode)
                return None
            stage_episode, epsilon, learning_rate = episode, 0.0, config.learning_rate
            if episode < config.search_episodes:
                epsilon = search_epsilon(episode, config.epsilon, config.epsilon_last_episode)
            else:
                stage_episode = episode - config.search_episodes
                learning_rate = refinement_learning_rate(stage_episode, config.learning_rate, config.halve_every)
                for learner in learners:
                    if learner.choice is None:  # the search is over
                        learner.extract()
                    if learner.rounded is None and stage_episode >= config.refine_episodes - config.rounded_episodes:
                        learner.round()
            mean_loss = run_episode(environments, learners, parts, n_decisions, epsilon, learning_rate, each)
            entropy = np.concatenate([learner.entropies() for learner in learners], axis=1)
            alphas = [np.concatenate(layer) for layer in zip(*(learner.current_alphas() for learner in learners), strict=True)]
            episode_rows = []
            for replica, environment in enumerate(environments):
                mine = owner[::streams] == replica
                mean_alphas = tuple(tuple(layer[mine].mean(axis=0).tolist()) for layer in alphas)
                loss, *layers = (float(values[mine].mean()) for values in (mean_loss, *entropy))
                episode_rows.append(
                    EpisodeRow(
                        replica=replica,
                        train_seed=int(train_seeds[replica]),
                        stage="search" if episode < config.search_episodes else "refine",
                        episode=stage_episode,
                        epsilon=epsilon,
                        learning_rate=learning_rate,
                        loss=loss,
                        entropy_features=layers[0],
                        entropy_layer2=layers[1],
                        entropy_layer3=layers[2],
                        average_travel_time_s=environment.average_travel_time_s(),
                        alphas=mean_alphas,
                    )
                )
                if episode >= config.search_episodes and config.kept_episodes:
                    kept = sorted(
                        [*best[replica], snapshot(replica, stage_episode)], key=lambda each: each.average_travel_time_s
                    )
                    best[replica] = kept[: config.kept_episodes]
            rows.extend(episode_rows)
            if (episode + 1) % checkpoint_every == 0 or episode + 1 == total:
                save(episode + 1)
            if progress is not None:
                elapsed_s = time.monotonic() - started_s
                rest_s = elapsed_s / (episode + 1 - first) * (total - episode - 1)
                progress(TrainingProgress(episode + 1, total, elapsed_s, rest_s, episode_rows))

    return Trained(
        shape=shape,
        choice=Choice.joined([learner.choice for learner in learners if learner.choice is not None]),
        alphas=[np.concatenate(layer) for layer in zip(*(learner.alphas for learner in learners), strict=True)],
        snapshots=[[snapshot(r, config.refine_episodes - 1), *best[r]] for r in range(len(environments))],
        rows=rows,
        frames=[
            frame for learner in learners for frame in learner.visited_inputs((config.refine_episodes + 1) // 2, SHOWN_STATES)
        ],
        share=config.share,
    )


def _blocks(n_groups: int) -> list[slice]:
    """Groups in blocks of about equal size, so that none is left alone: PyTorch sums a batch of one in another order."""
    edges = np.linspace(0, n_groups, -(-n_groups // BLOCK_GROUPS) + 1).astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


def _streams(environments: Sequence[TrafficEnvironment]) -> int:
    """How many intersections each replica has; InputError unless all are alike."""
    widths = np.concatenate([environment.feature_widths for environment in environments])
    n_actions = {len(each.phases) for environment in environments for each in environment.intersections}
    counts = {len(environment.intersections) for environment in environments}
    if len(n_actions) > 1 or (widths != widths[0]).any() or len(counts) > 1:
        raise InputError(TRAINING, "share", "the intersections differ in phases or lanes, so they can't share one network")
    return counts.pop()


def _require_possible(shape: GraphShape, config: TrainingConfig, n_decisions: int) -> None:
    """InputError unless there will be a minibatch to learn from, and some sub-graph of each intersection is within the budget:
    better said now than after the search."""
    decisions = (config.search_episodes + config.refine_episodes) * n_decisions
    if config.batch > decisions:
        raise InputError(TRAINING, "batch", f"{config.batch}, but there are only {decisions} decisions to learn from")
    kept = config.kept_features
    if kept > shape.n_features:
        raise InputError(TRAINING, "kept_features", f"{kept}, but only {shape.n_features} are searched")

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
    (place, fault), *rest = faults
    raise InputError(TRAINING, place, fault, tuple(rest))


def _identity(config: TrainingConfig, shape: GraphShape, train_seeds: Sequence[int], n_decisions: int) -> dict[str, Any]:
    """What must be equal for a checkpoint to belong to a run."""
    return {
        "version": CHECKPOINT_VERSION,
        "block_groups": BLOCK_GROUPS,
        "config": dataclasses.asdict(config),
        "train_seeds": [int(seed) for seed in train_seeds],
        "feature_widths": shape.feature_widths.tolist(),
        "n_actions": shape.n_actions.tolist(),
        "n_decisions": n_decisions,
    }


def _snapshot_state(each: Snapshot) -> dict[str, Any]:
    theta = [[torch.from_numpy(array) for array in group] for group in each.theta]
    return {"episode": each.episode, "average_travel_time_s": each.average_travel_time_s, "theta": theta}


def _snapshot_restored(state: dict[str, Any]) -> Snapshot:
    theta = [[tensor.numpy() for tensor in group] for group in state["theta"]]
    return Snapshot(state["episode"], state["average_travel_time_s"], theta)


def _load_checkpoint(path: Path, identity: dict[str, Any]) -> dict[str, Any]:
    try:
        saved = torch.load(path, weights_only=True)
    except OSError as error:
        raise InputError(path, "", f"can't be read: {error.strerror or error}") from None
    except Exception as error:  # torch raises what unpickling happens to raise
        raise InputError(path, "", f"not a training checkpoint: {type(error).__name__}") from None
    if not isinstance(saved, dict) or not saved.keys() >= CHECKPOINT_KEYS or not isinstance(saved["identity"], dict):
        raise InputError(path, "", "not a training checkpoint")
    for name, value in identity.items():
        if saved["identity"].get(name) != value:
            difference = f"the checkpoint has {saved['identity'].get(name)}, this run {value}"
            raise InputError(path, name, f"{difference}: delete it to start afresh, or repeat the command that left it")
    return saved
