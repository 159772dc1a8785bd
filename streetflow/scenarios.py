"""The built-in networks, made by a seeded generator: no download is needed to run anything.

``crossing`` is one isolated four-way crossing, ``arterial`` three crossings in a row. Every crossing has three
lanes an approach (left, straight, right), 8 phases and right turns that are always open; each movement reaches all
three lanes of the road it enters, as in the grid data sets. Demand is one peak hour: it rises to a maximum in the
middle and falls again, heavier along the main road; every flow of a file is one vehicle.

Same name and flow number, same bytes, on any machine and Python: only ``random.Random.random`` (whose stream Python
guarantees), sums, products and square roots are used.
"""

from __future__ import annotations

import hashlib
import json
import random
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt
from pathlib import Path
from typing import Any

from streetflow.cache import cache_folder, publish_folder

FLOW_COUNT = 10
HORIZON_S = 3600

LANE_WIDTH_M = 4.0
LANES = 3
LANE_SPEED_MPS = 11.111
CROSSING_WIDTH_M = 15.0
ENTRY_ROAD_M = 300
BLOCK_M = 400
CURVE_POINTS = 11

VEHICLE = {
    "length": 5.0,
    "width": 2.0,
    "maxPosAcc": 2.0,
    "maxNegAcc": 4.5,
    "usualPosAcc": 2.0,
    "usualNegAcc": 4.5,
    "minGap": 2.5,
    "maxSpeed": 11.111,
    "headwayTime": 2.0,
}

# Headings, counter-clockwise: 0 east, 1 north, 2 west, 3 south. A road's id ends in its heading.
HEADINGS = ((1, 0), (0, 1), (-1, 0), (0, -1))
TURNS = (
    ("turn_left", 1, 0),
    ("go_straight", 0, 1),
    ("turn_right", 3, 2),
)  # type, change of heading, start lane

PEAK_PROFILE = (0.5, 0.6, 0.75, 0.95, 1.25, 1.6, 1.7, 1.5, 1.15, 0.85, 0.65, 0.5)
"""Demand in each twelfth of the hour, relative to the hour's mean."""

# What the eight phases open besides the right turns: (heading of the approach, turn).
PHASES = (
    ((0, "go_straight"), (2, "go_straight")),
    ((1, "go_straight"), (3, "go_straight")),
    ((0, "turn_left"), (2, "turn_left")),
    ((1, "turn_left"), (3, "turn_left")),
    ((0, "go_straight"), (0, "turn_left")),
    ((2, "go_straight"), (2, "turn_left")),
    ((1, "go_straight"), (1, "turn_left")),
    ((3, "go_straight"), (3, "turn_left")),
)


@dataclass(frozen=True)
class Scenario:
    """``columns`` crossings from west to east; the rest says who drives in an hour."""

    columns: int
    vehicles: int
    main_road_share: float  # of the vehicles that start at the west or east end
    westward_share: float  # of those, the ones that start in the east
    side_turns: tuple[float, float]  # shares of left, right turns of traffic coming from a side road
    main_turns: tuple[float, float]  # the same for traffic on the main road, per crossing


SCENARIOS = {
    "crossing": Scenario(1, 2000, 0.6, 0.4, (0.25, 0.15), (0.2, 0.12)),
    "arterial": Scenario(3, 2700, 0.45, 0.4, (0.25, 0.2), (0.12, 0.08)),
}


def scenario_folder(name: str) -> Path:
    """Folder with ``roadnet.json`` and ``flow_0.json`` ... of a built-in network, written if it isn't there."""
    version = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    folder = cache_folder() / "networks" / version / name
    if folder.is_dir():
        return folder
    files = {"roadnet.json": roadnet_bytes(name)}
    files |= {f"flow_{k}.json": flow_bytes(name, k) for k in range(FLOW_COUNT)}
    return publish_folder(folder, files)


