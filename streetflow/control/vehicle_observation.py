"""The parts of an observation that need single vehicles: lane links, parts of lanes, images, and vehicles that have passed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streetflow.control.features import IMAGE_EXTENT_M
from streetflow.control.intersection import Intersection
from streetflow.control.traffic_state import TrafficState
from streetflow.engine.vehicles import Vehicles
from streetflow.kernels.observe_vehicles import compare_passing, count_on_lanes, draw_images
from streetflow.kernels.sources import OWN_COUNT, Source
from streetflow.roadnet.reader import Point


class VehicleObserver:
    """Fills in its blocks of the source vector: ``size`` entries from ``first`` on, and, if ``passing``, PASSED and
    PASSED_TRAVEL_TIME of the intersections' own entries from ``first_own`` on.

    ``resolutions``: the blocks, as (source, parts of a lane or cells a side).
    """

    def __init__(
        self,
        intersections: Sequence[Intersection],
        resolutions: Iterable[tuple[Source, int]],
        engine: TrafficState,
        first_own: int,
        first: int,
        passing: bool,
    ) -> None:
        lanes, drivables = len(engine.lane_length_m), len(engine.drivable_shapes)
        self.lane_length_m = np.ascontiguousarray(engine.lane_length_m, np.float64)
        self._first, self._first_own, self.passing = first, first_own, passing
        self._count = len(intersections)
        self._bases: dict[tuple[Source, int], int] = {}
        end = first
        segment_blocks: list[tuple[int, int]] = []
        self.images: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        for source, resolution in sorted(resolutions):
            self._bases[source, resolution] = end
            if source is Source.LINK_VEHICLES:
                end += drivables - lanes
            elif source is Source.SEGMENT_VEHICLES:
                segment_blocks.append((end, resolution))
                end += lanes * resolution
            else:
                self.images.append(_image_tables(intersections, engine.drivable_shapes, lanes, resolution, end))
                end += self._count * resolution**2
        self.size = end - first
        self.first_link = self._bases.get((Source.LINK_VEHICLES, 0), -1)
        self.segments = np.array(segment_blocks, np.int32).reshape(-1, 2)
        self.light_of_lane = np.full(lanes, -1, np.int32)
        for i, each in enumerate(intersections):
            self.light_of_lane[list(each.in_lanes)] = i
        self.reset()

    def reset(self) -> None:
        """Forget the vehicles of the last decision."""
        self._time_s = -1.0
        self._now = self._before = _roll(Vehicles.empty(0), self.light_of_lane)
        self._before_s = 0.0

    def base(self, i: int, source: Source, resolution: int) -> int:
        """Index at which the source begins for intersection i."""
        return self._bases[source, resolution] + (i * resolution**2 if source is Source.IMAGE else 0)

    def fill_in(self, values: NDArray[np.float64], engine: TrafficState) -> None:
        vehicles = engine.running_vehicles()
        drivable, distance_m = vehicles.drivable, vehicles.distance_m
        values[self._first : self._first + self.size] = 0.0
        count_on_lanes(drivable, distance_m, self.lane_length_m, self.first_link, self.segments, values)
        for rows, cells in self.images:
            draw_images(drivable, distance_m, rows, cells, values)
        if self.passing:
            time_s = engine.get_current_time()
            if time_s > self._time_s:
                self._before, self._before_s, self._time_s = self._now, self._time_s, time_s
                self._now = _roll(vehicles, self.light_of_lane)
            own = values[self._first_own : self._first_own + OWN_COUNT * self._count]
            compare_passing(*self._before, *self._now, _empty_table(len(self._now.serial)), self._before_s, own)


class _Roll(NamedTuple):
    """The vehicles on the lights' in-lanes at one decision. light: the light with the in-lane that it is on, -1: none."""

    serial: NDArray[np.int64]
    created_s: NDArray[np.float64]
    light: NDArray[np.int32]


def _roll(vehicles: Vehicles, light_of_lane: NDArray[np.int32]) -> _Roll:
    light = np.full(len(vehicles.serial), -1, np.int32)
    on_lane = vehicles.drivable < len(light_of_lane)
    light[on_lane] = light_of_lane[vehicles.drivable[on_lane]]
    return _Roll(vehicles.serial, vehicles.created_s, light)


def _image_tables(
    intersections: Sequence[Intersection], shapes: Sequence[Sequence[Point]], lanes: int, side: int, first: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(rows int32[R, 3], ordered by drivable; entry of the source vector, or -1 outside, for each whole metre along each)."""
    cell_m = IMAGE_EXTENT_M / side
    shown: list[tuple[int, int]] = []
    for i, each in enumerate(intersections):
        links = range(lanes + each.first_lane_link, lanes + each.first_lane_link + len(each.lane_links))
        shown += [(drivable, i) for drivable in (*each.in_lanes, *each.out_lanes, *links)]
    rows: list[tuple[int, int, int]] = []
    cells: list[NDArray[np.int64]] = []
    begin = 0
    for drivable, i in sorted(shown):
        points = _metre_points(shapes[drivable])
        corner = np.array(intersections[i].centre_m) - IMAGE_EXTENT_M / 2
        column, row = np.floor((points - corner) / cell_m).astype(int).T
        inside = (column >= 0) & (column < side) & (row >= 0) & (row < side)
        cells.append(np.where(inside, first + i * side**2 + row * side + column, -1))
        rows.append((drivable, begin, begin + len(points)))
        begin += len(points)
    return np.array(rows, np.int32), np.concatenate(cells).astype(np.int32)


def _metre_points(shape: Sequence[Point]) -> NDArray[np.float64]:
    """float64[M, 2]: the points at 0, 1, 2, ... m along a polyline."""
    ends = np.array(shape, np.float64)
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(ends, axis=0).T))])
    metres = np.arange(int(along[-1]) + 1, dtype=np.float64)
    return np.stack([np.interp(metres, along, ends[:, axis]) for axis in (0, 1)], axis=1)


def _empty_table(count: int) -> NDArray[np.int32]:
    """A hash table for the numbers of ``count`` vehicles by their serials, at most half full; -1: free."""
    return np.full(1 << (2 * count).bit_length(), -1, np.int32)
