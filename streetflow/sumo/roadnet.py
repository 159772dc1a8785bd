"""A SUMO network as a road network of ours, and what binds the two together.

Each junction becomes an intersection, each edge with lanes for road traffic a road. Where the links of one traffic light belong
to several junctions, all are part of the intersection that has most of them, since a light of ours is one intersection's.
A movement (road link) is what leads from one road to another and shows the same in every phase of its light. Phases are the
program's green ones; the signals between them are the engine's matter (`lamps.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streetflow.sumo.binding import LightBinding
from streetflow.sumo.net import Connection, Junction, Net
from streetflow.sumo.programs import OPEN, PERMITTED, Program
from streetflow.sumo.shapes import road_points, way_points

TURNS = {"s": "go_straight", "l": "turn_left", "L": "turn_left", "t": "turn_left", "r": "turn_right", "R": "turn_right"}
UNLIT_S = 30  # the time of the only phase of an intersection without a light


@dataclass(frozen=True)
class Movement:
    """Links of one road link. column: what they show, by phase of the light's program; None: no light sets them."""

    links: tuple[Connection, ...]
    column: str | None

    @property
    def signals(self) -> list[int]:
        return sorted({link.index for link in self.links if link.index is not None})


@dataclass(frozen=True)
class Converted:
    """The content of ``roadnet.json``, and by its numbers: SUMO's lanes, the ways across the junctions, the lights."""

    roadnet: dict[str, Any]
    lanes: tuple[str, ...]
    lane_lengths_m: tuple[float, ...]
    ways: tuple[tuple[str, ...], ...]  # by lane link
    lights: tuple[LightBinding, ...]
    joined: dict[str, list[str]]  # lights of several junctions, with these
    left_alone: tuple[str, ...]  # lights of which there is nothing to choose
    without_conflicts: int  # intersections whose conflicts the net doesn't tell


def convert(net: Net) -> Converted:
    """Convert a network. InputError for a junction with links of two lights."""
    roads, lane_ids, lengths_m = _roads(net)
    at, joined = _by_intersection(net)
    own_light = _own_lights(net, at)
    meeting: dict[str, list[str]] = defaultdict(list)
    for road in roads:
        for end in dict.fromkeys((road["startIntersection"], road["endIntersection"])):
            meeting[end].append(road["id"])
    lane_places = _lane_places(net)
    intersections, ways, lights = [], list[tuple[str, ...]](), []
    without_conflicts = 0
    for junction in net.junctions.values():
        if junction.id not in meeting:
            continue
        program = own_light.get(junction.id)
        movements = _movements(at[junction.id], net)
        intersections.append(_intersection(junction, meeting[junction.id], movements, program, lane_places))
        if movements:
            conflicts = _conflicts(movements, net)
            if conflicts is None:
                without_conflicts += 1
            else:
                intersections[-1] |= conflicts
        ways += [tuple(lane.id for lane in link.inside) for movement in movements for link in movement.links]
        if program is not None:
            lights.append(_binding(junction.id, program, movements))
    bound = {light.light for light in lights}
    return Converted(
        roadnet={"intersections": intersections, "roads": roads},
        lanes=tuple(lane_ids),
        lane_lengths_m=tuple(lengths_m),
        ways=tuple(ways),
        lights=tuple(lights),
        joined=joined,
        left_alone=tuple(light for light in net.programs if light not in bound),
        without_conflicts=without_conflicts,
    )


def _roads(net: Net) -> tuple[list[dict[str, Any]], list[str], list[float]]:
    """The roads, and SUMO's name and length of each lane, in the order of our lane numbers: from the left."""
    roads, names, lengths_m = [], list[str](), list[float]()
    for edge, right_to_left in net.lane_edges():
        lanes = right_to_left[::-1]
        points = road_points(lanes[0].shape, lanes[0].width_m)
        roads.append(
            {
                "id": edge.id,
                "points": [_point(each) for each in points],
                "lanes": [{"width": lane.width_m, "maxSpeed": lane.speed_mps} for lane in lanes],
                "startIntersection": edge.start,
                "endIntersection": edge.end,
            }
        )
        names += [lane.id for lane in lanes]
        lengths_m += [lane.length_m for lane in lanes]
    return roads, names, lengths_m


def _point(point: Sequence[float]) -> dict[str, float]:
    return {"x": point[0], "y": point[1]}


def _lane_places(net: Net) -> dict[str, int]:
    """By SUMO's name of a lane: its number within its road, from the left."""
    return {lane.id: i for _, lanes in net.lane_edges() for i, lane in enumerate(lanes[::-1])}


def _by_intersection(net: Net) -> tuple[Mapping[str, list[Connection]], dict[str, list[str]]]:
    """The links of each junction, those of a light all at one of its junctions; and the lights of several."""
    of_light: dict[str, Counter[str]] = defaultdict(Counter)
    for link in net.connections:
        if link.light is not None:
            of_light[link.light][link.start_edge.end] += 1
    home = {light: max(counts, key=lambda junction: counts[junction]) for light, counts in of_light.items()}
    at: dict[str, list[Connection]] = defaultdict(list)
    for link in net.connections:
        at[link.start_edge.end if link.light is None else home[link.light]].append(link)
    joined = {
        light: [home[light], *sorted(set(counts) - {home[light]})] for light, counts in of_light.items() if len(counts) > 1
    }
    return at, joined


