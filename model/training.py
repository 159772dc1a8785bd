"""Training, top to bottom: search with the super-graph, extraction, refinement of the sub-graph (paper,
Algorithm 1).

Replicas (each its own environment and seed) and their intersections train side by side as one batched model:
group g is one intersection of one replica. A group neither sees nor disturbs another: own weights, own
minibatches, own random numbers.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from model.learning import (
    Minibatch,
    Replay,
    alpha_step,
    explore,
    group_seed,
    refinement_learning_rate,
    search_epsilon,
    theta_step,
    update_target,
)
from model.subgraph import KEPT_FEATURES, Choice, SubGraph, parameter_counts, strongest
from model.supergraph import LAYER_DIMS, GraphShape, SuperGraph, ValueGraph, entropies
from streetflow.errors import InputError

CHECKPOINT_VERSION = 1


@dataclass(frozen=True)
class TrainingConfig:
    """The release's settings (shared design page "How the paper's numbers are made"; paper, Appendix B)."""

    search_episodes: int = 64
    refine_episodes: int = 128
    epsilon: float = 0.1  # of the first search episode; falls linearly, 0 in refinement
    epsilon_last_episode: int = 59
    learning_rate: float = 1e-3  # RMSprop, both for the weights and for the alphas
    halve_every: int = 10  # refinement episodes
    gamma: float = 0.9
    tau: float = 0.1
    batch: int = 32
    replay_capacity: int = 100_000
    beta: float = 16.0  # weight of the entropies
    kept_features: int = KEPT_FEATURES
    max_parameters: int | None = None  # of an intersection's sub-graph; None: the strongest components whatever their size
    layer2_dims: tuple[int, ...] = LAYER_DIMS
    layer3_dims: tuple[int, ...] = LAYER_DIMS


class TrafficEnvironment(Protocol):
    """What training needs of `streetflow.environment.Environment`."""

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


@dataclass(frozen=True)
class Progress:
    """Given to the progress callback after every episode, and once when a training is resumed."""

    done_episodes: int
    total_episodes: int
    elapsed_s: float  # in this process; a resumed run starts at 0
    expected_rest_s: float
    rows: list[EpisodeRow]  # since the last call: one per replica, or on resumption all earlier ones


@dataclass(frozen=True)
class Trained:
    graph: SubGraph
    choice: Choice
    alphas: list[npt.NDArray[np.float32]]  # at the end of the search, per layer [G, components]
    rows: list[EpisodeRow]


