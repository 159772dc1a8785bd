"""Generated demand for a `Grid`: random arrivals with a profile over time, and routes by turning ratios or by their ends.

Same arguments, same flows, on any machine and Python: only ``random.Random.random`` (whose stream Python guarantees),
sums, products and comparisons are used. Every flow is one vehicle.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from streetflow.errors import FieldError
from streetflow.near import or_else
from streetflow.networks.generate_roadnet import Grid, Node, ahead, behind, road_id

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
PROFILES: dict[str, tuple[float, ...]] = {
    "flat": (1.0,),
    "peak": (0.5, 0.6, 0.75, 0.95, 1.25, 1.6, 1.7, 1.5, 1.15, 0.85, 0.65, 0.5),
}
"""Demand in each equal part of the horizon, relative to its mean over the horizon."""
ROUTES = ("turns", "ends")
MOST_VEHICLES = 2_000_000
_ONE_OVER_E = 0.36787944117144233

Draw = Callable[[], float]


@dataclass(frozen=True)
class Traffic:
    """How much traffic there is, when, and where it goes. Shares are 0 to 1; turns are (left, right) shares at each crossing.

    ``poisson``: arrivals are a Poisson process; otherwise their number is fixed to within 3 %. ``routes`` "turns":
    a turn is chosen at random at every crossing until the rim is reached; "ends": the exit is chosen at random, and the
    engine plans the shortest path to it. InputError for values that make no demand.
    """

    vehicles_per_hour: float  # entering the whole network
    main_share: float = 0.5  # of the vehicles: start at the west or east end
    westward_share: float = 0.5  # of those, the ones that start in the east
    side_turns: tuple[float, float] = (0.2, 0.15)  # of traffic on a side road
    main_turns: tuple[float, float] = (0.2, 0.15)
    profile: str = "flat"
    routes: str = "turns"
    poisson: bool = True
    horizon_s: int = 3600
    max_speed_mps: float = VEHICLE["maxSpeed"]

    def __post_init__(self) -> None:
        if self.horizon_s < 1:
            raise FieldError("horizon_s", f"must be at least 1, is {self.horizon_s}")
        if not 0 <= self.vehicles_per_hour * self.horizon_s <= MOST_VEHICLES * 3600:
            raise FieldError("vehicles_per_hour", f"must make from 0 to {MOST_VEHICLES} vehicles")
        for name in ("main_share", "westward_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise FieldError(name, f"must be from 0 to 1, is {getattr(self, name):g}")
        for name in ("main_turns", "side_turns"):
            left, right = getattr(self, name)
            if not (left >= 0 and right >= 0 and left + right <= 0.9):
                fault = f"must be two shares of 0 or more, together at most 0.9, are {left:g} and {right:g}"
                raise FieldError(name, fault)
        for name, known in (("profile", tuple(PROFILES)), ("routes", ROUTES)):
            if getattr(self, name) not in known:
                raise FieldError(name, f"unknown {getattr(self, name)!r}{or_else(getattr(self, name), known)}")
        if not 1 <= self.max_speed_mps <= 100:
            raise FieldError("max_speed_mps", f"must be from 1 to 100 m/s, is {self.max_speed_mps:g}")


def flow(grid: Grid, traffic: Traffic, draw: Draw) -> list[dict[str, Any]]:
    """The content of a flow file, in order of start time. draw: uniform numbers in [0, 1)."""
    vehicle = VEHICLE | {"maxSpeed": traffic.max_speed_mps}
    mean = traffic.vehicles_per_hour * traffic.horizon_s / 3600
    count = poisson(mean, draw) if traffic.poisson else round(mean * (0.97 + 0.06 * draw()))
    profile = PROFILES[traffic.profile]
    trips = sorted((start_time_s(profile, traffic.horizon_s, draw()), i, _route(grid, traffic, draw)) for i in range(count))
    return [one_vehicle(vehicle, route, start_s) for start_s, _, route in trips]


def one_vehicle(vehicle: dict[str, Any], route: list[str], start_s: int) -> dict[str, Any]:
    """The entry of a flow file for a single vehicle."""
    return {"vehicle": vehicle, "route": route, "interval": 1.0, "startTime": start_s, "endTime": start_s}


def poisson(mean: float, draw: Draw) -> int:
    """A Poisson number: the sum of numbers of mean 1 (uniforms multiplied until below 1/e) and a thinned one."""
    return sum(_poisson_of_mean_1(draw) for _ in range(int(mean))) + sum(
        draw() < mean - int(mean) for _ in range(_poisson_of_mean_1(draw))
    )


def _poisson_of_mean_1(draw: Draw) -> int:
    n, product = 0, draw()
    while product > _ONE_OVER_E:
        n += 1
        product *= draw()
    return n


def start_time_s(profile: Sequence[float], horizon_s: int, share: float) -> int:
    """The whole second below the horizon by which this share (from 0 to below 1) of a profile's demand has started."""
    edges = list(accumulate(profile, initial=0.0))
    target = share * edges[-1]
    slot = min(bisect_right(edges, target) - 1, len(profile) - 1)
    inside = (target - edges[slot]) / profile[slot]
    return min(int((slot + inside) * horizon_s / len(profile)), horizon_s - 1)


def _route(grid: Grid, traffic: Traffic, draw: Draw) -> list[str]:
    """Road ids of one trip from rim to rim."""
    node, heading = _entry(grid, traffic, draw)
    start = node
    roads = [road_id(node, heading)]
    if traffic.routes == "ends":
        exits = [end for end in grid.rim() if end != start]
        end = exits[int(draw() * len(exits))]
        return [*roads, _exit_road(grid, end)]
    node = ahead(node, heading)
    while grid.is_crossing(node):
        left, right = traffic.side_turns if heading % 2 else traffic.main_turns
        turn = draw()
        heading = (heading + (1 if turn < left else 3 if turn < left + right else 0)) % 4
        roads.append(road_id(node, heading))
        node = ahead(node, heading)
    return roads


def _entry(grid: Grid, traffic: Traffic, draw: Draw) -> tuple[Node, int]:
    """A node at the rim and the heading of the road that enters there."""
    if draw() < traffic.main_share:
        westward = draw() < traffic.westward_share
        y = 1 + int(draw() * grid.rows) if grid.rows > 1 else 1
        return ((grid.columns + 1, y), 2) if westward else ((0, y), 0)
    x = 1 + int(draw() * grid.columns)
    return ((x, 0), 1) if draw() < 0.5 else ((x, grid.rows + 1), 3)


def _exit_road(grid: Grid, end: Node) -> str:
    """The road that ends at a node of the rim."""
    heading = next(h for h in range(4) if grid.road_exists(behind(end, h), h))
    return road_id(behind(end, heading), heading)
