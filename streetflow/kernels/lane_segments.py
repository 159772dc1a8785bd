"""Lane changing: lanes cut into segments, in which vehicles look for neighbours (docs/cityflow-semantics.md, 10 a).

A segment lists its vehicles front first, in the order of the lane's list. That is the order of arrival, not of
distance, so what a search finds depends on the cut, which is CityFlow's.
"""

from __future__ import annotations

from streetflow.kernels.bits import set_bit
from streetflow.kernels.jit import helper
from streetflow.kernels.tables import State


@helper
def cut_into_segments(s, n_occupied, distance):  # type: ignore[no-untyped-def]
    """Fill segment, segment_head and segment_behind for every vehicle on a lane.

    listed[:n_occupied] are the drivables that hold vehicles.
    """
    for i in range(s.segment_head.size):
        s.segment_head[i] = -1
    for i in range(n_occupied):
        lane = s.listed[i]
        if lane >= s.queue_head.size:
            break
        v = s.head[lane]
        first = s.segment_first[lane]
        n = s.segment_first[lane + 1] - first
        number = n - 1
        start = number * s.length[lane] / n
        last = -1
        while v >= 0:
            while number > 0 and distance[v] < start:
                number -= 1
                start = number * s.length[lane] / n
                last = -1
            s.segment[v] = number
            s.segment_behind[v] = -1
            if last < 0:
                s.segment_head[first + number] = v
            else:
                s.segment_behind[last] = v
            last = v
            v = s.behind[v]


@helper
def find_ahead(s, lane, x, segment, distance):  # type: ignore[no-untyped-def]
    """The slot of the first vehicle at or ahead of x on a lane, searched from a segment forwards, or -1."""
    for i in range(s.segment_first[lane] + segment, s.segment_first[lane + 1]):
        found = -1
        v = s.segment_head[i]
        while v >= 0:
            if distance[v] >= x:
                found = v  # the rearmost one is wanted
            v = s.segment_behind[v]
        if found >= 0:
            return found
    return -1


@helper
def find_behind(s, lane, x, segment, distance):  # type: ignore[no-untyped-def]
    """The slot of the first vehicle behind x on a lane, searched from a segment backwards, or -1."""
    for i in range(s.segment_first[lane] + segment, s.segment_first[lane] - 1, -1):
        v = s.segment_head[i]
        while v >= 0:
            if distance[v] < x:
                return v
            v = s.segment_behind[v]
    return -1


@helper
def put_into_segment(s, lane, v, distance):  # type: ignore[no-untyped-def]
    """Put vehicle v into its segment of a lane, before the first one there that isn't ahead of it."""
    i = s.segment_first[lane] + s.segment[v]
    ahead = -1
    after = s.segment_head[i]
    while after >= 0 and distance[after] > distance[v]:
        ahead = after
        after = s.segment_behind[after]
    s.segment_behind[v] = after
    if ahead < 0:
        s.segment_head[i] = v
    else:
        s.segment_behind[ahead] = v


@helper
def put_into_lane(s: State, lane: int, v: int, follower: int) -> None:
    """Put vehicle v into a lane's list directly in front of a follower, or at its end (-1)."""
    s.behind[v] = follower
    ahead = -1
    if follower < 0:
        ahead = s.tail[lane]
        s.tail[lane] = v
    elif s.head[lane] != follower:
        ahead = s.head[lane]
        while s.behind[ahead] != follower:
            ahead = s.behind[ahead]
    if ahead < 0:
        s.head[lane] = v
    else:
        s.behind[ahead] = v
    set_bit(s.occupied, lane)
    s.n_vehicles[lane] += 1
