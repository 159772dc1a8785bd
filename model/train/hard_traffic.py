"""Traffic on which a policy's integers must keep their range: far more of it, a jammed lane, broken detectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from model.evaluate import RunSettings, evaluate
from model.planning.distil import Distillation, Driver
from model.policy.file import Policy
from streetflow.control.conditions import FINE, Conditions
from streetflow.networks.catalogue import default_seed
from streetflow.networks.variations import Variation, Varied
from streetflow.roadnet.flow import Flow

HARD = (
    (Variation(1.5), FINE),
    (Variation(1.5, turns=1.0, shift_s=60), FINE),
    (Variation(1.3), Conditions(shut_s=600, seed=1)),
    (Variation(1.3), Conditions(stuck_lanes=1, seed=2)),
    (Variation(1.3), Conditions(dead_lanes=1, seed=3)),
)


def hard_states(work: Distillation, seed: int) -> list[npt.NDArray[np.int64]]:
    """int64[T, inputs] of each light: what the student, in float, meets in hard traffic."""
    assert work.parts is not None  # after the rounds
    states: list[list[npt.NDArray[np.int64]]] = [[] for _ in work.parts]
    for number, demand, conditions in _hard_traffic(work, seed):
        environment = work.environment_of(demand, default_seed(number), conditions)
        driver = Driver(environment, work.parts, integer=False)
        observation, done = environment.reset(), False
        while not done:
            for light, inputs in enumerate(driver.inputs(observation)):
                states[light].append(inputs)
            observation, _, done = environment.step(driver.act(observation))
    return [np.stack(each) for each in states]


def saturated_share(policy: Policy, work: Distillation, seed: int) -> float:
    """The share of the policy's decisions in hard traffic with an input beyond its range or a unit at its limit, at most (those
    with both count twice)."""
    rows = []
    for number, demand, conditions in _hard_traffic(work, seed):
        settings = RunSettings(seed=default_seed(number), conditions=conditions, demand=demand)
        rows += evaluate(work.network, policy, [work.flow], integer=True, settings=settings)
    saturated = sum((row.decisions_beyond_range or 0) + (row.decisions_at_limit or 0) for row in rows)
    return saturated / sum(row.decisions or 0 for row in rows)


def _hard_traffic(work: Distillation, seed: int) -> Iterator[tuple[int, tuple[Flow, ...], Conditions]]:
    """Number, demand and conditions of each run."""
    for number, (variation, conditions) in enumerate(HARD):
        yield number, Varied(work.flow, variation, seed).of(work.network), replace(conditions, seed=seed)
