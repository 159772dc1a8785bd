"""Lane changing: which vehicles want to change, which get a signal, which start (docs/cityflow-semantics.md, 10 b to d).

A vehicle that starts to change (its owner role) gets a shadow beside it on the target lane; `lane_action` moves
both. Where CityFlow's order depends on memory addresses, the order is that of creation. From 3 s on every vehicle but a
shadow has a signal of its own, with or without a target.
"""

from __future__ import annotations

import math

from streetflow.kernels.bits import list_set_bits
from streetflow.kernels.index import kind_at
from streetflow.kernels.jit import helper
from streetflow.kernels.lane_segments import cut_into_segments, find_ahead, find_behind, put_into_lane, put_into_segment
from streetflow.kernels.leader import find_leader
from streetflow.kernels.rng import draw_priority
from streetflow.kernels.tables import (
    DELTA,
    LENGTH,
    MAX_NEG_ACC,
    MAX_SPEED,
    N_CREATED,
    N_FREE,
    N_PRESENT,
    N_RUNNING,
    OWNER,
    RUNNING,
    SHADOW,
    SINGLE,
    STEP,
    State,
)

FIRST_CHANGE_S = 3.0
LEAST_REST_M = 30.0  # no change starts nearer to the lane's end


@helper
def braking_distance(s, v, speed):  # type: ignore[no-untyped-def]
    return 0.5 * speed[v] * speed[v] / s.kinds[kind_at(s, v) + MAX_NEG_ACC]


@helper
def room_ahead(s, lane, x, segment, distance):  # type: ignore[no-untyped-def]
    """The free length of a lane from x on, up to the next vehicle's rear or the lane's end, m."""
    v = find_ahead(s, lane, x, segment, distance)
    if v < 0:
        return s.length[lane] - x
    return distance[v] - x - s.kinds[kind_at(s, v) + LENGTH]


@helper
def choose_target(s, v, lane, distance):  # type: ignore[no-untyped-def]
    """Set target_path_index and direction of a vehicle on a lane, if a lane beside it has more room."""
    x = distance[v]
    gap = s.gap[v]
    k = kind_at(s, v)
    length = s.kinds[k + LENGTH]
    if s.length[lane] - x < LEAST_REST_M:
        return
    if gap > 2 * length + 4 * s.reals[DELTA] * s.kinds[k + MAX_SPEED] or gap < 1.5 * length:
        return
    outer = s.path_outer[s.path_index[v]]
    outer_room = 0.0
    if outer >= 0:
        outer_room = room_ahead(s, s.path[outer], x, s.segment[v], distance)
        if outer_room > gap + length:
            s.target_path_index[v] = outer
            s.direction[v] = 1
    inner = s.path_inner[s.path_index[v]]
    if inner >= 0:
        inner_room = room_ahead(s, s.path[inner], x, s.segment[v], distance)
        if inner_room > gap + length and inner_room > outer_room:
            s.target_path_index[v] = inner
            s.direction[v] = -1


@helper
def make_signals(s, n_occupied, distance):  # type: ignore[no-untyped-def]
    """Fill s.planner with the vehicles that change or want to, and forget the signals of the last step.

    listed[:n_occupied] are the drivables that hold vehicles. Returns the number of planners.
    """
    n_lanes = s.queue_head.size
    may_change = s.counters[STEP] * s.reals[DELTA] >= FIRST_CHANGE_S
    n = 0
    for i in range(n_occupied):
        drivable = s.listed[i]
        v = s.head[drivable]
        while v >= 0:
            s.signaller[v] = -1
            s.settled[v] = 0
            s.target_path_index[v] = -1
            if s.role[v] == OWNER:
                s.target_path_index[v] = s.path_index[s.partner[v]]
            elif s.role[v] == SINGLE:
                s.direction[v] = 0
                if may_change and drivable < n_lanes:
                    choose_target(s, v, drivable, distance)
            if s.target_path_index[v] >= 0:
                s.planner[n] = v
                n += 1
            v = s.behind[v]
    return n


@helper
def sort_by_creation(s: State, n: int) -> None:
    """Shell sort of the first n planners."""
    step = n // 2
    while step > 0:
        for i in range(step, n):
            v = s.planner[i]
            at = i
            while at >= step and s.serial[s.planner[at - step]] > s.serial[v]:
                s.planner[at] = s.planner[at - step]
                at -= step
            s.planner[at] = v
        step //= 2


@helper
def look_beside(s, v, lane, distance):  # type: ignore[no-untyped-def]
    """Set target leader, target follower and the gap to it. Returns the gap to the leader, or to the own lane's end."""
    x = distance[v]
    leader = find_ahead(s, lane, x, s.segment[v], distance)
    if leader >= 0:
        leader_gap = distance[leader] - x - s.kinds[kind_at(s, leader) + LENGTH]
    else:
        rest = s.length[s.path[s.path_index[v]]] - x
        leader_gap = rest
        best = math.inf
        for i in range(s.out_first[lane], s.out_first[lane + 1]):
            c = s.tail[s.out_links[i]]
            if c >= 0 and distance[c] + rest < best:
                best = distance[c] + rest
                length = s.kinds[kind_at(s, c) + LENGTH]
                if best < length:
                    leader = c
                    leader_gap = rest - (length - best)
    follower = find_behind(s, lane, x, s.segment[v], distance)
    s.target_leader[v] = leader
    s.target_follower[v] = follower
    s.follower_gap[v] = math.inf
    if follower >= 0:
        s.follower_gap[v] = x - distance[follower] - s.kinds[kind_at(s, v) + LENGTH]
    return leader_gap


