"""Phase 5: speed and position of every running vehicle, from the old state into the new (sections 4.1, 5 and 6).

Vehicles are visited drivable by drivable, front first, so that a follower's leader is at hand; only old values are
read, so the order has no effect.
"""

from __future__ import annotations

import math

from streetflow.kernels.bits import clear_bit, list_set_bits, set_bit
from streetflow.kernels.car_following import TURNING_SPEED_MPS, greater, lesser, no_collision_root, stop_before
from streetflow.kernels.crossing import (
    ANNOUNCE_MARGIN_M,
    clear_announcing,
    mark_announcing,
    mark_link,
    yield_at_crossings,
)
from streetflow.kernels.index import index, kind_at
from streetflow.kernels.jit import helper
from streetflow.kernels.plan_ahead import go_on_as_planned
from streetflow.kernels.tables import (
    DELTA,
    FAULT_SLOT,
    HEADWAY_DIVISOR,
    HORIZON,
    LENGTH,
    MAX_FOUR_A,
    MAX_HALF_OVER_A,
    MAX_NEG_ACC,
    MAX_NEG_STEP,
    MAX_POS_STEP,
    MAX_SPEED,
    MIN_GAP,
    N_FREED,
    REVISITS,
    SAME_BRAKES,
    STANDING_REST,
    STEP,
    USUAL_FOUR_A,
    USUAL_HALF_OVER_A,
    USUAL_NEG_ACC,
    USUAL_NEG_STEP,
    State,
)

WAITING_SPEED_MPS = 0.1
_PASSABLE_SPEED_MPS = 2.0
_RAISED = 1.000001
_RAISED_BY_MPS = 0.001
OK = 0
FAULT_DEAD_END = 2
DEAD_END = -2  # in path


@helper
def hard_speed(s, k, u, lk, ul, gap, delta):  # type: ignore[no-untyped-def]
    """N of section 5 with full braking and no gap kept, behind a vehicle of kind row lk and speed ul."""
    bound = 2 * ul - s.kinds[lk + MAX_NEG_STEP] + 2 * gap / delta
    c = u * delta / 2 - 0.5 * ul * ul / s.kinds[lk + MAX_NEG_ACC] - gap
    return no_collision_root(c, delta, s.kinds[k + MAX_FOUR_A], s.kinds[k + MAX_HALF_OVER_A], bound)


@helper
def car_following_speed(s, k, u, lk, ul, gap, custom, delta):  # type: ignore[no-untyped-def]
    """Section 5's speed behind a leader of kind row lk and speed ul. custom: NaN or the speed asked for."""
    half_way = u * delta / 2
    if custom == custom:
        return lesser(custom, hard_speed(s, k, u, lk, ul, gap, delta))
    room = gap - s.kinds[k + MIN_GAP]
    bound = 2 * ul - s.kinds[lk + USUAL_NEG_STEP] + 2 * room / delta
    c = half_way + s.kinds[k + MIN_GAP] - 0.5 * ul * ul / s.kinds[lk + USUAL_NEG_ACC] - gap
    f = no_collision_root(c, delta, s.kinds[k + USUAL_FOUR_A], s.kinds[k + USUAL_HALF_OVER_A], bound)
    # With equal brakes the soft formula is monotone in the gap, in floating point too, so it is the lesser one.
    # Only where it has no solution (NO_SPEED) may the hard one be less, through its bound.
    if not (s.kinds[k + SAME_BRAKES] > 0.0 and s.kinds[lk + SAME_BRAKES] > 0.0 and f > -100.0):
        f = lesser(hard_speed(s, k, u, lk, ul, gap, delta), f)
    r = u - ul if u > ul else 0.0
    return lesser(f, (gap + (ul + r / 2) * delta - half_way) / s.kinds[k + HEADWAY_DIVISOR])


