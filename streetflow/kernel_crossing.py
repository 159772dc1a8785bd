"""Announcements at crossings and yielding (cityflow-semantics.md, sections 6.3 and 6.4).

CityFlow writes at every crossing of every lane link, every step, which vehicle is announced there. Here a crossing is
looked at only when a vehicle asks. `mark_announcing` notes which lane links may announce anything at all.
"""

from __future__ import annotations

from streetflow.jit import helper
from streetflow.kernel_math import YIELD_DISTANCE_M, can_stop, lesser, steps_to_reach, stop_before
from streetflow.tables import DELTA, KIND_SIZE, LENGTH, MAX_NEG_ACC, RUNNING, State

ANNOUNCE_MARGIN_M = 1.0  # a crossing's distance may exceed its lane link's length by rounding; never by this
PASS = 0
YIELD = 1


@helper
def mark_announcing(s: State, n_occupied: int, distance) -> None:  # type: ignore[no-untyped-def]
    """Set the bits of the lane links that may announce a vehicle: a superset of those that do.

    listed[:n_occupied] are the drivables that hold vehicles.
    """
    n_lanes = s.queue_head.size
    for w in range(s.announcing.size):
        s.announcing[w] = 0
    for i in range(n_occupied):
        lane = s.listed[i]
        if lane >= n_lanes:
            link = lane - n_lanes
            s.announcing[s.bit_word[link]] |= s.bit_mask[link]
            continue
        v = s.head[lane]
        following = s.following[v] - n_lanes
        if following >= 0 and s.is_open[following]:
            s.announcing[s.bit_word[following]] |= s.bit_mask[following]
        v = s.tail[lane]
        before = s.previous[v] - n_lanes
        if before >= 0 and distance[v] < s.kinds[s.kind[v] * KIND_SIZE + LENGTH] + ANNOUNCE_MARGIN_M:
            s.announcing[s.bit_word[before]] |= s.bit_mask[before]


@helper
def any_foe(s: State, link: int) -> bool:
    """Whether a lane link that crosses this one may announce a vehicle."""
    n_words = s.conflicts.size // s.start_lane.size
    word = s.word_first[link]
    common = 0
    for i in range(n_words):
        common |= s.conflicts[link * n_words + i] & s.announcing[word + i]
    return common != 0


@helper
def announced(s: State, link: int, q: float, distance):  # type: ignore[no-untyped-def]
    """(slot, signed distance) of the vehicle that a lane link announces q m along it; slot -1: none."""
    n_lanes = s.queue_head.size
    drivable = n_lanes + link
    to_end = s.length[drivable] - q
    e = s.tail[s.end_lane[link]]
    if e >= 0 and s.previous[e] == drivable:
        past = to_end + (distance[e] - s.kinds[s.kind[e] * KIND_SIZE + LENGTH])
        if past < 0:
            return e, -(distance[e] + to_end)
    e = s.head[drivable]
    while e >= 0:
        x = distance[e]
        if x <= q or x - q - s.kinds[s.kind[e] * KIND_SIZE + LENGTH] <= 0:
            return e, q - x
        e = s.behind[e]
    start = s.start_lane[link]
    e = s.head[start]
    if e >= 0 and s.is_open[link] and s.following[e] == drivable:
        return e, (s.length[start] - distance[e]) + q
    return -1, 0.0


@helper
def live_blocker(s: State, v: int, blocker) -> int:  # type: ignore[no-untyped-def]
    """The vehicle that v yielded to in the last step, unless that one ended its trip then."""
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
    fk = s.kind[f] * KIND_SIZE
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
    """(speed limit, blocker or -1) of vehicle v on its way over a lane link, ``along`` m past the link's start.

    along is negative on the lane before it. limit: the speed limit so far.
    """
    delta = s.reals[DELTA]
    brake = 0.5 * u * u / s.kinds[k + MAX_NEG_ACC]
    for i in range(s.crossing_first[link], s.crossing_first[link + 1]):
        q = s.crossing_own[i]
        d1 = q - along
        if q < along or not (d1 > 0 and brake < d1 - YIELD_DISTANCE_M):
            continue  # passed, or it can't stop any more
        foe_link = s.crossing_link[i]
        if not s.announcing[s.bit_word[foe_link]] & s.bit_mask[foe_link]:
            continue
        f, d2 = announced(s, foe_link, s.crossing_other[i], distance)
        if f < 0:
            continue
        if must_yield(s, v, k, u, d1, link, f, d2, foe_link, speed) == YIELD and not is_deadlock(s, f, blocker):
            return lesser(limit, stop_before(d1 - YIELD_DISTANCE_M, u, k, s, delta)), f
    return limit, -1
