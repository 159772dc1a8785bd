"""What all ways to train a policy have in common: what they refuse beforehand, and what a finished policy file holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from model.evaluate import evaluate
from model.policy.file import CHIP_PHASES, PHASES, Measured, Policy
from streetflow.control.environment import Environment
from streetflow.errors import InputError
from streetflow.networks.catalogue import Network


def require_writable_phases(network: Network, environment: Environment) -> None:
    """InputError for an intersection with phases that a policy file can't name, or with more than the chip can decide among:
    better reported now than after the training."""
    for each in environment.intersections:
        fault = None
        if max(each.phases) >= PHASES:
            fault = f"phases up to number {max(each.phases)}; a policy chooses among the numbers 0 to {PHASES - 1}"
        elif len(each.phases) > CHIP_PHASES:
            fault = f"{len(each.phases)} phases; the chip's link carries the values of {CHIP_PHASES}"
        if fault is not None:
            raise InputError(network.roadnet_file, "intersections", f"{each.id} has {fault}")


def changed(policy: Policy, **changes: Any) -> Policy:
    """The policy with other content, sealed anew."""
    fields = {name: getattr(policy, name) for name in Policy.model_fields if name not in ("format", "version", "sha256")}
    return Policy.sealed(**(fields | changes))


def measured_on(network: Network, policy: Policy, flows: Sequence[int]) -> list[Measured]:
    """What the policy achieves on these flows, in float and in integers."""
    in_float, in_integers = (evaluate(network, policy, flows, integer=integer) for integer in (False, True))
    return [
        Measured(
            flow=f.flow,
            seed=f.seed,
            float_average_travel_time_s=f.average_travel_time_s,
            integer_average_travel_time_s=i.average_travel_time_s,
            float_throughput_veh_per_min=f.throughput_veh_per_min,
            integer_throughput_veh_per_min=i.throughput_veh_per_min,
        )
        for f, i in zip(in_float, in_integers, strict=True)
    ]
