"""Rounds of planning and learning: the planner shows what each action costs where the student goes, and the student learns it.

Round 1 improves on MaxQueue. Each later round improves on the student of the round before, in the integers that the chip
runs: the student drives most decisions, the planner the others, and all records are kept (expert iteration with DAgger's
data: Anthony et al. 2017, Ross et al. 2011). Each round plays the flow itself and variations of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from model.planning.planner import MAX_QUEUE
from model.planning.records import Records, Seen
from model.planning.rollouts import Rollouts
from model.planning.settings import PlanConfig
from model.planning.student import ROUND_HEADROOM, Student
from model.policy.file import IntersectionPolicy
from model.policy.float_policy import FloatPolicy
from model.policy.inputs import gather_inputs, input_indices
from model.policy.integer import IntegerPolicy
from model.quantise.quantise import KeptFeature, quantise
from model.search.supergraph import GraphShape
from streetflow.control.conditions import FINE, Conditions
from streetflow.control.environment import Environment
from streetflow.control.intersection import Intersection
from streetflow.control.rules import GreatestFeature
from streetflow.networks.catalogue import Network, default_seed
from streetflow.networks.variations import Variation, Varied
from streetflow.roadnet.flow import Flow

CALIBRATION_ROWS = 3000


class Progress(NamedTuple):
    """After an episode, or, with its regret, after a round's learning."""

    round: int
    episode: int
    done_episodes: int
    total_episodes: int
    average_travel_time_s: float | None  # of the episode
    regret_s: float | None  # mean of the student's actions on all records, vehicle-seconds
    alphas: tuple[tuple[float, ...], ...]  # of the latest search by layer, mean over the lights; () before there is one


