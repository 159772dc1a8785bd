"""Policies for the chip that learn a rule's choices on SUMO itself, where training on our own engine comes to less.

python scripts/sumo_distil.py NAME OUT.json
python scripts/sumo_distil.py NAME OUT.alone.json   # for a chip that is the light, with the clearances and limits that it has

The rule serves the phase with the most vehicles: it counts them by phases (`PhaseRule`), or by lanes, and keeps a phase while
vehicles pass (`LaneRule`, `GapRule`). Which, and its numbers (`RULES`), were chosen on SUMO's seeds TUNED_ON. The student sees
the same and learns what each phase falls behind by: the rule drives the first round's run, the student most of the later ones',
and the rule says what it would have done (DAgger). Their seeds are TRAINED_ON and those that follow. None of all these seeds is
one of the table's.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import sumo_table
import torch

from model.planning.distil import Distillation, Driver, Progress
from model.planning.settings import PlanConfig
from model.policy.file import Policy, Provenance, save_policy
from model.policy.provenance import input_hashes, tool_version
from model.quantise.calibration import Calibrated
from model.train.planned_policy import finished_parts, run_rounds
from streetflow.control.environment import Environment

BY_PHASES = ("phase_2_num_vehicle", "inter_2_current_phase", "inter_2_phase_has_changed")
BY_LANES = (
    "inlane_2_num_vehicle",
    "inter_2_current_phase",
    "inter_2_phase_has_changed",
    "inter_2_num_passed_vehicle_since_last_action",
)
HELD = 10.0  # of score that the current phase is ahead by, for the one decision after it began
UNIT_M, LEAST_M = 100.0, 20.0  # where a vehicle counts as one; no lane counts as shorter than that
ALONE = ".alone.json"  # how the names of policies for a chip that is the light end
VEHICLE_S = 60.0  # what a vehicle of score counts as in the student's loss, vehicle-seconds
TUNED_ON, TRAINED_ON = (7, 8, 9, 10, 11), 1000  # SUMO's seeds; a round's runs have TRAINED_ON and those that follow
SETTINGS = PlanConfig(
    rounds=3, search_rounds=1, own=1, varied=0, judged=0, faulty=0.0, planner_share=0.3,
    search_steps=200, refine_steps=600, last_steps=2000, batch=256,
)  # fmt: skip
LONGER = dataclasses.replace(SETTINGS, rounds=5, planner_share=0.1)
"""For the scenarios whose students otherwise kept a phase for ever somewhere."""


Scores = Callable[[npt.NDArray[np.int32], npt.NDArray[np.int32]], npt.NDArray[np.float64]]
"""float64[N, W] of an observation with the rule's features first and the current actions; what lies beyond a light's phases
means nothing."""


class Rule(Protocol):
    """It chooses the phase of the greatest score."""

    @property
    def features(self) -> Sequence[str]: ...

    def scores(self, environment: Environment) -> Scores: ...


class PhaseRule(NamedTuple):
    """A phase's score is the vehicles on its lanes.

    hold: whether a phase stays for two decisions at least. factor: the current phase's score is times 1 + factor."""

    hold: bool
    factor: float

    @property
    def features(self) -> Sequence[str]:
        return BY_PHASES

    def scores(self, environment: Environment) -> Scores:
        def of(observation: npt.NDArray[np.int32], current: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
            scores = observation[:, 0].astype(np.float64)
            rows = np.arange(len(scores))
            own = scores[rows, current] * (1 + self.factor)
            held = observation[:, 2, 0] * (self.hold * (scores.max(axis=1) - own + HELD))
            scores[rows, current] = own + held
            return scores

        return of


class LaneRule(NamedTuple):
    """A phase's score is the vehicles on its lanes, those of a lane of L m times (UNIT_M / L) ** power: who is on a short lane
    stands at its stop line or will soon. A phase stays for two decisions at least, and each vehicle that has passed a stop
    line since the last decision adds `flowing` to the current phase's score."""

    power: float
    flowing: float

    @property
    def features(self) -> Sequence[str]:
        return BY_LANES

    def scores(self, environment: Environment) -> Scores:
        weights = self._weights(environment)

        def of(observation: npt.NDArray[np.int32], current: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
            scores = np.einsum("naw,nw->na", weights, observation[:, 0])
            rows = np.arange(len(scores))
            own = scores[rows, current] + self.flowing * observation[:, 3, 0]
            held = observation[:, 2, 0] * (np.maximum(scores.max(axis=1) - own, 0.0) + HELD)
            scores[rows, current] = own + held
            return scores

        return of

    def _weights(self, environment: Environment) -> npt.NDArray[np.float64]:
        """float64[N, actions, W]: of a vehicle on each in-lane."""
        lights, length_m = environment.intersections, environment.engine.lane_length_m
        weights = np.zeros((len(lights), max(each.action_count for each in lights), environment.max_width))
        for each, own in zip(lights, weights, strict=True):
            for action, lanes in enumerate(each.phase_in_lanes):
                columns = [each.in_lanes.index(lane) for lane in lanes]
                own[action, columns] = (UNIT_M / np.maximum(length_m[list(lanes)], LEAST_M)) ** self.power
        return weights


class GapRule(NamedTuple):
    """A `LaneRule`, but the current phase's score is times `stalled` when no vehicle has passed, its first decision aside: so
    it ends, as a phase does that gaps out, even if vehicles wait there that can't go on."""

    lanes: LaneRule
    stalled: float

    @property
    def features(self) -> Sequence[str]:
        return BY_LANES

    def scores(self, environment: Environment) -> Scores:
        by_lanes = self.lanes.scores(environment)

        def of(observation: npt.NDArray[np.int32], current: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
            scores = by_lanes(observation, current)
            stalled = (observation[:, 2, 0] == 0) & (observation[:, 3, 0] == 0)
            scores[np.flatnonzero(stalled), current[stalled]] *= self.stalled
            return scores

        return of


RULES: dict[str, Rule] = {
    "cologne1": GapRule(LaneRule(0.5, 3.0), 0.6),
    "cologne3": LaneRule(0.7, 3.0),
    "cologne8": LaneRule(0.6, 3.0),
    "ingolstadt7": PhaseRule(True, -0.2),
    "ingolstadt21": GapRule(LaneRule(0.5, 3.0), 0.6),
    "grid4x4": PhaseRule(False, -0.3),
    "arterial4x4": LaneRule(0.5, 1.5),
}
ALONE_RULES: dict[str, Rule] = {"cologne1": GapRule(LaneRule(0.5, 10.0), 0.4)}
"""A change takes up to 8.6 s there, so a phase that flows is worth more."""
CLOSE = dataclasses.replace(LONGER, own=2, refine_steps=1000, last_steps=4000, temperature_s=20.0)
MARGIN_S = 20.0
CLOSELY = ("cologne1", "cologne3", "cologne8", "ingolstadt21")
"""Here the rule decides by fractions of a vehicle, and often between equals: whatever it doesn't choose costs MARGIN_S more."""
TRAINED_GREEN_S = {"cologne3": 5}  # least green in training, elsewhere the table's
OWN = {"ingolstadt21": 1}  # runs a round, elsewhere as the settings say: an hour of 21 lights takes minutes
SHORT = ("ingolstadt7", "grid4x4")  # those for which SETTINGS do


class OnSumo(Distillation):
    """A distillation whose episodes are SUMO's and whose costs are what a phase's score falls behind by."""

    rule: Rule
    margin_s, min_green_s = 0.0, 0

    def play(self, progress: Callable[[Progress], None] | None) -> None:
        rng = np.random.default_rng([self.seed, self.round])
        for episode in range(self.settings.episodes_a_round):
            seed = TRAINED_ON + self.round * self.settings.episodes_a_round + episode
            environment = Environment(
                self.network,
                self.flow,
                seed=seed,
                engine="sumo",
                features=self.environment_features(),
                clearance=self.clearance,
                min_green_s=self.min_green_s,
            )
            print(f"round {self.round + 1}, seed {seed}: {self._drive(environment, rng):.2f} s", flush=True)

    def environment_features(self) -> Sequence[str]:
        return list(dict.fromkeys([*self.names, "phase_2_num_waiting_vehicle"]))

    def _drive(self, environment: Environment, rng: np.random.Generator) -> float:
        """One run, all of it recorded. Returns its average travel time."""
        driver = Driver(environment, self.parts)
        widths = [each.action_count for each in environment.intersections]
        none = np.arange(max(widths)) >= np.array(widths)[:, None]
        scores_of = self.rule.scores(environment)
        everyone = np.arange(len(widths))
        observation, done = environment.reset(), False
        while not done:
            scores = scores_of(observation, environment.current_action)[:, : max(widths)]
            scores = np.where(none, -np.inf, scores)
            actions = scores.argmax(axis=1).astype(np.int32)
            chosen = np.arange(max(widths)) == actions[:, None]
            costs_s = np.where(none, 0.0, self.margin_s * ~chosen - VEHICLE_S * scores)
            self.records.add(observation[:, : len(self.names)], costs_s, everyone)
            if self.parts is not None and rng.random() >= self.settings.planner_share:
                actions = driver.act(observation)
            observation, _, done = environment.step(actions)
        return environment.average_travel_time_s()


def distil(name: str, out: str) -> Policy:
    """The policy of one scenario. `out`: the name of its file."""
    torch.set_num_threads(1)
    is_alone = out.endswith(ALONE)
    clearance = "shell" if is_alone else sumo_table.CLEARANCE
    network = sumo_table.Variant(name).network()
    rule = ALONE_RULES[name] if is_alone else RULES[name]
    settings = CLOSE if name in CLOSELY else SETTINGS if name in SHORT else LONGER
    settings = dataclasses.replace(settings, kept_features=len(rule.features), own=OWN.get(name, settings.own))
    work = OnSumo(network, 0, rule.features, clearance, 0, settings)
    work.rule = rule
    closely: dict[str, float] = {}
    if name in CLOSELY:
        own_green_s = 0 if is_alone else TRAINED_GREEN_S.get(name, sumo_table.Variant(name).times_s[1])
        work.margin_s, work.min_green_s = MARGIN_S, own_green_s
        closely = {"margin_s": MARGIN_S, "temperature_s": settings.temperature_s, "min_green_s": work.min_green_s}
    kept_round = run_rounds(work, None, {}, None)

    def seal(parts: Sequence[Calibrated]) -> Policy:
        provenance = Provenance(
            command=f"python scripts/sumo_distil.py {name} {out}",
            tool_version=tool_version(),
            torch_version=str(torch.__version__),
            numpy_version=np.__version__,
            network=network.name,
            flow=0,
            engine="sumo",
            engine_seed=TRAINED_ON,
            train_seed=work.seed,
            search_episodes=settings.episodes_a_round,
            refine_episodes=settings.episodes_a_round * (settings.rounds - 1),
            **input_hashes(network, 0),
            feature_preset=",".join(rule.features),
            settings={
                "method": "rule on SUMO",
                "rule": json.loads(json.dumps(rule)),
                "vehicle_s": VEHICLE_S,
                **closely,
                "rounds": settings.rounds,
                "planner_share": settings.planner_share,
                "kept_round": kept_round,
                "calibration_agreement": [round(each.agreement, 5) for each in parts],
            },
            notes=[],
        )
        return Policy.sealed(
            network=network.name,
            decision_interval_s=work.environment.decision_interval_s,
            clearance=clearance,
            provenance=provenance,
            measured=[],
            intersections=[each.part for each in parts],
        )

    return seal(finished_parts(work, [harder(work, light) for light in range(len(work.environment.intersections))]))


def harder(work: Distillation, light: int) -> npt.NDArray[np.int64]:
    """int64[T, inputs]: what the light has seen, with twice the vehicles, so that the integers' ranges have room for them."""
    seen = work.records.seen(light).inputs[:, work.student.columns(light)].astype(np.int64)
    return np.where(np.abs(seen) > 1, 2 * seen, seen)


def main(arguments: list[str]) -> None:
    name, out = arguments if len(arguments) == 2 else ("", "")
    if name not in (ALONE_RULES if out.endswith(ALONE) else RULES):
        names = f"{', '.join(RULES)}; with OUT{ALONE}: {', '.join(ALONE_RULES)}"
        sys.exit(f"python scripts/sumo_distil.py NAME OUT.json; NAME: one of {names}")
    policy = distil(name, Path(out).name)
    save_policy(policy, out)


if __name__ == "__main__":
    main(sys.argv[1:])
