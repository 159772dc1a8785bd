"""Lane changing: speeds and moves with owners and shadows (docs/cityflow-semantics.md, 10, Actions).

Owner and shadow drive at the lesser of their speeds. CityFlow treats vehicles one by one; the order matters only where an
owner completes its change: it forgets the vehicles around it, and those that it signalled to and that come after it yield
by the follower gap alone. So speeds are computed in
three passes: what every vehicle would do without signals, the pairs in order of creation, the others.
"""

from __future__ import annotations

import math

from streetflow.kernels.action import (
    DEAD_END,
    FAULT_DEAD_END,
    OK,
    WAITING_SPEED_MPS,
    go_on,
    hard_speed,
    intersection_speed,
    moved_distance,
    note_mover,
    wanted_speed,
)
from streetflow.kernels.bits import list_set_bits
from streetflow.kernels.car_following import greater, lesser, no_collision_root
from streetflow.kernels.crossing import clear_announcing, mark_announcing, mark_link
from streetflow.kernels.index import kind_at
from streetflow.kernels.jit import helper
from streetflow.kernels.lane_change import braking_distance
from streetflow.kernels.plan_ahead import go_on_as_planned
from streetflow.kernels.tables import (
    ABORTED,
    DELTA,
    DONE,
    FAULT_SLOT,
    HORIZON,
    MAX_FOUR_A,
    MAX_HALF_OVER_A,
    MAX_NEG_STEP,
    MIN_GAP,
    OWNER,
    REVISITS,
    SINGLE,
    STEP,
)

NO_LIMIT_MPS = 100.0
LEAST_SIDEWAYS_MPS = 1.0
SIDEWAYS_SHARE = 0.2  # of the speed


@helper
def let_in_speed(s, v, k, u, source, is_done, speed):  # type: ignore[no-untyped-def]
    """The limit of a vehicle that has received a signal: keep clear of the vehicle that changes in front of it.

    is_done: the source has completed its change before this vehicle's turn. It has forgotten its target leader and follower.
    """
    if not is_done and s.target_leader[source] == v:
        return NO_LIMIT_MPS
    gap = s.follower_gap[source]
    follower = s.target_follower[source]
    if follower >= 0 and not is_done:
        gap -= braking_distance(s, follower, speed)
    limit = hard_speed(s, k, u, kind_at(s, source), speed[source], gap, s.reals[DELTA])
    return NO_LIMIT_MPS if limit < 0 else limit


@helper
def settle_speed(s, v, serial, wanted, distance, speed):  # type: ignore[no-untyped-def]
    """The speed that vehicle v chooses when it is the turn of ``serial``. wanted: its speed without lane changing."""
    k = kind_at(s, v)
    u = speed[v]
    limit = NO_LIMIT_MPS
    source = s.signaller[v]
    if source >= 0:
        is_done = s.role[source] == DONE and s.serial[source] < serial
        limit = let_in_speed(s, v, k, u, source, is_done, speed)
    w = lesser(wanted, limit)
    if s.following[v] == DEAD_END:
        delta = s.reals[DELTA]
        min_gap = s.kinds[k + MIN_GAP]
        rest = s.length[s.path[s.path_index[v]]] - distance[v]
        bound = -1.0 * delta + 2 * (rest - min_gap) / delta
        c = u * delta / 2 + min_gap - rest
        w = lesser(w, no_collision_root(c, delta, s.kinds[k + MAX_FOUR_A], s.kinds[k + MAX_HALF_OVER_A], bound))
    return greater(w, u - s.kinds[k + MAX_NEG_STEP])


@helper
def want_speeds(s, n_occupied, distance, speed, blocker, new_speed, new_blocker):  # type: ignore[no-untyped-def]
    """First pass: new_speed becomes each vehicle's speed before lane changing and the limit of its brakes are applied."""
    n_lanes = s.queue_head.size
    delta = s.reals[DELTA]
    for i in range(n_occupied):
        drivable = s.listed[i]
        v = s.head[drivable]
        while v >= 0:
            x = distance[v]
            u = speed[v]
            k = kind_at(s, v)
            lead = s.leader[v]
            lk = kind_at(s, lead) if lead >= 0 else 0
            ul = speed[lead] if lead >= 0 else 0.0
            following = s.following[v]
            limit = math.inf
            blocked_by = -1
            if drivable >= n_lanes or (following >= 0 and s.length[drivable] - x <= s.kinds[k + HORIZON]):
                limit, blocked_by = intersection_speed(s, v, k, u, x, drivable, following, distance, speed, blocker)
            new_blocker[v] = blocked_by
            new_speed[v] = wanted_speed(
                s, k, u, lead, lk, ul, s.gap[v], s.custom_speed[v], s.speed_limit[drivable], limit, delta
            )
            s.custom_speed[v] = math.nan
            v = s.behind[v]


