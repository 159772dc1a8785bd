"""Nobody waits too long: the longest red and the maximum green of the safety shell (docs/controller.md), in whole seconds.

A signal group is called by a vehicle on a lane that it can be left by, and stays so until it is green. A called group that has
waited for the longest red, and a green one that somebody in conflict with it has waited for longer than its maximum, are due.
While any is, a light goes for the next of its actions in a circle that serves it, whatever is wished, as soon as its minimum
green is over. What had been wished is out of date then: nothing is, until the next decision.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from streetflow.control.signal_groups import SignalPlan
from streetflow.kernels.service import Service

Ints = NDArray[np.int32]


NOBODY = Service(*(np.zeros(shape, np.int32) for shape in ((0, 3), (0, 0), (0, 0), (0,), (0, 0))))
"""Of lights that serve nobody but whom the wish serves."""


def service_of(plans: Sequence[SignalPlan]) -> Service:
    """That of the crossings with these plans."""
    actions, groups = max(len(plan.phases) for plan in plans), max(len(plan.groups) for plan in plans)
    lanes = [
        (i, lane, _bits(own)) for i, plan in enumerate(plans) for lane, own in zip(plan.in_lanes, plan.lane_groups, strict=True)
    ]
    opens, limits_s = np.zeros((len(plans), actions), np.int32), np.zeros((len(plans), 1 + groups), np.int32)
    conflicts = np.zeros((len(plans), groups), np.int32)
    for i, plan in enumerate(plans):
        opens[i, : len(plan.phases)] = [_bits(phase) for phase in plan.phases]
        conflicts[i, : len(plan.groups)] = [_bits(plan.conflicts_of(group)) for group in range(len(plan.groups))]
        limits_s[i, 0] = math.ceil(plan.longest_red_s)
        limits_s[i, 1 : 1 + len(plan.groups)] = [math.ceil(group.max_green_s) for group in plan.groups]
    served = [_bits(number for number, group in enumerate(plan.groups) if group.is_served) for plan in plans]
    return Service(np.array(lanes, np.int32), opens, conflicts, np.array(served, np.int32), limits_s)


def _bits(groups: Iterable[int]) -> int:
    return sum(1 << group for group in groups)
