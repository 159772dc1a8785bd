"""Crossings of lane links: distances, and the order of ties that libstdc++'s std::sort leaves."""

from __future__ import annotations

import pytest

from streetflow.roadnet.crossings import Crossing, intersection_crossings, sort_like_libstdcxx
from streetflow.roadnet.geometry import curve, direction_at, point_at, polyline_length

# Positions after std::sort (g++ 12) of n items with the keys of `keys(n, n_keys)`, by key alone.
SORTED_BY_LIBSTDCXX = {
    (16, 3): [1, 2, 3, 4, 9, 12, 5, 10, 15, 0, 6, 7, 8, 11, 13, 14],
    (24, 3): [12, 23, 21, 9, 4, 1, 2, 3, 5, 20, 15, 10, 11, 0, 13, 14, 16, 17, 18, 19, 8, 7, 22, 6],
    (40, 5): [
        35, 5, 22, 8, 18, 14, 1, 39, 37, 26, 23, 21, 17, 15, 9, 16, 11, 33, 7, 32,
        24, 30, 28, 27, 0, 2, 3, 31, 13, 6, 29, 4, 25, 20, 34, 19, 36, 10, 38, 12,
    ],
}  # fmt: skip


def keys(n: int, n_keys: int) -> list[float]:
    x, result = 1, []
    for _ in range(n):
        x = (x * 1103515245 + 12345) % 2**32
        result.append(float((x >> 16) % n_keys))
    return result


@pytest.mark.parametrize(("n", "n_keys"), SORTED_BY_LIBSTDCXX)
def test_ties_are_sorted_as_by_libstdcxx(n: int, n_keys: int) -> None:
    items = [Crossing(key, i, 0.0) for i, key in enumerate(keys(n, n_keys))]
    stable = sorted(items, key=lambda c: c.own_m)
    sort_like_libstdcxx(items)
    assert [c.other_link for c in items] == SORTED_BY_LIBSTDCXX[n, n_keys]
    assert (items == stable) == (n <= 16)


def test_crossing_distances() -> None:
    flat = [(0.0, 0.0), (4.0, 0.0), (10.0, 0.0)]
    upright = [(6.0, -3.0), (6.0, 5.0)]
    fork = [(0.0, 0.0), (0.0, 8.0)]
    apart = [(0.0, 20.0), (10.0, 20.0)]
    by_flat, by_upright, by_fork, by_apart = intersection_crossings([flat, upright, fork, apart])
    assert by_flat == [Crossing(0.0, 2, 0.0), Crossing(6.0, 1, 3.0)]
    assert by_upright == [Crossing(3.0, 0, 6.0)]
    assert by_fork == [Crossing(0.0, 0, 0.0)]
    assert by_apart == []


def test_parallel_segments_are_skipped_without_their_length() -> None:
    """A quirk that is kept: the other link's first segment is parallel, so its 4 m are missing in the distance."""
    flat = [(0.0, 0.0), (10.0, 0.0)]
    bent = [(1.0, 2.0), (5.0, 2.0), (5.0, -2.0)]
    assert intersection_crossings([flat, bent])[0] == [Crossing(5.0, 1, 2.0)]


def test_points_and_directions_along_a_polyline() -> None:
    line = [(0.0, 0.0), (3.0, 4.0), (3.0, 10.0)]
    assert polyline_length(line) == 11.0
    assert [point_at(line, d) for d in (-1.0, 0.0, 2.5, 5.0, 8.0, 99.0)] == [
        (0.0, 0.0), (0.0, 0.0), (1.5, 2.0), (3.0, 4.0), (3.0, 7.0), (3.0, 10.0),
    ]  # fmt: skip
    assert [direction_at(line, d) for d in (0.0, 5.0, 99.0)] == [(0.6, 0.8), (0.0, 1.0), (0.0, 1.0)]


def test_a_straight_curve() -> None:
    """Both lanes on one line, 20 m apart: the control points are -10, 0, 0 and 10."""
    start, end = [(-50.0, 0.0), (0.0, 0.0)], [(0.0, 0.0), (50.0, 0.0)]
    points = curve(start, end, 10.0, 10.0)
    assert len(points) == 11 and points[0] == (-10.0, 0.0) and points[-1] == (10.0, 0.0)
    assert [y for _, y in points] == [0.0] * 11
    assert [x for x, _ in points] == pytest.approx([-10 + 30 * t - 30 * t**2 + 20 * t**3 for t in (i / 10 for i in range(11))])


def test_short_arms_of_a_curve_point_forwards_at_both_ends() -> None:
    """A quirk that is kept: arms under 5 m become 5 m along the lane's direction, the end's not reversed."""
    start, end = [(-50.0, 0.0), (4.0, 0.0)], [(-4.0, 0.0), (50.0, 0.0)]
    middle = curve(start, end, 5.0, 5.0)[5]  # control points -1, -1 + 5, 1 + 5, 1
    assert middle == ((-1 + 3 * 4 + 3 * 6 + 1) / 8, 0.0)
    thin = curve([(-50.0, 0.0), (3.0, 0.0)], [(-3.0, 0.0), (50.0, 0.0)], 4.0, 4.0)[5]  # width under 5: no quirk
    assert thin == (0.0, 0.0)
