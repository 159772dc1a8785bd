"""How far a light sees: lanes that end at it, and where these are short, the lanes that lead to them.

Nets often cut a road shortly before its light, where it widens or where a way joins; vehicles that wait then stand on the piece
before, and loops on a lane of a few metres would miss them. An `Approach` counts the piece before as part of the lane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from streetflow.sumo.net import Connection, Net


@dataclass(frozen=True)
class Approach:
    """A lane of SUMO's as a part of a lane of ours. lane: SUMO's; number: ours; before_m: of ours, what lies before it."""

    lane: str
    number: int
    before_m: float


def approaches(net: Net, numbers: Mapping[str, int], least_m: float) -> list[Approach]:
    """The parts of the lanes at lights that are shorter than ``least_m``, these themselves included.

    What leads to such a lane is added until the whole is long enough, but for lanes that end at a light themselves or that
    lead to other edges, too. A lane that leads to several lanes of an edge is part of the first of them.

    Args:
        net: the network.
        numbers: our number of each of SUMO's lanes.
        least_m: 0 for none.
    """
    lit = {light for light, program in net.programs.items() if len(program.green) > 1}
    leading: dict[str, list[Connection]] = defaultdict(list)
    leaving: dict[str, set[str]] = defaultdict(set)
    for link in net.connections:
        leading[link.end.id].append(link)
        leaving[link.start.id].add(link.end_edge.id)
    at_lights = {link.start.id: link.start for link in net.connections if link.light in lit}
    parts: dict[str, dict[str, float]] = {}  # by lane at a light: how far from its end each part begins, m
    taken = set(at_lights)
    for lane in at_lights.values():
        begins_m = {lane.id: lane.length_m}
        further = [lane.id]
        while further:
            here = further.pop(0)
            if begins_m[here] >= least_m:
                continue
            for link in leading[here]:
                before = link.start
                if before.id not in taken and link.light is None and len(leaving[before.id]) == 1:
                    taken.add(before.id)
                    begins_m[before.id] = begins_m[here] + sum(each.length_m for each in link.inside) + before.length_m
                    further.append(before.id)
        if len(begins_m) > 1:
            parts[lane.id] = begins_m
    return [
        Approach(name, numbers[lane], max(begins_m.values()) - begin_m)
        for lane, begins_m in parts.items()
        for name, begin_m in begins_m.items()
    ]
