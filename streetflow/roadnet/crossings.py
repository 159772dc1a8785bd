"""Where the lane links of an intersection cross (docs/cityflow-semantics.md, section 2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streetflow.kernels.polyline_crossings import find_crossings
from streetflow.roadnet.reader import Point

SMALL_SORT = 16


@dataclass(frozen=True)
class Crossing:
    """A crossing on one lane link: its distance along it (m), the other lane link, its distance along that one (m)."""

    own_m: float
    other_link: int
    other_m: float


def intersection_crossings(shapes: Sequence[Sequence[Point]]) -> list[list[Crossing]]:
    """Per lane link of one intersection its crossings in CityFlow's order; other_link counts within shapes."""
    n_links = len(shapes)
    first = np.zeros(n_links + 1, np.int64)
    np.cumsum([len(shape) for shape in shapes], out=first[1:])
    points = np.array([p for shape in shapes for p in shape], np.float64).reshape(-1, 2)
    n_pairs = n_links * (n_links - 1) // 2
    found_i, found_j = np.zeros(n_pairs, np.int64), np.zeros(n_pairs, np.int64)
    found_own, found_other = np.zeros(n_pairs), np.zeros(n_pairs)
    x, y = np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1])
    n_found = find_crossings(x, y, first, found_i, found_j, found_own, found_other)
    crossings: list[list[Crossing]] = [[] for _ in shapes]
    for k in range(n_found):
        i, j, own, other = int(found_i[k]), int(found_j[k]), float(found_own[k]), float(found_other[k])
        crossings[i].append(Crossing(own, j, other))
        crossings[j].append(Crossing(other, i, own))
    for of_link in crossings:
        sort_like_libstdcxx(of_link)
    return crossings


def sort_like_libstdcxx(items: list[Crossing]) -> None:
    """Sort by own distance, with ties in the order that libstdc++'s std::sort leaves them in."""
    _introsort(items, 0, len(items))
    items.sort(key=lambda c: c.own_m)  # the closing insertion sort is stable


def _introsort(items: list[Crossing], first: int, last: int) -> None:
    while last - first > SMALL_SORT:
        _median_to_front(items, first, first + 1, first + (last - first) // 2, last - 1)
        cut = _partition(items, first + 1, last, items[first].own_m)
        _introsort(items, cut, last)
        last = cut


def _median_to_front(items: list[Crossing], front: int, a: int, b: int, c: int) -> None:
    of_a, of_b, of_c = items[a].own_m, items[b].own_m, items[c].own_m
    if not of_a < of_b:
        a, b, of_a, of_b = b, a, of_b, of_a
    median = b if of_b < of_c else c if of_a < of_c else a
    items[front], items[median] = items[median], items[front]


def _partition(items: list[Crossing], first: int, last: int, pivot: float) -> int:
    while True:
        while items[first].own_m < pivot:
            first += 1
        last -= 1
        while pivot < items[last].own_m:
            last -= 1
        if first >= last:
            return first
        items[first], items[last] = items[last], items[first]
        first += 1
