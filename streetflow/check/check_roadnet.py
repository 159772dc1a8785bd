"""What a road network contains, and the warnings about it: what is allowed but probably not intended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from streetflow.roadnet.flow import PUSHED_DEFAULTS
from streetflow.roadnet.geometry import polyline_length
from streetflow.roadnet.network_tables import NetworkTables
from streetflow.roadnet.reader import Intersection, Roadnet
from streetflow.roadnet.routing import Router

Content = dict[str, str | int | float]


class CheckWarning(NamedTuple):
    """topic: the kind of warning, under which the command groups them. place: a JSON path. text: what is found there."""

    topic: str
    place: str
    text: str


def roadnet_content(network: NetworkTables) -> Content:
    """Phases are those of a signalled crossing; lane_km sums up all lanes."""
    roadnet = network.roadnet
    crossings = [each for each in roadnet.intersections if not each.virtual]
    speeds = [speed for road in roadnet.roads for speed in road.lane_max_speeds_mps]
    return {
        "crossings": len(crossings),
        "signalled_crossings": sum(len(each.phases) > 1 for each in crossings),
        "road_ends": len(roadnet.intersections) - len(crossings),
        "phases": _range([len(each.phases) for each in crossings if len(each.phases) > 1]),
        "roads": len(roadnet.roads),
        "lanes": len(roadnet.lane_ids),
        "lane_links": len(network.links),
        "lane_km": round(sum(polyline_length(shape) for shape in network.lane_shapes) / 1000, 3),
        "speed_limits_mps": _range(speeds),
    }


def roadnet_warnings(network: NetworkTables, interval_s: float = 1.0) -> Iterator[CheckWarning]:
    """All warnings about it, for steps of ``interval_s``."""
    roadnet = network.roadnet
    yield from (CheckWarning(*oddity) for oddity in network.oddities)
    yield from _isolated_roads(roadnet, network.router)
    yield from _lanes_without_links(roadnet, network.router)
    yield from _short_approaches(network, interval_s)
    for number, intersection in enumerate(roadnet.intersections):
        yield from _unlisted_roads(roadnet, number, intersection)
        if not intersection.virtual:
            yield from _movements(roadnet, number, intersection)


def _range(values: Sequence[float]) -> str:
    if not values:
        return "-"
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _isolated_roads(roadnet: Roadnet, router: Router) -> Iterator[CheckWarning]:
    """Roads that can't be reached from any road end, or from which no road end can be reached. Where there are no road ends,
    routes begin and end anywhere: then the roads that no route can use, since a route has at least two roads."""
    virtual = [each.virtual for each in roadnet.intersections]
    before: list[list[int]] = [[] for _ in roadnet.roads]
    for number, following in enumerate(router.next_roads):
        for q in following:
            before[q].append(number)
    if not any(virtual):
        for i, road in enumerate(roadnet.roads):
            if not router.next_roads[i] and not before[i]:
                yield CheckWarning("road on no route", f"roads[{i}]", f"nothing leads onto {road.id!r} nor on from it")
        return
    entries = [i for i, road in enumerate(roadnet.roads) if virtual[road.start_intersection]]
    exits = [i for i, road in enumerate(roadnet.roads) if virtual[road.end_intersection]]
    reached, leading_out = _reachable(entries, router.next_roads), _reachable(exits, before)
    for i, road in enumerate(roadnet.roads):
        if i not in reached:
            yield CheckWarning("unreachable road", f"roads[{i}]", f"no path leads from a road end to {road.id!r}")
        if i not in leading_out:
            yield CheckWarning("road without a path out", f"roads[{i}]", f"no path leads from {road.id!r} to a road end")


def _reachable(starts: Iterable[int], neighbours: Sequence[Sequence[int]]) -> set[int]:
    seen, to_visit = set(starts), list(starts)
    while to_visit:
        for q in neighbours[to_visit.pop()]:
            if q not in seen:
                seen.add(q)
                to_visit.append(q)
    return seen


def _lanes_without_links(roadnet: Roadnet, router: Router) -> Iterator[CheckWarning]:
    for i, road in enumerate(roadnet.roads):
        if roadnet.intersections[road.end_intersection].virtual:
            continue
        for j in range(road.n_lanes):
            if not router.lane_links[road.first_lane + j]:
                yield CheckWarning("dead end", f"roads[{i}].lanes[{j}]", f"no lane link leads on from lane {road.id}_{j}")


def _short_approaches(network: NetworkTables, interval_s: float) -> Iterator[CheckWarning]:
    """Lanes on which a car that arrives at the speed limit passes a red light: it obeys the light only from its first step on
    the lane on, and only if it can still stop before the lane's end (section 6)."""
    roadnet, deceleration = network.roadnet, PUSHED_DEFAULTS["maxNegAcc"]
    for i, road in enumerate(roadnet.roads):
        crossing = roadnet.intersections[road.end_intersection]
        closed_at_times = {
            link.start_lane
            for k, movement in enumerate(crossing.road_links)
            for link in movement.lane_links
            if any(k not in phase.road_links for phase in crossing.phases)
        }
        for j, speed_mps in enumerate(road.lane_max_speeds_mps):
            lane = road.first_lane + j
            length_m = polyline_length(network.lane_shapes[lane])
            needed_m = speed_mps * speed_mps / 2 / deceleration + speed_mps * interval_s
            if lane in closed_at_times and length_m < needed_m:
                fault = (
                    f"lane {roadnet.lane_ids[lane]} is {length_m:.1f} m long: a car that enters it at {speed_mps:g} m/s "
                    f"(its limit) needs up to {needed_m:.1f} m to stop (a step, then {deceleration:g} m/s²): it passes at red"
                )
                yield CheckWarning("approach shorter than the braking distance", f"roads[{i}].lanes[{j}]", fault)


