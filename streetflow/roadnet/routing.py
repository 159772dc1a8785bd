"""Routes and lane paths: shortest paths over roads, and the lanes and lane links that a vehicle will take (section 3)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from streetflow.kernels.lane_paths import DEAD_END, END_OF_ROUTE, find_joined
from streetflow.roadnet.reader import Roadnet

_T = TypeVar("_T")
_Ints = NDArray[np.int32]


class LinkColumns(NamedTuple):
    """The lane links by start lane, as `streetflow.kernels.lane_paths` reads them."""

    out_first: _Ints
    out_link: _Ints
    out_end: _Ints
    out_road: _Ints
    lane_road: _Ints
    lane_index: _Ints


@dataclass(frozen=True)
class LanePath:
    """The drivables from an entry lane on: lane, lane link, lane, ..., closed by END_OF_ROUTE or DEAD_END.

    A lane of the route's last road without a lane link onwards is the end of the route on an earlier visit of the road, too.

    Lanes have their number; lane link k has the number (lanes of the network) + k.
    """

    drivables: tuple[int, ...]

    @property
    def is_dead_end(self) -> bool:
        return self.drivables[-1] == DEAD_END


class _Entry:
    """A heap item that compares by distance alone: ties must be broken as in a plain binary heap."""

    __slots__ = ("distance", "road")

    def __init__(self, distance: float, road: int) -> None:
        self.distance = distance
        self.road = road

    def __lt__(self, other: _Entry) -> bool:
        return self.distance < other.distance


class Router:
    """Plans routes on one network, independent of traffic; every result is cached."""

    def __init__(self, roadnet: Roadnet, lane_lengths_m: Sequence[float]) -> None:
        self.roadnet = roadnet
        n_lanes = len(roadnet.lane_ids)
        self.lane_links: list[list[tuple[int, int]]] = [[] for _ in range(n_lanes)]  # (drivable, end lane)
        link = n_lanes
        for intersection in roadnet.intersections:
            for road_link in intersection.road_links:
                for lane_link in road_link.lane_links:
                    self.lane_links[lane_link.start_lane].append((link, lane_link.end_lane))
                    link += 1
        self._lane_index = [lane - roadnet.roads[road].first_lane for lane, road in enumerate(roadnet.lane_road)]
        self._links_to: list[dict[int, list[tuple[int, int]]]] = []  # by lane, then by the road that they lead to
        for links in self.lane_links:
            by_road: dict[int, list[tuple[int, int]]] = {}
            for pair in links:
                by_road.setdefault(roadnet.lane_road[pair[1]], []).append(pair)
            self._links_to.append(by_road)
        self.average_length_m: list[float] = []
        self.next_roads: list[list[int]] = []
        for road in roadnet.roads:
            total = 0.0
            for lane in range(road.first_lane, road.first_lane + road.n_lanes):
                total += lane_lengths_m[lane]
            self.average_length_m.append(total / road.n_lanes if road.n_lanes else 0.0)
        for road in roadnet.roads:
            linked = {
                following
                for lane in range(road.first_lane, road.first_lane + road.n_lanes)
                for following in self._links_to[lane]
            }
            at_end = roadnet.intersections[road.end_intersection].roads
            self.next_roads.append([q for q in at_end if q in linked])
        self._paths: dict[tuple[int, int], tuple[int, ...] | None] = {}
        self._lane_paths: dict[tuple[tuple[int, ...], int, int], LanePath] = {}

    @cached_property
    def link_columns(self) -> LinkColumns:
        first, links = _flat(self.lane_links)
        pairs = np.array(links, np.int32).reshape(-1, 2)
        lane_road = np.array(self.roadnet.lane_road, np.int32)
        out_link, out_end = np.ascontiguousarray(pairs.T)
        return LinkColumns(first, out_link, out_end, lane_road[out_end], lane_road, np.array(self._lane_index, np.int32))

    @cached_property
    def _next_columns(self) -> tuple[_Ints, _Ints]:
        first, roads = _flat(self.next_roads)
        return first, np.array(roads, np.int32)

    def shortest_path(self, start: int, end: int) -> tuple[int, ...] | None:
        """The roads of the shortest path, both ends included, or None if there is none."""
        key = (start, end)
        if key not in self._paths:
            self._paths[key] = self._dijkstra(start, end)
        return self._paths[key]

    def _dijkstra(self, start: int, end: int) -> tuple[int, ...] | None:
        distance = {start: 0.0}
        before: dict[int, int] = {}
        visited: set[int] = set()
        heap = [_Entry(0.0, start)]
        while heap:
            road = heap[0].road
            if road == end:
                path = [end]
                while path[-1] != start:
                    path.append(before[path[-1]])
                return tuple(reversed(path))
            heapq.heappop(heap)
            if road in visited:
                continue
            visited.add(road)
            for following in self.next_roads[road]:
                new = distance[road] + self.average_length_m[following]
                if following not in distance or new < distance[following]:
                    distance[following] = new
                    before[following] = road
                    heapq.heappush(heap, _Entry(new, following))
        return None

    def plan(self, anchors: Sequence[int]) -> tuple[int, ...] | None:
        """The route through the anchors, or None if it is invalid (a path is missing, or fewer than two roads)."""
        route = [anchors[0]]
        for start, end in pairwise(anchors):
            if start == end:
                continue
            path = self.shortest_path(start, end)
            if path is None:
                return None
            route += path[1:]
        return tuple(route) if len(route) >= 2 else None

    def plan_all(self, routes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...] | None]:
        """`plan` for the anchors of many routes: those that are whole routes, as most are, come back as they are.

        No path is shorter than the one straight to a road that follows on the map, and among equal ones it is found first.
        """
        first = np.array([0, *accumulate(map(len, routes))], np.int64)
        roads = np.fromiter(chain.from_iterable(routes), np.int32, int(first[-1]))
        joined = np.empty(len(routes), np.int32)
        find_joined(first, roads, *self._next_columns, joined)
        return [each if is_joined else self.plan(each) for each, is_joined in zip(routes, joined.tolist(), strict=True)]

    def fault(self, anchors: Sequence[int]) -> str:
        """Why `plan` returns None for these anchors."""
        ids = [self.roadnet.roads[road].id for road in anchors]
        for k in range(len(anchors) - 1):
            if anchors[k] != anchors[k + 1] and self.shortest_path(anchors[k], anchors[k + 1]) is None:
                return f"there is no path from road {ids[k]!r} to road {ids[k + 1]!r}"
        return f"the route has only one road, {ids[0]!r}"

    def entry_lanes(self, route: Sequence[int]) -> list[int]:
        """The lanes of the route's first road from which the second can be reached, in order."""
        road = self.roadnet.roads[route[0]]
        lanes = range(road.first_lane, road.first_lane + road.n_lanes)
        return [lane for lane in lanes if self._leads_to(lane, route[1])]

    def _leads_to(self, lane: int, road: int) -> bool:
        return road in self._links_to[lane]

    def lane_path(self, route: tuple[int, ...], position: int, lane: int) -> LanePath:
        """The path over lanes and lane links from a lane of the road at a position of the route."""
        key = (route, position, lane)
        if key not in self._lane_paths:
            self._lane_paths[key] = self._find_lane_path(route, position, lane)
        return self._lane_paths[key]

    def _find_lane_path(self, route: tuple[int, ...], position: int, lane: int) -> LanePath:
        drivables = [lane]
        last = len(route) - 1
        while position < last:
            best: tuple[int, int] | None = None
            best_shift = 0
            own_index = self._lane_index[lane]
            for link, end_lane in self._links_to[lane].get(route[position + 1], ()):
                if position + 2 <= last and not self._leads_to(end_lane, route[position + 2]):
                    continue
                shift = abs(self._lane_index[end_lane] - own_index)
                if best is None or shift < best_shift:
                    best, best_shift = (link, end_lane), shift
            if best is None:
                on_last_road = self.roadnet.lane_road[lane] == route[last]
                return LanePath((*drivables, END_OF_ROUTE if on_last_road else DEAD_END))
            drivables += best
            lane = best[1]
            position += 1
        return LanePath((*drivables, END_OF_ROUTE))


def _flat(rows: Sequence[Sequence[_T]]) -> tuple[_Ints, list[_T]]:
    """Rows after one another, and where each starts: int32[rows + 1]."""
    return np.array([0, *accumulate(map(len, rows))], np.int32), list(chain.from_iterable(rows))