@helper
def is_free_behind(s, k, u, w, lk, ul, gap, delta):  # type: ignore[no-untyped-def]
    """Whether the car-following speed is certainly above w, so that it needn't be computed. False where that isn't certain.

    Each of its three terms is compared with w separately, multiplied out, which saves a root and four divisions: the soft
    no-collision root by putting w into its equation, its bound, and the headway term without r / 2, which isn't
    negative. (With equal brakes the hard formula gives no less than the soft one.) w is raised by more than any rounding
    error.
    """
    if not (s.kinds[k + SAME_BRAKES] > 0.0 and s.kinds[lk + SAME_BRAKES] > 0.0):
        return False
    w = w * _RAISED + _RAISED_BY_MPS
    half = 0.5 * delta
    room = gap - s.kinds[k + MIN_GAP]
    brakes = 0.25 * (s.kinds[k + USUAL_FOUR_A] * w * w - s.kinds[lk + USUAL_FOUR_A] * ul * ul)
    spare = lesser(room - (w + u) * half - brakes, room + (2 * ul - s.kinds[lk + USUAL_NEG_STEP] - w) * half)
    return lesser(spare, gap + ul * delta - u * half - w * s.kinds[k + HEADWAY_DIVISOR]) > 0.0


@helper
def intersection_speed(s, v, k, u, x, drivable, following, distance, speed, blocker):  # type: ignore[no-untyped-def]
    """(speed limit, blocker or -1) of section 6. following: the next drivable of v's path."""
    n_lanes = s.queue_head.size
    limit = s.kinds[k + MAX_SPEED]
    if drivable < n_lanes:
        link = index(following - n_lanes)
        rest = s.length[drivable] - x
        go = s.is_open[link] != 0
        if go:
            t = s.tail[index(s.end_lane[link])]
            go = t < 0 or distance[t] > s.kinds[kind_at(s, t) + LENGTH] + s.kinds[k + LENGTH] or speed[t] >= _PASSABLE_SPEED_MPS
        if not go and not 0.5 * u * u / s.kinds[k + MAX_NEG_ACC] > rest:
            return lesser(limit, stop_before(rest, u, k, s, s.reals[DELTA])), -1
        if s.is_turn[link]:
            limit = lesser(limit, TURNING_SPEED_MPS)
        along = -rest
    else:
        link = index(drivable - n_lanes)
        along = x
    return yield_at_crossings(s, v, k, u, along, link, limit, distance, speed, blocker)


@helper
def waits_at_red(s, k, following, rest):  # type: ignore[no-untyped-def]
    """Whether a standing vehicle, ``rest`` m before the end of its lane, stays where it is, whatever is ahead of it.

    Section 6.2 for u = 0: the light is red, and the speed to stop before the end is 0 (or NaN, which ends as 0).
    """
    link = following - s.queue_head.size
    return link >= 0 and s.is_open[index(link)] == 0 and rest <= s.kinds[k + STANDING_REST]


@helper
def wanted_speed(s, k, u, lead, lk, ul, gap, custom, speed_limit, limit, delta):  # type: ignore[no-untyped-def]
    """The speed of section 5 before its last max. limit: the intersection's, or inf. lk, ul: the leader's, if there is one."""
    w = s.kinds[k + MAX_SPEED]
    w = lesser(w, u + s.kinds[k + MAX_POS_STEP])
    w = lesser(w, speed_limit)
    if lead >= 0:
        if custom == custom or not is_free_behind(s, k, u, w, lk, ul, gap, delta):
            w = lesser(w, car_following_speed(s, k, u, lk, ul, gap, custom, delta))
    elif custom == custom:
        w = lesser(w, custom)
    return w if limit == math.inf else lesser(w, limit)


@helper
def moved_distance(s, k, u, w, delta):  # type: ignore[no-untyped-def]
    """Section 4.1: how far a vehicle moves that has chosen the speed w; a negative w means a stop."""
    return 0.5 * u * u / s.kinds[k + MAX_NEG_ACC] if w < 0 else (u + w) * delta / 2


