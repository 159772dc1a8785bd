"""Which states a trained sub-graph visits, and which quantisation decides best on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from model.float_policy import FloatPolicy, GroupWeights
from model.integer import IntegerPolicy
from model.learning import explore, group_seed
from model.policy import IntersectionPolicy
from model.quantise import Headroom, KeptFeature, quantise
from model.subgraph import Choice, SubGraph
from model.training import TrafficEnvironment, greedy_actions

INPUT_HEADROOMS = (1.0, 1.25, 1.5)
HIDDEN_HEADROOMS = (1.15, 1.2, 1.25, 1.3)


@dataclass(frozen=True)
class Calibrated:
    """The chosen integer policy and how it decides on the calibration states."""

    part: IntersectionPolicy
    headroom: Headroom
    agreement: float  # share of the states on which integers and float choose the same action
    regret: float  # mean loss of the float policy's own value by the integers' choices


def visited_states(
    environments: Sequence[TrafficEnvironment],
    graph: SubGraph,
    choice: Choice,
    lsb_per_unit: Sequence[int],
    train_seeds: Sequence[int],
    epsilons: Sequence[float],
) -> npt.NDArray[np.int32]:
    """int32[T, G, K, W]: the kept features of all states of one episode per entry of `epsilons` (0 =
    greedy), replicas side by side.

    A little exploration shows the integers the neighbourhood of the float policy's own run, where their
    slips would lead."""
    counts = [len(environment.intersections) for environment in environments]
    edges = np.concatenate([[0], np.cumsum(counts)])
    seeds = np.array([group_seed(seed, i) for seed, count in zip(train_seeds, counts, strict=True) for i in range(count)])
    n_actions = np.array([len(each.phases) for environment in environments for each in environment.intersections])
    scale = torch.from_numpy(1.0 / np.array(lsb_per_unit, dtype=np.float32)[choice.features])[:, :, None, None]
    kept = choice.features
    frames = []
    for run, epsilon in enumerate(epsilons):
        frame = np.concatenate([environment.reset() for environment in environments])
        for decision in range(environments[0].n_decisions):
            frames.append(frame[np.arange(len(frame))[:, None], kept])
            actions = greedy_actions(graph, frame, kept, scale)
            # steps counted backwards from 2^62: numbers that training never used
            actions = explore(actions, n_actions, epsilon, seeds, (1 << 62) - run * 100_000 - decision)
            frame = np.concatenate([e.step(actions[edges[r] : edges[r + 1]])[0] for r, e in enumerate(environments)])
    return np.stack(frames)


def calibrate(
    intersection_id: str,
    phases: Sequence[int],
    features: Sequence[KeptFeature],
    weights: GroupWeights,
    states: npt.NDArray[np.integer],
) -> Calibrated:
    """Quantises with every pair of headrooms and keeps the one of least regret on states int[T, n_inputs]
    (first on a tie)."""
    tried = []
    for inputs in INPUT_HEADROOMS:
        for hidden in HIDDEN_HEADROOMS:
            headroom = Headroom(inputs, hidden)
            part = quantise(intersection_id, phases, features, weights, states, headroom)
            tried.append(Calibrated(part, headroom, *agreement_and_regret(part, states)))
    return min(tried, key=lambda calibrated: calibrated.regret)


def agreement_and_regret(part: IntersectionPolicy, states: npt.NDArray[np.integer]) -> tuple[float, float]:
    """(share of equal actions, mean of Q(float's action) - Q(integers' action) in the float policy) over
    states int[T, n_inputs]."""
    values = FloatPolicy(part).logits(states)
    float_actions, int_actions = values.argmax(axis=1), IntegerPolicy(part).act_batch(states)
    rows = np.arange(len(states))
    regret = (values[rows, float_actions] - values[rows, int_actions]).mean()
    return float((float_actions == int_actions).mean()), float(regret)
