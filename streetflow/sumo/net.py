"""A SUMO network (``.net.xml``): its edges, junctions, connections and light programs, as the file has them, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from streetflow.errors import InputError
from streetflow.near import did_you_mean
from streetflow.roadnet.reader import Point
from streetflow.sumo.classes import ROAD_CLASSES, allowed_classes
from streetflow.sumo.programs import Program, read_programs
from streetflow.sumo.xml_file import Element, read_xml

WIDTH_M = 3.2  # SUMO's, where a lane says nothing
NO_ROADS = {"internal", "crossing", "walkingarea"}
RAIL_JUNCTIONS = {"rail_signal", "rail_crossing"}


@dataclass(frozen=True)
class Lane:
    """A lane; ``index`` 0 is the right-most one of its edge."""

    id: str
    index: int
    speed_mps: float
    length_m: float
    width_m: float
    shape: tuple[Point, ...]
    classes: frozenset[str]

    @property
    def is_for_roads(self) -> bool:
        return bool(self.classes & ROAD_CLASSES)


@dataclass(frozen=True)
class Edge:
    id: str
    start: str  # junctions
    end: str
    lanes: tuple[Lane, ...]
    element: Element = field(repr=False)


@dataclass(frozen=True)
class Request:
    """The right of way of one link of a junction: the links that it is in conflict with, and those that it yields to."""

    foes: frozenset[int]
    yields_to: frozenset[int]


@dataclass(frozen=True)
class Junction:
    id: str
    type: str
    point: Point
    link_lanes: tuple[str, ...]  # the internal lanes of its links, in the order of their numbers in `requests`
    requests: tuple[Request, ...]
    element: Element = field(repr=False)


@dataclass(frozen=True)
class Connection:
    """A link from a lane to a lane. light, index: None where no traffic light sets it."""

    start: Lane
    end: Lane
    start_edge: Edge
    end_edge: Edge
    inside: tuple[Lane, ...]  # the internal lanes of its way, in order
    direction: str  # s, t (a U-turn), l, r, L, R, or another letter
    light: str | None
    index: int | None
    element: Element = field(repr=False)


@dataclass(frozen=True)
class Net:
    file: Path
    edges: dict[str, Edge]
    junctions: dict[str, Junction]
    connections: tuple[Connection, ...]  # between lanes for roads, in file order
    programs: dict[str, Program]
    passed_over: Counter[str]  # what of the file is no part of this, and how often

    def lane_edges(self) -> Iterator[tuple[Edge, tuple[Lane, ...]]]:
        """The edges that have lanes for roads, with these lanes."""
        for edge in self.edges.values():
            lanes = tuple(lane for lane in edge.lanes if lane.is_for_roads)
            if lanes:
                yield edge, lanes


def read_net(file: Path, additional: Iterable[Path] = ()) -> Net:
    """Read a network.

    Args:
        file: the ``.net.xml``.
        additional: further files of the scenario, which may bring programs of the lights.

    Raises:
        InputError: it is no network, or one that is contradictory or of a kind that isn't read.
    """
    root = read_xml(file, ("net",), "a SUMO network (.net.xml)")
    if root.flag("lefthand"):
        raise root.fault("has left-hand traffic, which can't be imported (mirror it with netconvert --flip-y-axis)")
    passed_over = Counter[str]()
    junctions = {each.id: each for each in map(_junction, _different(root.each("junction")))}
    inside, edges = _edges(root, junctions, passed_over)
    programs = read_programs(
        [root, *(read_xml(each, ("additional", "routes"), "a file of additional elements") for each in additional)]
    )
    connections = tuple(_connections(root, edges, inside, junctions, programs, passed_over))
    if not any(lane.is_for_roads for edge in edges.values() for lane in edge.lanes):
        raise InputError(file, "", "has no lane for road traffic")
    return Net(file, edges, junctions, connections, programs, passed_over)


def _different(elements: Iterable[Element]) -> Iterator[Element]:
    """The elements; a fault where two have one id."""
    seen: dict[str, int] = {}
    for each in elements:
        name = each.text("id")
        if name in seen:
            raise each.fault(f"is there already, in line {seen[name]}")
        seen[name] = each.line
        yield each


def _junction(element: Element) -> Junction:
    requests = {}
    for each in element.each("request"):
        requests[each.index("index")] = Request(_bits(each, "foes"), _bits(each, "response"))
    if sorted(requests) != list(range(len(requests))):
        raise element.fault("its requests aren't numbered 0, 1, 2, ...")
    return Junction(
        id=element.text("id"),
        type=element.get("type"),
        point=(element.number("x"), element.number("y")),
        link_lanes=tuple(element.words("intLanes")),
        requests=tuple(requests[i] for i in range(len(requests))),
        element=element,
    )


def _bits(element: Element, name: str) -> frozenset[int]:
    """The positions of the ones; the last character is link 0."""
    text = element.text(name)
    if set(text) - {"0", "1"}:
        raise element.fault(f"{name} must be of zeros and ones, is {text!r}")
    return frozenset(i for i, bit in enumerate(reversed(text)) if bit == "1")


def _edges(root: Element, junctions: dict[str, Junction], passed_over: Counter[str]) -> tuple[dict[str, Lane], dict[str, Edge]]:
    """The lanes within junctions by id, and the edges by id."""
    inside: dict[str, Lane] = {}
    edges: dict[str, Edge] = {}
    for element in _different(root.each("edge")):
        lanes = sorted((_lane(each) for each in element.each("lane")), key=lambda lane: lane.index)
        if [lane.index for lane in lanes] != list(range(len(lanes))) or not lanes:
            fault = "has no lane" if not lanes else "its lanes aren't numbered 0, 1, 2, ..."
            raise element.fault(fault)
        if element.get("function") in NO_ROADS:
            inside |= {lane.id: lane for lane in lanes if element.get("function") == "internal"}
            if element.get("function") != "internal":
                passed_over["pedestrians' crossings and walking areas"] += 1
            continue
        for end in ("from", "to"):
            _known(element, end, junctions, "junction")
        edge = Edge(element.text("id"), element.text("from"), element.text("to"), tuple(lanes), element)
        edges[edge.id] = edge
    return inside, edges


def _lane(element: Element) -> Lane:
    shape = element.shape("shape")
    if len(shape) < 2:
        raise element.fault("shape must have at least 2 points")
    return Lane(
        id=element.text("id"),
        index=element.index("index"),
        speed_mps=element.number("speed", above=0.0),
        length_m=element.number("length", above=0.0),
        width_m=element.number("width", WIDTH_M, above=0.0),
        shape=tuple(shape),
        classes=allowed_classes(element),
    )


def _known(element: Element, name: str, known: Iterable[str], kind: str) -> str:
    value = element.text(name)
    if value not in known:
        raise element.fault(f"{name}: there is no {kind} {value!r}{did_you_mean(value, list(known))}")
    return value


def _connections(
    root: Element,
    edges: dict[str, Edge],
    inside: dict[str, Lane],
    junctions: dict[str, Junction],
    programs: dict[str, Program],
    passed_over: Counter[str],
) -> Iterator[Connection]:
    elements = list(root.each("connection"))
    onward = {}  # from a lane within a junction to the next one within it
    for each in elements:
        if each.get("from").startswith(":") and each.get("via"):
            onward[f"{each.get('from')}_{each.get('fromLane')}"] = each.get("via")
    seen: dict[tuple[str, str], int] = {}
    for each in elements:
        if each.get("from").startswith(":"):
            continue
        start_edge, end_edge = edges[_known(each, "from", edges, "edge")], edges[_known(each, "to", edges, "edge")]
        start, end = _lane_of(each, "fromLane", start_edge), _lane_of(each, "toLane", end_edge)
        if not (start.is_for_roads and end.is_for_roads):
            passed_over["links that aren't for road traffic"] += 1
            continue
        if start_edge.end != end_edge.start:
            raise each.fault(f"edge {start_edge.id!r} ends at another junction than edge {end_edge.id!r} begins")
        if (start.id, end.id) in seen:
            raise each.fault(f"links lane {start.id!r} with lane {end.id!r}, as line {seen[start.id, end.id]} does already")
        seen[start.id, end.id] = each.line
        light, index = _light(each, programs, junctions[start_edge.end])
        way = tuple(_way(each, inside, onward))
        yield Connection(start, end, start_edge, end_edge, way, each.get("dir", "s"), light, index, each)


def _lane_of(element: Element, name: str, edge: Edge) -> Lane:
    index = element.index(name)
    if index >= len(edge.lanes):
        raise element.fault(f"{name}: edge {edge.id!r} has {len(edge.lanes)} lanes, there is no lane {index}")
    return edge.lanes[index]


def _light(element: Element, programs: dict[str, Program], junction: Junction) -> tuple[str | None, int | None]:
    light = element.get("tl")
    if not light or element.flag("uncontrolled") or (light not in programs and junction.type in RAIL_JUNCTIONS):
        return None, None
    program = programs.get(light)
    if program is None:
        raise element.fault(f"tl: there is no program of a traffic light {light!r}{did_you_mean(light, list(programs))}")
    index = element.index("linkIndex")
    if index >= program.width:
        raise element.fault(f"linkIndex {index}: the program of {light!r} has {program.width} signals")
    return light, index


def _way(element: Element, inside: dict[str, Lane], onward: dict[str, str]) -> Iterator[Lane]:
    name, passed = element.get("via"), set[str]()
    while name:
        if name not in inside:
            raise element.fault(f"via: there is no lane {name!r} within a junction")
        if name in passed:
            raise element.fault(f"via: the lanes within the junction lead back to {name!r}")
        passed.add(name)
        yield inside[name]
        name = onward.get(name, "")
