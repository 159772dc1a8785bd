"""Demand of SUMO's as a flow file of ours, for our own engine: single vehicles, as far as they can be driven there.

CityFlow's vehicles keep the lane that they enter a road on, so a route that needs a change of lanes between two crossings can't
be driven. A trip, which only has a beginning and an end, takes the fastest way that can. Either what is left is passed over, or
its route is cut where lanes have to be changed: each part is a vehicle of its own, which enters the part's first road when the
whole one would come there. So every light has all of its traffic, and counts and means are of parts, not of vehicles.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from streetflow.networks.generate_flow import one_vehicle
from streetflow.networks.legs import Legs
from streetflow.roadnet.network_tables import NetworkTables
from streetflow.sumo.demand import Demand, Journey, departures

DRAWN = "vehicles that our own engine can't drive without a change of lanes"
UNROUTED = "vehicles without a way for road traffic from end to end"
SHORT = "vehicles on one road alone, which meet no crossing"
CUT = "vehicles cut into parts, where they would change lanes"
LIGHT_S = 20  # what a light takes, for the time at which a part begins
Route = tuple[int, ...]
Parts = tuple[tuple[float, Route], ...]


class FlowWriter:
    """Flow entries of journeys on a road network. in_parts: cut what can't be driven as a whole."""

    def __init__(self, network: NetworkTables, *, in_parts: bool = False) -> None:
        self._network = network
        self._in_parts = in_parts
        self._index = network.roadnet.road_index
        self._router = network.router
        self._legs = Legs(self._router)
        limits = [max(road.lane_max_speeds_mps) for road in network.roadnet.roads]
        self._limits_mps = limits
        self._cost_s = [length / limit for length, limit in zip(self._router.average_length_m, limits, strict=True)]
        self._fastest: dict[int, dict[int, tuple[int, ...]]] = {}
        roadnet = network.roadnet
        self._meets_light = [len(roadnet.intersections[road.end_intersection].phases) > 1 for road in roadnet.roads]
        self._known: dict[tuple[bool, tuple[str, ...]], Parts | str] = {}

    def flow(self, demand: Demand, begin_s: float, end_s: float) -> tuple[list[dict[str, Any]], Counter[str]]:
        """The entries in order of their start, and how many vehicles were left out for what."""
        self._plan_trips(demand.journeys)
        entries: list[tuple[float, dict[str, Any]]] = []
        left_out = Counter[str]()
        for journey in demand.journeys:
            times = list(departures(journey, begin_s, end_s))
            parts = self._parts(journey)
            if isinstance(parts, str):
                left_out[parts] += len(times)
                continue
            is_whole = parts[0][0] == 0.0 and parts[0][1][-1] == self._index[journey.edges[-1]]
            left_out[CUT] += 0 if is_whole else len(times)
            for later_s, route in parts:
                vehicle = self._vehicle(journey, route)
                ids = [self._network.roadnet.roads[road].id for road in route]
                starts = (at_s + later_s for at_s in times)
                entries += [(at_s, one_vehicle(vehicle, ids, int(at_s - begin_s))) for at_s in starts if at_s < end_s]
        entries.sort(key=lambda entry: entry[0])
        return [entry for _, entry in entries], left_out

    def _plan_trips(self, journeys: Sequence[Journey]) -> None:
        exits = defaultdict[int, set[int]](set)
        for journey in journeys:
            if not journey.is_whole and len(journey.edges) == 2 and set(journey.edges) <= self._index.keys():
                exits[self._index[journey.edges[0]]].add(self._index[journey.edges[1]])
        self._fastest = {entry: self._legs.shortest(entry, ends, self._cost_s) for entry, ends in exits.items()}

    def _parts(self, journey: Journey) -> Parts | str:
        """The routes to drive, with how much later than the journey each begins; or why there are none."""
        key = journey.is_whole, journey.edges
        if key not in self._known:
            self._known[key] = self._find_parts(journey)
        return self._known[key]

    def _find_parts(self, journey: Journey) -> Parts | str:
        if not set(journey.edges) <= self._index.keys():
            return UNROUTED
        anchors = [self._index[edge] for edge in journey.edges]
        if len(set(anchors)) == 1:
            return SHORT
        if not journey.is_whole and len(anchors) == 2 and anchors[1] in self._fastest[anchors[0]]:
            return ((0.0, self._fastest[anchors[0]][anchors[1]]),)
        route = self._router.plan(anchors)
        if route is None or (journey.is_whole and len(route) != len(anchors)):
            return UNROUTED
        if self._is_driven(route):
            return ((0.0, route),)
        return self._cut(route) if self._in_parts else DRAWN

    def _is_driven(self, route: Route) -> bool:
        lanes = self._router.entry_lanes(route)
        return not any(self._router.lane_path(route, 0, lane).is_dead_end for lane in lanes)

    def _cut(self, route: Route) -> Parts:
        """As few parts as can be, from the front; each begins with the road on which the one before ends. Those that meet no
        light are left out, unless all are."""
        parts, first = [], 0
        while first < len(route) - 1:
            end = first + 2  # two roads need no change of lanes
            while end < len(route) and self._is_driven(route[first : end + 1]):
                end += 1
            later_s = sum(self._cost_s[road] + LIGHT_S * self._meets_light[road] for road in route[:first])
            parts.append((later_s, route[first:end]))
            first = end - 1
        lit = [part for part in parts if any(self._meets_light[road] for road in part[1][:-1])]
        return tuple(lit or parts)

    def _vehicle(self, journey: Journey, route: Sequence[int]) -> dict[str, float]:
        kind = journey.type
        return {
            "length": kind.length_m,
            "width": kind.width_m,
            "maxPosAcc": kind.acceleration,
            "maxNegAcc": kind.deceleration,
            "usualPosAcc": kind.acceleration,
            "usualNegAcc": kind.deceleration,
            "minGap": kind.min_gap_m,
            "maxSpeed": min(kind.max_speed_mps, max(self._limits_mps[road] for road in route)),
            "headwayTime": kind.headway_s,
        }
