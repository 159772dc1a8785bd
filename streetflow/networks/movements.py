"""The ways on from each road of a network, by turn."""

from __future__ import annotations

from streetflow.roadnet.network_tables import NetworkTables
from streetflow.roadnet.reader import TURN_RANKS

TURNS = ("left", "straight", "right")
_TURN_OF_RANK = {TURN_RANKS["turn_left"]: "left", TURN_RANKS["turn_right"]: "right"}

Movements = list[dict[str, list[int]]]


def movements(network: NetworkTables) -> Movements:
    """By road, the roads that it leads to, by turn. A movement of a type that isn't known counts as straight on."""
    rank: dict[tuple[int, int], int] = {}
    for intersection in network.roadnet.intersections:
        for link in intersection.road_links:
            if link.lane_links:
                rank.setdefault((link.start_road, link.end_road), link.rank)
    found: Movements = []
    for road, following in enumerate(network.router.next_roads):
        by_turn: dict[str, list[int]] = {turn: [] for turn in TURNS}
        for each in dict.fromkeys(following):
            by_turn[_TURN_OF_RANK.get(rank[road, each], "straight")].append(each)
        found.append(by_turn)
    return found


def is_u_turn(network: NetworkTables, road: int, following: int) -> bool:
    """Whether it leads back to where the road came from."""
    roads = network.roadnet.roads
    return roads[following].end_intersection == roads[road].start_intersection
