"""Reading and checking a road network file (docs/cityflow-semantics.md, sections 1.3 and 12)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from streetflow.errors import InputError, Problems
from streetflow.roadnet.cursor import Cursor
from streetflow.roadnet.json_reader import read_json

_T = TypeVar("_T")
Point = tuple[float, float]
TURN_RANKS = {"turn_right": 1, "turn_left": 2, "go_straight": 3}
UNKNOWN_RANK = 0  # of a movement of any other type: it yields to all others, and isn't a turn
_SHORTEST_CYCLE_S = 0.001  # of lights that run by their own plan: every cycle within a step is gone through


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


_NO_ROAD = Road("", 0, 0, (), (), (), 0)  # stands for a faulty one while the rest of the file is checked


@dataclass(frozen=True)
class LaneLink:
    """One path across an intersection, between two lane numbers. Empty ``points``: to be computed."""

    start_lane: int
    end_lane: int
    points: tuple[Point, ...]


@dataclass(frozen=True)
class RoadLink:
    """A movement: all lane links from one road to another. ``rank``: straight 3, left 2, right 1, unknown 0."""

    rank: int
    start_road: int
    end_road: int
    lane_links: tuple[LaneLink, ...]

    @property
    def is_turn(self) -> bool:
        return self.rank in (TURN_RANKS["turn_right"], TURN_RANKS["turn_left"])


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
    conflicts: frozenset[tuple[int, int]] | None = None
    """Pairs of road links that cross or merge, the smaller number first, where the file tells them; None: its shapes do."""


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
    """Read and check a road network. InputError names file, JSON path and fault of anything that CityFlow can't run with."""
    root = Cursor(read_json(path), path)
    root.members()
    problems = Problems(path)
    intersection_cursors = problems.take(_elements, root, "intersections", default=list[Cursor]())
    road_cursors = problems.take(_elements, root, "roads", default=list[Cursor]())
    problems.raise_if_any()
    intersection_index = _ids(intersection_cursors, problems)
    road_index = _ids(road_cursors, problems)
    problems.raise_if_any()

    roads: list[Road] = []
    first_lane = 0
    for cursor in road_cursors:
        roads.append(problems.take(_road, cursor, intersection_index, first_lane, default=_NO_ROAD))
        first_lane += roads[-1].n_lanes
    intersections = [problems.take(_intersection, cursor, road_index, roads) for cursor in intersection_cursors]
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
        points.append(_point(item))
        if len(points) > 1 and points[-1] == points[-2]:
            raise item.fault("is the same point as the one before: a segment of length 0")
    return tuple(points)


def _point(cursor: Cursor) -> Point:
    return cursor["x"].number(), cursor["y"].number()


def _elements(cursor: Cursor, name: str, least: int = 0) -> list[Cursor]:
    return list(cursor[name].items(least))


def _all(
    problems: Problems, cursor: Cursor, name: str, read: Callable[..., _T], *arguments: Any, least: int = 0
) -> tuple[_T, ...]:
    """The elements of the array ``name``, each read by ``read(element, *arguments)``; their faults are collected."""
    elements = problems.take(_elements, cursor, name, least, default=list[Cursor]())
    return tuple(problems.take(read, element, *arguments) for element in elements)


def _road(cursor: Cursor, intersection_index: dict[str, int], first_lane: int) -> Road:
    problems = Problems(cursor.file)
    start = problems.take(lambda: _reference(cursor["startIntersection"], intersection_index, "intersection"))
    end = problems.take(lambda: _reference(cursor["endIntersection"], intersection_index, "intersection"))
    points = problems.take(lambda: _points(cursor["points"], 2))
    lanes = _all(problems, cursor, "lanes", _lane_size)
    problems.raise_if_any()
    return Road(
        id=cursor["id"].text(),
        start_intersection=start,
        end_intersection=end,
        points=points,
        lane_widths_m=tuple(width for width, _ in lanes),
        lane_max_speeds_mps=tuple(speed for _, speed in lanes),
        first_lane=first_lane,
    )


def _lane_size(cursor: Cursor) -> tuple[float, float]:
    problems = Problems(cursor.file)
    width_m = problems.take(lambda: cursor["width"].number(least=0))
    speed_mps = problems.take(lambda: cursor["maxSpeed"].number(above=0))
    problems.raise_if_any()
    return width_m, speed_mps


def _intersection(cursor: Cursor, road_index: dict[str, int], roads: Sequence[Road]) -> Intersection:
    problems = Problems(cursor.file)
    name = cursor["id"].text()
    point = problems.take(lambda: _point(cursor["point"]))
    virtual = problems.take(lambda: cursor["virtual"].boolean(), default=True)
    own_roads = _all(problems, cursor, "roads", _reference, road_index, "road")
    if virtual:
        problems.raise_if_any()
        return Intersection(name, point, True, 0.0, own_roads)
    width_m = problems.take(lambda: cursor["width"].number(least=0))
    road_links = _all(problems, cursor, "roadLinks", _road_link, road_index, roads)
    if not road_links:
        problems.raise_if_any()  # without road links phases can't be checked
    light = problems.take(lambda: cursor["trafficLight"])
    phases = _all(problems, light, "lightphases", _phase, len(road_links), least=1) if light else ()
    conflicts = problems.take(_conflicts, cursor, len(road_links)) if cursor.has("conflicts") else None
    problems.raise_if_any()
    return Intersection(name, point, False, width_m, own_roads, road_links, phases, conflicts)


