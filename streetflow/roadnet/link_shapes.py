"""The shapes of a network's lane links: as the file gives them, or curves (docs/cityflow-semantics.md, section 2.3)."""

from __future__ import annotations

import math

import numpy as np

from streetflow.errors import InputError
from streetflow.kernels.shapes import CURVE_POINTS, curves
from streetflow.roadnet.geometry import curve, lane_shapes, polyline_length
from streetflow.roadnet.polylines import Polylines
from streetflow.roadnet.reader import Point, Roadnet


def roadnet_link_shapes(roadnet: Roadnet) -> Polylines:
    """The points of every lane link, by lane link number (intersection, road link, lane link, as read).

    Raises:
        InputError: one has no direction, or no finite length.
    """
    shapes = _all_at_once(roadnet)
    if shapes is None or not np.isfinite(shapes.length_m).all():
        return Polylines.of(_one_by_one(roadnet))
    return shapes


def _all_at_once(roadnet: Roadnet) -> Polylines | None:
    """None where a curve has no direction."""
    links = [
        (reading, road_link, link)
        for reading, intersection in enumerate(roadnet.intersections)
        for road_link in intersection.road_links
        for link in road_link.lane_links
    ]
    first = np.zeros(len(links) + 1, np.int64)
    np.cumsum([len(link.points) or CURVE_POINTS for *_, link in links], out=first[1:])
    x, y = np.empty(first[-1]), np.empty(first[-1])
    curved = []
    for number, (*_, link) in enumerate(links):
        if link.points:
            x[first[number] : first[number + 1]], y[first[number] : first[number + 1]] = zip(*link.points, strict=True)
        else:
            curved.append(number)
    if not curved:
        return Polylines(first, x, y)
    try:
        uncut = Polylines.of(shape for road in roadnet.roads for shape in lane_shapes(road))
    except ZeroDivisionError:
        return None
    roads, widths_m = roadnet.roads, [intersection.width_m for intersection in roadnet.intersections]
    w1, w2 = [], []
    for number in curved:  # a width counts from when its intersection has been read
        reading, road_link, _ = links[number]
        end, start = roads[road_link.start_road].end_intersection, roads[road_link.end_road].start_intersection
        w1.append(widths_m[end] if end <= reading else 0.0)
        w2.append(widths_m[start] if start <= reading else 0.0)
    starts = np.array([links[number][2].start_lane for number in curved])
    ends = np.array([links[number][2].end_lane for number in curved])
    out = first[np.array(curved)]
    if not curves(uncut.first, uncut.x, uncut.y, starts, ends, np.array(w1), np.array(w2), out, x, y):
        return None
    return Polylines(first, x, y)


def _one_by_one(roadnet: Roadnet) -> list[list[Point]]:
    """The same, lane link by lane link; InputError names one that has no direction or no finite length."""
    uncut: dict[int, list[list[Point]]] = {}

    def uncut_lane(lane: int) -> list[Point]:
        number = roadnet.lane_road[lane]
        if number not in uncut:
            uncut[number] = lane_shapes(roadnet.roads[number])
        return uncut[number][lane - roadnet.roads[number].first_lane]

    def known_width(intersection: int, reading: int) -> float:
        return roadnet.intersections[intersection].width_m if intersection <= reading else 0.0

    shapes: list[list[Point]] = []
    for reading, intersection in enumerate(roadnet.intersections):
        for i, road_link in enumerate(intersection.road_links):
            start_road, end_road = roadnet.roads[road_link.start_road], roadnet.roads[road_link.end_road]
            for j, link in enumerate(road_link.lane_links):
                place = f"intersections[{reading}].roadLinks[{i}].laneLinks[{j}]"
                try:
                    shape = list(link.points) or curve(
                        uncut_lane(link.start_lane),
                        uncut_lane(link.end_lane),
                        known_width(start_road.end_intersection, reading),
                        known_width(end_road.start_intersection, reading),
                    )
                except ZeroDivisionError:
                    raise InputError(roadnet.file, place, "a segment of its lanes has length 0") from None
                if not polyline_length(shape) < math.inf:
                    raise InputError(roadnet.file, place, "its length isn't finite")
                shapes.append(shape)
    return shapes
