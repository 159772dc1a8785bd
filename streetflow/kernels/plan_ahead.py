"""Where vehicles go on whose routes come back to a road (docs/cityflow-semantics.md, section 3.3).

CityFlow plans a vehicle's path piece by piece, as the vehicle looks ahead, and looks each lane's road up by its name, from the
vehicle's place in the route onwards. What is planned stays. So a vehicle that sees a road's second visit before it has been on
the first one takes it for the first. ``path`` holds the paths as the routes say; here a vehicle may jump in it, from a lane at
one visit of its road to the same lane at another visit. One jump is kept for each vehicle. All this is needed only where
counters[REVISITS] is set.
"""

from __future__ import annotations

from streetflow.kernels.car_following import lesser
from streetflow.kernels.index import kind_at
from streetflow.kernels.jit import helper
from streetflow.kernels.tables import MAX_SPEED


@helper
def visit_from_place(s, v, at):  # type: ignore[no-untyped-def]
    """Index in path of the lane path[at] at the first visit of its road from v's place on; ``at`` itself if there is none."""
    visit = s.first_visit[at]
    while visit >= 0 and s.route_position[visit] < s.place[v]:
        visit = s.next_visit[visit]
    return visit if visit >= 0 else at


@helper
def next_planned(s, v, at, jumped):  # type: ignore[no-untyped-def]
    """(index in path, jumped) of what follows the lane path[at] on v's way; it is planned now if it wasn't before.

    jumped: v's way to ``at`` has led over its jump.
    """
    if s.jump_from[v] >= 0 and not jumped:
        if at == s.jump_from[v]:
            return s.jump_to[v] + 1, True
        return at + 1, False
    if at < s.planned_end[v]:
        return at + 1, jumped
    visit = visit_from_place(s, v, at)
    if s.route_position[visit] != s.route_position[at]:
        if not jumped:
            s.jump_from[v] = at
            s.jump_to[v] = visit
            s.planned_end[v] = visit + 1
        return visit + 1, True
    s.planned_end[v] = at + 1
    return at + 1, jumped


@helper
def first_planned(s, v):  # type: ignore[no-untyped-def]
    """(index in path, jumped) of what follows the drivable that v is on."""
    at = s.path_index[v] + 0
    if s.path[at] >= s.queue_head.size:
        return at + 1, False
    return next_planned(s, v, at, False)


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
            at, jumped = next_planned(s, v, at, False)
            if jumped:
                s.jump_from[v] = -1
        else:
            at += 1
        drivable = s.path[at] + 0
        if drivable < 0:
            return d, drivable, drivable