@helper
def send_signal(s: State, v: int, other: int) -> None:
    """Vehicle v signals its change to another one (-1: none), which keeps the signal of highest priority."""
    if other < 0 or s.role[other] == OWNER:
        return
    held = s.signaller[other]
    if held >= 0 and s.priority[held] >= s.priority[v]:
        return
    if s.role[other] == SHADOW or s.priority[other] < s.priority[v]:
        s.signaller[other] = v


@helper
def insert_shadow(s, v, lane, distance, speed):  # type: ignore[no-untyped-def]
    """Start a change: a copy of the vehicle on the target lane. There must be a free slot."""
    s.counters[N_FREE] -= 1
    shadow = s.free_slots[s.counters[N_FREE]]
    s.priority[shadow] = draw_priority(s)
    s.status[shadow] = RUNNING
    s.serial[shadow] = s.counters[N_CREATED]
    s.counters[N_CREATED] += 1
    s.counters[N_PRESENT] += 1
    s.counters[N_RUNNING] += 1
    s.kind[shadow] = s.kind[v]
    s.route[shadow] = s.route[v]
    s.path_index[shadow] = s.target_path_index[v]
    s.place[shadow] = 0
    s.jump_from[shadow] = -1
    s.planned_end[shadow] = -1
    s.following[shadow] = s.path[s.target_path_index[v] + 1]
    s.previous[shadow] = s.previous[v]
    s.link_entry_step[shadow] = s.link_entry_step[v]
    s.leader[shadow] = s.leader[v]
    s.gap[shadow] = s.gap[v]
    s.blocker_0[shadow] = -1
    s.blocker_1[shadow] = -1
    distance[shadow] = distance[v]
    speed[shadow] = speed[v]
    s.custom_speed[shadow] = s.custom_speed[v]
    s.flow[shadow] = s.flow[v]
    s.ordinal[shadow] = s.ordinal[v]
    s.enter_step[shadow] = s.enter_step[v]
    s.entry_step[shadow] = s.entry_step[v]
    s.free_flow_s[shadow] = s.free_flow_s[v]
    s.moving_step[shadow] = s.moving_step[v]
    s.segment[shadow] = s.segment[v]
    s.offset[shadow] = 0.0
    s.direction[shadow] = 0
    s.target_path_index[shadow] = -1
    s.signaller[shadow] = -1
    s.settled[shadow] = 0
    s.role[shadow] = SHADOW
    s.role[v] = OWNER
    s.partner[shadow] = v
    s.partner[v] = shadow
    put_into_lane(s, lane, shadow, s.target_follower[v])
    put_into_segment(s, lane, shadow, distance)
    leader = s.target_leader[v]
    if leader >= 0 and s.path[s.path_index[leader]] == lane:
        s.leader[shadow] = leader
        s.gap[shadow] = distance[leader] - s.kinds[kind_at(s, leader) + LENGTH] - distance[shadow]
    else:
        find_leader(s, shadow, lane, distance)


@helper
def find_all_leaders(s, distance):  # type: ignore[no-untyped-def]
    """Leader and gap (section 7) of every running vehicle."""
    for i in range(list_set_bits(s.occupied, s.listed)):
        drivable = s.listed[i]
        ahead = s.head[drivable]
        find_leader(s, ahead, drivable, distance)
        v = s.behind[ahead]
        while v >= 0:
            s.leader[v] = ahead
            s.gap[v] = distance[ahead] - s.kinds[kind_at(s, ahead) + LENGTH] - distance[v]
            ahead = v
            v = s.behind[v]


@helper
def change_lanes(s, distance, speed):  # type: ignore[no-untyped-def]
    """The phases between entries and announcements. Returns the number of planners, now sorted by creation."""
    n_occupied = list_set_bits(s.occupied, s.listed)
    cut_into_segments(s, n_occupied, distance)
    n = make_signals(s, n_occupied, distance)
    sort_by_creation(s, n)
    for i in range(n):
        v = s.planner[i]
        lane = s.path[s.target_path_index[v]]
        leader_gap = look_beside(s, v, lane, distance)
        leader = s.target_leader[v]
        follower = s.target_follower[v]
        send_signal(s, v, leader)
        send_signal(s, v, follower)
        if s.signaller[v] >= 0 or s.role[v] != SINGLE or leader_gap < braking_distance(s, v, speed):
            continue
        if follower < 0 or s.follower_gap[v] >= braking_distance(s, follower, speed):
            insert_shadow(s, v, lane, distance, speed)
    find_all_leaders(s, distance)
    return n
