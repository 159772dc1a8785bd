"""Shapes of roads and of ways across junctions, from the shapes of SUMO's lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from streetflow.roadnet.reader import Point

DECIMALS = 3  # of coordinates: mm
TURNS_BACK = 1e-3  # two directions whose sum is this short point away from each other


def road_points(left_most: Sequence[Point], width_m: float) -> list[Point]:
    """The left edge of a road's left-most lane, whose middle and width are given: lanes of ours lie to the right of it."""
    middle = np.array(_without_turning_back(_cleaned(left_most)))
    ways = np.diff(middle, axis=0)
    ways /= np.hypot(*ways.T)[:, None]
    along = np.vstack([ways[:1], ways[:-1] + ways[1:], ways[-1:]])
    along /= np.hypot(*along.T)[:, None]
    left = middle + width_m / 2 * np.stack([-along[:, 1], along[:, 0]], axis=1)
    points = _without_turning_back(_cleaned(map(tuple, left.tolist())))
    return points if len(points) > 1 else [(float(x), float(y)) for x, y in (left[0], left[0] + ways[0])]


def way_points(start: Point, inside: Iterable[Sequence[Point]], end: Point) -> list[Point]:
    """A way across a junction, by the lanes within it; without any the straight line. Equal points where it has no length."""
    points = [point for shape in inside for point in shape] or [start, end]
    cleaned = _cleaned(points)
    return cleaned if len(cleaned) > 1 else cleaned * 2


def _cleaned(points: Iterable[Point]) -> list[Point]:
    """Rounded, and each point once where it is repeated."""
    found: list[Point] = []
    for x, y in points:
        point = round(x, DECIMALS), round(y, DECIMALS)
        if not found or point != found[-1]:
            found.append(point)
    return found


def _without_turning_back(points: list[Point]) -> list[Point]:
    """Without points at which the line turns back on itself: lanes beside it would have no direction there."""
    found = points[:1]
    for number, point in enumerate(points[1:], 1):
        if number + 1 < len(points) and _turns_back(found[-1], point, points[number + 1]):
            continue
        if point != found[-1]:
            found.append(point)
    return found


def _turns_back(before: Point, point: Point, after: Point) -> bool:
    one, other = np.subtract(point, before), np.subtract(after, point)
    lengths = np.hypot(*one), np.hypot(*other)
    return not all(lengths) or float(np.hypot(*(one / lengths[0] + other / lengths[1]))) < TURNS_BACK
