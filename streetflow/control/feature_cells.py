"""The sum behind each value of a feature: cells of terms (see ``features.py``), from an intersection's lanes and lane links."""

from __future__ import annotations

from collections.abc import Iterable

from streetflow.control.intersection import Intersection

Terms = list[tuple[int, int]]
"""(index into a source, weight) of each entry that a cell sums."""


def all_lanes(intersection: Intersection) -> list[Terms]:
    """One cell per in-lane, then one per out-lane."""
    return in_lanes(intersection) + out_lanes(intersection)


def in_lanes(intersection: Intersection) -> list[Terms]:
    return [[(lane, 1)] for lane in intersection.in_lanes]


def out_lanes(intersection: Intersection) -> list[Terms]:
    return [[(lane, 1)] for lane in intersection.out_lanes]


def in_roads(intersection: Intersection) -> list[Terms]:
    """Per in-road, its lanes."""
    return [[(lane, 1) for lane in lanes] for lanes in intersection.in_road_lanes]


def served_lanes(intersection: Intersection) -> list[Terms]:
    """Per action, the in-lanes that its phase serves, each once."""
    return [[(lane, 1) for lane in lanes] for lanes in intersection.phase_in_lanes]


def whole(intersection: Intersection) -> list[Terms]:
    """One cell: all in-lanes and out-lanes."""
    return [[(lane, 1) for lane in (*intersection.in_lanes, *intersection.out_lanes)]]


def in_lane_links(intersection: Intersection) -> list[Terms]:
    """Per in-lane, the pressure of the lane links that leave it."""
    links = intersection.lane_links
    return [_pressure(link for link in links if link[0] == lane) for lane in intersection.in_lanes]


def opened_links(intersection: Intersection) -> list[Terms]:
    """Per action, the pressure of the lane links that its phase opens."""
    links = intersection.lane_links
    return [_pressure(links[number] for number in opened) for opened in intersection.phase_lane_links]


def each_link(intersection: Intersection) -> list[Terms]:
    """Per lane link, its pressure."""
    return [_pressure([link]) for link in intersection.lane_links]


def whole_links(intersection: Intersection) -> list[Terms]:
    """One cell: the pressure of all lane links."""
    return [_pressure(intersection.lane_links)]


def on_links(intersection: Intersection) -> list[Terms]:
    """Per lane link, its own vehicles."""
    first = intersection.first_lane_link
    return [[(first + number, 1)] for number in range(len(intersection.lane_links))]


def actions(intersection: Intersection) -> list[Terms]:
    """One cell per action."""
    return [[(action, 1)] for action in range(intersection.action_count)]


def total_pressure(intersection: Intersection) -> Terms:
    """Vehicles on all in-lanes - vehicles on all out-lanes; its negative is the reward."""
    return [(lane, 1) for lane in intersection.in_lanes] + [(lane, -1) for lane in intersection.out_lanes]


def segments(lanes: Iterable[int], k: int) -> list[Terms]:
    """One cell per part of a lane, of k each, lane by lane."""
    return [[(lane * k + part, 1)] for lane in lanes for part in range(k)]


def _pressure(links: Iterable[tuple[int, int]]) -> Terms:
    """Sum over ``links`` of (vehicles on the in-lane - vehicles on the out-lane), terms of one lane merged."""
    weight: dict[int, int] = {}
    for lane_in, lane_out in links:
        weight[lane_in] = weight.get(lane_in, 0) + 1
        weight[lane_out] = weight.get(lane_out, 0) - 1
    return list(weight.items())
