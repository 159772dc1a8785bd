"""Plans the lane paths of many routes at once (docs/cityflow-semantics.md, section 3), and finds the ones beside them and at
other visits of a road.

Routes, lane paths and the entries of ``path`` are numbered in the order in which they are made. A lane path holds lane, lane
link, lane, ..., and one of the two marks; the rest of it, from a lane on, is the path of that lane, so one that is asked for is
looked up in the lane paths of its route first. Callers make room, or make it where NO_ROOM says so and call again.
"""

from __future__ import annotations

from typing import NamedTuple

from streetflow.kernels.jit import entry_point, helper, subroutine
from streetflow.kernels.tables import Ints

END_OF_ROUTE = -1
DEAD_END = -2
NO_ROOM = -3

# counts[...]
N_LANE_PATHS = 0
N_PATH = 1  # entries of path
N_CANDIDATES = 2
N_VISITED = 3  # lane paths of which every lane's path at other visits is there
N_BESIDE = 4  # entries of path of which the lane paths beside are there
BESIDE_OF = 5  # the lane path of the entry after those
VISITING = 6  # 1: stopped for want of room while looking for visits
N_COUNTS = 7


class LanePaths(NamedTuple):
    """Lane links, routes and lane paths; all arrays int32 and larger than what they hold."""

    # lane links by start lane, in file order
    out_first: Ints  # [lanes + 1], into out_...
    out_link: Ints  # drivables
    out_end: Ints  # lanes
    out_road: Ints  # the end lane's
    lane_road: Ints
    lane_index: Ints  # within its road
    # by route
    route_first: Ints  # [routes + 1], into roads
    revisits: Ints  # 1: it comes back to a road
    first_of: Ints  # its first lane path, -1: none
    last_of: Ints
    # by lane path
    start: Ints  # [lane paths + 1], into path
    of_route: Ints
    start_position: Ints  # position in the route of the road on which it starts
    next_of: Ints  # the next lane path of its route, -1: none

    roads: Ints
    path: Ints
    candidate: Ints  # where the lane path from each entry lane of each route starts
    counts: Ints


@helper
def leads_to(p: LanePaths, lane: int, road: int) -> bool:
    for k in range(p.out_first[lane], p.out_first[lane + 1]):  # noqa: SIM110  # a generator isn't compiled
        if p.out_road[k] == road:
            return True
    return False


@helper
def best_link(p: LanePaths, lane: int, at: int, last: int) -> int:
    """The place in out_... of the lane link by which a lane path goes on from a lane of the road at ``at`` in ``roads``, on a
    route that ends at ``last``: the one that shifts least of those from which the route goes on. -1: none."""
    best, best_shift = -1, 0
    for k in range(p.out_first[lane], p.out_first[lane + 1]):
        if p.out_road[k] != p.roads[at + 1]:
            continue
        end = p.out_end[k]
        if at + 2 <= last and not leads_to(p, end, p.roads[at + 2]):
            continue
        shift = abs(p.lane_index[end] - p.lane_index[lane])
        if best < 0 or shift < best_shift:
            best, best_shift = k, shift
    return best


@subroutine
def start_of(p, route, position, lane):  # type: ignore[no-untyped-def]
    """Index in ``path`` where the lane path from a lane of the road at a position of a route starts; it is made if need be."""
    number = p.first_of[route]
    while number >= 0:
        within = 2 * (position - p.start_position[number])
        place = p.start[number] + within
        if within >= 0 and place < p.start[number + 1] and p.path[place] == lane:
            return place
        number = p.next_of[number]
    at, last = p.route_first[route] + position, p.route_first[route + 1] - 1
    number, start = p.counts[N_LANE_PATHS], p.counts[N_PATH]
    if number + 2 > p.start.size or start + 2 * (last - at + 1) > p.path.size:
        return NO_ROOM
    p.path[start] = lane
    end, mark = start + 1, END_OF_ROUTE
    while at < last:
        k = best_link(p, lane, at, last)
        if k < 0:
            if p.lane_road[lane] != p.roads[last]:
                mark = DEAD_END
            break
        lane = p.out_end[k]
        p.path[end], p.path[end + 1] = p.out_link[k], lane
        end += 2
        at += 1
    p.path[end] = mark
    p.of_route[number], p.start_position[number], p.next_of[number] = route, position, -1
    if p.first_of[route] < 0:
        p.first_of[route] = number
    else:
        p.next_of[p.last_of[route]] = number
    p.last_of[route] = number
    p.start[number + 1] = end + 1
    p.counts[N_LANE_PATHS], p.counts[N_PATH] = number + 1, end + 1
    return start


@entry_point
def add_routes(p, first, end, valid, road_first, seen_in, rows):  # type: ignore[no-untyped-def]
    """Make the lane paths of the routes first .. end - 1 from their entry lanes.

    valid: by new route. road_first: int32[roads + 1], the first lane of each. seen_in: int32[roads], -1, changes.
    rows: int32[3, new routes]: first road, where its candidates start, their number.
    """
    for route in range(first, end):
        begin, stop = p.route_first[route], p.route_first[route + 1]
        p.first_of[route], p.last_of[route], p.revisits[route] = -1, -1, 0
        road = p.roads[begin]
        n = p.counts[N_CANDIDATES]
        rows[0, route - first], rows[1, route - first] = road, n
        if valid[route - first]:
            for at in range(begin, stop):
                p.revisits[route] |= seen_in[p.roads[at]] == route
                seen_in[p.roads[at]] = route
            for lane in range(road_first[road], road_first[road + 1]):
                if leads_to(p, lane, p.roads[begin + 1]):
                    p.candidate[n] = start_of(p, route, 0, lane)
                    n += 1
        rows[2, route - first] = n - rows[1, route - first]
        p.counts[N_CANDIDATES] = n


