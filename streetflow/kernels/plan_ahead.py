"""Where vehicles go on whose routes come back to a road (docs/cityflow-semantics.md, section 3.3).

CityFlow plans a vehicle's path piece by piece, as the vehicle looks ahead, and looks each lane's road up by its name, from the
vehicle's place in the route onwards. What is planned stays. So a vehicle that sees a road's second visit before it has been on
the first one takes it for the first. ``path`` holds the paths as the routes say; here a vehicle may jump in it, from a lane at
one visit of its road to the same lane at another visit. Of the jumps on what is planned of its way, up to JUMPS are kept. All
this is needed only where counters[REVISITS] is set.
"""

from __future__ import annotations

from streetflow.kernels.car_following import lesser
from streetflow.kernels.index import kind_at
from streetflow.kernels.jit import helper
from streetflow.kernels.tables import MAX_SPEED

JUMPS = 3


@helper
def visit_from_place(s, v, at):  # type: ignore[no-untyped-def]
    """Index in path of the lane path[at] at the first visit of its road from v's place on; ``at`` itself if there is none."""
    visit = s.first_visit[at]
    while visit >= 0 and s.route_position[visit] < s.place[v]:
        visit = s.next_visit[visit]
    return visit if visit >= 0 else at


@helper
def planned_jump(s, v, i):  # type: ignore[no-untyped-def]
    """(from, to), indices in path, of the i-th jump that lies ahead of v; (-1, -1) if there are no more."""
    if i == 0:
        return s.jump_from[v], s.jump_to[v]
    if i == 1:
        return s.jump_from_1[v], s.jump_to_1[v]
    if i == 2:
        return s.jump_from_2[v], s.jump_to_2[v]
    return -1, -1


@helper
def plan_jump(s, v, i, start, end):  # type: ignore[no-untyped-def]
    """Set the i-th jump, the last one from now on."""
    if i == 0:
        s.jump_from[v], s.jump_to[v] = start, end
        s.jump_from_1[v] = -1
    elif i == 1:
        s.jump_from_1[v], s.jump_to_1[v] = start, end
        s.jump_from_2[v] = -1
    else:
        s.jump_from_2[v], s.jump_to_2[v] = start, end


@helper
def jump_done(s, v):  # type: ignore[no-untyped-def]
    """Drop the first jump: v has made it."""
    s.jump_from[v], s.jump_to[v] = s.jump_from_1[v], s.jump_to_1[v]
    s.jump_from_1[v], s.jump_to_1[v] = s.jump_from_2[v], s.jump_to_2[v]
    s.jump_from_2[v] = -1


@helper
def next_planned(s, v, at, jumps):  # type: ignore[no-untyped-def]
    """(index in path, jumps) of what follows the lane path[at] on v's way; it is planned now if it wasn't before.

    jumps: how many v's way to ``at`` leads over. Where the way ends, or comes to a dead end, nothing is planned: it is looked
    up again.
    """
    start, end = planned_jump(s, v, jumps)
    if start >= 0:
        if at == start:
            return end + 1, jumps + 1
        return at + 1, jumps
    if at < s.planned_end[v]:
        return at + 1, jumps
    visit = visit_from_place(s, v, at)
    if s.path[visit + 1] < 0:
        return visit + 1, jumps
    if s.route_position[visit] == s.route_position[at]:
        s.planned_end[v] = at + 1
        return at + 1, jumps
    if jumps < JUMPS:
        plan_jump(s, v, jumps, at, visit)
        s.planned_end[v] = visit + 1
        jumps += 1
    return visit + 1, jumps


@helper
def first_planned(s, v):  # type: ignore[no-untyped-def]
    """(index in path, jumps) of what follows the drivable that v is on."""
    at = s.path_index[v] + 0
    if s.path[at] >= s.queue_head.size:
        return at + 1, 0
    return next_planned(s, v, at, 0)


@helper
def arrive(s, v):  # type: ignore[no-untyped-def]
    """v's place and the drivable after it, now that a step has brought it to path_index on a lane."""
    s.place[v] = s.route_position[visit_from_place(s, v, s.path_index[v] + 0)]
    at, _ = first_planned(s, v)
    s.following[v] = s.path[at]


@helper
def go_on_as_planned(s, v, d, drivable):  # type: ignore[no-untyped-def]
    """`action.go_on` for such a vehicle on a drivable. It adds the undisturbed time, too, and drops a jump once it is done."""
    n_lanes = s.queue_head.size
    max_speed = s.kinds[kind_at(s, v) + MAX_SPEED]
    at = s.path_index[v] + 0
    while True:
        length = s.length[drivable]
        if not d > length:
            return d, at, drivable
        d -= length
        s.free_flow_s[v] += length / lesser(max_speed, s.speed_limit[drivable])
        if drivable < n_lanes:
            at, jumps = next_planned(s, v, at, 0)
            if jumps > 0:
                jump_done(s, v)
        else:
            at += 1
        drivable = s.path[at] + 0
        if drivable < 0:
            return d, drivable, drivable
