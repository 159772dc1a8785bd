"""Demand that differs from a flow file's in a known way: more or fewer vehicles, other turns, other starts.

Same arguments, same vehicles, on any machine and Python: as in ``generate_flow.py``, only ``random.Random.random`` draws.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from streetflow.errors import FieldError
from streetflow.files import write_whole
from streetflow.networks.catalogue import Network
from streetflow.networks.generate_flow import Draw
from streetflow.networks.write import json_bytes, single_vehicles
from streetflow.roadnet.flow import read_flows
from streetflow.roadnet.json_reader import read_json
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


def varied_flow(flow: Sequence[Mapping[str, Any]], variation: Variation, horizon_s: int, seed: int) -> list[dict[str, Any]]:
    """The vehicles of a flow file's content that start before the horizon, varied: one entry each, in order of their start.

    A seed draws each kind of change alike whatever its size: the vehicles of volume 0.7 are among those of 0.85. An unchanged
    demand's vehicles stay as they are. A start that would fall outside the run is reflected at its beginning or its last
    second: no vehicle is lost, and no crowd stands at either.
    """
    vehicles = [each for entry in flow for each in single_vehicles(entry, horizon_s) if each["startTime"] < horizon_s]
    if variation.turns:
        vehicles = _turned(vehicles, variation.turns, _draw(seed, "turns"))
    vehicles = _by_volume(vehicles, variation.volume, horizon_s, seed)
    if variation.shift_s:
        draw = _draw(seed, "shift")
        vehicles = [_shifted(each, _within(variation.shift_s, draw), horizon_s) for each in vehicles]
    return sorted(vehicles, key=lambda each: each["startTime"])


class Varied(NamedTuple):
    """One of a network's demands, varied."""

    flow: int
    variation: Variation = UNCHANGED
    seed: int = 0


def varied_network(network: Network, demands: Sequence[Varied], folder: Path) -> Network:
    """The network with varied demands of its own in place of its flows.

    Args:
        network: whose roads and horizon it has.
        demands: flow K of the result is the K-th of them.
        folder: where their files are written, by their number.

    Raises:
        InputError: there is no such flow, it can't be run, or a file can't be written.
    """
    roads = load_network(network.roadnet_file).roadnet.road_index
    contents = {flow: _checked(network.flow_file(flow), roads) for flow in {each.flow for each in demands}}
    files = []
    for number, each in enumerate(demands):
        files.append(folder / f"flow_{number}.json")
        vehicles = varied_flow(contents[each.flow], each.variation, network.horizon_s, each.seed)
        write_whole(files[-1], json_bytes(vehicles))
    return replace(network, flow_files=tuple(files))


def _checked(file: Path, roads: Mapping[str, int]) -> Any:
    read_flows(file, roads)  # raises for a demand that can't be run
    return read_json(file)


def _draw(seed: int, what: str) -> Draw:
    return random.Random(f"tinylight-hil/variation/{seed}/{what}").random


def _within(most: int, draw: Draw) -> int:
    """A whole number from -most to most."""
    return int(draw() * (2 * most + 1)) - most


def _shifted(vehicle: dict[str, Any], shift_s: int, horizon_s: int) -> dict[str, Any]:
    """Reflected at both ends of the run."""
    last = horizon_s - 1
    start_s = abs(vehicle["startTime"] + shift_s)
    start_s = max(min(start_s, 2 * last - start_s), 0)
    return {**vehicle, "startTime": start_s, "endTime": start_s}


def _by_volume(vehicles: list[dict[str, Any]], volume: float, horizon_s: int, seed: int) -> list[dict[str, Any]]:
    """Each vehicle as often as ``volume`` says, on average: the first time as it is, then as shifted copies."""
    chance, shifts = _draw(seed, "volume"), [_draw(seed, f"copy {copy}") for copy in range(1, math.ceil(volume))]
    result = []
    for each in vehicles:
        count = int(volume) + (chance() < volume - int(volume))
        copies = [_shifted(each, _within(COPY_SHIFT_S, draw), horizon_s) for draw in shifts]
        result += [each, *copies][:count]
    return result


def _turned(vehicles: list[dict[str, Any]], turns: float, draw: Draw) -> list[dict[str, Any]]:
    """Routes drawn anew, in each entry road's changed shares."""
    counts: dict[str, dict[tuple[str, ...], int]] = {}
    for each in vehicles:
        routes, route = counts.setdefault(each["route"][0], {}), tuple(each["route"])
        routes[route] = routes.get(route, 0) + 1
    ends: dict[str, list[float]] = {}  # of each route's part of its road's total
    for road, routes in counts.items():
        factors = [1.0 + turns * (2.0 * draw() - 1.0) for _ in routes]
        ends[road] = list(accumulate(count * factor for count, factor in zip(routes.values(), factors, strict=True)))
    names = {road: list(routes) for road, routes in counts.items()}
    result = []
    for each in vehicles:
        road = each["route"][0]
        at = min(bisect_right(ends[road], draw() * ends[road][-1]), len(names[road]) - 1)
        result.append({**each, "route": list(names[road][at])})
    return result