@helper
def leaves_lane(s, v, w, distance, speed):  # type: ignore[no-untyped-def]
    moved = moved_distance(s, kind_at(s, v), speed[v], w, s.reals[DELTA])
    return moved + distance[v] > s.length[s.path[s.path_index[v]]]


@helper
def drive_pairs(s, n_planners, distance, speed, new_speed):  # type: ignore[no-untyped-def]
    """Second pass: speeds of owners and shadows, and whether their change is complete or aborted."""
    for i in range(n_planners):
        v = s.planner[i]
        if s.role[v] != OWNER:
            continue
        shadow = s.partner[v]
        serial = s.serial[v]
        w = settle_speed(s, v, serial, new_speed[v], distance, speed)
        w = lesser(settle_speed(s, shadow, serial, new_speed[shadow], distance, speed), w)
        new_speed[v] = w
        new_speed[shadow] = w
        s.settled[v] = 1
        s.settled[shadow] = 1
        direction = s.direction[v]
        bound = (s.lane_width[s.path[s.path_index[shadow]]] + s.lane_width[s.path[s.path_index[v]]]) / 2
        sideways = greater(SIDEWAYS_SHARE * w, LEAST_SIDEWAYS_MPS) * s.reals[DELTA]
        offset = lesser(abs(s.offset[v] + sideways * direction), bound)
        s.offset[v] = offset * direction
        if offset >= bound:
            s.role[v] = DONE
            s.role[shadow] = SINGLE
            s.partner[shadow] = -1
        elif leaves_lane(s, v, w, distance, speed) or leaves_lane(s, shadow, w, distance, speed):
            # CityFlow crashes if the owner alone leaves its lane; here that aborts the change, as when the shadow leaves.
            s.role[shadow] = ABORTED
            s.role[v] = SINGLE
            s.partner[v] = -1
            s.offset[v] = 0.0


@helper
def act_changing(s, n_planners, distance, speed, blocker, new_distance, new_speed, new_blocker):  # type: ignore[no-untyped-def]
    """Phases 4 and 5 with lane changing; see `action.act`."""
    delta = s.reals[DELTA]
    step_done = s.counters[STEP] + 1
    n_occupied = list_set_bits(s.occupied, s.listed)
    clear_announcing(s)
    mark_announcing(s, 0, n_occupied, distance, mark_link)
    want_speeds(s, n_occupied, distance, speed, blocker, new_speed, new_blocker)
    drive_pairs(s, n_planners, distance, speed, new_speed)
    n_movers = 0
    for i in range(n_occupied):
        drivable = s.listed[i]
        v = s.head[drivable]
        n_waiting = 0
        while v >= 0:
            if s.role[v] >= ABORTED:
                n_movers = note_mover(s, n_movers, v, -1, drivable, -1)
                v = s.behind[v]
                continue
            w = new_speed[v]
            if not s.settled[v]:
                w = settle_speed(s, v, s.serial[v], w, distance, speed)
            d = moved_distance(s, kind_at(s, v), speed[v], w, delta) + distance[v]
            if w < 0:
                w = 0.0
            new_speed[v] = w
            if w >= WAITING_SPEED_MPS:
                s.moving_step[v] = step_done
            if d > s.length[drivable]:
                if s.counters[REVISITS]:
                    d, at, to = go_on_as_planned(s, v, d, drivable)
                else:
                    d, at, to = go_on(s, d, s.path_index[v], s.following[v], s.length[drivable])
                if at == DEAD_END:
                    s.counters[FAULT_SLOT] = v
                    return FAULT_DEAD_END, 0
                n_movers = note_mover(s, n_movers, v, at, drivable, to)
            else:
                n_waiting += w < WAITING_SPEED_MPS
            new_distance[v] = d
            v = s.behind[v]
        s.n_waiting[drivable] = n_waiting
    return OK, n_movers