class Distillation:
    """One policy in the making.

    Args:
        network, flow: what it is trained on.
        features: that are searched.
        clearance: what the lights show between two phases.
        seed: of everything random.
        settings: how.
    """

    def __init__(
        self, network: Network, flow: int, features: Sequence[str], clearance: str, seed: int, settings: PlanConfig
    ) -> None:
        self.network, self.flow, self.clearance, self.seed, self.settings = network, flow, clearance, seed, settings
        self.names = list(features)
        self.environment = Environment(network, flow, features=features, clearance=clearance)
        self._lights = self.environment.intersections
        widths = self.environment.feature_widths.astype(np.int64)
        counts = np.array([each.action_count for each in self._lights], np.int64)
        groups = slice(0, 1 if settings.share else len(counts))
        self.shape = GraphShape(widths[groups], counts[groups], settings.layer2_dims, settings.layer3_dims)
        self.records = Records(self.shape.packing, [int(count) for count in counts], share=settings.share)
        self.student = Student(self.shape, self.environment.lsb_per_unit, settings, seed)
        self.parts: list[IntersectionPolicy] | None = None
        self.round = 0
        self._best: dict[str, Any] = {"time_s": np.inf, "round": 0, "student": {}}

    def play(self, progress: Callable[[Progress], None] | None) -> None:
        """One round's episodes."""
        for episode, environment in enumerate(self._environments()):
            time_s = self._episode(environment, np.random.default_rng([self.seed, self.round, episode]))
            if progress is not None:
                progress(self._progress(self.round, episode, time_s, None))

    def learn(self, progress: Callable[[Progress], None] | None) -> None:
        """The student learns from all records, and its integers become the base of the next round."""
        settings = self.settings
        seen = [self.records.seen(group) for group in range(self.records.groups)]
        if self.round < settings.search_rounds:
            self.student.search(seen)
        last = self.round == settings.rounds - 1
        regret_s = self.student.refine(seen, settings.last_steps if last else settings.refine_steps)
        self.parts = self._quantised()
        self.round += 1
        if settings.judged == 0 or self.round >= min(settings.search_rounds, settings.rounds):
            time_s = self._judged_s() if settings.judged else -float(self.round)
            if time_s < self._best["time_s"]:
                self._best = {"time_s": time_s, "round": self.round, "student": self.student.state()}
        if progress is not None:
            progress(self._progress(self.round - 1, settings.episodes_a_round - 1, None, regret_s))

    def finish(self) -> int:
        """Let the student be that of the best round, whose number it returns."""
        self.student.restore(self._best["student"])
        self.parts = self._quantised()
        return int(self._best["round"])

    def _judged_s(self) -> float:
        """The student's mean travel time, in integers, on variations that it doesn't learn from."""
        times_s = []
        for environment in self._judges:
            driver = Driver(environment, self.parts)
            observation, done = environment.reset(), False
            while not done:
                observation, _, done = environment.step(driver.act(observation))
            times_s.append(environment.average_travel_time_s())
        return float(np.mean(times_s))

    @cached_property
    def _judges(self) -> list[Environment]:
        rng = np.random.default_rng([self.seed, 1 << 24])
        demands = [Varied(self.flow, self._variation(rng), int(rng.integers(1 << 30))) for _ in range(self.settings.judged)]
        return [self.environment_of(each.of(self.network), default_seed(number)) for number, each in enumerate(demands)]

    def environment_of(self, demand: Sequence[Flow], seed: int, conditions: Conditions = FINE) -> Environment:
        """One in which a `Driver` can drive."""
        return Environment(
            self.network,
            self.flow,
            seed=seed,
            features=list(dict.fromkeys([*self.names, MAX_QUEUE])),
            clearance=self.clearance,
            conditions=conditions,
            demand=demand,
        )

    def _progress(self, round: int, episode: int, time_s: float | None, regret_s: float | None) -> Progress:
        a_round, rounds = self.settings.episodes_a_round, self.settings.rounds
        alphas = tuple(tuple(map(float, layer.mean(axis=0))) for layer in self.student.alphas)
        return Progress(round, episode, round * a_round + episode + 1, rounds * a_round, time_s, regret_s, alphas)

    def state(self) -> dict[str, Any]:
        """What `restore` needs to go on after a round (tensors and numbers)."""
        records = [[torch.from_numpy(array) for array in self.records.seen(group)] for group in range(self.records.groups)]
        return {"round": self.round, "records": records, "student": self.student.state(), "best": self._best}

    def restore(self, state: dict[str, Any]) -> None:
        self.records.restore([Seen(*(array.numpy() for array in arrays)) for arrays in state["records"]])
        self.student.restore(state["student"])
        self.round, self._best = state["round"], state["best"]
        self.parts = self._quantised()

    def _quantised(self) -> list[IntersectionPolicy]:
        """The student in integers, of every light, for what has been seen."""
        rng = np.random.default_rng([self.seed, self.round, 1 << 20])
        parts: list[IntersectionPolicy] = []
        for light, intersection in enumerate(self._lights):
            if self.settings.share and parts:
                parts.append(shared(parts[0], intersection))
                continue
            states = self.records.seen(light).inputs[:, self.student.columns(light)]
            if len(states) > CALIBRATION_ROWS:
                states = states[rng.choice(len(states), CALIBRATION_ROWS, replace=False)]
            weights, kept = self.student.weights(light), self.kept(light)
            grid = self.settings.grid
            parts.append(quantise(intersection.id, intersection.phases, kept, weights, states, ROUND_HEADROOM, grid))
        return parts

    def kept(self, group: int) -> list[KeptFeature]:
        lsb = self.environment.lsb_per_unit
        features = zip(self.student.features(group), self.student.widths(group), strict=True)
        return [KeptFeature(self.names[feature], width, lsb[feature]) for feature, width in features]

    def _environments(self) -> Iterator[Environment]:
        """The round's, one after the other."""
        rng = np.random.default_rng([self.seed, self.round, 1 << 16])
        demands = [Varied(self.flow)] * self.settings.own
        conditions = [FINE] * self.settings.own
        for _ in range(self.settings.varied):
            variation, trouble = self._varied(rng)
            demands.append(Varied(self.flow, variation, int(rng.integers(1 << 30))))
            conditions.append(trouble)
        for number, (demand, trouble) in enumerate(zip(demands, conditions, strict=True)):
            seed = default_seed(self.flow) if number < self.settings.own else int(rng.integers(1 << 30))
            yield self.environment_of(demand.of(self.network), seed, trouble)

    def _variation(self, rng: np.random.Generator) -> Variation:
        settings = self.settings
        volume = rng.uniform(settings.volume_least, settings.volume_most)
        return Variation(volume, settings.turns * rng.random(), settings.shift_s)

    def _varied(self, rng: np.random.Generator) -> tuple[Variation, Conditions]:
        variation = self._variation(rng)
        if rng.random() >= self.settings.faulty:
            return variation, FINE
        fault, seed = int(rng.integers(4)), int(rng.integers(1 << 30))
        faults: tuple[dict[str, Any], ...] = ({"miscount": 0.5}, {"dead_lanes": 1}, {"stuck_lanes": 1}, {"shut_s": 600})
        return variation, Conditions(seed=seed, **faults[fault])

    def _episode(self, environment: Environment, rng: np.random.Generator) -> float:
        """Play one, add its records, and return its average travel time."""
        settings, n_lights = self.settings, len(self._lights)
        driver = Driver(environment, self.parts)
        rollouts = Rollouts(environment, driver.base, horizon=settings.horizon, cut_s=settings.cut_s, worth=settings.worth)
        observation, done = environment.reset(), False
        while not done:
            wishes = driver.act(observation)
            actions = wishes
            if rng.random() < settings.planned_share:
                lights = rng.permutation(n_lights)[: settings.lights] if 0 < settings.lights < n_lights else np.arange(n_lights)
                planned = rollouts.plan(wishes, lights)
                self.records.add(observation[:, : len(self.names)], planned.costs_s, lights)
                if self.parts is None or rng.random() < settings.planner_share:
                    actions = planned.actions
            observation, _, done = environment.step(actions)
        return environment.average_travel_time_s()


