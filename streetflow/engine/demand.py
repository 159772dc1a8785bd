"""Routes, lane paths and vehicle kinds of one engine, as numbers in its tables (they only ever grow)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streetflow.engine.lane_path_tables import LanePathTables
from streetflow.kernels import tables as t
from streetflow.kernels.lane_paths import DEAD_END
from streetflow.roadnet.flow import VehicleKind
from streetflow.roadnet.network_tables import NetworkTables
from streetflow.roadnet.routing import LanePath


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
        self._route_numbers: tuple[dict[tuple[int, ...], int], ...] = ({}, {})  # of invalid routes, of valid ones
        self._lane_paths = LanePathTables(network)
        self._written = [0, 0, 0, 0]

    def kind(self, kind: VehicleKind) -> int:
        number = self._kind_numbers.get(kind)
        if number is None:
            number = self._kind_numbers[kind] = len(self.kinds)
            self.kinds.append(kind)
        return number

    def all_kinds(self, kinds: Sequence[VehicleKind]) -> list[int]:
        """`kind` for each of many, most of which are one object."""
        numbers = {id(kind): self.kind(kind) for kind in {id(kind): kind for kind in kinds}.values()}
        return [numbers[id(kind)] for kind in kinds]

    def route(self, anchors: Sequence[int]) -> int:
        """The number of the route through these anchors; an invalid one has no candidates."""
        roads = self.network.router.plan(anchors)
        return self.route_of_roads(roads is not None, tuple(anchors) if roads is None else roads)

    def route_of_roads(self, valid: bool, roads: tuple[int, ...]) -> int:
        """The number of a planned route, or of the anchors of an invalid one."""
        number = self._route_numbers[valid].get(roads)
        return self._number_routes([(valid, roads)])[0] if number is None else number

    def all_routes(self, anchors: Sequence[tuple[int, ...]]) -> list[int]:
        """`route` for each of many."""
        different = list(dict.fromkeys(anchors))
        planned = self.network.router.plan_all(different)
        keys = [(False, by) if roads is None else (True, roads) for by, roads in zip(different, planned, strict=True)]
        numbers = dict(zip(different, self._number_routes(keys), strict=True))
        return [numbers[each] for each in anchors]

    def _number_routes(self, keys: Sequence[tuple[bool, tuple[int, ...]]]) -> list[int]:
        """The number of each route: whether it is valid, and its roads or anchors."""
        first = len(self.routes)
        numbers = []
        for valid, roads in keys:
            number = self._route_numbers[valid].setdefault(roads, len(self.routes))
            if number == len(self.routes):
                self.routes.append(roads)
                self.valid.append(valid)
            numbers.append(number)
        if first < len(self.routes):
            self._lane_paths.add_routes(self.routes[first:], self.valid[first:])
        return numbers

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
        return (LanePath(drivables) for drivables in self._lane_paths.drivables(route))

    def dead_ends(self) -> dict[int, tuple[int, ...]]:
        """By route on which vehicles can get stuck: the lanes, in the order of its entry lanes, from which it doesn't go on."""
        return self._lane_paths.dead_ends()

    def lane_path_start(self, roads: tuple[int, ...], position: int, lane: int) -> int:
        """Index in ``path`` where the lane path starts from a lane of the road at a position of the route."""
        return self._lane_paths.start_of(self.route_of_roads(True, roads), position, lane)

    def lane_path_at(self, index: int) -> tuple[tuple[int, ...], int, int, int]:
        """The lane path that an index in ``path`` belongs to: roads, position and lane, as for `lane_path_start`, and the
        index counted from its start."""
        route, *rest = self._lane_paths.at(index)
        position, lane, within = rest
        return self.routes[route], position, lane, within

    def write(self, tables: t.Tables) -> bool:
        """Append what is new to the tables. True if their memory moved."""
        paths = self._lane_paths
        paths.complete(self.lane_change)
        written = self._written
        self._written = [paths.n_path, paths.n_routes, paths.candidates.size, len(self.kinds)]
        n_path, n_routes, n_candidates, n_kinds = self._written
        moved = tables.grow_all(
            {
                "path": n_path,
                "sideways": n_path if self.lane_change else 0,
                "routes": n_routes,
                "candidates": n_candidates,
                "kinds": n_kinds * t.KIND_SIZE,
            }
        )
        state = tables.state
        state.counters[t.REVISITS] = paths.revisits
        paths.write(state, written[0], self.lane_change)
        for column, values in zip((state.route_road, state.route_first, state.route_count), paths.rows, strict=True):
            column[written[1] : n_routes] = values[written[1] : n_routes]
        state.candidate[written[2] : n_candidates] = paths.candidates[written[2] :]
        for number in range(written[3], n_kinds):
            row = kind_row(self.kinds[number], self.delta)
            state.kinds[number * t.KIND_SIZE : (number + 1) * t.KIND_SIZE] = row
        return moved
