"""What a demand file contains, on its road network, and the warnings about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from math import floor

from streetflow.check.check_roadnet import CheckWarning, Content
from streetflow.engine.core import EngineCore
from streetflow.roadnet.flow import Flow, VehicleKind
from streetflow.roadnet.reader import Intersection

_MOST_MOVEMENTS = 24  # of a crossing, for the search in `_needed_share`


def flow_content(engine: EngineCore, horizon_s: int) -> Content:
    """Vehicles, starts and the mean route (over vehicles) are those up to the horizon."""
    flows = engine.flows
    counts = [vehicle_count(flow, horizon_s) for flow in flows]
    lengths = engine.network.router.average_length_m
    route_m = [sum(lengths[road] for road in route) for route in engine.demand.routes]
    total_m = sum(n * route_m[route] for n, route in zip(counts, _routes(engine), strict=True))
    starting = [flow.start_s for flow, n in zip(flows, counts, strict=True) if n]
    vehicles = sum(counts)
    return {
        "flows": len(flows),
        "horizon_s": horizon_s,
        "vehicles": vehicles,
        "vehicles_per_hour": round(vehicles * 3600 / horizon_s, 1),
        "first_start_s": min(starting, default="-"),
        "last_start_s": max(starting, default="-"),
        "routes": len(set(_routes(engine))),
        "mean_route_m": round(total_m / vehicles, 1) if vehicles else "-",
        "vehicle_kinds": len(engine.demand.kinds),
    }


def vehicle_count(flow: Flow, horizon_s: int) -> int:
    """Vehicles that a flow creates before the horizon, in steps that hit its times."""
    last = horizon_s - 1 if flow.end_s == -1 else min(flow.end_s, horizon_s - 1)
    first = max(flow.start_s, 0)
    return floor((last - first) / flow.interval_s) + 1 if last >= first else 0


def flow_warnings(engine: EngineCore, horizon_s: int) -> Iterator[CheckWarning]:
    flows, router, roadnet = engine.flows, engine.network.router, engine.network.roadnet
    for i in engine.invalid_flows:
        yield CheckWarning("route that can't be planned", f"[{i}].route", router.fault(flows[i].anchors))
    for i in engine.missed_flows:
        window = f"no step falls between {flows[i].start_s} and {flows[i].end_s} s"
        yield CheckWarning("flow between two steps", f"[{i}]", window)
    for i, lane in engine.dead_ends:
        yield CheckWarning("route with a dead end", f"[{i}].route", f"no path onwards from lane {engine.lane_ids[lane]!r}")
    if not any(vehicle_count(flow, horizon_s) for flow in flows):
        text = f"none of its {len(flows)} flows creates one within {horizon_s} s" if flows else "it holds no flow"
        yield CheckWarning("demand without a vehicle", "whole file", text)
    slowest = _slowest_limits(engine)
    for i, (flow, route) in enumerate(zip(flows, _routes(engine), strict=True)):
        if flow.start_s >= horizon_s:
            late = f"{flow.start_s} s, the horizon is {horizon_s} s"
            yield CheckWarning("flow that starts after the horizon", f"[{i}].startTime", late)
        if flow.kind.max_speed_mps > slowest[route]:
            fault = f"{flow.kind.max_speed_mps:g} m/s, a lane of its route allows {slowest[route]:g}; crossings have no limit"
            yield CheckWarning("vehicle faster than a lane of its route", f"[{i}].vehicle.maxSpeed", fault)
    loads = _movement_loads(engine, horizon_s)
    for number, intersection in enumerate(roadnet.intersections):
        share = _needed_share(intersection, loads[number])
        if share > 1:
            fault = f"the movements to {intersection.id!r} that exclude each other need {share:.0%} of the time as green"
            yield CheckWarning("demand above capacity", f"intersections[{number}] of the road network", fault)


def _routes(engine: EngineCore) -> list[int]:
    routes: list[int] = engine.state.flow_route.tolist()
    return routes


def _slowest_limits(engine: EngineCore) -> list[float]:
    """By route: the lowest speed limit of its lanes, m/s."""
    roads = engine.network.roadnet.roads
    limits = [min(road.lane_max_speeds_mps, default=float("inf")) for road in roads]
    return [min(limits[road] for road in route) for route in engine.demand.routes]


def _saturation_per_s(kind: VehicleKind, limit_mps: float) -> float:
    """Most vehicles a second that can follow one another: one each headway and the time of its own length."""
    return 1 / (kind.headway_s + kind.length_m / min(kind.max_speed_mps, limit_mps))


def _movement_loads(engine: EngineCore, horizon_s: int) -> Mapping[int, Mapping[tuple[int, int], float]]:
    """By intersection, (road link, lane): the share of the horizon that its traffic needs as green at saturation."""
    network, demand = engine.network, engine.demand
    n_lanes = len(engine.lane_ids)
    road_link_number = [
        r for each in network.roadnet.intersections for r, road_link in enumerate(each.road_links) for _ in road_link.lane_links
    ]
    vehicles: Counter[tuple[int, VehicleKind]] = Counter()
    for flow, route in zip(engine.flows, _routes(engine), strict=True):
        vehicles[route, flow.kind] += vehicle_count(flow, horizon_s)
    loads: defaultdict[int, defaultdict[tuple[int, int], float]] = defaultdict(lambda: defaultdict(float))
    for (route, kind), count in vehicles.items():
        lane_paths = list(demand.lane_paths(route))
        for lane_path in lane_paths:
            for drivable in lane_path.drivables[1:-1:2]:
                number, _, lane_link = network.links[drivable - n_lanes]
                lane = lane_link.start_lane
                seconds = count / len(lane_paths) / _saturation_per_s(kind, float(engine.lane_max_speed_mps[lane]))
                loads[number][road_link_number[drivable - n_lanes], lane] += seconds / horizon_s
    return loads


def _needed_share(intersection: Intersection, loads: Mapping[tuple[int, int], float]) -> float:
    """The largest sum of loads of movements that never have green together: above 1 no light plan can serve them.

    Two movements from one lane exclude each other as well. A bound from below: yielding and lost time come on top.
    """
    phases = [set(phase.road_links) for phase in intersection.phases]
    nodes = sorted(loads, key=lambda node: -loads[node])[:_MOST_MOVEMENTS]
    together = {(a, b) for a in nodes for b in nodes if a[1] != b[1] and any(a[0] in p and b[0] in p for p in phases)}

    def largest(chosen: list[tuple[int, int]], rest: list[tuple[int, int]]) -> float:
        best = sum(loads[node] for node in chosen)
        for i, node in enumerate(rest):
            best = max(best, largest([*chosen, node], [other for other in rest[i + 1 :] if (node, other) not in together]))
        return best

    return largest([], nodes)
