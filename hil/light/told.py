"""A decision that a chip has told unasked, beside what numpy decides on the same values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hil.light.crossing import Crossing
from hil.loop.closed_loop import DecisionRecord
from hil.wire.events import Decision
from hil.wire.protocol import logits_checksum
from model.policy.file import IntersectionPolicy
from model.policy.integer import IntegerPolicy
from streetflow.control.features import find_feature
from streetflow.control.intersection import Intersection
from streetflow.kernels.sources import Source


def record_of(part: IntersectionPolicy, crossing: Crossing, told: Decision) -> DecisionRecord:
    """As of a decision that was asked for; where the plan in flash has decided, that is its fault."""
    decider = IntegerPolicy(part)
    x = np.array(told.values, np.int64)
    activations = decider.activations(x)
    saturation = decider.saturation(x, activations)
    logits = tuple(activations.logits.tolist())
    expected = int(np.argmax(activations.logits))
    phases = crossing.plan.phase_numbers
    return DecisionRecord(
        decision=told.number,
        intersection=crossing.plan.intersection,
        action=told.action,
        expected_action=expected,
        logits=logits if told.logits_crc == logits_checksum(logits) else (),
        expected_logits=logits,
        phase=phases[told.action] if told.action < len(phases) else None,
        expected_phase=phases[expected],
        beyond_range=bool(saturation.inputs),
        at_limit=bool(saturation.units),
        compute_cycles=told.compute_cycles,
        response_us=None,
        round_trip_us=None,
        tries=0,
        fault="the plan in flash has decided" if told.by_plan else None,
    )


def ways_of(part: IntersectionPolicy, intersection: Intersection) -> NDArray[np.int64]:
    """int64[values]: by how much a single vehicle moves each value: a pressure counts it once for each way that it may take."""
    ways: list[int] = []
    for feature in part.features:
        spec = find_feature(feature.name)
        cells = spec.cells(intersection)
        of_vehicles = spec.source is Source.VEHICLES
        ways += [max((abs(int(weight)) for _, weight in cell), default=1) if of_vehicles else 1 for cell in cells]
    return np.array(ways, np.int64)