@helper
def go_on(s, d, at, following, length):  # type: ignore[no-untyped-def]
    """(distance, index in path, drivable) of a vehicle that reaches distance d > length; negative ones end its trip.

    at, length: of the drivable that it leaves. following: the next one.
    """
    while True:
        d -= length
        at += 1
        if following < 0:
            return d, following, following
        length = s.length[following]
        if not d > length:
            return d, at, following
        following = s.path[index(at) + 1]


@helper
def note_mover(s, n_movers, v, at, drivable, to):  # type: ignore[no-untyped-def]
    """Note that v leaves ``drivable`` for ``to``, index ``at`` in path. Returns the number of movers."""
    s.mover[n_movers] = v
    s.mover_path_index[n_movers] = at
    s.mover_from[n_movers] = drivable
    s.mover_to[n_movers] = to
    return n_movers + 1


@helper
def act(s, distance, speed, blocker, new_distance, new_speed, new_blocker):  # type: ignore[no-untyped-def]
    """Phases 4 and 5. Fills s.mover with the vehicles that leave their drivable, in drivable order, front first.

    Returns (OK or FAULT_DEAD_END, number of movers). The lists aren't touched.
    """
    n_occupied = list_set_bits(s.occupied, s.listed)
    clear_announcing(s)
    mark_announcing(s, 0, n_occupied, distance, mark_link)
    stuck, n_movers = act_on(s, 0, n_occupied, 0, distance, speed, blocker, new_distance, new_speed, new_blocker)
    if stuck >= 0:
        s.counters[FAULT_SLOT] = stuck
        return FAULT_DEAD_END, 0
    return OK, n_movers


@helper
def act_on(  # type: ignore[no-untyped-def]
    s, first, end, n_movers, distance, speed, blocker, new_distance, new_speed, new_blocker
):
    """Phase 5 for the vehicles on the drivables listed[first:end]; s.mover is filled from n_movers on.

    Returns (the vehicle that comes to a dead end, or -1; where s.mover is filled to). It writes what belongs to these vehicles
    and drivables alone, and reads old values alone: so several threads may do a part each.
    """
    n_lanes = s.queue_head.size
    delta = s.reals[DELTA]
    step_done = s.counters[STEP] + 1
    for i in range(first, end):
        drivable = index(s.listed[i])
        v = s.head[drivable]
        length = s.length[drivable]
        speed_limit = s.speed_limit[drivable]
        on_lane = drivable < n_lanes
        leader = -1
        x_leader = 0.0
        some_stay_ahead = False
        n_moving = 0
        while v >= 0:
            x = distance[v]
            u = speed[v]
            k = kind_at(s, v)
            custom = s.custom_speed[v]
            next_v = s.behind[v]
            following = s.following[v]
            if leader < 0:
                if u == 0.0 and custom != custom and on_lane and waits_at_red(s, k, following, length - x):
                    new_distance[v] = x
                    new_speed[v] = 0.0
                    new_blocker[v] = -1
                    some_stay_ahead = True
                    leader = v
                    x_leader = x
                    v = next_v
                    continue
                lead = s.leader[v]
                gap = s.gap[v]
            else:
                lead = leader
                gap = x_leader - s.kinds[kind_at(s, leader) + LENGTH] - x
            leader = v
            x_leader = x
            lk = -1
            ul = 0.0
            stands = False
            if lead >= 0:
                lk = kind_at(s, lead)
                ul = speed[lead]
                if u == 0.0 and custom != custom:
                    room = gap - s.kinds[k + MIN_GAP]
                    stands = 2 * ul - s.kinds[lk + USUAL_NEG_STEP] + 2 * room / delta <= 0.0
                    if stands and some_stay_ahead and on_lane and x >= s.kinds[k + LENGTH] + ANNOUNCE_MARGIN_M:
                        # It can't be announced in the next step either, so which vehicle it yields to won't be read.
                        new_distance[v] = x
                        new_speed[v] = 0.0
                        new_blocker[v] = -1
                        v = next_v
                        continue
            blocked_by = -1
            limit = math.inf
            related = not on_lane or (following >= 0 and length - x <= s.kinds[k + HORIZON])
            if related:
                limit, blocked_by = intersection_speed(s, v, k, u, x, drivable, following, distance, speed, blocker)
            new_blocker[v] = blocked_by
            if stands:
                new_distance[v] = x
                new_speed[v] = 0.0
                some_stay_ahead = True
                v = next_v
                continue
            w = wanted_speed(s, k, u, lead, lk, ul, gap, custom, speed_limit, limit, delta)
            w = greater(w, u - s.kinds[k + MAX_NEG_STEP])
            if custom == custom:
                s.custom_speed[v] = math.nan
            d = moved_distance(s, k, u, w, delta) + x
            if w < 0:
                w = 0.0
            new_speed[v] = w
            if w >= WAITING_SPEED_MPS:
                s.moving_step[v] = step_done
                n_moving += 1
            if d > length:
                if s.counters[REVISITS]:
                    d, at, to = go_on_as_planned(s, v, d, drivable)
                else:
                    d, at, to = go_on(s, d, s.path_index[v], following, length)
                if at == DEAD_END:
                    return v, n_movers
                n_movers = note_mover(s, n_movers, v, at, drivable, to)
                n_moving += w < WAITING_SPEED_MPS  # slow, but it doesn't wait here
            else:
                some_stay_ahead = True
            new_distance[v] = d
            v = next_v
        s.n_waiting[drivable] = s.n_vehicles[drivable] - n_moving
    return -1, n_movers


