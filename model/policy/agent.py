"""A policy file as a controller: sees the environment as `streetflow.control.controllers` do, decides in integers or
in float."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from model.policy.file import IntersectionPolicy, Policy
from model.policy.float_policy import FloatPolicy
from model.policy.inputs import gather_inputs, input_indices
from model.policy.integer import IntegerPolicy
from streetflow.control.environment import Environment
from streetflow.control.features import find_feature, resolve_features
from streetflow.control.observation import Observer
from streetflow.errors import InputError


class PolicyAgent:
    """Decides at all intersections of the policy's network. `inputs` holds what the last decision saw, one
    array an intersection."""

    def __init__(self, policy: Policy, *, integer: bool, source: str = "policy") -> None:
        """source: the policy's file name, for errors."""
        self.policy, self.source = policy, source
        self.inputs: list[npt.NDArray[np.int64]] = []
        try:
            make = IntegerPolicy if integer else FloatPolicy
            self._deciders: list[IntegerPolicy | FloatPolicy] = [make(part) for part in policy.intersections]
        except ValueError as error:
            raise InputError(source, "intersections", str(error)) from None

    def reset(self, environment: Environment) -> None:
        """Prepares for a run; InputError if the policy isn't one for this environment."""
        parts = check_policy_fits(self.policy, environment, self.source)
        names = list(dict.fromkeys(feature.name for part in parts for feature in part.features))
        self._observer = Observer(environment.intersections, resolve_features(names), environment.engine)
        try:
            self._indices = [
                input_indices(part, names, widths, self._observer.max_width)
                for part, widths in zip(parts, self._observer.feature_widths, strict=True)
            ]
        except ValueError as error:
            raise InputError(self.source, "intersections", str(error)) from None

    def act(self, environment: Environment) -> npt.NDArray[np.int32]:
        """Actions int32[N] for the coming decision."""
        observation = self._observer.observe(environment.engine, environment.current_action)[0]
        self.inputs = [gather_inputs(seen, indices) for seen, indices in zip(observation, self._indices, strict=True)]
        return np.array([decider.act(x) for decider, x in zip(self._deciders, self.inputs, strict=True)], np.int32)


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
            place = f"intersections[{i}].features[{f}]"
            try:
                spec = find_feature(feature.name)
            except InputError:
                raise InputError(source, f"{place}.name", f"unknown feature {feature.name}") from None
            if spec.lsb_per_unit != feature.lsb_per_unit:
                raise InputError(source, f"{place}.lsb_per_unit", f"{feature.lsb_per_unit}, not {spec.lsb_per_unit}")
    return list(ours)
