"""Demand for any road network: so many vehicles an hour on each road that leads in, on routes that can be driven.

Same arguments, same flows, on any machine and Python: as in ``generate_flow.py``, only ``random.Random.random`` draws. Each
road has a stream of draws of its own, so that another rate on one road leaves the others' vehicles as they are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count, takewhile
from typing import Any

from streetflow.errors import FieldError, InputError
from streetflow.near import or_else
from streetflow.networks.by_road import ByRoad
from streetflow.networks.generate_flow import MOST_VEHICLES, PROFILES, VEHICLE, Draw, one_vehicle, poisson, start_time_s
from streetflow.networks.legs import Legs
from streetflow.networks.routes import PathRoutes, Returns, Routes, TurnRoutes
from streetflow.roadnet.json_reader import number_from_token
from streetflow.roadnet.network_tables import NetworkTables

ROUTES = ("turns", "shortest", "fastest")
ARRIVALS = ("poisson", "regular")


@dataclass(frozen=True)
class AskedDemand:
    """How much traffic there is, when, and where it goes. FieldError for values that make no demand.

    Attributes:
        rate: vehicles an hour on each road that leads into the network, where ``by_road`` has no other.
        turns: shares of left and right turns at each crossing, where ``by_road`` has no others; the rest goes straight on.
            Shares of turns that a crossing hasn't are spread over those that it has.
        routes: "turns": a turn is drawn at every crossing until a road that leads out is reached; "shortest", "fastest": the
            exit is drawn, and the way there is the shortest, or the fastest at the speed limits.
        arrivals: "poisson": a Poisson process on each road; "regular": evenly spaced (or as the profile says).
        profile: demand over time, of `generate_flow.PROFILES`.
        horizon_s: no vehicle starts later.
        max_speed_mps: of all vehicles; None: the lowest limit on each one's route, so that none drives faster across a
            crossing, which has no limit.
        by_road: what differs from road to road.
    """

    rate: float = 400
    turns: tuple[float, float] = (0.2, 0.15)
    routes: str = "turns"
    arrivals: str = "poisson"
    profile: str = "flat"
    horizon_s: int = 3600
    max_speed_mps: float | None = None
    by_road: ByRoad = field(default_factory=ByRoad)

    def __post_init__(self) -> None:
        if not 0 <= self.rate < math.inf:
            raise FieldError("rate", f"must be 0 vehicles an hour or more, is {self.rate:g}")
        left, right = self.turns
        if not (left >= 0 and right >= 0 and left + right <= 1):
            raise FieldError("turns", f"must be two shares of 0 or more, together at most 1, are {left:g} and {right:g}")
        for name, known in (("routes", ROUTES), ("arrivals", ARRIVALS), ("profile", tuple(PROFILES))):
            if getattr(self, name) not in known:
                raise FieldError(name, f"unknown {getattr(self, name)!r}{or_else(getattr(self, name), known)}")
        if not 1 <= self.horizon_s <= 2**31 - 1:
            raise FieldError("horizon", f"must be from 1 s to {2**31 - 1} s, is {self.horizon_s}")
        if self.max_speed_mps is not None and not 1 <= self.max_speed_mps <= 100:
            raise FieldError("vehicle_speed", f"must be from 1 to 100 m/s, is {self.max_speed_mps:g}")


class DemandMaker:
    """Makes demand for one road network; routes are looked for once for all flows.

    Attributes:
        rates: vehicles an hour, by road on which trips begin.
        exits: roads on which trips end.
        without_exit: roads that lead into the network but from which no exit can be reached: no trip begins there.
    """

    def __init__(self, network: NetworkTables, asked: AskedDemand) -> None:
        """
        Args:
            network: the road network, from `load_network`.
            asked: what to make.

        Raises:
            InputError: nothing leads into the network or out of it; no exit can be reached, from a road that the demand names
                or from any; there would be too many vehicles.
        """
        self.network, self.asked = network, asked
        entries, by_road = _entries(network), asked.by_road
        exits = by_road.exits or dict.fromkeys(_exits(network), 1.0)
        self.exits = {road: part for road, part in exits.items() if part}
        rates = dict.fromkeys(entries, asked.rate) | dict(by_road.rates)
        self.rates = {road: rate for road, rate in rates.items() if rate}
        self._require_ends(entries)
        self._routes = self._planned()
        missing = [road for road in self.rates if not self._routes.lead_out(road)]
        self._require_ways(missing)
        self.without_exit = [network.roadnet.roads[road].id for road in missing]
        for road in missing:
            del self.rates[road]
        if not sum(self.rates.values()) * asked.horizon_s <= MOST_VEHICLES * 3600:
            raise FieldError("rate", f"makes more than {MOST_VEHICLES} vehicles in {asked.horizon_s} s")

    def flow(self, seed: int, number: int = 0) -> list[dict[str, Any]]:
        """The content of a flow file, in order of start time.

        Args:
            seed: same seed, same flows.
            number: of the flow among those of this seed.
        """
        trips = [
            (start_s, road, self._routes.draw(road, draw))
            for road in self.rates
            for draw in [self._draw(road, seed, number)]
            for start_s in self._starts(self.rates[road], draw)
        ]
        ids = [road.id for road in self.network.roadnet.roads]
        kinds: dict[float, dict[str, float]] = {}
        flow = []
        for start_s, _, route in sorted(trips, key=lambda trip: trip[:2]):
            speed_mps = self._speed_mps(route)
            vehicle = kinds.setdefault(speed_mps, VEHICLE | {"maxSpeed": speed_mps})
            flow.append(one_vehicle(vehicle, [ids[road] for road in route], start_s))
        return flow

    def made_of(self, seed: int) -> dict[str, Any]:
        """What its flows of this seed are made of, for a network's record."""
        ids = [road.id for road in self.network.roadnet.roads]
        by_road = self.asked.by_road
        turns = {ids[road]: {ids[each]: part for each, part in parts.items()} for road, parts in by_road.turns.items()}
        rates, exits = ({ids[road]: number for road, number in part.items()} for part in (by_road.rates, by_road.exits))
        return {"seed": seed, **asdict(self.asked), "by_road": {"rates": rates, "turns": turns, "exits": exits}}

    def _planned(self) -> Routes:
        legs, limits = Legs(self.network.router), self._limits_mps()
        fastest_mps = max(limits, default=0.0) if self.asked.max_speed_mps is None else self.asked.max_speed_mps
        returns = Returns(self.network, fastest_mps)
        if self.asked.routes == "turns":
            return TurnRoutes(self.network, legs, self.rates, self.exits, self.asked.turns, self.asked.by_road.turns, returns)
        cost = self.network.router.average_length_m
        if self.asked.routes == "fastest":
            cost = [length_m / limit for length_m, limit in zip(cost, limits, strict=True)]
        return PathRoutes(self.network, legs, self.exits, cost, returns)

    def _require_ends(self, entries: Collection[int]) -> None:
        file, by_road = self.network.roadnet.file, self.asked.by_road
        if not entries and not by_road.rates:
            raise InputError(file, "roads", "none leads into the network: say by road where trips begin (rates)")
        if not self.exits:
            raise InputError(file, "roads", "none leads out of the network: say by road where trips end (exits)")
        if not self.rates:
            raise FieldError("rate", "no road has a rate above 0")

    def _require_ways(self, missing: Sequence[int]) -> None:
        """InputError where a road that the demand names has no way out, or none has one."""
        roads, by_road = self.network.roadnet.roads, self.asked.by_road
        for road in missing:
            if road in by_road.rates:
                raise InputError(by_road.file, f"rates.{roads[road].id}", self._why(road))
        if len(missing) == len(self.rates):
            road = missing[0]
            raise InputError(self.network.roadnet.file, f"roads[{road}]", f"{roads[road].id!r}: {self._why(road)}")

    def _why(self, road: int) -> str:
        if not self.network.router.next_roads[road]:
            return "no lane link leads on from this road"
        return "no route leads from this road to one on which trips end"

    def _limits_mps(self) -> list[float]:
        """By road: the lowest speed limit of its lanes."""
        return [min(road.lane_max_speeds_mps, default=math.inf) for road in self.network.roadnet.roads]

    def _speed_mps(self, route: Collection[int]) -> float:
        if self.asked.max_speed_mps is not None:
            return self.asked.max_speed_mps
        roads = self.network.roadnet.roads
        limit = min(speed for road in route for speed in roads[road].lane_max_speeds_mps)
        rounded = round(limit, 3)
        return rounded if number_from_token(repr(float(rounded))) <= limit else round(rounded - 0.001, 3)

    def _starts(self, rate: float, draw: Draw) -> list[int]:
        mean, horizon_s, profile = rate * self.asked.horizon_s / 3600, self.asked.horizon_s, PROFILES[self.asked.profile]
        if self.asked.arrivals == "poisson":
            shares = [draw() for _ in range(poisson(mean, draw))]
        else:
            first = draw()
            shares = list(takewhile(lambda share: share < 1, ((first + n) / mean for n in count())))
        return sorted(start_time_s(profile, horizon_s, share) for share in shares)

    def _draw(self, road: int, seed: int, number: int) -> Draw:
        return random.Random(f"tinylight-hil/make-flow/{seed}/{number}/{self.network.roadnet.roads[road].id}").random


def _entries(network: NetworkTables) -> list[int]:
    """Roads that lead into the network: from a road end, or with nothing that leads to them."""
    led_to = {following for each in network.router.next_roads for following in each}
    virtual = [each.virtual for each in network.roadnet.intersections]
    roads, onwards = network.roadnet.roads, network.router.next_roads
    return [i for i, road in enumerate(roads) if onwards[i] and (virtual[road.start_intersection] or i not in led_to)]


def _exits(network: NetworkTables) -> list[int]:
    """Roads that lead out of the network: to a road end, or with nothing that leads on from them."""
    led_to = {following for each in network.router.next_roads for following in each}
    virtual = [each.virtual for each in network.roadnet.intersections]
    roads, onwards = network.roadnet.roads, network.router.next_roads
    return [i for i, road in enumerate(roads) if i in led_to and (virtual[road.end_intersection] or not onwards[i])]
