"""Which crosswalk goes with a movement: the one on its right, over the leg that its right turns enter."""

from __future__ import annotations

import math
from collections.abc import Iterable

from streetflow.roadnet.reader import TURN_RANKS, Intersection, Point, Roadnet

_LEAST_TURN = math.radians(30)
STRAIGHT, RIGHT = TURN_RANKS["go_straight"], TURN_RANKS["turn_right"]


def crosswalk_m(roadnet: Roadnet, number: int, road_links: Iterable[int], opened_with: Iterable[int]) -> float:
    """The way of the longest crosswalk that goes with these road links of an intersection, m; 0 if none does.

    Only what goes straight has one: it leads over the leg to the right. Where a phase opens them together with a movement that
    enters or leaves that leg, other than a right turn, which yields, pedestrians would walk into moving traffic: 0.

    Args:
        roadnet: the network.
        number: of the intersection.
        road_links: the group's.
        opened_with: road links that some phase opens together with one of them.
    """
    read = roadnet.intersections[number]
    legs = _legs(roadnet, read)
    walked_m = 0.0
    for road_link in road_links:
        movement = read.road_links[road_link]
        if movement.rank != STRAIGHT:
            continue
        heading = _angle(_outwards(roadnet, read, movement.start_road)) + math.pi
        leg = _to_the_right(roadnet, read, legs, heading)
        if leg is None:
            continue
        for other in opened_with:
            crossing = read.road_links[other]
            if crossing.rank != RIGHT and {crossing.start_road, crossing.end_road} & legs[leg]:
                return 0.0
        walked_m = max(walked_m, math.fsum(width for road in legs[leg] for width in roadnet.roads[road].lane_widths_m))
    return walked_m


def _legs(roadnet: Roadnet, read: Intersection) -> dict[int, set[int]]:
    """The roads of each leg, by the intersection at its other end."""
    own = roadnet.intersection_index[read.id]
    legs: dict[int, set[int]] = {}
    for number in read.roads:
        road = roadnet.roads[number]
        legs.setdefault(road.end_intersection if road.start_intersection == own else road.start_intersection, set()).add(number)
    return legs


def _outwards(roadnet: Roadnet, read: Intersection, number: int) -> Point:
    """The direction in which a road leaves the crossing, whichever way it is driven."""
    road = roadnet.roads[number]
    leaves = road.start_intersection == roadnet.intersection_index[read.id]
    near, far = (road.points[0], road.points[1]) if leaves else (road.points[-1], road.points[-2])
    return far[0] - near[0], far[1] - near[1]


def _angle(direction: Point) -> float:
    return math.atan2(direction[1], direction[0])


def _to_the_right(roadnet: Roadnet, read: Intersection, legs: dict[int, set[int]], heading: float) -> int | None:
    """The leg whose direction is nearest to a right angle from the heading."""
    best: tuple[float, int] | None = None
    for leg, roads in legs.items():
        right = (heading - _angle(_outwards(roadnet, read, min(roads)))) % (2 * math.pi)
        if _LEAST_TURN <= right <= math.pi - _LEAST_TURN:
            off = abs(right - math.pi / 2)
            best = min(best or (off, leg), (off, leg))
    return best[1] if best else None
