"""Shapes of lanes and lane links (docs/cityflow-semantics.md, sections 2.1 to 2.3), in plain scalar arithmetic.

Order of operations matters to the last bit: nothing here may be re-associated or vectorised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from streetflow.errors import InputError
from streetflow.roadnet.reader import Point, Road, Roadnet

LANE_LINK_SPEED_LIMIT_MPS = 10000.0
_N_CURVE_STEPS = 10
_MIN_HANDLE_M = 5.0


def _difference(p: Point, q: Point) -> Point:
    return p[0] - q[0], p[1] - q[1]


def vector_length(v: Point) -> float:
    return math.sqrt(v[0] * v[0] + v[1] * v[1])


def unit(v: Point) -> Point:
    """The unit vector; ZeroDivisionError for a vector of length 0."""
    length = vector_length(v)
    return v[0] / length, v[1] / length


def polyline_length(points: Sequence[Point]) -> float:
    length = 0.0
    for k in range(1, len(points)):
        length += vector_length(_difference(points[k], points[k - 1]))
    return length


def point_at(points: Sequence[Point], distance: float) -> Point:
    """The point at a distance along a polyline, clamped to its ends."""
    length = polyline_length(points)
    distance = max(distance, 0.0)
    distance = min(distance, length)
    if distance <= 0.0:
        return points[0]
    for k in range(1, len(points)):
        segment = _difference(points[k], points[k - 1])
        segment_length = vector_length(segment)
        if distance > segment_length:
            distance -= segment_length
        else:
            share = distance / segment_length
            return points[k - 1][0] + segment[0] * share, points[k - 1][1] + segment[1] * share
    return points[-1]


def direction_at(points: Sequence[Point], distance: float) -> Point:
    """The unit direction at a distance along a polyline.

    ZeroDivisionError if that is beyond its end, and its last segment has length 0.
    """
    for k in range(1, len(points)):
        segment = _difference(points[k], points[k - 1])
        segment_length = vector_length(segment)
        if distance < segment_length:
            return unit(segment)
        distance -= segment_length
    return unit(_difference(points[-1], points[-2]))


def _shortened(road: Road, start_width: float | None, end_width: float | None) -> list[Point]:
    points = list(road.points)
    if start_width is not None:
        u = unit(_difference(points[1], points[0]))
        points[0] = points[0][0] + u[0] * start_width, points[0][1] + u[1] * start_width
    if end_width is not None:
        u = unit(_difference(points[-1], points[-2]))
        points[-1] = points[-1][0] - u[0] * end_width, points[-1][1] - u[1] * end_width
    return points


def lane_shapes(road: Road, start_width: float | None = None, end_width: float | None = None) -> list[list[Point]]:
    """The points of each lane of a road. A width of None: that end isn't shortened (virtual intersection)."""
    centre = _shortened(road, start_width, end_width)
    last = len(centre) - 1
    directions = [unit(_difference(centre[k + 1], centre[k])) for k in range(last)]
    at_points = []
    for k in range(len(centre)):
        if k == 0:
            u = directions[0]
        elif k == last:
            u = directions[-1]
        else:
            u = unit((directions[k][0] + directions[k - 1][0], directions[k][1] + directions[k - 1][1]))
        at_points.append(u)
    shapes = []
    inner = 0.0
    for width in road.lane_widths_m:
        offset = (inner + (inner + width)) / 2.0
        inner += width
        shapes.append([(p[0] + u[1] * offset, p[1] + -u[0] * offset) for p, u in zip(centre, at_points, strict=True)])
    return shapes


def roadnet_lane_shapes(roadnet: Roadnet) -> list[list[Point]]:
    """The points of every lane, by lane number. InputError where shortening leaves a segment of length 0."""
    shapes: list[list[Point]] = []
    for number, road in enumerate(roadnet.roads):
        start = roadnet.intersections[road.start_intersection]
        end = roadnet.intersections[road.end_intersection]
        try:
            of_road = lane_shapes(road, None if start.virtual else start.width_m, None if end.virtual else end.width_m)
        except ZeroDivisionError:
            fault = "a segment has length 0 once the intersections' widths are cut off, or the road turns back"
            raise InputError(roadnet.file, f"roads[{number}].points", fault) from None
        for lane, shape in enumerate(of_road):
            if not 0.0 < polyline_length(shape) < math.inf:
                place = f"roads[{number}].lanes[{lane}]"
                raise InputError(roadnet.file, place, "the lane's length isn't positive and finite")
        shapes += of_road
    return shapes


def _lerp(p: Point, q: Point, t: float) -> Point:
    return (q[0] - p[0]) * t + p[0], (q[1] - p[1]) * t + p[1]


def _handle(direction: Point, length: float, sign: float, width: float) -> Point:
    """A control arm of the curve. When it would be short it becomes 5 m along the direction, unsigned."""
    handle = sign * direction[0] * length * 0.5, sign * direction[1] * length * 0.5
    if handle[0] * handle[0] + handle[1] * handle[1] < 25 and width >= _MIN_HANDLE_M:
        handle = _MIN_HANDLE_M * direction[0], _MIN_HANDLE_M * direction[1]
    return handle


def curve(start_lane: Sequence[Point], end_lane: Sequence[Point], w1: float, w2: float) -> list[Point]:
    """The computed shape of a lane link between two uncut lanes: 11 points of a cubic Bezier curve.

    w1: width of the start lane's end intersection; w2: of the end lane's start intersection, in m.
    """
    at = polyline_length(start_lane) - w1
    s, d_s = point_at(start_lane, at), direction_at(start_lane, at)
    e, d_e = point_at(end_lane, w2), direction_at(end_lane, w2)
    length = vector_length(_difference(e, s))
    g1 = _handle(d_s, length, 1.0, w1)
    g2 = _handle(d_e, length, -1.0, w2)
    m1 = s[0] + g1[0], s[1] + g1[1]
    m2 = e[0] + g2[0], e[1] + g2[1]
    points = []
    for i in range(_N_CURVE_STEPS + 1):
        t = i / 10.0
        p1, p2, p3 = _lerp(s, m1, t), _lerp(m1, m2, t), _lerp(m2, e, t)
        points.append(_lerp(_lerp(p1, p2, t), _lerp(p2, p3, t), t))
    return points
