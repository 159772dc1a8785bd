"""Where a vehicle can drive on any road network: routes on which every lane that it may enter leads to the end (section 3.3).

CityFlow's vehicles choose their lane on entering a road, by the road after it, and keep it. So roads that follow one another
on the map can't always be driven one after another; from a `Leg` on, all that can follow is known.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from streetflow.roadnet.routing import Router


class Leg(NamedTuple):
    """Part of a route: from ``road``, on which a vehicle is on one of ``lanes``, to the road ``following``."""

    road: int
    lanes: tuple[int, ...]
    following: int


class Legs:
    """The legs of a road network, found as they are asked for."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self._after: dict[Leg, tuple[Leg, ...]] = {}

    def first(self, entry: int) -> tuple[Leg, ...]:
        """The legs with which a route can begin on a road."""
        following = dict.fromkeys(self.router.next_roads[entry])
        return tuple(Leg(entry, tuple(self.router.entry_lanes((entry, road))), road) for road in following)

    def after(self, leg: Leg) -> tuple[Leg, ...]:
        """The legs that can follow, whichever of its lanes the vehicle is on."""
        found = self._after.get(leg)
        if found is None:
            onwards = dict.fromkeys(self.router.next_roads[leg.following])
            legs = (self._joined(leg, road) for road in onwards)
            found = self._after[leg] = tuple(each for each in legs if each is not None)
        return found

    def _joined(self, leg: Leg, onwards: int) -> Leg | None:
        roads = (leg.road, leg.following, onwards)
        lanes = set()
        for lane in leg.lanes:
            drivables = self.router.lane_path(roads, 0, lane).drivables
            if len(drivables) == 2:  # it has no lane link from which the route goes on
                return None
            lanes.add(drivables[2])
        return Leg(leg.following, tuple(sorted(lanes)), onwards)

    def leading_out(self, entries: Iterable[int], exits: Collection[int], allowed: Callable[[int, int], bool]) -> set[Leg]:
        """The legs that are reached from the entry roads and from which an exit road is reached.

        Args:
            entries: roads on which routes begin.
            exits: roads on which they end, at the first that is reached.
            allowed: whether a movement, from a road to the next, may be made at all.
        """
        before: dict[Leg, list[Leg]] = {}
        to_visit = [leg for entry in entries for leg in self.first(entry) if allowed(leg.road, leg.following)]
        seen = set(to_visit)
        while to_visit:
            leg = to_visit.pop()
            for onwards in () if leg.following in exits else self.after(leg):
                if allowed(onwards.road, onwards.following):
                    before.setdefault(onwards, []).append(leg)
                    if onwards not in seen:
                        seen.add(onwards)
                        to_visit.append(onwards)
        to_visit = [leg for leg in seen if leg.following in exits]
        leading = set(to_visit)
        while to_visit:
            earlier = [leg for leg in before.get(to_visit.pop(), ()) if leg not in leading]
            leading.update(earlier)
            to_visit += earlier
        return leading

    def shortest(self, entry: int, exits: Collection[int], cost: Sequence[float]) -> dict[int, tuple[int, ...]]:
        """The cheapest route from an entry road to each exit road that can be reached, by exit.

        Args:
            entry: the first road of all routes.
            exits: the last ones.
            cost: of each road but the first, summed over a route.
        """
        found: dict[int, tuple[int, ...]] = {}
        before: dict[Leg, Leg | None] = {}
        heap: list[tuple[float, int, Leg, Leg | None]] = []
        for leg in self.first(entry):
            heapq.heappush(heap, (cost[leg.following], len(heap), leg, None))
        pushed = len(heap)
        while heap and len(found) < len(exits):
            total, _, leg, earlier = heapq.heappop(heap)
            if leg in before:
                continue
            before[leg] = earlier
            if leg.following in exits and leg.following not in found:
                found[leg.following] = _roads(leg, before)
            for onwards in self.after(leg):
                if onwards not in before:
                    pushed += 1
                    heapq.heappush(heap, (total + cost[onwards.following], pushed, onwards, leg))
        return found


def _roads(leg: Leg, before: dict[Leg, Leg | None]) -> tuple[int, ...]:
    roads, at = [leg.following], leg
    while True:
        roads.append(at.road)
        earlier = before[at]
        if earlier is None:
            return tuple(reversed(roads))
        at = earlier
