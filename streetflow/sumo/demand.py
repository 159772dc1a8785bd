"""SUMO's demand (``.rou.xml``): vehicles, trips and flows on roads, as far as the files fix their times and routes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from streetflow.sumo.classes import ALL_CLASSES, ROAD_CLASSES
from streetflow.sumo.net import Net
from streetflow.sumo.xml_file import Element, read_xml

LENGTHS_M = {"bus": 12.0, "coach": 14.0, "truck": 7.1, "trailer": 16.5, "delivery": 6.5, "emergency": 6.5,
             "motorcycle": 2.2, "moped": 2.1}  # fmt: skip
TOP_SPEED_MPS = 200 / 3.6
_ROOTS = ("routes", "additional")


@dataclass(frozen=True)
class VehicleType:
    """Lengths in m, accelerations in m/s2, speeds in m/s; SUMO's defaults."""

    vehicle_class: str = "passenger"
    length_m: float = 5.0
    width_m: float = 1.8
    min_gap_m: float = 2.5
    acceleration: float = 2.6
    deceleration: float = 4.5
    max_speed_mps: float = TOP_SPEED_MPS
    headway_s: float = 1.0


@dataclass(frozen=True)
class Journey:
    """A vehicle, or several at even times. edges: all of its route, or (is_whole false) those that it leads through."""

    type: VehicleType
    edges: tuple[str, ...]
    is_whole: bool
    begin_s: float
    end_s: float  # of the last one at the latest
    interval_s: float


@dataclass(frozen=True)
class Demand:
    """passed_over: what is no part of this, and how often. last_s: the last departure, of all there is."""

    journeys: tuple[Journey, ...]
    passed_over: Counter[str]
    last_s: float


def read_demand(files: Iterable[Path], net: Net) -> Demand:
    """Read demand. InputError for files that contradict the network or themselves."""
    elements = [each for file in files for each in read_xml(file, _ROOTS, "a file with demand (.rou.xml)").children]
    types = {"DEFAULT_VEHTYPE": VehicleType()}
    routes: dict[str, tuple[str, ...]] = {}
    mixed = set()  # types and routes that are drawn
    for each in elements:
        if each.tag == "vType":
            types[each.text("id")] = _type(each)
        elif each.tag == "route":
            routes[each.text("id")] = _edges(each, "edges", net)
        elif each.tag in ("vTypeDistribution", "routeDistribution"):
            mixed.add(each.text("id"))
            inner = [_type(kind) for kind in each.each("vType")]
            if inner:
                types[each.text("id")] = inner[0]
    passed_over, journeys = Counter[str](), []
    last_s, seen = 0.0, dict[str, int]()
    for each in elements:
        if each.tag in ("person", "personFlow", "container", "containerFlow"):
            passed_over["pedestrians, passengers and containers"] += 1
        if each.tag not in ("vehicle", "trip", "flow"):
            continue
        if each.text("id") in seen:
            raise each.fault(f"is there already, in line {seen[each.text('id')]}")
        seen[each.text("id")] = each.line
        found = _journey(each, types, routes, mixed, net)
        if isinstance(found, str):
            passed_over[found] += 1
            continue
        journeys.append(found)
        last_s = max(last_s, found.end_s)
    return Demand(tuple(journeys), passed_over, last_s)


def _type(element: Element) -> VehicleType:
    name = element.get("vClass", "passenger")
    if name not in ALL_CLASSES:
        raise element.fault(f"vClass: there is no class of vehicles {name!r}")
    return VehicleType(
        vehicle_class=name,
        length_m=element.number("length", LENGTHS_M.get(name, 5.0), above=0.0),
        width_m=element.number("width", 1.8, above=0.0),
        min_gap_m=max(element.number("minGap", 2.5), 0.0),
        acceleration=element.number("accel", 2.6, above=0.0),
        deceleration=element.number("decel", 4.5, above=0.0),
        max_speed_mps=element.number("maxSpeed", TOP_SPEED_MPS, above=0.0),
        headway_s=max(element.number("tau", 1.0), 0.0),
    )