@helper
def take_out(s: State, drivable: int, v: int) -> None:
    """Remove a vehicle from its drivable's list; nearly always it is the first one."""
    n_lanes = s.queue_head.size
    after = s.behind[v]
    if s.head[drivable] == v:
        s.head[drivable] = after
        if after < 0:
            s.tail[drivable] = -1
    else:
        ahead = s.head[drivable]
        while s.behind[ahead] != v:
            ahead = s.behind[ahead]
        s.behind[ahead] = after
        if after < 0:
            s.tail[drivable] = ahead
    if s.head[drivable] < 0:
        clear_bit(s.occupied, drivable)
    s.n_vehicles[drivable] -= 1
    if drivable >= n_lanes:
        s.out_count[s.start_lane[drivable - n_lanes]] -= 1


@helper
def free_slots_of_last_step(s, n_free_index, n_freed_index):  # type: ignore[no-untyped-def]
    """Slots freed in the last step may be used again: their blockers have been read for the last time."""
    for i in range(s.counters[n_freed_index]):
        s.free_slots[s.counters[n_free_index]] = s.freed_slots[i]
        s.counters[n_free_index] += 1
    s.counters[n_freed_index] = 0


@helper
def release(s: State, v: int) -> None:
    """Note the slot of a vehicle that has ended its trip; it is free from the next step on."""
    s.freed_slots[s.counters[N_FREED]] = v
    s.counters[N_FREED] += 1


@helper
def append(s, drivable, v, d, new_distance, step):  # type: ignore[no-untyped-def]
    """Append an arriving vehicle to a list; this step's arrivals are ordered by descending distance."""
    if s.arrival_step[drivable] != step:
        s.arrival_step[drivable] = step
        s.arrival_after[drivable] = s.tail[drivable]
    ahead = s.arrival_after[drivable]
    after = s.head[drivable] if ahead < 0 else s.behind[ahead]
    while after >= 0 and new_distance[after] >= d:
        ahead = after
        after = s.behind[after]
    s.behind[v] = after
    if ahead < 0:
        s.head[drivable] = v
    else:
        s.behind[ahead] = v
    if after < 0:
        s.tail[drivable] = v
    set_bit(s.occupied, drivable)
    s.n_vehicles[drivable] += 1