def _own_lights(net: Net, at: Mapping[str, Sequence[Connection]]) -> dict[str, Program]:
    """By junction: the program of its light, where that has phases to choose from."""
    found = {}
    for junction, links in at.items():
        lights = list(dict.fromkeys(link.light for link in links if link.light is not None))
        if len(lights) > 1:
            fault = f"has links of two traffic lights, {lights[0]!r} and {lights[1]!r}: an intersection of ours has one"
            raise net.junctions[junction].element.fault(fault)
        if lights and len(net.programs[lights[0]].green) > 1:
            found[junction] = net.programs[lights[0]]
    return found


def _movements(links: Sequence[Connection], net: Net) -> list[Movement]:
    grouped: dict[tuple[str, str, str | None], list[Connection]] = defaultdict(list)
    for link in links:
        column = None
        if link.light is not None and link.index is not None:
            column = "".join(phase.state[link.index] for phase in net.programs[link.light].phases)
        grouped[link.start_edge.id, link.end_edge.id, column].append(link)
    return [Movement(tuple(group), column) for (_, _, column), group in grouped.items()]


def _intersection(
    junction: Junction,
    roads: Sequence[str],
    movements: Sequence[Movement],
    program: Program | None,
    lane_places: Mapping[str, int],
) -> dict[str, Any]:
    is_virtual = not movements
    return {
        "id": junction.id,
        "point": _point(junction.point),
        "width": 0,
        "roads": list(roads),
        "roadLinks": [_road_link(movement, lane_places) for movement in movements],
        "trafficLight": {
            "roadLinkIndices": list(range(len(movements))),
            "lightphases": [] if is_virtual else _phases(movements, program),
        },
        "virtual": is_virtual,
    }


def _road_link(movement: Movement, lane_places: Mapping[str, int]) -> dict[str, Any]:
    first = movement.links[0]
    return {
        "type": TURNS.get(first.direction, "go_straight"),
        "startRoad": first.start_edge.id,
        "endRoad": first.end_edge.id,
        "laneLinks": [
            {
                "startLaneIndex": lane_places[link.start.id],
                "endLaneIndex": lane_places[link.end.id],
                "points": [
                    _point(each)
                    for each in way_points(link.start.shape[-1], (lane.shape for lane in link.inside), link.end.shape[0])
                ],
            }
            for link in movement.links
        ],
    }


def _phases(movements: Sequence[Movement], program: Program | None) -> list[dict[str, Any]]:
    """The green phases of a program; what no light sets is open in all of them, and yields."""
    if program is None:
        return [{"time": UNLIT_S, "availableRoadLinks": list(range(len(movements)))}]
    phases = []
    for phase in program.green:
        shown = [_shown(movement, phase.state) for movement in movements]
        opened = [number for number, letter in enumerate(shown) if letter in OPEN]
        permitted = [number for number, letter in enumerate(shown) if letter in PERMITTED]
        phases.append({"time": phase.duration_s, "availableRoadLinks": opened, "permittedRoadLinks": permitted})
    return phases


def _shown(movement: Movement, state: str) -> str:
    return "o" if movement.column is None else state[movement.signals[0]]


def _conflicts(movements: Sequence[Movement], net: Net) -> dict[str, list[list[int]]] | None:
    """``conflicts``: pairs of movements that cross or merge, the smaller number first; ``yields``: pairs of one that yields and
    the one that it yields to. By the junctions' own right of way; None where a link isn't in it."""
    foes, yields = set[tuple[int, int]](), set[tuple[int, int]]()
    places: dict[tuple[str, int], int] = {}
    for number, movement in enumerate(movements):
        for link in movement.links:
            found = _request_number(link, net)
            if found is None:
                return None
            places[link.start_edge.end, found] = number
    for (junction, request), number in places.items():
        right_of_way = net.junctions[junction].requests[request]
        for others, pairs in ((right_of_way.foes, foes), (right_of_way.yields_to, yields)):
            pairs |= {(number, places[junction, other]) for other in others if (junction, other) in places}
    return {
        "conflicts": sorted([a, b] for a, b in {(min(pair), max(pair)) for pair in foes} if a != b),
        "yields": sorted([a, b] for a, b in yields if a != b),
    }


def _request_number(link: Connection, net: Net) -> int | None:
    junction = net.junctions[link.start_edge.end]
    for lane in link.inside:
        if lane.id in junction.link_lanes:
            number = junction.link_lanes.index(lane.id)
            return number if number < len(junction.requests) else None
    return None


def _binding(junction: str, program: Program, movements: Sequence[Movement]) -> LightBinding:
    return LightBinding(
        intersection=junction,
        light=program.light,
        signals=tuple(tuple(movement.signals) for movement in movements),
        states=tuple(phase.state for phase in program.green),
        yellow_s=program.yellow_s,
    )
