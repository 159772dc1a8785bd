"""The leader search of list heads (docs/cityflow-semantics.md, section 7)."""

from __future__ import annotations

from streetflow.kernels.index import index, kind_at
from streetflow.kernels.jit import helper
from streetflow.kernels.plan_ahead import first_planned, next_planned
from streetflow.kernels.tables import HORIZON, LENGTH, REVISITS, State


@helper
def find_leader(s: State, v: int, own: int, distance) -> None:  # type: ignore[no-untyped-def]
    """Set leader and gap of vehicle v, the first of drivable ``own``'s list, by looking along its path up to its horizon.

    distance: the current distances, m. Without a leader the gap keeps its value.
    """
    n_lanes = s.queue_head.size
    horizon = s.kinds[kind_at(s, v) + HORIZON]
    ahead = s.length[own] - distance[v]
    drivable = s.following[v]
    revisits = s.counters[REVISITS] != 0
    at = index(s.path_index[v]) + 1  # index in path of drivable
    jumps = 0
    if revisits and drivable >= 0:
        at, jumps = first_planned(s, v)
    lane = own  # the one before a lane link
    leader = -1
    gap = 0.0
    while drivable >= 0:
        if drivable >= n_lanes:
            if s.out_count[lane] > 0:
                for i in range(s.out_first[lane], s.out_first[lane + 1]):
                    c = s.tail[index(s.out_links[i])]
                    if c >= 0:
                        here = ahead + distance[c] - s.kinds[kind_at(s, c) + LENGTH]
                        if leader < 0 or here < gap:
                            leader = c
                            gap = here
        else:
            lane = drivable
            c = s.tail[drivable]
            if c >= 0:
                leader = c
                gap = ahead + distance[c] - s.kinds[kind_at(s, c) + LENGTH]
        if leader >= 0:
            s.gap[v] = gap
            break
        if ahead > horizon:
            break  # without a look at its length
        ahead += s.length[drivable]
        if ahead > horizon:
            break
        if drivable >= n_lanes:
            at += 1
            drivable = s.end_lane[drivable - n_lanes]
        else:
            if revisits:
                at, jumps = next_planned(s, v, at, jumps)
            else:
                at += 1
            drivable = s.path[at]
    s.leader[v] = leader
