"""Traffic on which a policy's integers must keep their range: far more of it, a jammed lane, broken detectors."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from model.evaluate import RunSettings, evaluate
from model.planning.distil import Distillation, Driver, observed
from model.policy.file import Policy
from streetflow.control.conditions import FINE, Conditions
from streetflow.control.environment import Environment
from streetflow.networks.catalogue import Network
from streetflow.networks.variations import Variation, Varied, varied_network

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
    with _hard_network(work, seed) as hard:
        for number, (_, conditions) in enumerate(HARD):
            conditions = replace(conditions, seed=seed)
            features = observed(work.names)
            environment = Environment(hard, number, features=features, clearance=work.clearance, conditions=conditions)
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
    with _hard_network(work, seed) as hard:
        for number, (_, conditions) in enumerate(HARD):
            settings = RunSettings(conditions=replace(conditions, seed=seed))
            rows += evaluate(hard, policy, [number], integer=True, settings=settings)
    saturated = sum((row.decisions_beyond_range or 0) + (row.decisions_at_limit or 0) for row in rows)
    return saturated / sum(row.decisions or 0 for row in rows)


@contextmanager
def _hard_network(work: Distillation, seed: int) -> Iterator[Network]:
    with tempfile.TemporaryDirectory(prefix="tinylight-") as folder:
        yield varied_network(work.network, [Varied(work.flow, variation, seed) for variation, _ in HARD], Path(folder))
