"""The leader search of list heads (cityflow-semantics.md, section 7)."""

from __future__ import annotations

from streetflow.jit import helper
from streetflow.tables import HORIZON, KIND_SIZE, LENGTH, State


@helper
def find_leader(s: State, v: int, own: int, distance) -> None:  # type: ignore[no-untyped-def]
    """Set leader and gap of vehicle v, the first of drivable ``own``'s list, by looking along its way up to its horizon.

    distance: the current distances, m. Without a leader the gap keeps its value.
    """
    n_lanes = s.queue_head.size
    horizon = s.kinds[s.kind[v] * KIND_SIZE + HORIZON]
    ahead = s.length[own] - distance[v]
    drivable = s.following[v]
    at = -1
    leader = -1
    gap = 0.0
    while drivable >= 0:
        if drivable >= n_lanes:
            lane = s.start_lane[drivable - n_lanes]
            if s.out_count[lane] > 0:
                for i in range(s.out_first[lane], s.out_first[lane + 1]):
                    c = s.tail[s.out_links[i]]
                    if c >= 0:
                        here = ahead + distance[c] - s.kinds[s.kind[c] * KIND_SIZE + LENGTH]
                        if leader < 0 or here < gap:
                            leader = c
                            gap = here
        else:
            c = s.tail[drivable]
            if c >= 0:
                leader = c
                gap = ahead + distance[c] - s.kinds[s.kind[c] * KIND_SIZE + LENGTH]
        if leader >= 0:
            s.gap[v] = gap
            break
        ahead += s.length[drivable]
        if ahead > horizon:
            break
        at = s.way[v] + 2 if at < 0 else at + 1
        drivable = s.path[at]
    s.leader[v] = leader