def roadnet_bytes(name: str) -> bytes:
    """The roadnet file of a built-in network."""
    columns = SCENARIOS[name].columns
    nodes = _nodes(columns)
    roads = [_road(x, y, heading, columns) for x, y in nodes for heading in range(4) if _road_exists(x, y, heading, columns)]
    intersections = [_intersection(x, y, columns) for x, y in nodes]
    return _json_bytes({"intersections": intersections, "roads": roads})


def flow_bytes(name: str, flow: int) -> bytes:
    """Demand file ``flow`` of a built-in network: one entry a vehicle, in order of start time."""
    scenario = SCENARIOS[name]
    draw = random.Random(f"tinylight-hil/{name}/{flow}").random
    count = round(scenario.vehicles * (0.97 + 0.06 * draw()))
    trips = sorted((_start_time_s(draw), i, _route(scenario, draw)) for i in range(count))
    return _json_bytes(
        [
            {"vehicle": VEHICLE, "route": route, "interval": 1.0, "startTime": start_s, "endTime": start_s}
            for start_s, _, route in trips
        ]
    )


# --- roads and crossings ---
# Nodes lie on a grid: crossings at (1..columns, 1), road ends at the rim.


def _nodes(columns: int) -> list[tuple[int, int]]:
    crossings = [(x, 1) for x in range(1, columns + 1)]
    rim = [(0, 1), (columns + 1, 1)] + [(x, y) for x in range(1, columns + 1) for y in (0, 2)]
    return crossings + rim


def _is_crossing(x: int, y: int, columns: int) -> bool:
    return y == 1 and 1 <= x <= columns


def _position_m(x: int, y: int, columns: int) -> tuple[int, int]:
    inner = min(max(x, 1), columns)
    return (inner - 1) * BLOCK_M + (x - inner) * ENTRY_ROAD_M, (y - 1) * ENTRY_ROAD_M


def _road_id(x: int, y: int, heading: int) -> str:
    return f"road_{x}_{y}_{heading}"


def _node_id(x: int, y: int) -> str:
    return f"intersection_{x}_{y}"


def _road_exists(x: int, y: int, heading: int, columns: int) -> bool:
    dx, dy = HEADINGS[heading]
    ends = {(x, y), (x + dx, y + dy)}
    return ends <= set(_nodes(columns)) and any(_is_crossing(*end, columns) for end in ends)


def _road(x: int, y: int, heading: int, columns: int) -> dict[str, Any]:
    dx, dy = HEADINGS[heading]
    end = (x + dx, y + dy)
    points = [dict(zip("xy", _position_m(*node, columns), strict=True)) for node in ((x, y), end)]
    return {
        "id": _road_id(x, y, heading),
        "points": points,
        "lanes": [{"width": LANE_WIDTH_M, "maxSpeed": LANE_SPEED_MPS} for _ in range(LANES)],
        "startIntersection": _node_id(x, y),
        "endIntersection": _node_id(*end),
    }


def _intersection(x: int, y: int, columns: int) -> dict[str, Any]:
    position = dict(zip("xy", _position_m(x, y, columns), strict=True))
    arriving = [
        _road_id(x - HEADINGS[h][0], y - HEADINGS[h][1], h)
        for h in range(4)
        if _road_exists(x - HEADINGS[h][0], y - HEADINGS[h][1], h, columns)
    ]
    leaving = [_road_id(x, y, h) for h in range(4) if _road_exists(x, y, h, columns)]
    common = {"id": _node_id(x, y), "point": position, "roads": arriving + leaving}
    if not _is_crossing(x, y, columns):
        return common | {
            "width": 0,
            "roadLinks": [],
            "trafficLight": {"roadLinkIndices": [], "lightphases": []},
            "virtual": True,
        }

    movements = [(heading, *turn) for heading in range(4) for turn in TURNS]
    links = [
        {
            "type": kind,
            "startRoad": _road_id(x - HEADINGS[heading][0], y - HEADINGS[heading][1], heading),
            "endRoad": _road_id(x, y, (heading + change) % 4),
            "direction": heading,
            "laneLinks": [
                {
                    "startLaneIndex": start_lane,
                    "endLaneIndex": end_lane,
                    "points": _curve(_position_m(x, y, columns), heading, start_lane, (heading + change) % 4, end_lane),
                }
                for end_lane in range(LANES)
            ],
        }
        for heading, kind, change, start_lane in movements
    ]
    number = {(heading, kind): i for i, (heading, kind, _, _) in enumerate(movements)}
    rights = [number[heading, "turn_right"] for heading in range(4)]
    phases = [{"time": 30, "availableRoadLinks": sorted([number[m] for m in opened] + rights)} for opened in PHASES]
    light = {"roadLinkIndices": list(range(len(links))), "lightphases": phases}
    return common | {"width": CROSSING_WIDTH_M, "roadLinks": links, "trafficLight": light, "virtual": False}