def train(
    environments: Sequence[TrafficEnvironment],
    train_seeds: Sequence[int],
    lsb_per_unit: Sequence[int],
    config: TrainingConfig | None = None,
    *,
    task: Mapping[str, Any] | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: int = 16,
    resume_from: Path | None = None,
    stop_after: int | None = None,
) -> Trained | None:
    """Trains one replica per environment. Same environments, seeds and config: the same result to the last bit, resumed or not.

    lsb_per_unit [F]: the features' integers per unit; the graph sees integer / lsb_per_unit. checkpoint: a file, written every
    `checkpoint_every` episodes and at the end. resume_from: such a file; InputError if it belongs to another run. task: what
    the environments run (network, flow, ...), JSON values; a checkpoint of another task is refused. stop_after: give up after
    so many episodes in all (as a kill would, but with a checkpoint) and return None.
    """
    config = config or TrainingConfig()
    torch.set_num_threads(1)  # the matrices are tiny: threads only wait for each other, and cores are better used by processes
    started_s = time.monotonic()
    counts = [len(environment.intersections) for environment in environments]
    owner = np.repeat(np.arange(len(environments)), counts)  # replica of each group
    edges = np.concatenate([[0], np.cumsum(counts)])
    n_decisions = environments[0].n_decisions
    if any(environment.n_decisions != n_decisions for environment in environments):
        raise ValueError("replicas that train together need equally many decisions per episode")

    shape = GraphShape(
        feature_widths=np.concatenate([environment.feature_widths for environment in environments]).astype(np.int64),
        n_actions=np.array([len(each.phases) for environment in environments for each in environment.intersections]),
        layer2_dims=config.layer2_dims,
        layer3_dims=config.layer3_dims,
    )
    _require_budget(shape, config)
    numbers = [(seed, i) for seed, count in zip(train_seeds, counts, strict=True) for i in range(count)]
    seeds = np.array([group_seed(seed, i) for seed, i in numbers], dtype=np.uint64)
    scale = torch.from_numpy(1.0 / np.array(lsb_per_unit, dtype=np.float32))  # [F]

    graph: Any = SuperGraph(shape, numbers)
    target: Any = copy.deepcopy(graph)
    theta_optimizer = torch.optim.RMSprop(graph.theta(), lr=config.learning_rate)
    alpha_optimizer = torch.optim.RMSprop(graph.alpha_logits(), lr=config.learning_rate)
    choice: Choice | None = None
    alphas: list[npt.NDArray[np.float32]] = []
    rows: list[EpisodeRow] = []
    total = config.search_episodes + config.refine_episodes
    replay = Replay(
        min(config.replay_capacity, total * n_decisions),
        n_decisions,
        (shape.n_groups, shape.n_features, shape.max_width),
    )
    identity = _identity(config, shape, train_seeds, n_decisions) | dict(task or {})
    first = 0
    if resume_from is not None:
        saved = _load_checkpoint(resume_from, identity)
        first, rows = saved["episode"], [EpisodeRow(**row) for row in saved["rows"]]
        replay.restore(saved["replay"])
        alphas = [alpha.numpy() for alpha in saved["alphas"]]
        if saved["choice"] is not None:
            choice = Choice(**{name: kept.numpy() for name, kept in saved["choice"].items()})
            graph, target = SubGraph(graph, choice), SubGraph(target, choice)
            theta_optimizer = torch.optim.RMSprop(graph.theta(), lr=config.learning_rate)
        graph.load_state_dict(saved["graph"])
        target.load_state_dict(saved["target"])
        theta_optimizer.load_state_dict(saved["theta_optimizer"])
        alpha_optimizer.load_state_dict(saved["alpha_optimizer"])

        if progress is not None and rows:
            progress(Progress(first, total, 0.0, float("nan"), list(rows)))

    def save(episodes_done: int) -> None:
        if checkpoint is None:
            return
        state = {
            "identity": identity,
            "episode": episodes_done,
            "rows": [dataclasses.asdict(row) for row in rows],
            "replay": replay.state(),
            "alphas": [torch.from_numpy(alpha) for alpha in alphas],
            "choice": None if choice is None else _tensors(choice),
            "graph": graph.state_dict(),
            "target": target.state_dict(),
            "theta_optimizer": theta_optimizer.state_dict(),
            "alpha_optimizer": alpha_optimizer.state_dict(),
        }
        temporary = checkpoint.with_name(f".{checkpoint.name}.{os.getpid()}.tmp")
        torch.save(state, temporary)
        temporary.replace(checkpoint)

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
            if choice is None:  # the search is over: extract
                alphas = [alpha.detach().numpy().copy() for alpha in graph.alphas()]
                choice = strongest(graph, config.kept_features, config.max_parameters)
                graph, target = SubGraph(graph, choice), SubGraph(target, choice)
                theta_optimizer = torch.optim.RMSprop(graph.theta(), lr=learning_rate)
            theta_optimizer.param_groups[0]["lr"] = learning_rate
        kept = None if choice is None else choice.features
        kept_scale = scale[None, :, None, None] if kept is None else scale[torch.from_numpy(kept)][:, :, None, None]
        losses: list[Tensor] = []

        frame = np.concatenate([environment.reset() for environment in environments])
        replay.start_episode(frame)
        for _ in range(n_decisions):
            greedy = greedy_actions(graph, frame, kept, kept_scale)
            actions = explore(greedy, shape.n_actions, epsilon, seeds, replay.count)
            outcomes = [environment.step(actions[edges[r] : edges[r + 1]]) for r, environment in enumerate(environments)]
            frame = np.concatenate([observation for observation, _, _ in outcomes])
            replay.add(actions, np.concatenate([reward for _, reward, _ in outcomes]), frame)
            if replay.size < config.batch:
                continue
            drawn = replay.draw(seeds, replay.count, config.batch)
            states, taken, rewards, next_states = replay.gather(drawn, kept)
            minibatch = Minibatch(
                torch.from_numpy(states) * kept_scale,
                torch.from_numpy(taken),
                torch.from_numpy(rewards),
                torch.from_numpy(next_states) * kept_scale,
                target,
                config.gamma,
            )
            if choice is None:
                alpha_step(graph, minibatch, alpha_optimizer, config.beta)
            losses.append(theta_step(graph, graph.theta(), minibatch, theta_optimizer))
            update_target(target.parameters(), graph.parameters(), config.tau)

        nan = np.full(shape.n_groups, np.nan)
        mean_loss = torch.stack(losses).mean(dim=0).numpy() if losses else nan
        entropy = entropies(graph.alpha_logits()).detach().numpy() if choice is None else np.stack([nan] * 3)
        episode_rows = []
        for replica, environment in enumerate(environments):
            loss, *layers = (float(values[owner == replica].mean()) for values in (mean_loss, *entropy))
            episode_rows.append(
                EpisodeRow(
                    replica=replica,
                    train_seed=int(train_seeds[replica]),
                    stage="search" if choice is None else "refine",
                    episode=stage_episode,
                    epsilon=epsilon,
                    learning_rate=learning_rate,
                    loss=loss,
                    entropy_features=layers[0],
                    entropy_layer2=layers[1],
                    entropy_layer3=layers[2],
                    average_travel_time_s=environment.average_travel_time_s(),
                )
            )
        rows.extend(episode_rows)
        if (episode + 1) % checkpoint_every == 0 or episode + 1 == total:
            save(episode + 1)
        if progress is not None:
            elapsed_s = time.monotonic() - started_s
            rest_s = elapsed_s / (episode + 1 - first) * (total - episode - 1)
            progress(Progress(episode + 1, total, elapsed_s, rest_s, episode_rows))

    if choice is None:
        raise ValueError("no refinement episodes: there is no sub-graph")
    return Trained(graph, choice, alphas, rows)