def _edges(element: Element, name: str, net: Net) -> tuple[str, ...]:
    edges = element.words(name)
    for edge in edges:
        if edge not in net.edges:
            raise element.fault(f"{name}: the network has no edge {edge!r}")
    if not edges:
        raise element.fault(f"{name} is empty or missing")
    return tuple(edges)


def _journey(
    element: Element, types: dict[str, VehicleType], routes: dict[str, tuple[str, ...]], mixed: set[str], net: Net
) -> Journey | str:
    """The journey, or why it is passed over."""
    name = element.get("type", "DEFAULT_VEHTYPE")
    if name not in types and name not in mixed:
        raise element.fault(f"type: there is no vType {name!r}")
    kind = types.get(name, VehicleType())
    if kind.vehicle_class not in ROAD_CLASSES:
        return f"vehicles or flows that aren't road traffic ({kind.vehicle_class})"
    way = _way(element, routes, mixed, net)
    if isinstance(way, str):
        return way
    edges, is_whole = way
    times = _times(element)
    return times if isinstance(times, str) else Journey(kind, edges, is_whole, *times)


def _way(element: Element, routes: dict[str, tuple[str, ...]], mixed: set[str], net: Net) -> tuple[tuple[str, ...], bool] | str:
    own = next(element.each("route"), None)
    if own is not None:
        return _edges(own, "edges", net), True
    if "route" in element.attributes:
        name = element.text("route")
        if name in mixed:
            return "vehicles or flows whose route is drawn from several"
        if name not in routes:
            raise element.fault(f"route: there is no route {name!r}")
        return routes[name], True
    if "from" not in element.attributes or "to" not in element.attributes:
        if any(each.startswith(("from", "to")) for each in element.attributes):
            return "vehicles or flows between zones or junctions rather than edges"
        raise element.fault("has neither a route nor from and to")
    via = _edges(element, "via", net) if element.get("via") else ()
    return (*_edges(element, "from", net), *via, *_edges(element, "to", net)), False


def _times(element: Element) -> tuple[float, float, float] | str:
    """First and last departure at the latest, and the interval."""
    if element.tag != "flow":
        if not element.get("depart", "0").replace(":", "").replace(".", "").replace("-", "").isdigit():
            return f"vehicles that depart when something happens ({element.get('depart')})"
        depart_s = element.time_s("depart")
        return depart_s, depart_s, 1.0
    begin_s, end_s = element.time_s("begin", 0.0), element.time_s("end", 86400.0)
    if end_s < begin_s:
        raise element.fault(f"ends at {end_s:g} s, before it begins at {begin_s:g} s")
    if element.get("period").startswith("exp("):
        rate = element.get("period")[4:].rstrip(")")
        return begin_s, end_s, 1 / Element(element.file, element.line, "flow", {"period": rate}).number("period", above=0.0)
    for name, factor in (("vehsPerHour", 3600.0), ("veh_per_hour", 3600.0), ("probability", 1.0)):
        if name in element.attributes:
            return begin_s, end_s, factor / element.number(name, above=0.0)
    if "period" in element.attributes:
        return begin_s, end_s, element.number("period", above=0.0)
    count = element.number("number", above=0.0)
    return begin_s, end_s, (end_s - begin_s) / count if end_s > begin_s else 1.0


def departures(journey: Journey, begin_s: float, end_s: float) -> Iterator[float]:
    """Its times within a run, from ``begin_s`` on and before ``end_s``."""
    number = 0
    while True:
        at_s = journey.begin_s + number * journey.interval_s
        if at_s >= end_s or at_s > journey.end_s or (number and at_s >= journey.end_s):
            return
        if at_s >= begin_s:
            yield at_s
        number += 1
