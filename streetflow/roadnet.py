"""Reading and checking a road network file (cityflow-semantics.md, sections 1.3 and 12)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streetflow.cursor import Cursor
from streetflow.errors import InputError, Problems
from streetflow.json_reader import read_json

Point = tuple[float, float]
TURN_RANKS = {"turn_right": 1, "turn_left": 2, "go_straight": 3}


@dataclass(frozen=True)
class Road:
    """A directed road. ``points`` is the centre line in m; lane 0 is the left-most one."""

    id: str
    start_intersection: int
    end_intersection: int
    points: tuple[Point, ...]
    lane_widths_m: tuple[float, ...]
    lane_max_speeds_mps: tuple[float, ...]
    first_lane: int

    @property
    def n_lanes(self) -> int:
        return len(self.lane_widths_m)


@dataclass(frozen=True)
class LaneLink:
    """One path across an intersection, between two lane numbers. Empty ``points``: to be computed."""

    start_lane: int
    end_lane: int
    points: tuple[Point, ...]


@dataclass(frozen=True)
class RoadLink:
    """A movement: all lane links from one road to another. ``rank``: straight 3, left 2, right 1."""

    rank: int
    start_road: int
    end_road: int
    lane_links: tuple[LaneLink, ...]

    @property
    def is_turn(self) -> bool:
        return self.rank != TURN_RANKS["go_straight"]


@dataclass(frozen=True)
class Phase:
    """A light phase: its time in the engine's own plan, and the road links that are open in it."""

    time_s: float
    road_links: tuple[int, ...]


@dataclass(frozen=True)
class Intersection:
    id: str
    point: Point
    virtual: bool
    width_m: float
    roads: tuple[int, ...]
    road_links: tuple[RoadLink, ...] = ()
    phases: tuple[Phase, ...] = ()


@dataclass(frozen=True)
class Roadnet:
    """A checked road network; numbers are positions in file order, lanes are numbered road by road."""

    file: str
    intersections: tuple[Intersection, ...]
    roads: tuple[Road, ...]
    lane_ids: tuple[str, ...]
    lane_road: tuple[int, ...]
    road_index: dict[str, int] = field(repr=False)
    intersection_index: dict[str, int] = field(repr=False)


def read_roadnet(path: str | Path) -> Roadnet:
    """Read and check a road network. InputError names file, JSON path and fault of what CityFlow chokes on."""
    root = Cursor(read_json(path), path)
    problems = Problems(path)
    intersection_cursors = list(root["intersections"].items())
    road_cursors = list(root["roads"].items())
    intersection_index = _ids(intersection_cursors, problems)
    road_index = _ids(road_cursors, problems)
    problems.raise_if_any()

    roads: list[Road] = []
    first_lane = 0
    for cursor in road_cursors:
        try:
            road = _road(cursor, intersection_index, first_lane)
        except InputError as fault:
            problems.add(fault.place, fault.fault)
            continue
        roads.append(road)
        first_lane += road.n_lanes
    problems.raise_if_any()

    intersections: list[Intersection] = []
    for cursor in intersection_cursors:
        try:
            intersections.append(_intersection(cursor, road_index, roads))
        except InputError as fault:
            problems.add(fault.place, fault.fault)
    problems.raise_if_any()

    lane_ids = tuple(f"{road.id}_{j}" for road in roads for j in range(road.n_lanes))
    if len(set(lane_ids)) != len(lane_ids):
        twice = next(name for i, name in enumerate(lane_ids) if name in lane_ids[:i])
        raise InputError(path, "roads", f"two lanes get the id {twice!r}")
    return Roadnet(
        file=str(path),
        intersections=tuple(intersections),
        roads=tuple(roads),
        lane_ids=lane_ids,
        lane_road=tuple(i for i, road in enumerate(roads) for _ in range(road.n_lanes)),
        road_index=road_index,
        intersection_index=intersection_index,
    )


def _ids(cursors: Sequence[Cursor], problems: Problems) -> dict[str, int]:
    index: dict[str, int] = {}
    for number, cursor in enumerate(cursors):
        try:
            name = cursor["id"].text()
        except InputError as fault:
            problems.add(fault.place, fault.fault)
            continue
        if name in index:
            first = cursor.place.replace(f"[{number}]", f"[{index[name]}]")
            problems.add(f"{cursor.place}.id", f"{name!r} is the id of {first} already")
        index[name] = number
    return index


