"""Generated road networks: a grid of signalled crossings with entry roads all round, as CityFlow's roadnet JSON.

Crossings are the nodes (1..columns, 1..rows), west to east and south to north; road ends are at the rim. A road's id
is that of its first node and its heading, ``road_1_2_0``. Same `Grid`, same bytes, on any machine and Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

from streetflow.errors import FieldError

LANE_WIDTH_M = 4.0
CROSSING_MARGIN_M = 3.0  # from the outermost lane to the end of the crossing
CURVE_POINTS = 11
GREEN_S = 30  # of each phase, where the lights run by their own plan
RIGHTS_ONLY_S = 5
MOST_CROSSINGS = 10_000

# Headings, counter-clockwise: 0 east, 1 north, 2 west, 3 south.
HEADINGS = ((1, 0), (0, 1), (-1, 0), (0, -1))
TURNS = (("turn_left", 1), ("go_straight", 0), ("turn_right", 3))  # type, change of heading

# What the phases open besides the right turns: (heading of the approach, turn).
_PAIRS = (
    ((0, "go_straight"), (2, "go_straight")),
    ((1, "go_straight"), (3, "go_straight")),
    ((0, "turn_left"), (2, "turn_left")),
    ((1, "turn_left"), (3, "turn_left")),
)
_APPROACHES = tuple(((heading, "go_straight"), (heading, "turn_left")) for heading in (0, 2, 1, 3))
PHASE_PLANS: dict[int, tuple[tuple[tuple[int, str], ...], ...]] = {
    4: _PAIRS,
    8: _PAIRS + _APPROACHES,
    9: ((), *_PAIRS, *_APPROACHES),
}
"""4: opposite straights, then opposite lefts. 8: also each approach alone. 9: also right turns only, first, as in Jinan."""

Node = tuple[int, int]


@dataclass(frozen=True)
class Grid:
    """``rows`` x ``columns`` crossings. "Side" roads run north and south, the others, "main" roads, east and west.

    Lanes are per direction. A left turn has a lane of its own from 2 lanes on, a right turn from 3 on; every movement
    reaches all lanes of the road that it enters. ``curves``: write the paths across crossings out, instead of leaving
    them to the engine. InputError for values that make no network.
    """

    rows: int = 1
    columns: int = 1
    lanes: int = 3
    side_lanes: int = 3
    block_m: float = 400
    side_block_m: float = 400
    entry_m: float = 300
    speed_mps: float = 11.111
    side_speed_mps: float = 11.111
    phases: int = 8
    curves: bool = False

    def __post_init__(self) -> None:
        for name in ("rows", "columns", "lanes", "side_lanes"):
            if getattr(self, name) < 1:
                raise FieldError(name, f"must be at least 1, is {getattr(self, name)}")
        if self.rows * self.columns > MOST_CROSSINGS:
            raise FieldError("columns" if self.columns > self.rows else "rows", f"more than {MOST_CROSSINGS} crossings")
        if self.phases not in PHASE_PLANS:
            raise FieldError("phases", f"must be one of {', '.join(map(str, PHASE_PLANS))}, is {self.phases}")
        for name in ("speed_mps", "side_speed_mps"):
            if not 1 <= getattr(self, name) <= 100:
                raise FieldError(name, f"must be from 1 to 100 m/s, is {getattr(self, name):g}")
        least = 2 * self.crossing_width_m + 10
        for name in ("block_m", "side_block_m", "entry_m"):
            if not least <= getattr(self, name) <= 100_000:
                fault = f"must be from {least:g} m (two crossings' widths and 10 m) to 100 km, is {getattr(self, name):g}"
                raise FieldError(name, fault)

    @property
    def crossing_width_m(self) -> float:
        """How far a crossing's middle is from its stop lines."""
        return max(self.lanes, self.side_lanes) * LANE_WIDTH_M + CROSSING_MARGIN_M

    def lane_count(self, heading: int) -> int:
        return self.side_lanes if heading % 2 else self.lanes

    def speed(self, heading: int) -> float:
        return self.side_speed_mps if heading % 2 else self.speed_mps

    def crossings(self) -> Iterator[Node]:
        return ((x, y) for y in range(1, self.rows + 1) for x in range(1, self.columns + 1))

    def rim(self) -> Iterator[Node]:
        yield from ((x, y) for y in range(1, self.rows + 1) for x in (0, self.columns + 1))
        yield from ((x, y) for x in range(1, self.columns + 1) for y in (0, self.rows + 1))

    def is_crossing(self, node: Node) -> bool:
        return 1 <= node[0] <= self.columns and 1 <= node[1] <= self.rows

    def is_node(self, node: Node) -> bool:
        inside = (1 <= node[0] <= self.columns, 1 <= node[1] <= self.rows)
        return any(inside) and 0 <= node[0] <= self.columns + 1 and 0 <= node[1] <= self.rows + 1

    def road_exists(self, node: Node, heading: int) -> bool:
        ends = node, ahead(node, heading)
        return all(map(self.is_node, ends)) and any(map(self.is_crossing, ends))

    def position_m(self, node: Node) -> tuple[float, float]:
        x, y = min(max(node[0], 1), self.columns), min(max(node[1], 1), self.rows)
        return (
            (x - 1) * self.block_m + (node[0] - x) * self.entry_m,
            (y - 1) * self.side_block_m + (node[1] - y) * self.entry_m,
        )


