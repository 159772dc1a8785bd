"""The compiled entry point that steps with lane changing. It is compiled only where an engine changes lanes."""

from __future__ import annotations

from streetflow.kernels.action import OK
from streetflow.kernels.entry import enter_lanes, plan_pending, run_flows
from streetflow.kernels.jit import entry_point, helper
from streetflow.kernels.lane_action import act_changing
from streetflow.kernels.lane_change import change_lanes, find_all_leaders
from streetflow.kernels.move import move
from streetflow.kernels.step import begin_step, end_step
from streetflow.kernels.tables import BROKEN, FLIP, N_PRESENT, State, unpack


@helper
def one_step_changing(s: State) -> int:
    """`step.one_step` with what section 10 adds to it: each vehicle may need a slot for a shadow."""
    fault = begin_step(s, 2, s.counters[N_PRESENT])
    if fault != OK:
        return fault
    flip = s.counters[FLIP]
    distance = s.distance_1 if flip else s.distance_0
    new_distance = s.distance_0 if flip else s.distance_1
    speed = s.speed_1 if flip else s.speed_0
    new_speed = s.speed_0 if flip else s.speed_1
    blocker = s.blocker_1 if flip else s.blocker_0
    new_blocker = s.blocker_0 if flip else s.blocker_1
    run_flows(s)
    plan_pending(s)
    enter_lanes(s, distance)
    n_planners = change_lanes(s, distance, speed)
    fault, n_movers = act_changing(s, n_planners, distance, speed, blocker, new_distance, new_speed, new_blocker)
    if fault != OK:
        s.counters[BROKEN] = 1
        return fault
    move(s, n_movers, new_distance, new_speed)
    find_all_leaders(s, new_distance)
    end_step(s)
    return OK


@entry_point
def step_many(net_i, net_f, veh_i, veh_f, offsets, n_steps):  # type: ignore[no-untyped-def]
    """Run up to n_steps steps. Returns OK, or the fault of the step that counters[STEP] names."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    for _ in range(n_steps):
        fault = one_step_changing(s)
        if fault != OK:
            return fault
    return OK