def _reference(cursor: Cursor, index: dict[str, int], kind: str) -> int:
    name = cursor.text()
    if name not in index:
        raise cursor.fault(f"there is no {kind} {name!r}")
    return index[name]


def _points(cursor: Cursor, least: int) -> tuple[Point, ...]:
    points: list[Point] = []
    for item in cursor.items(least):
        points.append((item["x"].number(), item["y"].number()))
        if len(points) > 1 and points[-1] == points[-2]:
            raise item.fault("is the same point as the one before: a segment of length 0")
    return tuple(points)


def _road(cursor: Cursor, intersection_index: dict[str, int], first_lane: int) -> Road:
    widths, speeds = [], []
    for lane in cursor["lanes"].items():
        widths.append(lane["width"].number(least=0))
        speeds.append(lane["maxSpeed"].number(above=0))
    return Road(
        id=cursor["id"].text(),
        start_intersection=_reference(cursor["startIntersection"], intersection_index, "intersection"),
        end_intersection=_reference(cursor["endIntersection"], intersection_index, "intersection"),
        points=_points(cursor["points"], 2),
        lane_widths_m=tuple(widths),
        lane_max_speeds_mps=tuple(speeds),
        first_lane=first_lane,
    )


def _intersection(cursor: Cursor, road_index: dict[str, int], roads: Sequence[Road]) -> Intersection:
    name = cursor["id"].text()
    point = (cursor["point"]["x"].number(), cursor["point"]["y"].number())
    virtual = cursor["virtual"].boolean()
    own_roads = tuple(_reference(road, road_index, "road") for road in cursor["roads"].items())
    if virtual:
        return Intersection(name, point, True, 0.0, own_roads)
    width_m = cursor["width"].number(least=0)
    road_links = tuple(_road_link(link, road_index, roads) for link in cursor["roadLinks"].items())
    phases = tuple(_phase(phase, len(road_links)) for phase in cursor["trafficLight"]["lightphases"].items(least=1))
    return Intersection(name, point, False, width_m, own_roads, road_links, phases)


def _road_link(cursor: Cursor, road_index: dict[str, int], roads: Sequence[Road]) -> RoadLink:
    kind = cursor["type"].text()
    if kind not in TURN_RANKS:
        raise cursor["type"].fault(f"must be one of {', '.join(sorted(TURN_RANKS))}, is {kind!r}")
    start_road = _reference(cursor["startRoad"], road_index, "road")
    end_road = _reference(cursor["endRoad"], road_index, "road")
    lane_links = tuple(
        LaneLink(
            start_lane=_lane(item["startLaneIndex"], roads[start_road]),
            end_lane=_lane(item["endLaneIndex"], roads[end_road]),
            points=_lane_link_points(item),
        )
        for item in cursor["laneLinks"].items()
    )
    return RoadLink(TURN_RANKS[kind], start_road, end_road, lane_links)


def _lane(cursor: Cursor, road: Road) -> int:
    index = cursor.integer()
    if not 0 <= index < road.n_lanes:
        raise cursor.fault(f"road {road.id!r} has {road.n_lanes} lanes, there is no lane index {index}")
    return road.first_lane + index


def _lane_link_points(cursor: Cursor) -> tuple[Point, ...]:
    if not cursor.has("points"):
        return ()
    points = _points(cursor["points"], 0)
    if len(points) == 1:
        raise cursor["points"].fault("must hold no point or at least 2")
    return points


def _phase(cursor: Cursor, n_road_links: int) -> Phase:
    time_s = cursor["time"].number(least=0)
    road_links = []
    for item in cursor["availableRoadLinks"].items():
        number = item.integer()
        if not 0 <= number < n_road_links:
            raise item.fault(f"there is no road link {number}: the intersection has {n_road_links}")
        road_links.append(number)
    return Phase(time_s, tuple(road_links))


def check_phase_times(roadnet: Roadnet) -> None:
    """InputError if the engine's own light plan could never get past an instant (all times 0)."""
    for number, intersection in enumerate(roadnet.intersections):
        if not intersection.virtual and math.fsum(phase.time_s for phase in intersection.phases) <= 0.0:
            place = f"intersections[{number}].trafficLight.lightphases"
            raise InputError(roadnet.file, place, "all times are 0, so the lights can't run by their own plan")
