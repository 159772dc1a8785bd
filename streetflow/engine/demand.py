"""Routes, lane paths and vehicle kinds of one engine, as numbers in its tables (they only ever grow)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import numpy as np

from streetflow.kernels import tables as t
from streetflow.roadnet.flow import VehicleKind
from streetflow.roadnet.network_tables import NetworkTables
from streetflow.roadnet.routing import DEAD_END, LanePath


def kind_row(kind: VehicleKind, delta: float) -> list[float]:
    """The row of ``kinds``: the parameters, and the terms of section 5's formulas that depend on nothing else."""
    row = [0.0] * t.KIND_SIZE
    row[t.LENGTH] = kind.length_m
    row[t.WIDTH] = kind.width_m
    row[t.MAX_POS_ACC] = kind.max_pos_acc
    row[t.MAX_NEG_ACC] = kind.max_neg_acc
    row[t.USUAL_POS_ACC] = kind.usual_pos_acc
    row[t.USUAL_NEG_ACC] = kind.usual_neg_acc
    row[t.MIN_GAP] = kind.min_gap_m
    row[t.MAX_SPEED] = kind.max_speed_mps
    row[t.HEADWAY] = kind.headway_s
    v = kind.max_speed_mps
    row[t.HORIZON] = v * v / kind.usual_neg_acc / 2 + v * delta * 2
    row[t.MAX_POS_STEP] = kind.max_pos_acc * delta
    row[t.MAX_NEG_STEP] = kind.max_neg_acc * delta
    row[t.USUAL_POS_STEP] = kind.usual_pos_acc * delta
    row[t.USUAL_NEG_STEP] = kind.usual_neg_acc * delta
    row[t.HEADWAY_DIVISOR] = kind.headway_s + delta / 2
    a = 0.5 / kind.max_neg_acc
    row[t.MAX_FOUR_A] = 4 * a
    row[t.MAX_HALF_OVER_A] = 0.5 / a
    a = 0.5 / kind.usual_neg_acc
    row[t.USUAL_FOUR_A] = 4 * a
    row[t.USUAL_HALF_OVER_A] = 0.5 / a
    row[t.SAME_BRAKES] = 1.0 if kind.max_neg_acc == kind.usual_neg_acc and kind.min_gap_m >= 0 else 0.0
    # The stop-before speed of section 5 for u = 0, where the vehicle is near enough for the light to matter.
    n = row[t.USUAL_POS_STEP]
    row[t.STANDING_REST] = min(n * delta / 2 + n * n / kind.usual_neg_acc / 2, row[t.HORIZON])
    return row


def _places_of_revisited(roads: Sequence[int]) -> dict[int, list[int]]:
    """By road that a route comes back to, its positions in the route."""
    if len(set(roads)) == len(roads):
        return {}
    places: dict[int, list[int]] = {}
    for position, road in enumerate(roads):
        places.setdefault(road, []).append(position)
    return {road: positions for road, positions in places.items() if len(positions) > 1}


