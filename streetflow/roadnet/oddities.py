"""What CityFlow drives soundly in a road network though it probably isn't meant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from streetflow.roadnet.reader import TURN_RANKS, UNKNOWN_RANK, Roadnet


class Oddity(NamedTuple):
    """topic: the kind of oddity, in the plural. place: a JSON path. text: what is found there."""

    topic: str
    place: str
    text: str


def roadnet_oddities(roadnet: Roadnet, link_lengths_m: Sequence[float]) -> tuple[Oddity, ...]:
    """All oddities of its movements and their lane links. link_lengths_m: by lane link number."""
    oddities: list[Oddity] = []
    lengths_m = iter(link_lengths_m)
    for number, intersection in enumerate(roadnet.intersections):
        for i, road_link in enumerate(intersection.road_links):
            place = f"intersections[{number}].roadLinks[{i}]"
            if road_link.rank == UNKNOWN_RANK:
                known = ", ".join(sorted(TURN_RANKS))
                fault = f"isn't one of {known}: it yields to all movements of these types"
                oddities.append(Oddity("movements of an unknown type", f"{place}.type", fault))
            for j, lane_link in enumerate(road_link.lane_links):
                is_point = next(lengths_m) == 0.0
                if not (is_point or lane_link.points):
                    continue
                at = f"{place}.laneLinks[{j}]"
                if is_point:
                    oddities.append(Oddity("lane links of length 0", at, "its end lane begins where its start lane ends"))
                    continue
                for k, (one, other) in enumerate(pairwise(lane_link.points), 1):
                    if one == other:
                        oddities.append(Oddity("repeated points", f"{at}.points[{k}]", "is the same point as the one before"))
    return tuple(oddities)