def _curve(centre: tuple[int, int], heading_in: int, lane_in: int, heading_out: int, lane_out: int) -> list[dict[str, float]]:
    """Path across a crossing: a cubic Bezier curve between the lanes' ends, tangent to both, in millimetres."""

    def lane_end(heading: int, lane: int, along: float) -> tuple[float, float]:
        ux, uy = HEADINGS[heading]
        offset = (lane + 0.5) * LANE_WIDTH_M  # to the right of the road's centre line
        return centre[0] + ux * along + uy * offset, centre[1] + uy * along - ux * offset

    start = lane_end(heading_in, lane_in, -CROSSING_WIDTH_M)
    end = lane_end(heading_out, lane_out, CROSSING_WIDTH_M)
    reach = 0.5 * sqrt((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2)
    points = []
    for i in range(CURVE_POINTS):
        t = i / (CURVE_POINTS - 1)
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
        point = {}
        for axis, name in enumerate("xy"):
            control = (
                start[axis],
                start[axis] + HEADINGS[heading_in][axis] * reach,
                end[axis] - HEADINGS[heading_out][axis] * reach,
                end[axis],
            )
            point[name] = round(sum(w * c for w, c in zip(weights, control, strict=True)), 3) + 0.0  # no -0.0
        points.append(point)
    return points


# --- demand ---


def _start_time_s(draw: Callable[[], float]) -> int:
    """A whole second of the hour, distributed as PEAK_PROFILE says."""
    edges = list(accumulate(PEAK_PROFILE, initial=0.0))
    target = draw() * edges[-1]
    slot = min(bisect_right(edges, target) - 1, len(PEAK_PROFILE) - 1)
    inside = (target - edges[slot]) / PEAK_PROFILE[slot]
    return min(int((slot + inside) * HORIZON_S / len(PEAK_PROFILE)), HORIZON_S - 1)


def _route(scenario: Scenario, draw: Callable[[], float]) -> list[str]:
    """Road ids of one trip: a start at the rim, then a turn drawn at every crossing until the rim is reached again."""
    if draw() < scenario.main_road_share:
        x, y, heading = (scenario.columns + 1, 1, 2) if draw() < scenario.westward_share else (0, 1, 0)
    else:
        x = 1 + int(draw() * scenario.columns)
        y, heading = (0, 1) if draw() < 0.5 else (2, 3)
    roads = [_road_id(x, y, heading)]
    x, y = x + HEADINGS[heading][0], y + HEADINGS[heading][1]
    while _is_crossing(x, y, scenario.columns):
        left, right = scenario.main_turns if heading in (0, 2) else scenario.side_turns
        turn = draw()
        heading = (heading + (1 if turn < left else 3 if turn < left + right else 0)) % 4
        roads.append(_road_id(x, y, heading))
        x, y = x + HEADINGS[heading][0], y + HEADINGS[heading][1]
    return roads


def _json_bytes(content: Any) -> bytes:
    return (json.dumps(content, separators=(",", ":")) + "\n").encode()
