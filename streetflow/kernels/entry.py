"""Phases 1 to 3 of a step: flows create vehicles, routes are planned, vehicles enter (sections 3 and 4)."""

from __future__ import annotations

import math

from streetflow.kernels.bits import clear_bit, list_set_bits, set_bit
from streetflow.kernels.index import kind_at
from streetflow.kernels.jit import helper
from streetflow.kernels.leader import find_leader
from streetflow.kernels.rng import draw, draw_priority
from streetflow.kernels.tables import (
    DELTA,
    FLOW_CLOCK,
    FREE,
    LENGTH,
    MIN_GAP,
    N_ACTIVE_FLOWS,
    N_CREATED,
    N_FREE,
    N_PENDING,
    N_PRESENT,
    N_RUNNING,
    NEXT_EVENT,
    NO_ENTRY_STEP,
    PENDING,
    PRIORITY_BUCKETS,
    RUNNING,
    SINGLE,
    STEP,
    WAITING,
    State,
)


@helper
def start_flows(s: State) -> None:
    """Make the flows active that have reached their start time; active flows stay in file order."""
    clock = s.reals[FLOW_CLOCK]
    while s.counters[NEXT_EVENT] < s.flow_order.size:
        flow = s.flow_order[s.counters[NEXT_EVENT]]
        if clock < s.flow_start[flow]:
            break
        s.counters[NEXT_EVENT] += 1
        if s.flow_dropped[flow] or (s.flow_end[flow] != -1 and clock > s.flow_end[flow]):
            continue
        at = s.counters[N_ACTIVE_FLOWS]
        while at > 0 and s.active_flows[at - 1] > flow:
            s.active_flows[at] = s.active_flows[at - 1]
            at -= 1
        s.active_flows[at] = flow
        s.counters[N_ACTIVE_FLOWS] += 1


@helper
def create_vehicle(s: State, kind: int, route: int, flow: int, ordinal: int, speed: float) -> int:
    """Create a vehicle in a free slot (there must be one), to be planned in phase 2. Returns the slot."""
    priority = draw_priority(s)
    draw(s)  # CityFlow picks a thread with it
    s.counters[N_FREE] -= 1
    v = s.free_slots[s.counters[N_FREE]]
    s.status[v] = PENDING
    s.kind[v] = kind
    s.priority[v] = priority
    s.route[v] = route
    s.path_index[v] = -1
    s.place[v] = 0
    s.jump_from[v] = -1
    s.planned_end[v] = -1
    s.behind[v] = -1
    s.previous[v] = -1
    s.link_entry_step[v] = NO_ENTRY_STEP
    s.leader[v] = -1
    s.gap[v] = math.inf
    s.blocker_0[v] = -1
    s.blocker_1[v] = -1
    s.distance_0[v] = 0.0
    s.distance_1[v] = 0.0
    s.speed_0[v] = speed
    s.speed_1[v] = speed
    s.custom_speed[v] = math.nan
    s.flow[v] = flow
    s.ordinal[v] = ordinal
    s.enter_step[v] = s.counters[STEP]
    s.entry_step[v] = -1
    s.free_flow_s[v] = 0.0
    s.moving_step[v] = s.counters[STEP]
    s.serial[v] = s.counters[N_CREATED]
    s.role[v] = SINGLE
    s.partner[v] = -1
    s.offset[v] = 0.0
    s.direction[v] = 0
    s.counters[N_CREATED] += 1
    s.pending[s.counters[N_PENDING]] = v
    s.counters[N_PENDING] += 1
    s.counters[N_PRESENT] += 1
    return v


@helper
def run_flows(s: State) -> None:
    """Phase 1: create the vehicles of the active flows, in file order; flows that have ended become inactive."""
    delta = s.reals[DELTA]
    clock = s.reals[FLOW_CLOCK]
    kept = 0
    for i in range(s.counters[N_ACTIVE_FLOWS]):
        flow = s.active_flows[i]
        if s.flow_end[flow] != -1 and clock > s.flow_end[flow]:
            continue
        interval = s.flow_interval[flow]
        credit = s.flow_credit[flow]
        while credit >= interval:
            create_vehicle(s, s.flow_kind[flow], s.flow_route[flow], flow, s.flow_counter[flow], 0.0)
            s.flow_counter[flow] += 1
            credit -= interval
        s.flow_credit[flow] = credit + delta
        if s.route_count[s.flow_route[flow]] == 0:
            s.flow_dropped[flow] = 1  # what it created is removed in phase 2
            continue
        s.active_flows[kept] = flow
        kept += 1
    s.counters[N_ACTIVE_FLOWS] = kept
    s.reals[FLOW_CLOCK] = clock + delta


@helper
def plan_pending(s: State) -> None:
    """Phase 2, by first road, then by creation: draw a vehicle's entry lane at random, or remove it if its route is invalid."""
    n = s.counters[N_PENDING]
    s.counters[N_PENDING] = 0
    for i in range(1, n):
        v = s.pending[i]
        road = s.route_road[s.route[v]]
        at = i
        while at > 0 and s.route_road[s.route[s.pending[at - 1]]] > road:
            s.pending[at] = s.pending[at - 1]
            at -= 1
        s.pending[at] = v
    for i in range(n):
        v = s.pending[i]
        route = s.route[v]
        if s.route_count[route] == 0:
            remove_vehicle(s, v)
            s.free_slots[s.counters[N_FREE]] = v
            s.counters[N_FREE] += 1
            continue
        s.path_index[v] = s.candidate[s.route_first[route] + draw(s) % int(s.route_count[route])]
        s.status[v] = WAITING
        lane = s.path[s.path_index[v]]
        if s.queue_tail[lane] < 0:
            s.queue_head[lane] = v
            set_bit(s.queued, lane)
        else:
            s.behind[s.queue_tail[lane]] = v
        s.queue_tail[lane] = v


@helper
def remove_vehicle(s: State, v: int) -> None:
    """Remove a vehicle from the engine; its slot isn't free yet."""
    s.status[v] = FREE
    s.priority_uses[s.priority[v] & (PRIORITY_BUCKETS - 1)] -= 1
    s.counters[N_PRESENT] -= 1


@helper
def enter_lanes(s: State, distance) -> None:  # type: ignore[no-untyped-def]
    """Phase 3: the first vehicle of each entry queue drives on if the lane's last vehicle leaves room."""
    for i in range(list_set_bits(s.queued, s.listed)):
        lane = s.listed[i]
        v = s.queue_head[lane]
        k = kind_at(s, v)
        t = s.tail[lane]
        if t >= 0 and not distance[t] > s.kinds[kind_at(s, t) + LENGTH] + s.kinds[k + MIN_GAP]:
            continue
        s.queue_head[lane] = s.behind[v]
        if s.queue_head[lane] < 0:
            s.queue_tail[lane] = -1
            clear_bit(s.queued, lane)
        s.behind[v] = -1
        s.status[v] = RUNNING
        s.following[v] = s.path[s.path_index[v] + 1]
        s.entry_step[v] = s.counters[STEP]
        s.moving_step[v] = s.counters[STEP]
        if t >= 0:
            s.behind[t] = v
            s.gap[v] = distance[t] - s.kinds[kind_at(s, t) + LENGTH] - distance[v]
        else:
            s.head[lane] = v
        s.tail[lane] = v
        set_bit(s.occupied, lane)
        s.n_vehicles[lane] += 1
        s.counters[N_RUNNING] += 1
        if t < 0:
            find_leader(s, v, lane, distance)