@entry_point
def find_start(p, route, position, lane):  # type: ignore[no-untyped-def]
    """`start_of` for Python."""
    return start_of(p, route, position, lane)


@helper
def visits_of(p, number, i):  # type: ignore[no-untyped-def]
    """Where the lane at entry i of lane path ``number`` is at its road's first visit, and at the next one; -1: none."""
    route = p.of_route[number]
    within = i - p.start[number]
    if not p.revisits[route] or within % 2 == 1:
        return -1, -1
    position, begin, stop = p.start_position[number] + within // 2, p.route_first[route], p.route_first[route + 1]
    road, n = p.lane_road[p.path[i]], 0
    for at in range(begin, stop):
        n += p.roads[at] == road
    first, following = -1, -1
    for at in range(begin, stop if n > 1 else begin):
        if p.roads[at] == road:
            start = start_of(p, route, at - begin, p.path[i])
            if start == NO_ROOM:
                return NO_ROOM, NO_ROOM
            if first < 0:
                first = start
            if following < 0 and at - begin > position:
                following = start
    return first, following


@helper
def beside(p, number, i, shift):  # type: ignore[no-untyped-def]
    """Start of the lane path of a shadow on the lane ``shift`` further out than the one at entry i of lane path ``number``:
    from the road's first visit in the route on, as in CityFlow.

    -1 if there is no such lane, or no vehicle would change to it: it has no lane link to the route's next road.
    """
    within = i - p.start[number]
    lane = p.path[i] + shift
    if within % 2 == 1 or not 0 <= lane < p.lane_road.size or p.lane_road[lane] != p.lane_road[p.path[i]]:
        return -1
    route, road = p.of_route[number], p.lane_road[lane]
    begin, last = p.route_first[route], p.route_first[route + 1] - 1
    at = begin + p.start_position[number] + within // 2
    if at < last and road != p.roads[last] and best_link(p, lane, at, last) < 0:
        return -1
    first = begin
    while p.roads[first] != road and first < last:
        first += 1
    return start_of(p, route, first - begin, lane)


@helper
def visit_all(p):  # type: ignore[no-untyped-def]
    """Make the lane paths at other visits of each road that a route comes back to. False: for want of room, not all."""
    while p.counts[N_VISITED] < p.counts[N_LANE_PATHS]:
        number = p.counts[N_VISITED]
        if p.revisits[p.of_route[number]]:
            for i in range(p.start[number], p.start[number + 1]):
                if visits_of(p, number, i)[0] == NO_ROOM:
                    return False
        p.counts[N_VISITED] = number + 1
    return True


@entry_point
def complete(p, lane_change):  # type: ignore[no-untyped-def]
    """Make the lane paths at other visits and, if vehicles change lanes, beside the others. False: not all, no room."""
    while True:
        i = p.counts[N_BESIDE]
        if lane_change and not p.counts[VISITING] and i < p.counts[N_PATH]:
            while p.start[p.counts[BESIDE_OF] + 1] <= i:
                p.counts[BESIDE_OF] += 1
            for shift in (-1, 1):
                if beside(p, p.counts[BESIDE_OF], i, shift) == NO_ROOM:
                    return False
            p.counts[N_BESIDE] = i + 1
        p.counts[VISITING] = 1
        if not visit_all(p):
            return False
        p.counts[VISITING] = 0
        if not lane_change or p.counts[N_BESIDE] >= p.counts[N_PATH]:
            return True


@entry_point
def write_lane_paths(p, first, route_position, first_visit, next_visit, inner, outer):  # type: ignore[no-untyped-def]
    """Fill in what the tables say of each entry of ``path``, from lane path ``first`` on, once all are complete.

    inner, outer: empty if vehicles don't change lanes.
    """
    for number in range(first, p.counts[N_LANE_PATHS]):
        for i in range(p.start[number], p.start[number + 1]):
            route_position[i] = p.start_position[number] + (i - p.start[number]) // 2
            first_visit[i], next_visit[i] = visits_of(p, number, i)
            if inner.size:
                inner[i], outer[i] = beside(p, number, i, -1), beside(p, number, i, 1)


@entry_point
def find_joined(first, roads, next_first, next_roads, joined):  # type: ignore[no-untyped-def]
    """joined[i]: 1 if route i has two roads or more and each leads straight to the next, so that it needs no planning."""
    for route in range(joined.size):
        joined[route] = first[route + 1] - first[route] >= 2
        for at in range(first[route], first[route + 1] - 1):
            found = False
            for k in range(next_first[roads[at]], next_first[roads[at] + 1]):
                found |= next_roads[k] == roads[at + 1]
            if not found or roads[at] == roads[at + 1]:
                joined[route] = 0
                break
