"""Policies for the chip that learn a rule's choices on SUMO itself, where training on our own engine comes to less.

python scripts/sumo_distil.py NAME OUT.json

The rule serves the phase with the most vehicles on its lanes, and in most scenarios keeps each for two decisions at least
(`RULES`; chosen on SUMO's seed TUNED_ON). The student sees the same and learns what each phase falls behind by: the rule drives
the first round's run, the student most of the later ones', and the rule says what it would have done (DAgger). Their seeds are
TRAINED_ON and those that follow; none of them is one of the table's.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

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

FEATURES = ("phase_2_num_vehicle", "inter_2_current_phase", "inter_2_phase_has_changed")
COUNT, CHANGED = 0, 2
HELD = 10.0  # vehicles that the current phase is ahead by, for the one decision after it began
VEHICLE_S = 60.0  # what a vehicle of score counts as in the student's loss, vehicle-seconds
TUNED_ON, TRAINED_ON = 7, 1000  # SUMO's seeds; a round's runs have TRAINED_ON and those that follow
SETTINGS = PlanConfig(
    rounds=3, search_rounds=1, own=1, varied=0, judged=0, faulty=0.0, planner_share=0.3,
    search_steps=200, refine_steps=600, last_steps=2000, batch=256,
)  # fmt: skip
LONGER = dataclasses.replace(SETTINGS, rounds=5, planner_share=0.1)
"""For the scenarios whose students otherwise kept a phase for ever somewhere."""


class Rule(NamedTuple):
    """hold: whether a phase stays for two decisions at least. factor: the current phase's score is times 1 + factor."""

    hold: bool
    factor: float

    def scores(self, observation: npt.NDArray[np.int32], current: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """float64[N, W] of an observation with FEATURES first; what lies beyond a light's phases means nothing."""
        scores = observation[:, COUNT].astype(np.float64)
        rows = np.arange(len(scores))
        own = scores[rows, current] * (1 + self.factor)
        held = observation[:, CHANGED, 0] * (self.hold * (scores.max(axis=1) - own + HELD))
        scores[rows, current] = own + held
        return scores


RULES = {
    "cologne3": Rule(True, 0.0),
    "cologne8": Rule(True, 0.0),
    "ingolstadt7": Rule(True, -0.2),
    "ingolstadt21": Rule(True, -0.2),
    "grid4x4": Rule(False, -0.3),
    "arterial4x4": Rule(True, -0.2),
}


SHORT = ("ingolstadt7", "grid4x4")  # those for which SETTINGS do


class OnSumo(Distillation):
    """A distillation whose episodes are SUMO's and whose costs are what a phase's score falls behind by."""

    rule: Rule

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
            )
            print(f"round {self.round + 1}, seed {seed}: {self._drive(environment, rng):.2f} s", flush=True)

    def environment_features(self) -> Sequence[str]:
        return list(dict.fromkeys([*self.names, "phase_2_num_waiting_vehicle"]))

    def _drive(self, environment: Environment, rng: np.random.Generator) -> float:
        """One run, all of it recorded. Returns its average travel time."""
        driver = Driver(environment, self.parts)
        widths = [each.action_count for each in environment.intersections]
        none = np.arange(max(widths)) >= np.array(widths)[:, None]
        everyone = np.arange(len(widths))
        observation, done = environment.reset(), False
        while not done:
            scores = self.rule.scores(observation, environment.current_action)[:, : max(widths)]
            scores = np.where(none, -np.inf, scores)
            costs_s = np.where(none, 0.0, -VEHICLE_S * scores)
            self.records.add(observation[:, : len(self.names)], costs_s, everyone)
            actions = scores.argmax(axis=1).astype(np.int32)
            if self.parts is not None and rng.random() >= self.settings.planner_share:
                actions = driver.act(observation)
            observation, _, done = environment.step(actions)
        return environment.average_travel_time_s()


def distil(name: str, out: str) -> Policy:
    """The policy of one scenario."""
    torch.set_num_threads(1)
    network = sumo_table.Variant(name).network()
    settings = SETTINGS if name in SHORT else LONGER
    work = OnSumo(network, 0, FEATURES, sumo_table.CLEARANCE, 0, settings)
    work.rule = RULES[name]
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
            feature_preset=",".join(FEATURES),
            settings={
                "method": "rule on SUMO",
                "rule": list(work.rule),
                "vehicle_s": VEHICLE_S,
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
            clearance=sumo_table.CLEARANCE,
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
    if len(arguments) != 2 or arguments[0] not in RULES:
        sys.exit(f"python scripts/sumo_distil.py NAME OUT.json; NAME: one of {', '.join(RULES)}")
    name, out = arguments
    policy = distil(name, Path(out).name)
    save_policy(policy, out)


if __name__ == "__main__":
    main(sys.argv[1:])
