"""Announcements at crossings and yielding (docs/cityflow-semantics.md, sections 6.3 and 6.4).

CityFlow writes at every crossing of every lane link, every step, which vehicle is announced there. Here a crossing is
looked at only when a vehicle comes near it. `mark_announcing` notes which lane links may announce anything at all.
"""

from __future__ import annotations

from streetflow.kernels.bits import count_bits, lowest_bit
from streetflow.kernels.car_following import YIELD_DISTANCE_M, can_stop, lesser, steps_to_reach, stop_before
from streetflow.kernels.index import index, kind_at
from streetflow.kernels.jit import helper
from streetflow.kernels.tables import DELTA, LENGTH, MAX_NEG_ACC, RUNNING, WORD_BITS, State

ANNOUNCE_MARGIN_M = 1.0  # a crossing's distance may exceed its lane link's length by rounding; never by this
PASS = 0
YIELD = 1


@helper
def clear_announcing(s: State) -> None:
    """No lane link may announce a vehicle."""
    for w in range(s.announcing.size):
        s.announcing[w] = 0


@helper
def mark_link(s: State, link: int) -> None:
    """Set the bit of a lane link that may announce a vehicle."""
    s.announcing[index(s.bit_word[link])] |= s.bit_mask[link]


@helper
def mark_announcing(s: State, first: int, end: int, distance, mark) -> None:  # type: ignore[no-untyped-def]
    """Set the bits of the lane links that may announce a vehicle: a superset of those that do.

    listed[first:end] are drivables that hold vehicles. mark: `mark_link`, or what does the same.
    """
    n_lanes = s.queue_head.size
    for i in range(first, end):
        lane = index(s.listed[i])
        if lane >= n_lanes:
            mark(s, lane - n_lanes)
            continue
        following = s.following[index(s.head[lane])] - n_lanes
        if following >= 0 and s.is_open[following]:
            mark(s, following)
        v = index(s.tail[lane])
        if distance[v] < s.kinds[kind_at(s, v) + LENGTH] + ANNOUNCE_MARGIN_M:
            before = s.previous[v] - n_lanes
            if before >= 0:
                mark(s, before)


@helper
def announced(s: State, link: int, q: float, distance):  # type: ignore[no-untyped-def]
    """(slot, signed distance) of the vehicle that a lane link announces q m along it; slot -1: none."""
    n_lanes = s.queue_head.size
    drivable = n_lanes + link
    to_end = s.length[drivable] - q
    e = s.tail[index(s.end_lane[link])]
    if e >= 0 and s.previous[e] == drivable:
        past = to_end + (distance[e] - s.kinds[kind_at(s, e) + LENGTH])
        if past < 0:
            return e, -(distance[e] + to_end)
    e = s.head[drivable]
    while e >= 0:
        x = distance[e]
        if x <= q or x - q - s.kinds[kind_at(s, e) + LENGTH] <= 0:
            return e, q - x
        e = s.behind[e]
    start = index(s.start_lane[link])
    e = s.head[start]
    if e >= 0 and s.is_open[link] and s.following[e] == drivable:
        return e, (s.length[start] - distance[e]) + q
    return -1, 0.0


@helper
def live_blocker(s: State, v: int, blocker) -> int:  # type: ignore[no-untyped-def]
    """The vehicle that v yielded to in the last step, unless that vehicle ended its trip in it."""
    b = blocker[v]
    if b >= 0 and s.status[b] != RUNNING:
        return -1
    return b


@helper
def is_deadlock(s: State, foe: int, blocker) -> bool:  # type: ignore[no-untyped-def]
    """Whether the chain of blockers that starts at foe runs into a circle."""
    slow = foe
    fast = foe
    while fast >= 0:
        once = live_blocker(s, fast, blocker)
        if once < 0:
            return False
        slow = live_blocker(s, slow, blocker)
        fast = live_blocker(s, once, blocker)
        if slow == fast:
            return True
    return False


@helper
def must_yield(s, v, k, u, d1, link, f, d2, foe_link, speed):  # type: ignore[no-untyped-def]
    """The table of section 6.4 without its first row and the deadlock rule: own vehicle v against foe f."""
    fk = kind_at(s, f)
    if not can_stop(d2, speed[f], fk, s):
        return YIELD
    own_rank = s.rank[link]
    foe_rank = s.rank[foe_link]
    if own_rank > foe_rank:
        return PASS
    if d2 <= 0:
        return PASS if d2 + s.kinds[fk + LENGTH] < 0 else YIELD
    delta = s.reals[DELTA]
    foe_steps = steps_to_reach(d2, speed[f], fk, s.is_turn[foe_link], s, delta)
    own_steps = steps_to_reach(d1, u, k, s.is_turn[link], s, delta)
    if foe_steps > own_steps:
        return PASS
    if own_rank < foe_rank or foe_steps < own_steps:
        return YIELD
    own_entry = s.link_entry_step[v]
    foe_entry = s.link_entry_step[f]
    if own_entry != foe_entry:
        return PASS if own_entry < foe_entry else YIELD
    if d1 != d2:
        return PASS if d1 < d2 else YIELD
    return PASS if s.priority[v] > s.priority[f] else YIELD


@helper
def yield_at_crossings(s, v, k, u, along, link, limit, distance, speed, blocker):  # type: ignore[no-untyped-def]
    """(speed limit, blocker or -1) of vehicle v on or before a lane link, ``along`` m past the link's start.

    along is negative on the lane before it. limit: the speed limit so far. Only crossings with a lane link that may
    announce a vehicle are looked at; the first one along the link at which v must yield counts.
    """
    n_words = s.conflicts.size // s.start_lane.size
    crossing = index(s.crossing_first[link])
    word = index(s.word_first[link])
    beside = index(s.beside_first[link])
    first_rank = s.start_lane.size
    before_m = 0.0
    yields_to = -1
    for w in range(n_words):
        crossed = s.conflicts[link * n_words + w]
        left = crossed & s.announcing[word + w]
        while left != 0:
            bit = lowest_bit(left)
            left &= left - 1
            at = crossing + count_bits(crossed & ((1 << bit) - 1))
            rank = s.crossing_rank[at]
            if rank > first_rank:
                continue
            q = s.crossing_m[2 * at]
            d1 = q - along
            if q < along or not (d1 > 0 and 0.5 * u * u / s.kinds[k + MAX_NEG_ACC] < d1 - YIELD_DISTANCE_M):
                continue  # passed, or it can't stop any more
            foe_link = beside + w * WORD_BITS + bit
            f, d2 = announced(s, foe_link, s.crossing_m[2 * at + 1], distance)
            if f < 0:
                continue
            if must_yield(s, v, k, u, d1, link, f, d2, foe_link, speed) == YIELD and not is_deadlock(s, f, blocker):
                first_rank = rank
                before_m = d1 - YIELD_DISTANCE_M
                yields_to = f
        crossing += count_bits(crossed)
    if yields_to < 0:
        return limit, -1
    return lesser(limit, stop_before(before_m, u, k, s, s.reals[DELTA])), yields_to
