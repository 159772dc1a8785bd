"""The compiled entry points that change the engine's state: steps, lights, a vehicle pushed in."""

from __future__ import annotations

from streetflow.kernels.action import FAULT_DEAD_END, OK, act
from streetflow.kernels.entry import create_vehicle, enter_lanes, plan_pending, run_flows, start_flows
from streetflow.kernels.jit import entry_point, helper
from streetflow.kernels.move import find_leaders, move, run_own_lights, show_phase
from streetflow.kernels.tables import (
    BROKEN,
    DELTA,
    FLIP,
    N_ACTIVE_FLOWS,
    N_FREE,
    N_NEEDED,
    N_PRESENT,
    N_TRIPS,
    OWN_LIGHTS,
    STEP,
    TIDY_STEP,
    State,
    unpack,
)

FAULT_NO_SLOTS = 1
FAULT_UNTIDY = 3
__all__ = ["FAULT_DEAD_END", "FAULT_NO_SLOTS", "FAULT_UNTIDY", "OK", "push", "set_phases", "step_many"]


@helper
def begin_step(s: State, slots_per_vehicle: int, n_others: int) -> int:
    """Start flows; check that there are slots for the vehicles that they may create and n_others more, and room for trips."""
    if s.counters[BROKEN]:
        return FAULT_DEAD_END
    if s.counters[STEP] >= s.counters[TIDY_STEP]:
        return FAULT_UNTIDY
    start_flows(s)
    most_new = s.counters[N_ACTIVE_FLOWS] * (int(s.reals[DELTA]) + 2)
    most_trips = s.counters[N_TRIPS] + s.counters[N_PRESENT] + most_new
    s.counters[N_NEEDED] = most_new * slots_per_vehicle + n_others
    if s.counters[N_NEEDED] > s.counters[N_FREE] or most_trips > s.trip_flow.size:
        return FAULT_NO_SLOTS
    return OK


@helper
def end_step(s: State) -> None:
    """The new values become current; then the lights' own plan, if they have one."""
    s.counters[FLIP] = 1 - s.counters[FLIP]
    if s.counters[OWN_LIGHTS]:
        run_own_lights(s)
    s.counters[STEP] += 1


@helper
def one_step(s: State) -> int:
    """The eleven phases of section 4 except the replay line. Returns OK or a fault.

    After FAULT_NO_SLOTS nothing has happened and the step can be tried again with more slots (of vehicles or trips).
    """
    fault = begin_step(s, 1, 0)
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
    fault, n_movers = act(s, distance, speed, blocker, new_distance, new_speed, new_blocker)
    if fault != OK:
        s.counters[BROKEN] = 1
        return fault
    move(s, n_movers, new_distance, new_speed)
    find_leaders(s, new_distance)
    end_step(s)
    return OK


@entry_point
def step_many(net_i, net_f, veh_i, veh_f, offsets, n_steps):  # type: ignore[no-untyped-def]
    """Run up to n_steps steps. Returns OK, or the fault of the step that counters[STEP] names."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    for _ in range(n_steps):
        fault = one_step(s)
        if fault != OK:
            return fault
    return OK


@entry_point
def set_phases(net_i, net_f, veh_i, veh_f, offsets, phases):  # type: ignore[no-untyped-def]
    """Show phases[i] at each intersection i, unless it is negative."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    for i in range(phases.size):
        if phases[i] >= 0 and phases[i] != s.phase_index[i]:
            show_phase(s, i, phases[i])


@entry_point
def push(net_i, net_f, veh_i, veh_f, offsets, kind, route, ordinal, speed):  # type: ignore[no-untyped-def]
    """Create a vehicle from outside; there must be a free slot. Returns the slot."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    return create_vehicle(s, kind, route, -1, ordinal, speed)
