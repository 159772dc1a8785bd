"""Routes drawn from a road that leads into a network to one that leads out: turn by turn, or by the best path."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import Protocol

from streetflow.errors import FieldError
from streetflow.networks.generate_flow import VEHICLE, Draw
from streetflow.networks.legs import Leg, Legs
from streetflow.networks.movements import is_u_turn, movements
from streetflow.roadnet.network_tables import NetworkTables

MOST_ROADS = 1000  # of a route
_TRIES = 100


class Routes(Protocol):
    def lead_out(self, entry: int) -> bool:
        """Whether a route leads from an entry road to an exit."""

    def draw(self, entry: int, draw: Draw) -> tuple[int, ...]:
        """The road numbers of a route. draw: uniform numbers in [0, 1)."""


class Returns:
    """Tells which roads a route can't come back to yet, since CityFlow would take the visit for the earlier one."""

    def __init__(self, network: NetworkTables, max_speed_mps: float) -> None:
        """max_speed_mps: of the fastest vehicle."""
        self._length_m = network.router.average_length_m
        self._step_m = max_speed_mps  # in a step of 1 s
        self._look_ahead_m = max_speed_mps * max_speed_mps / VEHICLE["usualNegAcc"] / 2 + 2 * self._step_m

    def too_soon(self, road: int, roads: Sequence[int]) -> bool:
        """Whether a road next would be one within what a vehicle looks ahead, or one that it can jump over and has had before.

        Args:
            road: the next one.
            roads: the route so far.
        """
        if self._length_m[road] < self._step_m:
            return road in roads
        between_m = 0.0
        for each in reversed(roads):
            if each == road:
                return True
            between_m += self._length_m[each]
            if between_m > self._look_ahead_m:
                return False
        return False


class TurnRoutes:
    """A turn is drawn at every crossing until an exit is reached.

    Turns that can't be driven from a lane that the vehicle may be on, or from which no exit can be reached, aren't among those
    drawn from; the others keep their proportions. A vehicle doesn't come back to a road so soon that CityFlow would take it for
    still being on its first visit.
    """

    def __init__(
        self,
        network: NetworkTables,
        legs: Legs,
        entries: Collection[int],
        exits: Collection[int],
        turns: tuple[float, float],
        by_road: Mapping[int, Mapping[int, float]],
        returns: Returns,
    ) -> None:
        """
        Args:
            network: the road network.
            legs: its legs.
            entries: roads on which routes begin.
            exits: roads on which they end.
            turns: shares of left and right turns.
            by_road: of some roads, the parts that go on to each next road instead.
            returns: what routes can't come back to.
        """
        self._legs, self._exits, self._too_soon = legs, exits, returns.too_soon
        self._roads = [road.id for road in network.roadnet.roads]
        self._parts = _parts(network, turns, by_road)
        self._leading = legs.leading_out(entries, exits, lambda road, following: self._parts[road][following] > 0)
        self._onwards: dict[Leg | int, tuple[list[Leg], list[float]]] = {}

    def lead_out(self, entry: int) -> bool:
        return bool(self._options(entry)[0])

    def draw(self, entry: int, draw: Draw) -> tuple[int, ...]:
        """FieldError where the shares lead round and round."""
        for _ in range(_TRIES):
            route = self._walk(entry, draw)
            if route is not None:
                return route
        fault = f"lead vehicles from road {self._roads[entry]!r} round in circles: {_TRIES} routes found no exit"
        raise FieldError("turns", fault)

    def _walk(self, entry: int, draw: Draw) -> tuple[int, ...] | None:
        roads, at = [entry], self._pick(entry, [], draw)
        while at is not None and len(roads) < MOST_ROADS:
            roads.append(at.following)
            if at.following in self._exits:
                return tuple(roads)
            at = self._pick(at, roads, draw)
        return None

    def _pick(self, at: Leg | int, roads: Sequence[int], draw: Draw) -> Leg | None:
        options, ends = self._options(at)
        picked = options[_drawn(ends, draw)]
        if not self._too_soon(picked.following, roads):
            return picked
        free = [each for each in options if not self._too_soon(each.following, roads)]
        if not free:
            return None
        return free[_drawn(list(accumulate(self._parts[each.road][each.following] for each in free)), draw)]

    def _options(self, at: Leg | int) -> tuple[list[Leg], list[float]]:
        """The legs that may come next, and the running sums of their parts. at: a leg, or an entry road."""
        found = self._onwards.get(at)
        if found is None:
            legs = self._legs.first(at) if isinstance(at, int) else self._legs.after(at)
            options = [each for each in legs if each in self._leading]
            ends = list(accumulate(self._parts[each.road][each.following] for each in options))
            found = self._onwards[at] = options, ends
        return found


class PathRoutes:
    """The exit is drawn, and the cheapest way there taken. An exit at the road end where the trip began is the last resort.

    Where the lanes make the cheapest way come back to a road too soon, the exit isn't among those drawn from.
    """

    def __init__(
        self, network: NetworkTables, legs: Legs, exits: Mapping[int, float], cost: Sequence[float], returns: Returns
    ) -> None:
        """
        Args:
            network: the road network.
            legs: its legs.
            exits: roads on which routes end, and the parts of all trips that end there.
            cost: of each road, such as its length.
            returns: what routes can't come back to.
        """
        self._too_soon = returns.too_soon
        self._network, self._legs, self._exits, self._cost = network, legs, exits, cost
        self._found: dict[int, tuple[list[tuple[int, ...]], list[float]]] = {}

    def lead_out(self, entry: int) -> bool:
        return bool(self._of(entry)[0])

    def draw(self, entry: int, draw: Draw) -> tuple[int, ...]:
        routes, ends = self._of(entry)
        return routes[_drawn(ends, draw)]

    def _of(self, entry: int) -> tuple[list[tuple[int, ...]], list[float]]:
        found = self._found.get(entry)
        if found is None:
            routes = self._legs.shortest(entry, self._exits, self._cost)
            exits = [road for road in self._exits if road in routes and self._sound(routes[road])]
            exits = [road for road in exits if not is_u_turn(self._network, entry, road)] or exits
            ends = list(accumulate(self._exits[road] for road in exits))
            found = self._found[entry] = [routes[road] for road in exits], ends
        return found

    def _sound(self, route: Sequence[int]) -> bool:
        return not any(self._too_soon(road, route[:place]) for place, road in enumerate(route))


def _drawn(ends: Sequence[float], draw: Draw) -> int:
    """One of several at random, by the running sums of their parts."""
    return min(bisect_right(ends, draw() * ends[-1]), len(ends) - 1)


def _parts(
    network: NetworkTables, turns: tuple[float, float], by_road: Mapping[int, Mapping[int, float]]
) -> list[Mapping[int, float]]:
    """By road, the parts of its traffic that go on to each next road. Nobody turns round where there is another way."""
    left, right = turns
    share = {"left": left, "right": right, "straight": max(1 - left - right, 0.0)}
    found: list[Mapping[int, float]] = []
    for road, by_turn in enumerate(movements(network)):
        everywhere = [each for roads in by_turn.values() for each in roads]
        onwards = [each for each in everywhere if not is_u_turn(network, road, each)] or everywhere
        of_turn = {turn: [each for each in roads if each in onwards] for turn, roads in by_turn.items()}
        parts = dict.fromkeys(everywhere, 0.0)
        parts |= {each: share[turn] / len(roads) for turn, roads in of_turn.items() for each in roads}
        if not any(parts.values()):
            parts |= dict.fromkeys(onwards, 1.0)
        found.append(by_road.get(road, parts))
    return found
