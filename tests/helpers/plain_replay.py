"""A line of a replay file (docs/cityflow-semantics.md, section 9.3), written vehicle by vehicle in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence

from streetflow import Engine
from streetflow.kernels import tables as t
from streetflow.roadnet.geometry import direction_at, point_at
from streetflow.roadnet.reader import Point


def plain_line(engine: Engine) -> str:
    """The line of the step that the engine has just done."""
    state = engine.state
    running = sorted(engine.drivers().tolist(), key=lambda v: int(state.priority[v]))
    shapes, distances = engine.drivable_shapes, engine.get_vehicle_distance()
    names = zip(running, engine.get_vehicles(), strict=True)
    vehicles = [_vehicle(engine, v, name, distances[name], shapes) for v, name in names]
    return "".join(vehicles) + ";" + _lights(engine) + "\n"


def _vehicle(engine: Engine, v: int, name: str, distance_m: float, shapes: Sequence[Sequence[Point]]) -> str:
    state = engine.state
    drivable = int(state.path[state.path_index[v]])
    (x, y), (dx, dy) = point_at(shapes[drivable], distance_m), _direction(shapes[drivable], distance_m)
    if state.role[v] == t.OWNER:  # between its two lanes
        beside = int(state.path[state.path_index[state.partner[v]]])
        x2, y2 = point_at(shapes[beside], distance_m)
        share = 2 * abs(float(state.offset[v])) / float(state.lane_width[drivable] + state.lane_width[beside])
        x, y = x + (x2 - x) * share, y + (y2 - y) * share
    kind = engine.demand.kinds[state.kind[v]]
    return f"{x!r} {y!r} {math.atan2(dy, dx)!r} {name} {int(state.direction[v])} {kind.length_m!r} {kind.width_m!r},"


def _direction(shape: Sequence[Point], distance_m: float) -> Point:
    try:
        return direction_at(shape, distance_m)
    except ZeroDivisionError:
        return 1.0, 0.0


def _lights(engine: Engine) -> str:
    roadnet, n_lanes = engine.network.roadnet, len(engine.lane_ids)
    text = ""
    for road in roadnet.roads:
        end = roadnet.intersections[road.end_intersection]
        if end.virtual:
            continue
        text += road.id
        for lane in range(road.first_lane, road.first_lane + road.n_lanes):
            links = [drivable - n_lanes for drivable, _ in engine.network.router.lane_links[lane]]
            is_open = all(engine.state.is_open[link] for link in links)
            text += " i" if len(end.phases) < 2 else " g" if is_open else " r"
        text += ","
    return text