def ahead(node: Node, heading: int) -> Node:
    """The next node in a direction."""
    return node[0] + HEADINGS[heading][0], node[1] + HEADINGS[heading][1]


def behind(node: Node, heading: int) -> Node:
    return node[0] - HEADINGS[heading][0], node[1] - HEADINGS[heading][1]


def road_id(node: Node, heading: int) -> str:
    """Id of the road that leaves a node in a direction."""
    return f"road_{node[0]}_{node[1]}_{heading}"


def roadnet(grid: Grid) -> dict[str, Any]:
    """The content of the roadnet file: crossings first, then road ends."""
    nodes = [*grid.crossings(), *grid.rim()]
    roads = [_road(grid, node, heading) for node in nodes for heading in range(4) if grid.road_exists(node, heading)]
    return {"intersections": [_intersection(grid, node) for node in nodes], "roads": roads}


def _node_id(node: Node) -> str:
    return f"intersection_{node[0]}_{node[1]}"


def _point(grid: Grid, node: Node) -> dict[str, float]:
    return dict(zip("xy", grid.position_m(node), strict=True))


def _road(grid: Grid, node: Node, heading: int) -> dict[str, Any]:
    end = ahead(node, heading)
    return {
        "id": road_id(node, heading),
        "points": [_point(grid, node), _point(grid, end)],
        "lanes": [{"width": LANE_WIDTH_M, "maxSpeed": grid.speed(heading)} for _ in range(grid.lane_count(heading))],
        "startIntersection": _node_id(node),
        "endIntersection": _node_id(end),
    }


def _intersection(grid: Grid, node: Node) -> dict[str, Any]:
    arriving = [road_id(behind(node, h), h) for h in range(4) if grid.road_exists(behind(node, h), h)]
    leaving = [road_id(node, h) for h in range(4) if grid.road_exists(node, h)]
    common = {"id": _node_id(node), "point": _point(grid, node), "roads": arriving + leaving}
    if not grid.is_crossing(node):
        return common | {
            "width": 0,
            "roadLinks": [],
            "trafficLight": {"roadLinkIndices": [], "lightphases": []},
            "virtual": True,
        }
    movements = [(heading, kind, (heading + change) % 4) for heading in range(4) for kind, change in TURNS]
    links = [
        {
            "type": kind,
            "startRoad": road_id(behind(node, heading), heading),
            "endRoad": road_id(node, leaving_heading),
            "direction": heading,
            "laneLinks": _lane_links(grid, node, heading, kind, leaving_heading),
        }
        for heading, kind, leaving_heading in movements
    ]
    number = {(heading, kind): i for i, (heading, kind, _) in enumerate(movements)}
    rights = [number[heading, "turn_right"] for heading in range(4)]
    phases = [
        {"time": GREEN_S if opened else RIGHTS_ONLY_S, "availableRoadLinks": sorted([number[m] for m in opened] + rights)}
        for opened in PHASE_PLANS[grid.phases]
    ]
    light = {"roadLinkIndices": list(range(len(links))), "lightphases": phases}
    return common | {"width": grid.crossing_width_m, "roadLinks": links, "trafficLight": light, "virtual": False}


def start_lanes(kind: str, lanes: int) -> range:
    """From which of a road's lanes a movement may be made; lane 0 is the left-most one."""
    if kind == "turn_left":
        return range(1)
    if kind == "turn_right":
        return range(lanes - 1, lanes)
    return range(min(1, lanes - 1), max(lanes - 1, min(2, lanes)))


def _lane_links(grid: Grid, node: Node, heading: int, kind: str, leaving: int) -> list[dict[str, Any]]:
    links = []
    for start_lane in start_lanes(kind, grid.lane_count(heading)):
        for end_lane in range(grid.lane_count(leaving)):
            link: dict[str, Any] = {"startLaneIndex": start_lane, "endLaneIndex": end_lane}
            if grid.curves:
                link["points"] = _curve(grid, node, (heading, start_lane), (leaving, end_lane))
            links.append(link)
    return links


def _curve(grid: Grid, node: Node, arriving: tuple[int, int], leaving: tuple[int, int]) -> list[dict[str, float]]:
    """Path across a crossing: a cubic Bezier curve between the lanes' ends, tangent to both, in millimetres.

    arriving, leaving: heading and lane.
    """
    centre = grid.position_m(node)

    def lane_end(heading: int, lane: int, along: float) -> tuple[float, float]:
        ux, uy = HEADINGS[heading]
        offset = (lane + 0.5) * LANE_WIDTH_M  # to the right of the road's centre line
        return centre[0] + ux * along + uy * offset, centre[1] + uy * along - ux * offset

    start = lane_end(*arriving, -grid.crossing_width_m)
    end = lane_end(*leaving, grid.crossing_width_m)
    reach = 0.5 * sqrt((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2)
    points = []
    for i in range(CURVE_POINTS):
        t = i / (CURVE_POINTS - 1)
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
        point = {}
        for axis, name in enumerate("xy"):
            control = (
                start[axis],
                start[axis] + HEADINGS[arriving[0]][axis] * reach,
                end[axis] - HEADINGS[leaving[0]][axis] * reach,
                end[axis],
            )
            point[name] = round(sum(w * c for w, c in zip(weights, control, strict=True)), 3) + 0.0  # no -0.0
        points.append(point)
    return points
