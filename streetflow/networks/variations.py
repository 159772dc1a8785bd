"""Demand that differs from a flow file's in a known way: more or fewer vehicles, other turns, other starts.

Same arguments, same vehicles, on any machine and Python: as in ``generate_flow.py``, only ``random.Random.random`` draws.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from streetflow.errors import FieldError
from streetflow.networks.catalogue import Network
from streetflow.networks.generate_flow import Draw
from streetflow.roadnet.flow import Flow, read_flows
from streetflow.roadnet.network_tables import load_network

COPY_SHIFT_S = 120
"""An added vehicle is a copy of another one that starts up to so long before or after it."""


@dataclass(frozen=True)
class Variation:
    """How a demand differs from the flow file's. FieldError for values that make no demand.

    Attributes:
        volume: vehicles, as a factor.
        turns: by how much the shares of the routes that begin on the same road change: each route's is multiplied by a
            number drawn evenly from 1 - turns to 1 + turns, for the whole run.
        shift_s: each vehicle starts up to so long before or after its time in the file.
    """

    volume: float = 1.0
    turns: float = 0.0
    shift_s: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.volume) and 0 < self.volume <= 10):
            raise FieldError("volume", f"must be above 0 and at most 10, is {self.volume:g}")
        if not 0 <= self.turns <= 1:
            raise FieldError("turns", f"must be from 0 to 1, is {self.turns:g}")
        if self.shift_s < 0:
            raise FieldError("shift_s", f"must be 0 s or more, is {self.shift_s}")


UNCHANGED = Variation()


def varied_flow(flow: Sequence[Flow], variation: Variation, horizon_s: int, seed: int) -> tuple[Flow, ...]:
    """The vehicles of a demand that start before the horizon, varied: one entry each, in order of their start.

    A seed draws each kind of change alike whatever its size: the vehicles of volume 0.7 are among those of 0.85. An unchanged
    demand's vehicles stay as they are. A start that would fall outside the run is reflected at its beginning or its last
    second: no vehicle is lost, and no crowd stands at either.
    """
    vehicles = [each for entry in flow for each in _single_vehicles(entry, horizon_s) if each.start_s < horizon_s]
    if variation.turns:
        vehicles = _turned(vehicles, variation.turns, _draw(seed, "turns"))
    vehicles = _by_volume(vehicles, variation.volume, horizon_s, seed)
    if variation.shift_s:
        draw = _draw(seed, "shift")
        vehicles = [_shifted(each, _within(variation.shift_s, draw), horizon_s) for each in vehicles]
    return tuple(sorted(vehicles, key=lambda each: each.start_s))


class Varied(NamedTuple):
    """One of a network's demands, varied."""

    flow: int
    variation: Variation = UNCHANGED
    seed: int = 0

    def of(self, network: Network) -> tuple[Flow, ...]:
        """Its vehicles (`varied_flow`). InputError if the network has no such flow, or it can't be run."""
        roads = load_network(network.roadnet_file).roadnet.road_index
        return varied_flow(read_flows(network.flow_file(self.flow), roads), self.variation, network.horizon_s, self.seed)


def _single_vehicles(entry: Flow, horizon_s: int) -> Iterator[Flow]:
    """Those that a flow creates before the horizon in steps of 1 s."""
    if entry.start_s == entry.end_s != -1:
        if entry.start_s >= 0:
            yield entry
        return
    last = horizon_s - 1 if entry.end_s == -1 else min(entry.end_s, horizon_s - 1)
    first = max(entry.start_s, 0)
    for number in range(max(math.floor((last - first) / entry.interval_s) + 1, 0)):
        yield _at(entry, first + math.ceil(number * entry.interval_s))


def _at(vehicle: Flow, start_s: int) -> Flow:
    return Flow(vehicle.kind, vehicle.anchors, 1.0, start_s, start_s)


def _draw(seed: int, what: str) -> Draw:
    return random.Random(f"tinylight-hil/variation/{seed}/{what}").random


def _within(most: int, draw: Draw) -> int:
    """A whole number from -most to most."""
    return int(draw() * (2 * most + 1)) - most


def _shifted(vehicle: Flow, shift_s: int, horizon_s: int) -> Flow:
    """Reflected at both ends of the run."""
    last = horizon_s - 1
    start_s = abs(vehicle.start_s + shift_s)
    return _at(vehicle, max(min(start_s, 2 * last - start_s), 0))


def _by_volume(vehicles: list[Flow], volume: float, horizon_s: int, seed: int) -> list[Flow]:
    """Each vehicle as often as ``volume`` says, on average: the first time as it is, then as shifted copies."""
    chance, shifts = _draw(seed, "volume"), [_draw(seed, f"copy {copy}") for copy in range(1, math.ceil(volume))]
    result: list[Flow] = []
    for each in vehicles:
        count = int(volume) + (chance() < volume - int(volume))
        copies = [_shifted(each, _within(COPY_SHIFT_S, draw), horizon_s) for draw in shifts]
        result += [each, *copies][:count]
    return result


def _turned(vehicles: list[Flow], turns: float, draw: Draw) -> list[Flow]:
    """Routes drawn anew, in each entry road's changed shares."""
    counts: dict[int, dict[tuple[int, ...], int]] = {}
    for each in vehicles:
        routes = counts.setdefault(each.anchors[0], {})
        routes[each.anchors] = routes.get(each.anchors, 0) + 1
    ends: dict[int, list[float]] = {}  # of each route's part of its road's total
    for road, routes in counts.items():
        factors = [1.0 + turns * (2.0 * draw() - 1.0) for _ in routes]
        ends[road] = list(accumulate(count * factor for count, factor in zip(routes.values(), factors, strict=True)))
    by_road = {road: list(routes) for road, routes in counts.items()}
    result = []
    for each in vehicles:
        road = each.anchors[0]
        at = min(bisect_right(ends[road], draw() * ends[road][-1]), len(by_road[road]) - 1)
        result.append(replace(each, anchors=by_road[road][at]))
    return result