@torch.no_grad()
def greedy_actions(
    graph: ValueGraph,
    frame: npt.NDArray[np.integer],
    kept: npt.NDArray[np.int64] | None,
    scale: Tensor,
) -> npt.NDArray[np.int64]:
    """int64[G]: each group's best action for frame int[G, F, W]; kept [G, K] limits the graph's input to
    those features."""
    seen = frame if kept is None else frame[np.arange(len(frame))[:, None], kept]
    x = torch.from_numpy(seen.astype(np.float32))[:, :, None, :] * scale
    return graph.best_actions(x)[:, 0].numpy()


def _require_budget(shape: GraphShape, config: TrainingConfig) -> None:
    """InputError unless the smallest components fit the budget with any features: better now than after the search."""
    if config.max_parameters is None:
        return
    widest = np.sort(shape.feature_widths, axis=1)[:, -config.kept_features :]
    least = parameter_counts(widest, shape.n_actions, [min(config.layer2_dims)], [min(config.layer3_dims)]).max()
    if least > config.max_parameters:
        raise InputError(
            "training", "max_parameters", f"{config.max_parameters} is too few: the smallest components may need {least}"
        )


def _identity(config: TrainingConfig, shape: GraphShape, train_seeds: Sequence[int], n_decisions: int) -> dict[str, Any]:
    """What must be equal for a checkpoint to belong to a run."""
    return {
        "version": CHECKPOINT_VERSION,
        "config": dataclasses.asdict(config),
        "train_seeds": [int(seed) for seed in train_seeds],
        "feature_widths": shape.feature_widths.tolist(),
        "n_actions": shape.n_actions.tolist(),
        "n_decisions": n_decisions,
    }


def _tensors(choice: Choice) -> dict[str, Tensor]:
    return {name: torch.from_numpy(kept) for name, kept in dataclasses.asdict(choice).items()}


def _load_checkpoint(path: Path, identity: dict[str, Any]) -> dict[str, Any]:
    try:
        saved = torch.load(path, weights_only=True)
    except OSError as error:
        raise InputError(path, "", f"can't be read: {error.strerror or error}") from None
    except Exception as error:  # torch raises what unpickling happens to raise
        raise InputError(path, "", f"not a training checkpoint: {type(error).__name__}") from None
    if not isinstance(saved, dict) or "identity" not in saved:
        raise InputError(path, "", "not a training checkpoint")
    for name, value in identity.items():
        if saved["identity"].get(name) != value:
            raise InputError(path, name, f"the checkpoint has {saved['identity'].get(name)}, this run {value}")
    return saved