class Demand:
    """Numbers routes, lane paths and kinds and appends them to the engine's tables."""

    def __init__(self, network: NetworkTables, delta: float, lane_change: bool = False) -> None:
        """lane_change: keep the lane paths that start on the lanes beside each path, too."""
        self.network = network
        self.delta = delta
        self.lane_change = lane_change
        self.kinds: list[VehicleKind] = []
        self.routes: list[tuple[int, ...]] = []  # road numbers; of an invalid route its anchors
        self.valid: list[bool] = []
        self._kind_numbers: dict[VehicleKind, int] = {}
        self._route_numbers: dict[tuple[bool, tuple[int, ...]], int] = {}
        self._lane_path_starts: dict[tuple[tuple[int, ...], int, int], int] = {}
        self._lane_path_keys: list[tuple[tuple[int, ...], int, int]] = []  # in the order of their starts
        self._starts: list[int] = []
        self._path: list[int] = []
        self._route_position: list[int] = []
        self._beside: list[tuple[int, int]] = []  # inner, outer
        self._visits: list[tuple[int, int]] = []  # first visit, next visit
        self.revisits = False  # whether a route comes back to a road
        self._route_rows: list[tuple[int, int, int]] = []
        self._candidates: list[int] = []
        self._written = [0, 0, 0, 0]

    def kind(self, kind: VehicleKind) -> int:
        number = self._kind_numbers.get(kind)
        if number is None:
            number = self._kind_numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
        return number

    def route(self, anchors: Sequence[int]) -> int:
        """The number of the route through these anchors; an invalid one has no candidates."""
        roads = self.network.router.plan(anchors)
        return self.route_of_roads(roads is not None, tuple(anchors) if roads is None else roads)

    def route_of_roads(self, valid: bool, roads: tuple[int, ...]) -> int:
        """The number of a planned route, or of the anchors of an invalid one."""
        key = (valid, roads)
        number = self._route_numbers.get(key)
        if number is None:
            number = self._route_numbers[key] = len(self.routes)
            self.routes.append(roads)
            self.valid.append(valid)
            self.revisits |= valid and len(set(roads)) < len(roads)
            first = len(self._candidates)
            if valid:
                for lane in self.network.router.entry_lanes(roads):
                    self._candidates.append(self.lane_path_start(roads, 0, lane))
            self._route_rows.append((roads[0], first, len(self._candidates) - first))
        return number

    def route_from(self, anchors: Sequence[int], lanes: Sequence[int]) -> int:
        """The number of the route through these anchors, or -1 if it is invalid or doesn't go on from one of some lanes of the
        first."""
        router = self.network.router
        roads = router.plan(anchors)
        if roads is None or any(router.lane_path(roads, 0, lane).drivables[1] == DEAD_END for lane in lanes):
            return -1
        return self.route_of_roads(True, roads)

    def lane_paths(self, route: int) -> Iterable[LanePath]:
        """The lane paths of a route from its entry lanes."""
        roads = self.routes[route]
        if not self.valid[route]:
            return ()
        router = self.network.router
        return (router.lane_path(roads, 0, lane) for lane in router.entry_lanes(roads))

    def lane_path_start(self, roads: tuple[int, ...], position: int, lane: int) -> int:
        """Index in ``path`` where the lane path starts from a lane of the road at a position of the route."""
        key = (roads, position, lane)
        start = self._lane_path_starts.get(key)
        if start is None:
            start = len(self._path)
            self._lane_path_keys.append(key)
            self._starts.append(start)
            lane_path = self.network.router.lane_path(roads, position, lane)
            for k, drivable in enumerate(lane_path.drivables):
                self._path.append(drivable)
                self._route_position.append(position + k // 2)
                if k % 2 == 0:  # the rest of the path, from a lane on, is the path of that lane
                    self._lane_path_starts.setdefault((roads, position + k // 2, drivable), start + k)
        return start

    def _lane_path_beside(self, index: int, shift: int) -> int:
        """Start of the lane path of a shadow on the lane ``shift`` further out than the one at an index in ``path``: from the
        road's first visit in the route on, as in CityFlow.

        -1 if there is no such lane, or no vehicle would change to it: it has no lane link to the route's next road.
        """
        lane_road, lane = self.network.roadnet.lane_road, self._path[index]
        if not 0 <= lane < len(lane_road) or not 0 <= lane + shift < len(lane_road):
            return -1
        roads, position = self.lane_path_at(index)[0], self._route_position[index]
        if lane_road[lane + shift] != lane_road[lane]:
            return -1
        lane_path = self.network.router.lane_path(roads, position, lane + shift)
        if lane_path.drivables[1] == DEAD_END:
            return -1
        return self.lane_path_start(roads, roads.index(lane_road[lane]), lane + shift)

    def _find_visits(self) -> None:
        """Note, for what is new in ``path``, where its lane is at other visits of its road: their lane paths come in, too."""
        lane_road = self.network.roadnet.lane_road
        of_roads: tuple[int, ...] = ()
        places: dict[int, list[int]] = {}
        while len(self._visits) < len(self._path):
            first = len(self._visits)
            number = bisect_right(self._starts, first) - 1
            end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._path)
            roads = self._lane_path_keys[number][0]
            if self.revisits and roads is not of_roads:  # the lane paths of a route mostly follow each other
                of_roads, places = roads, _places_of_revisited(roads)
            if not places:
                self._visits += [(-1, -1)] * (end - first)
                continue
            for lane, position in zip(self._path[first:end], self._route_position[first:end], strict=True):
                visits = places.get(lane_road[lane]) if 0 <= lane < len(lane_road) else None
                if visits is None:
                    self._visits.append((-1, -1))
                    continue
                starts = [self.lane_path_start(roads, i, lane) for i in visits]
                self._visits.append((starts[0], ([*starts, -1])[visits.index(position) + 1]))

    def lane_path_at(self, index: int) -> tuple[tuple[int, ...], int, int, int]:
        """The lane path that an index in ``path`` belongs to: roads, position and lane, as for `lane_path_start`, and the
        index counted from its start."""
        number = bisect_right(self._starts, index) - 1
        return (*self._lane_path_keys[number], index - self._starts[number])

    def write(self, tables: t.Tables) -> bool:
        """Append what is new to the tables. True if their memory moved."""
        while self.lane_change and len(self._beside) < len(self._path):  # which grows here
            index = len(self._beside)
            self._beside.append((self._lane_path_beside(index, -1), self._lane_path_beside(index, 1)))
            self._find_visits()
        self._find_visits()
        moved = tables.grow("path", len(self._path))
        tables.state.counters[t.REVISITS] = self.revisits
        moved |= tables.grow("sideways", len(self._beside))
        moved |= tables.grow("routes", len(self._route_rows))
        moved |= tables.grow("candidates", len(self._candidates))
        moved |= tables.grow("kinds", len(self.kinds) * t.KIND_SIZE)
        state = tables.state
        n_path, n_routes, n_candidates, n_kinds = self._written
        state.path[n_path : len(self._path)] = self._path[n_path:]
        state.route_position[n_path : len(self._path)] = self._route_position[n_path:]
        if n_path < len(self._path):
            state.first_visit[n_path : len(self._path)], state.next_visit[n_path : len(self._path)] = np.array(
                self._visits[n_path:], np.int32
            ).T
        if n_path < len(self._beside):
            columns = np.array(self._beside[n_path:], np.int32).T
            state.path_inner[n_path : len(self._beside)], state.path_outer[n_path : len(self._beside)] = columns
        if n_routes < len(self._route_rows):
            rows = list(zip(*self._route_rows[n_routes:], strict=True))
            for column, values in zip((state.route_road, state.route_first, state.route_count), rows, strict=True):
                column[n_routes : len(self._route_rows)] = values
        state.candidate[n_candidates : len(self._candidates)] = self._candidates[n_candidates:]
        for number in range(n_kinds, len(self.kinds)):
            row = kind_row(self.kinds[number], self.delta)
            state.kinds[number * t.KIND_SIZE : (number + 1) * t.KIND_SIZE] = row
        self._written = [len(self._path), len(self._route_rows), len(self._candidates), len(self.kinds)]
        return moved
