"""Points and directions at distances along polylines (docs/cityflow-semantics.md, section 2.2), operation by operation as
`streetflow.roadnet.geometry` computes them.

Polyline i has the points first[i] .. first[i + 1] - 1; segments are numbered by the point where they end.
"""

from __future__ import annotations

from streetflow.kernels.jit import entry_point, helper


@helper
def point_at(shapes, length_m, drivable, distance_m):  # type: ignore[no-untyped-def]
    """The point at a distance along a polyline, clamped to its ends. shapes: first, x, y and the lengths of the segments."""
    first, x, y, segment_m = shapes
    left = min(max(distance_m, 0.0), length_m[drivable])
    k, last = first[drivable], first[drivable + 1] - 1
    if left <= 0.0:
        return x[k], y[k]
    while k < last:
        k += 1
        if left > segment_m[k]:
            left -= segment_m[k]
        else:
            share = left / segment_m[k]
            return x[k - 1] + (x[k] - x[k - 1]) * share, y[k - 1] + (y[k] - y[k - 1]) * share
    return x[last], y[last]


@helper
def segment_at(first, segment_m, drivable, distance_m):  # type: ignore[no-untyped-def]
    """The number of the segment at a distance, whose direction is that of the polyline there."""
    k, last, left = first[drivable] + 1, first[drivable + 1] - 1, distance_m
    while k < last and not left < segment_m[k]:
        left -= segment_m[k]
        k += 1
    return k


@entry_point
def find_places(first, x, y, segment_m, length_m, polyline, distance_m, place_m, segment):  # type: ignore[no-untyped-def]
    """The point (place_m: float64[n, 2]) and the segment (int64[n]) at distance_m[i] along polyline[i], for all i."""
    shapes = (first, x, y, segment_m)
    for i in range(polyline.size):
        place_m[i, 0], place_m[i, 1] = point_at(shapes, length_m, polyline[i], distance_m[i])
        segment[i] = segment_at(first, segment_m, polyline[i], distance_m[i])