def _conflicts(cursor: Cursor, n_road_links: int) -> frozenset[tuple[int, int]]:
    pairs = set()
    for element in cursor["conflicts"].items():
        pair = [_available(each, n_road_links) for each in element.items(2)]
        if len(pair) != 2 or pair[0] == pair[1]:
            raise element.fault("must be two different road links")
        pairs.add((min(pair), max(pair)))
    return frozenset(pairs)


def _road_link(cursor: Cursor, road_index: dict[str, int], roads: Sequence[Road]) -> RoadLink:
    problems = Problems(cursor.file)
    rank = problems.take(lambda: _rank(cursor["type"]))
    start_road = problems.take(lambda: _reference(cursor["startRoad"], road_index, "road"))
    end_road = problems.take(lambda: _reference(cursor["endRoad"], road_index, "road"))
    problems.raise_if_any()
    if _NO_ROAD in (roads[start_road], roads[end_road]):  # without its roads a lane link can't be checked
        return RoadLink(rank, start_road, end_road, ())
    lane_links = _plain_lane_links(cursor.value.get("laneLinks"), roads[start_road], roads[end_road])
    if lane_links is None:
        lane_links = _all(problems, cursor, "laneLinks", _lane_link, roads[start_road], roads[end_road])
        problems.raise_if_any()
    return RoadLink(rank, start_road, end_road, lane_links)


def _rank(cursor: Cursor) -> int:
    return TURN_RANKS.get(cursor.text(), UNKNOWN_RANK)


def _plain_lane_links(value: Any, start_road: Road, end_road: Road) -> tuple[LaneLink, ...] | None:
    """What `_lane_link` reads, in a fraction of the time; None where anything isn't as it should be, or there are points."""
    if type(value) is not list:
        return None
    lane_links = []
    for each in value:
        if type(each) is not dict or each.get("points"):
            return None
        start, end = each.get("startLaneIndex"), each.get("endLaneIndex")
        if (
            type(start) is not int
            or type(end) is not int
            or not (0 <= start < start_road.n_lanes and 0 <= end < end_road.n_lanes)
        ):
            return None
        if "points" in each and type(each["points"]) is not list:
            return None
        lane_links.append(LaneLink(start_road.first_lane + start, end_road.first_lane + end, ()))
    return tuple(lane_links)


def _lane_link(cursor: Cursor, start_road: Road, end_road: Road) -> LaneLink:
    problems = Problems(cursor.file)
    start_lane = problems.take(lambda: _lane(cursor["startLaneIndex"], start_road))
    end_lane = problems.take(lambda: _lane(cursor["endLaneIndex"], end_road))
    points = problems.take(_lane_link_points, cursor)
    problems.raise_if_any()
    return LaneLink(start_lane, end_lane, points)


def _lane(cursor: Cursor, road: Road) -> int:
    index = cursor.integer()
    if not 0 <= index < road.n_lanes:
        raise cursor.fault(f"road {road.id!r} has {road.n_lanes} lanes, there is no lane index {index}")
    return road.first_lane + index


def _lane_link_points(cursor: Cursor) -> tuple[Point, ...]:
    if not cursor.has("points"):
        return ()
    points = tuple(_point(item) for item in cursor["points"].items())  # equal ones may follow each other
    if len(points) == 1:
        raise cursor["points"].fault("must hold no point or at least 2")
    return points


def _phase(cursor: Cursor, n_road_links: int) -> Phase:
    problems = Problems(cursor.file)
    time_s = problems.take(lambda: cursor["time"].number(least=0))
    road_links = _all(problems, cursor, "availableRoadLinks", _available, n_road_links)
    problems.raise_if_any()
    return Phase(time_s, road_links)


def _available(cursor: Cursor, n_road_links: int) -> int:
    number = cursor.integer()
    if not 0 <= number < n_road_links:
        raise cursor.fault(f"there is no road link {number}: the intersection has {n_road_links}")
    return number


def check_phase_times(roadnet: Roadnet) -> None:
    """InputError if the engine's own light plan would go round without end, or next to, within a step."""
    for number, intersection in enumerate(roadnet.intersections):
        if intersection.virtual:
            continue
        cycle_s = math.fsum(phase.time_s for phase in intersection.phases)
        if cycle_s < _SHORTEST_CYCLE_S:
            fault = f"add up to {cycle_s:g} s, less than {_SHORTEST_CYCLE_S:g}" if cycle_s else "are 0"
            place = f"intersections[{number}].trafficLight.lightphases"
            raise InputError(roadnet.file, place, f"all times {fault}, so the lights can't run by their own plan")
