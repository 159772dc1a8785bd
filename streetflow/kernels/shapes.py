"""Lengths of polylines and curves between lanes, many at once (docs/cityflow-semantics.md, sections 2.2 and 2.3).

`streetflow.roadnet.geometry` has the same for one of them in plain Python.
"""

from __future__ import annotations

import math

from streetflow.kernels.jit import entry_point, helper

CURVE_POINTS = 11
_MIN_HANDLE_M = 5.0


@helper
def _length(x, y):  # type: ignore[no-untyped-def]
    return math.sqrt(x * x + y * y)


@entry_point
def polyline_lengths(first, x, y, length):  # type: ignore[no-untyped-def]
    """length[i]: of the polyline with the points first[i] .. first[i + 1] - 1, m."""
    for i in range(length.size):
        total = 0.0
        for k in range(first[i] + 1, first[i + 1]):
            total += _length(x[k] - x[k - 1], y[k] - y[k - 1])
        length[i] = total


@helper
def _point_at(x, y, begin, end, distance):  # type: ignore[no-untyped-def]
    """The point at a distance along the polyline of the points begin .. end - 1, clamped to its ends."""
    length = 0.0
    for k in range(begin + 1, end):
        length += _length(x[k] - x[k - 1], y[k] - y[k - 1])
    if distance < 0.0:
        distance = 0.0
    if length < distance:
        distance = length
    if distance <= 0.0:
        return x[begin], y[begin]
    for k in range(begin + 1, end):
        sx = x[k] - x[k - 1]
        sy = y[k] - y[k - 1]
        segment = _length(sx, sy)
        if distance > segment:
            distance -= segment
        else:
            share = distance / segment
            return x[k - 1] + sx * share, y[k - 1] + sy * share
    return x[end - 1], y[end - 1]


@helper
def _direction_at(x, y, begin, end, distance):  # type: ignore[no-untyped-def]
    """The unit direction at a distance along it; not finite where that has no direction."""
    sx = 0.0
    sy = 0.0
    segment = 0.0
    for k in range(begin + 1, end):
        sx = x[k] - x[k - 1]
        sy = y[k] - y[k - 1]
        segment = _length(sx, sy)
        if distance < segment:
            return sx / segment, sy / segment
        distance -= segment
    return sx / segment, sy / segment


@helper
def _handle(dx, dy, length, sign, width):  # type: ignore[no-untyped-def]
    hx = sign * dx * length * 0.5
    hy = sign * dy * length * 0.5
    if hx * hx + hy * hy < 25 and width >= _MIN_HANDLE_M:
        hx = _MIN_HANDLE_M * dx
        hy = _MIN_HANDLE_M * dy
    return hx, hy


@helper
def _lerp(p, q, t):  # type: ignore[no-untyped-def]
    return (q - p) * t + p


@helper
def _bezier(p, m1, m2, q, t):  # type: ignore[no-untyped-def]
    p1 = _lerp(p, m1, t)
    p2 = _lerp(m1, m2, t)
    p3 = _lerp(m2, q, t)
    return _lerp(_lerp(p1, p2, t), _lerp(p2, p3, t), t)


@entry_point
def curves(first, x, y, start_lane, end_lane, w1, w2, out, curve_x, curve_y):  # type: ignore[no-untyped-def]
    """Fill in the points of each curve between two uncut lanes, from curve_x[out[i]] on. False where one has no direction.

    w1, w2: float64[curves], m; see `streetflow.roadnet.geometry.curve`.
    """
    for i in range(start_lane.size):
        a = first[start_lane[i]]
        a_end = first[start_lane[i] + 1]
        b = first[end_lane[i]]
        b_end = first[end_lane[i] + 1]
        total = 0.0
        for k in range(a + 1, a_end):
            total += _length(x[k] - x[k - 1], y[k] - y[k - 1])
        at = total - w1[i]
        sx, sy = _point_at(x, y, a, a_end, at)
        dx, dy = _direction_at(x, y, a, a_end, at)
        ex, ey = _point_at(x, y, b, b_end, w2[i])
        fx, fy = _direction_at(x, y, b, b_end, w2[i])
        if not (math.isfinite(dx) and math.isfinite(dy) and math.isfinite(fx) and math.isfinite(fy)):
            return False
        length = _length(ex - sx, ey - sy)
        gx, gy = _handle(dx, dy, length, 1.0, w1[i])
        hx, hy = _handle(fx, fy, length, -1.0, w2[i])
        for n in range(CURVE_POINTS):
            t = n / 10.0
            curve_x[out[i] + n] = _bezier(sx, sx + gx, ex + hx, ex, t)
            curve_y[out[i] + n] = _bezier(sy, sy + gy, ey + hy, ey, t)
    return True
