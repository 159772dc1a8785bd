"""Routes and their lane paths in growing arrays, for the compiled code that plans them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from streetflow.kernels import lane_paths as kernel
from streetflow.kernels import tables as t
from streetflow.roadnet.network_tables import NetworkTables

_BY_ROUTE = ("route_first", "revisits", "first_of", "last_of")
_BY_LANE_PATH = ("start", "of_route", "start_position", "next_of")


class LanePathTables:
    """The lane paths of routes that are added, in the numbering of the tables of `State`.

    Attributes:
        n_routes: how many.
        revisits: whether a route comes back to a road.
        rows: by route: its first road, where its candidates start, their number (int32[3, routes], larger than that).
    """

    def __init__(self, network: NetworkTables) -> None:
        columns = network.router.link_columns
        roads = network.roadnet.roads
        self._road_first = np.array([*(road.first_lane for road in roads), len(network.roadnet.lane_ids)], np.int32)
        grown = {name: np.zeros(1, np.int32) for name in kernel.LanePaths._fields if name not in columns._fields}
        self._p = kernel.LanePaths(**columns._asdict(), **grown | {"counts": np.zeros(kernel.N_COUNTS, np.int32)})
        self.n_routes = 0
        self.revisits = False
        self.rows = np.zeros((3, 0), np.int32)

    def _make_room(self, names: Sequence[str], used: int, least: int) -> None:
        """For ``least`` elements, of which ``used`` are kept."""
        size: int = getattr(self._p, names[0]).size
        if size < least:
            larger = {name: np.empty(max(least, 2 * size), np.int32) for name in names}  # what isn't used takes no memory
            for name, array in larger.items():
                array[:used] = getattr(self._p, name)[:used]
            self._p = self._p._replace(**larger)

    def add_routes(self, routes: Sequence[Sequence[int]], valid: Sequence[bool]) -> None:
        """Number routes and plan their lane paths from the entry lanes.

        Args:
            routes: the roads of each, at least one; two where it is valid.
            valid: an invalid one gets no lane paths.
        """
        first, end = self.n_routes, self.n_routes + len(routes)
        lengths = np.fromiter(map(len, routes), np.int64, len(routes))
        begin = int(self._p.route_first[first])
        ends = begin + np.cumsum(lengths)
        roads = np.fromiter(chain.from_iterable(routes), np.int32, int(lengths.sum()))
        n_roads = self._road_first.size - 1
        if roads.size and not 0 <= roads.min() <= roads.max() < n_roads:
            raise IndexError(f"a route has a road number that isn't 0 to {n_roads - 1}")
        self._make_room(_BY_ROUTE, first + 1, end + 1)
        self._make_room(("roads",), begin, begin + roads.size)
        self._p.roads[begin : begin + roads.size] = roads
        self._p.route_first[first + 1 : end + 1] = ends
        entry = roads[ends - lengths - begin]
        entry_lanes = (self._road_first[entry + 1] - self._road_first[entry]) * np.asarray(valid, bool)
        n_entries, (n_lane_paths, n_path, n_candidates) = int(entry_lanes.sum()), self._p.counts[:3].tolist()
        self._make_room(_BY_LANE_PATH, n_lane_paths + 1, n_lane_paths + n_entries + 1)
        self._make_room(("path",), n_path, n_path + int((entry_lanes * 2 * lengths).sum()))
        self._make_room(("candidate",), n_candidates, n_candidates + n_entries)
        if self.rows.shape[1] < end:
            self.rows = np.hstack((self.rows[:, :first], np.empty((3, max(end, 2 * first) - first), np.int32)))
        seen_in = np.full(n_roads, -1, np.int32)
        kernel.add_routes(self._p, first, end, np.asarray(valid, np.int32), self._road_first, seen_in, self.rows[:, first:end])
        self.n_routes = end
        self.revisits |= bool(self._p.revisits[first:end].any())

    def start_of(self, route: int, position: int, lane: int) -> int:
        """Index in ``path`` where the lane path starts from a lane of the road at a position of a route; made if need be.

        IndexError: there is no such position or lane."""
        length = int(self._p.route_first[route + 1] - self._p.route_first[route])
        if not (0 <= position < length and 0 <= lane < self._p.lane_road.size):
            raise IndexError(f"no lane path starts from lane {lane} at position {position} of a route of {length} roads")
        while (start := int(kernel.find_start(self._p, route, position, lane))) == kernel.NO_ROOM:
            self._double()
        return start

    def _double(self) -> None:
        n_lane_paths, n_path = self._p.counts[:2].tolist()
        self._make_room(_BY_LANE_PATH, n_lane_paths + 1, 2 * self._p.start.size)
        self._make_room(("path",), n_path, 2 * self._p.path.size)

    @property
    def n_path(self) -> int:
        return int(self._p.counts[kernel.N_PATH])

    @property
    def candidates(self) -> NDArray[np.int32]:
        """Where the lane path from each entry lane of each route starts."""
        return self._p.candidate[: self._p.counts[kernel.N_CANDIDATES]]

    def at(self, index: int) -> tuple[int, int, int, int]:
        """The lane path that an index in ``path`` belongs to: route, position and lane where it starts, index from there."""
        p = self._p
        number = int(np.searchsorted(p.start[: p.counts[kernel.N_LANE_PATHS]], index, "right")) - 1
        start = int(p.start[number])
        return int(p.of_route[number]), int(p.start_position[number]), int(p.path[start]), index - start

    def drivables(self, route: int) -> list[tuple[int, ...]]:
        """The lane paths of a route from its entry lanes, with their mark."""
        p = self._p
        _, first, count = self.rows[:, route].tolist()
        starts = p.candidate[first : first + count]
        ends = p.start[self._numbers(starts) + 1]
        return [tuple(p.path[start:end].tolist()) for start, end in zip(starts, ends, strict=True)]

    def _numbers(self, starts: NDArray[np.int32]) -> NDArray[np.int64]:
        """The lane paths that start there."""
        return np.searchsorted(self._p.start[: self._p.counts[kernel.N_LANE_PATHS]], starts)

    def dead_ends(self) -> dict[int, tuple[int, ...]]:
        """By route with a dead end: the lanes, in the order of its entry lanes, on which its lane paths end too early."""
        p, count = self._p, self.rows[2, : self.n_routes]
        marks = p.start[self._numbers(self.candidates) + 1] - 1
        of_route = np.repeat(np.arange(self.n_routes), count)
        found: dict[int, dict[int, None]] = {}
        for k in np.flatnonzero(p.path[marks] == kernel.DEAD_END).tolist():
            found.setdefault(int(of_route[k]), {})[int(p.path[marks[k] - 1])] = None
        return {route: tuple(lanes) for route, lanes in found.items()}

    def complete(self, lane_change: bool) -> None:
        """Add the lane paths at other visits of a road and, if vehicles change lanes, beside the others."""
        while (self.revisits or lane_change) and not kernel.complete(self._p, lane_change):
            self._double()

    def write(self, state: t.State, written: int, lane_change: bool) -> None:
        """Fill in what `State` says of ``path``, from entry ``written`` on, where a lane path starts; all are complete."""
        p, n = self._p, self.n_path
        if written < n:
            state.path[written:n] = p.path[written:n]
            sideways = (state.path_inner, state.path_outer) if lane_change else (state.path_inner[:0], state.path_outer[:0])
            visits = (state.first_visit, state.next_visit)
            first = int(np.searchsorted(p.start[: p.counts[kernel.N_LANE_PATHS]], written))
            kernel.write_lane_paths(p, first, state.route_position, *visits, *sideways)