def _unlisted_roads(roadnet: Roadnet, number: int, intersection: Intersection) -> Iterator[CheckWarning]:
    """Routes are planned over the roads that an intersection lists; no route is found over others."""
    place = f"intersections[{number}].roads"
    meeting = {i for i, road in enumerate(roadnet.roads) if number in (road.start_intersection, road.end_intersection)}
    listed = set(intersection.roads)
    for road in sorted({link.end_road for link in intersection.road_links} & meeting - listed):
        yield CheckWarning("road that its crossing doesn't list", place, f"no route is planned onto {roadnet.roads[road].id!r}")
    for k, road in enumerate(intersection.roads):
        if road not in meeting:
            yield CheckWarning("listed road that doesn't meet the crossing", f"{place}[{k}]", f"{roadnet.roads[road].id!r}")


def _movements(roadnet: Roadnet, number: int, intersection: Intersection) -> Iterator[CheckWarning]:
    links, phases = intersection.road_links, intersection.phases
    opened = {k for phase in phases for k in phase.road_links}
    place = f"intersections[{number}]"
    for p, phase in enumerate(phases):
        if not any(links[k].lane_links for k in phase.road_links):
            light = f"{place}.trafficLight.lightphases[{p}]"
            yield CheckWarning(f"phase {p} serves no movement", light, f"no vehicle may cross {intersection.id!r} in it")
    for k, link in enumerate(links):
        start, end = roadnet.roads[link.start_road], roadnet.roads[link.end_road]
        movement = f"from {start.id!r} to {end.id!r}"
        if not link.lane_links:
            yield CheckWarning("movement without a lane link", f"{place}.roadLinks[{k}]", movement)
        if k not in opened:
            yield CheckWarning("movement that no phase serves", f"{place}.roadLinks[{k}]", movement)
        if start.end_intersection != number or end.start_intersection != number:
            yield CheckWarning("movement between roads that don't meet here", f"{place}.roadLinks[{k}]", movement)