class Driver:
    """The base policy of a round: the student, or MaxQueue before there is one.

    Args:
        environment: with the features of all, MaxQueue's included.
        parts: of each light; None: MaxQueue.
        integer: decide as the chip does, else in float.
    """

    def __init__(self, environment: Environment, parts: Sequence[IntersectionPolicy] | None, *, integer: bool = True) -> None:
        self.base: Sequence[IntersectionPolicy] | str = parts or MAX_QUEUE
        self._rule = GreatestFeature(MAX_QUEUE)
        self._rule.reset(environment)
        make = IntegerPolicy if integer else FloatPolicy
        self._deciders: list[IntegerPolicy | FloatPolicy] = [make(part) for part in parts or ()]
        names, widths = environment.feature_names, environment.feature_widths
        self._indices = [
            input_indices(part, names, own, environment.max_width) for part, own in zip(parts or (), widths, strict=bool(parts))
        ]

    def inputs(self, observation: npt.NDArray[np.int32]) -> list[npt.NDArray[np.int64]]:
        """What each light's student sees of an observation int32[N, F, W]."""
        return [gather_inputs(seen, indices) for seen, indices in zip(observation, self._indices, strict=True)]

    def act(self, observation: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Actions int32[N] for an observation int32[N, F, W]."""
        if not self._deciders:
            return self._rule.act(observation)
        each = zip(self._deciders, self.inputs(observation), strict=True)
        return np.array([int(decider.logits(inputs).argmax()) for decider, inputs in each], np.int32)


def shared(part: IntersectionPolicy, intersection: Intersection) -> IntersectionPolicy:
    """The same network for another light."""
    return part.model_copy(update={"id": intersection.id, "phases": list(intersection.phases)})
