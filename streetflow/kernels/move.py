"""Phases 6 to 9: moves between lists, ends of trips, new leaders, the lights' own plan (sections 4.2, 7 and 8)."""

from __future__ import annotations

from streetflow.kernels.action import WAITING_SPEED_MPS, append, free_slots_of_last_step, release, take_out
from streetflow.kernels.bits import list_set_bits
from streetflow.kernels.car_following import lesser
from streetflow.kernels.entry import remove_vehicle
from streetflow.kernels.index import index, kind_at
from streetflow.kernels.jit import helper
from streetflow.kernels.leader import find_leader
from streetflow.kernels.plan_ahead import arrive
from streetflow.kernels.tables import (
    DELTA,
    DONE,
    FINISHED_TIME,
    MAX_SPEED,
    N_FINISHED,
    N_FREE,
    N_FREED,
    N_RUNNING,
    N_TRIPS,
    NO_ENTRY_STEP,
    REVISITS,
    SINGLE,
    STEP,
    State,
)


@helper
def move(s, n_movers, new_distance, new_speed):  # type: ignore[no-untyped-def]
    """Phase 6: take the movers out of their lists, end trips, then append the rest to their new lists."""
    n_lanes = s.queue_head.size
    step = s.counters[STEP]
    now = step * s.reals[DELTA]
    free_slots_of_last_step(s, N_FREE, N_FREED)
    for i in range(n_movers):
        v = index(s.mover[i])
        drivable = index(s.mover_from[i])
        take_out(s, drivable, v)
        s.previous[v] = drivable
        if not s.counters[REVISITS]:
            add_free_flow(s, v, drivable, s.mover_path_index[i])
        if s.mover_path_index[i] < 0:
            s.counters[N_RUNNING] -= 1
            if s.role[v] != DONE:
                s.counters[N_FINISHED] += 1
                s.reals[FINISHED_TIME] += now - s.enter_step[v] * s.reals[DELTA]
            if s.role[v] == SINGLE:
                record_trip(s, v, step)
            remove_vehicle(s, v)
            release(s, v)
    for i in range(n_movers):
        if s.mover_path_index[i] < 0:
            continue
        v = index(s.mover[i])
        at = index(s.mover_path_index[i])
        drivable = index(s.mover_to[i])
        s.path_index[v] = at
        s.following[v] = s.end_lane[drivable - n_lanes] if drivable >= n_lanes else s.path[at + 1]
        append(s, drivable, v, new_distance[v], new_distance, step)
        s.n_waiting[drivable] += new_speed[v] < WAITING_SPEED_MPS
        if drivable >= n_lanes:
            s.link_entry_step[v] = step
            s.out_count[s.start_lane[drivable - n_lanes]] += 1
        else:
            s.link_entry_step[v] = NO_ENTRY_STEP
            if s.counters[REVISITS]:
                arrive(s, v)
            else:
                s.place[v] = s.route_position[at]


@helper
def add_free_flow(s: State, v: int, drivable: int, end: int) -> None:
    """Add the undisturbed time over the drivables that v leaves, this one first: those before path[end], or (-1) the rest."""
    max_speed = s.kinds[kind_at(s, v) + MAX_SPEED]
    at = s.path_index[v]
    while drivable >= 0:
        s.free_flow_s[v] += s.length[drivable] / lesser(max_speed, s.speed_limit[drivable])
        at += 1
        if at == end:
            break
        drivable = s.path[index(at)]


@helper
def record_trip(s: State, v: int, step: int) -> None:
    """Append v's finished trip to the record of trips; there must be room."""
    trip = s.counters[N_TRIPS]
    s.trip_flow[trip] = s.flow[v]
    s.trip_ordinal[trip] = s.ordinal[v]
    s.trip_created[trip] = s.enter_step[v]
    s.trip_entered[trip] = s.entry_step[v]
    s.trip_ended[trip] = step
    s.trip_free_flow_s[trip] = s.free_flow_s[v]
    s.counters[N_TRIPS] += 1


@helper
def find_leaders(s, distance):  # type: ignore[no-untyped-def]
    """Phase 8, for the first vehicle of every list; all others follow the one before them in the list."""
    find_leaders_on(s, 0, list_set_bits(s.occupied, s.listed), distance)


@helper
def find_leaders_on(s, first, end, distance):  # type: ignore[no-untyped-def]
    """`find_leaders` on the drivables listed[first:end]. It writes what belongs to their first vehicles alone."""
    for i in range(first, end):
        drivable = index(s.listed[i])
        find_leader(s, index(s.head[drivable]), drivable, distance)


@helper
def show_phase(s: State, intersection: int, phase: int) -> None:
    """Open exactly the lane links of a phase."""
    s.phase_index[intersection] = phase
    for link in range(s.link_first[intersection], s.link_first[intersection + 1]):
        s.is_open[link] = 0
    row = s.phase_first[intersection] + phase
    for i in range(s.phase_link_first[row], s.phase_link_first[row + 1]):
        s.is_open[s.phase_links[i]] = 1


@helper
def run_own_lights(s: State) -> None:
    """Phase 9 where the lights run by their own plan."""
    delta = s.reals[DELTA]
    for i in range(s.phase_index.size):
        n_phases = s.phase_first[i + 1] - s.phase_first[i]
        if n_phases == 0:
            continue
        phase = s.phase_index[i]
        s.phase_remaining[i] -= delta
        while s.phase_remaining[i] <= 0.0:
            phase = (phase + 1) % n_phases
            s.phase_remaining[i] += s.phase_time[s.phase_first[i] + phase]
        if phase != s.phase_index[i]:
            show_phase(s, i, phase)
