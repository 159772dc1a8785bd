"""Replay files for CityFlow's web viewer: a roadnet log, and one line per step (section 9.3)."""

from __future__ import annotations

import json
import math
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streetflow.errors import InputError, cannot_be
from streetflow.files import write_whole
from streetflow.roadnet.flow import VehicleKind
from streetflow.roadnet.geometry import direction_at, point_at, polyline_length
from streetflow.roadnet.network_tables import NetworkTables
from streetflow.roadnet.reader import Point

_owners: weakref.WeakValueDictionary[Path, ReplayLog] = weakref.WeakValueDictionary()  # by file: the log that writes to it


class ReplayVehicle(NamedTuple):
    """A vehicle in a replay line, at a distance along a drivable."""

    id: str
    drivable: int
    distance_m: float
    kind: VehicleKind
    direction: int = 0  # -1: signals to the inner lane, 1: to the outer one
    beside: int = -1  # the lane that it changes to
    share: float = 0.0  # of the change done so far, 0 to 1


def _direction(shape: Sequence[Point], distance_m: float) -> Point:
    """The unit direction there; on a lane link without one (its length is 0, or it ends in a repeated point) along x."""
    try:
        return direction_at(shape, distance_m)
    except ZeroDivisionError:
        return 1.0, 0.0


class ReplayLog:
    """Writes the replay of one engine, line by line, as it runs: a replay may be large, and is useful if a run is stopped
    early. A file belongs to the engine that opened it last."""

    def __init__(self, network: NetworkTables, roadnet_log_file: str, replay_log_file: str) -> None:
        self._network = network
        self._enabled = True
        self._file: IO[str] | None = None
        self._key: Path | None = None
        write_whole(roadnet_log_file, json.dumps(roadnet_log(network)))
        self.open(replay_log_file)

    def open(self, path: str) -> None:
        """Continue in another file, which starts empty. InputError, with the old file kept, if the new one can't be written.

        An engine that is writing to the new file loses it: its next step raises InputError. (So a program may make a
        new engine with the same config while it still holds the old one.)
        """
        try:
            key = Path(path).resolve()
            owner = _owners.get(key)
            if owner is not None:
                owner._own_file().flush()  # otherwise closing it would write into the new, empty file
            file = key.open("w", encoding="utf-8", newline="\n")
        except (OSError, ValueError) as fault:
            raise cannot_be("written", path, fault) from None
        for loser in (owner, self):
            if loser is not None:
                loser._give_up()
        self._file, self._path, self._key = file, path, key
        weakref.finalize(self, file.close)
        _owners[key] = self

    def _give_up(self) -> None:
        if self._key is not None and _owners.get(self._key) is self:
            del _owners[self._key]
            self._own_file().close()

    def set_enabled(self, enabled: bool) -> None:
        self._enabled = enabled
        self._own_file().flush()

    def _own_file(self) -> IO[str]:
        assert self._file is not None
        if self._file.closed:
            raise InputError(
                self._path, "", "another engine has begun its replay in this file, so this one can't continue in it"
            )
        return self._file

    def write(self, vehicles: Iterable[ReplayVehicle], is_open: NDArray[np.int32]) -> None:
        """One line: the vehicles, in order, and the state of the lanes' ends."""
        if not self._enabled:
            return
        file = self._own_file()
        lane_shapes, link_shapes = self._network.lane_shapes, self._network.link_shapes
        parts = []
        for v in vehicles:
            on_lane = v.drivable < len(lane_shapes)
            shape = lane_shapes[v.drivable] if on_lane else link_shapes[v.drivable - len(lane_shapes)]
            x, y = point_at(shape, v.distance_m)
            dx, dy = _direction(shape, v.distance_m)
            angle = math.atan2(dy, dx)
            if v.beside >= 0:
                x2, y2 = point_at(lane_shapes[v.beside], v.distance_m)
                x, y = x + (x2 - x) * v.share, y + (y2 - y) * v.share
            parts.append(f"{x!r} {y!r} {angle!r} {v.id} {v.direction} {v.kind.length_m!r} {v.kind.width_m!r},")
        parts.append(";")
        roadnet = self._network.roadnet
        for road in roadnet.roads:
            end = roadnet.intersections[road.end_intersection]
            if end.virtual:
                continue
            letters = []
            for lane in range(road.first_lane, road.first_lane + road.n_lanes):
                links = (drivable - len(lane_shapes) for drivable, _ in self._network.router.lane_links[lane])
                if len(end.phases) <= 1:
                    letters.append("i")
                else:
                    letters.append("g" if all(is_open[link] for link in links) else "r")
            parts.append(" ".join([road.id, *letters]) + ",")
        file.write("".join(parts) + "\n")


def roadnet_log(network: NetworkTables) -> dict[str, object]:
    """The static picture of a network: nodes with outlines to fill, edges with their lanes."""
    roadnet = network.roadnet
    nodes: list[dict[str, object]] = []
    for number, intersection in enumerate(roadnet.intersections):
        node: dict[str, object] = {
            "id": intersection.id,
            "point": list(intersection.point),
            "virtual": intersection.virtual,
        }
        if not intersection.virtual:
            node["width"] = intersection.width_m
        node["outline"] = [c for point in _outline(network, number) for c in point]
        nodes.append(node)
    edges = [
        {
            "id": road.id,
            "from": roadnet.intersections[road.start_intersection].id,
            "to": roadnet.intersections[road.end_intersection].id,
            "points": [list(point) for point in road.points],
            "nLane": road.n_lanes,
            "laneWidths": list(road.lane_widths_m),
        }
        for road in roadnet.roads
    ]
    return {"static": {"nodes": nodes, "edges": edges}}


def _outline(network: NetworkTables, number: int) -> list[Point]:
    roadnet = network.roadnet
    intersection = roadnet.intersections[number]
    centre, width = intersection.point, intersection.width_m
    points = [centre]
    for road_number in intersection.roads:
        road = roadnet.roads[road_number]
        start = roadnet.intersections[road.start_intersection].point
        end = roadnet.intersections[road.end_intersection].point
        length = math.hypot(end[0] - start[0], end[1] - start[1])
        if length == 0.0:
            continue
        rx, ry = (end[0] - start[0]) / length, (end[1] - start[1]) / length
        nx, ny = -ry, rx
        if road.start_intersection == number:
            rx, ry = -rx, -ry
        road_width = sum(road.lane_widths_m)
        depth = max(0.5 * min(width, road_width), 5.0)
        a = centre[0] - rx * width, centre[1] - ry * width
        b = a[0] - nx * road_width, a[1] - ny * road_width
        points += [a, b]
        lanes = range(road.first_lane, road.first_lane + road.n_lanes)
        average = sum(polyline_length(network.lane_shapes[lane]) for lane in lanes) / max(len(lanes), 1)
        if depth < average:
            points.append((a[0] - rx * depth, a[1] - ry * depth))
            points.append((b[0] - rx * depth, b[1] - ry * depth))
    return _convex_hull(points)


def _convex_hull(points: list[Point]) -> list[Point]:
    """Counter-clockwise hull (monotone chain)."""
    ordered = sorted(set(points))
    if len(ordered) <= 2:
        return ordered

    def half(side: list[Point]) -> list[Point]:
        hull: list[Point] = []
        for p in side:
            while len(hull) >= 2:
                (ax, ay), (bx, by) = hull[-2], hull[-1]
                if (bx - ax) * (p[1] - ay) - (by - ay) * (p[0] - ax) > 0:
                    break
                hull.pop()
            hull.append(p)
        return hull[:-1]

    return half(ordered) + half(ordered[::-1])
