"""A policy file as a controller (`streetflow.control.controllers`), which decides in integers or in float."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from model.policy.file import IntersectionPolicy, Policy
from model.policy.float_policy import FloatPolicy
from model.policy.inputs import gather_inputs, input_indices
from model.policy.integer import IntegerPolicy, Saturation
from streetflow.control.environment import Environment
from streetflow.control.features import FEATURES, find_feature
from streetflow.errors import InputError
from streetflow.near import did_you_mean


class Inference(NamedTuple):
    """One decision at one intersection."""

    inputs: npt.NDArray[np.int64]  # [n_inputs]: the kept features' integers
    logits: npt.NDArray[np.int32] | npt.NDArray[np.float32]  # [A]
    saturation: Saturation | None = None  # None in float, which has no range to leave

    @property
    def action(self) -> int:
        """The lowest index of the greatest logit."""
        return int(np.argmax(self.logits))


@dataclass
class SaturationCount:
    """Decisions (of one light each), and those in which something has left the integers' range."""

    decisions: int = 0
    inputs: int = 0  # with at least one input beyond its range
    units: int = 0  # with at least one unit at its limit

    def add(self, saturation: Saturation) -> None:
        self.decisions += 1
        self.inputs += bool(saturation.inputs)
        self.units += bool(saturation.units)


class PolicyAgent:
    """Decides at all intersections of the policy's network. `features`: those that some intersection keeps. `saturated`:
    counts since the run began, None where it decides in float."""

    def __init__(self, policy: Policy, *, integer: bool, source: str = "policy") -> None:
        """source: the policy's file name, for errors. InputError for a policy that can't decide."""
        self.policy, self.source, self.integer = policy, source, integer
        self.saturated: SaturationCount | None = None
        self.features = kept_features(policy, source)
        try:
            make = IntegerPolicy if integer else FloatPolicy
            self._deciders: list[IntegerPolicy | FloatPolicy] = [make(part) for part in policy.intersections]
        except ValueError as error:
            raise InputError(source, "intersections", str(error)) from None

    def reset(self, environment: Environment) -> None:
        """Prepares for a run; InputError if the policy isn't one for this environment."""
        self.saturated = SaturationCount() if self.integer else None
        parts = check_policy_fits(self.policy, environment, self.source)
        names, width = environment.feature_names, environment.max_width
        environment.feature_columns(self.features)
        try:
            self._indices = [
                input_indices(part, names, widths, width)
                for part, widths in zip(parts, environment.feature_widths, strict=True)
            ]
        except ValueError as error:
            raise InputError(self.source, "intersections", str(error)) from None

    def act(self, observation: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Actions int32[N] for the coming decision, from the environment's observation int32[N, F, W]."""
        return np.array([each.action for each in self.infer(observation)], np.int32)

    def infer(self, observation: npt.NDArray[np.int32]) -> list[Inference]:
        """The same with inputs and logits, one inference an intersection."""
        inputs = [gather_inputs(seen, indices) for seen, indices in zip(observation, self._indices, strict=True)]
        inferences = [_inference(decider, x) for decider, x in zip(self._deciders, inputs, strict=True)]
        if self.saturated is not None:
            for each in inferences:
                assert each.saturation is not None
                self.saturated.add(each.saturation)
        return inferences


def _inference(decider: IntegerPolicy | FloatPolicy, x: npt.NDArray[np.int64]) -> Inference:
    if isinstance(decider, FloatPolicy):
        return Inference(x, decider.logits(x))
    activations = decider.activations(x)
    return Inference(x, activations.logits, decider.saturation(x, activations))


def kept_features(policy: Policy, source: str) -> list[str]:
    """Names of all features that any intersection of the policy keeps, each once, in order of appearance. InputError with
    the place of an unknown one."""
    names: dict[str, str] = {}
    for number, part in enumerate(policy.intersections):
        for f, feature in enumerate(part.features):
            names.setdefault(feature.name, f"intersections[{number}].features[{f}].name")
    for name, place in names.items():
        try:
            find_feature(name)
        except InputError:
            raise InputError(source, place, f"unknown feature {name}{did_you_mean(name, FEATURES)}") from None
    return list(names)


def check_interval(decision_interval_s: int, environment: Environment, source: str) -> None:
    """InputError unless the environment decides as often as the controller was trained for."""
    if decision_interval_s != environment.decision_interval_s:
        raise InputError(
            source,
            "decision_interval_s",
            f"decides every {decision_interval_s} s, but {environment.network.name} every {environment.decision_interval_s} s",
        )


def check_policy_fits(policy: Policy, environment: Environment, source: str) -> list[IntersectionPolicy]:
    """The policy's parts, in the environment's order; InputError unless intersections, phases, features
    and the time between decisions are the environment's."""
    theirs, ours = environment.intersections, policy.intersections
    if [part.id for part in ours] != [each.id for each in theirs]:
        raise InputError(
            source,
            "intersections",
            f"made for {policy.network} ({', '.join(part.id for part in ours)}); "
            f"{environment.network.name} has {', '.join(each.id for each in theirs)}",
        )
    check_interval(policy.decision_interval_s, environment, source)
    for i, (part, each) in enumerate(zip(ours, theirs, strict=True)):
        if list(part.phases) != list(each.phases):
            raise InputError(source, f"intersections[{i}].phases", f"{part.phases}, but {each.id} has {list(each.phases)}")
        for f, feature in enumerate(part.features):
            known = find_feature(feature.name).lsb_per_unit  # `kept_features` has checked the names
            if known != feature.lsb_per_unit:
                place = f"intersections[{i}].features[{f}].lsb_per_unit"
                raise InputError(source, place, f"{feature.lsb_per_unit}, not {known}")
    return list(ours)
