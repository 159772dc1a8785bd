"""The tables of all crossings of lane links (docs/cityflow-semantics.md, section 2.4), for many intersections at once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streetflow.kernels.polyline_crossings import find_crossings
from streetflow.kernels.tables import WORD_BITS
from streetflow.roadnet.crossings import SMALL_SORT, Crossing, sort_like_libstdcxx
from streetflow.roadnet.kept_arrays import find_kept, keep, key_of
from streetflow.roadnet.polylines import Polylines


def crossing_columns(shapes: Polylines, link_first: NDArray[np.int32], n_words: int) -> dict[str, NDArray[Any]]:
    """By lane link, which others cross it and where; lane links of one shape share their rows.

    Args:
        shapes: by lane link number.
        link_first: int32[intersections + 1], each intersection's first lane link.
        n_words: int32 words that hold the bits of one intersection's lane links.
    """
    inputs = [np.ascontiguousarray(each).data.cast("B") for each in (shapes.first, shapes.x, shapes.y, link_first)]
    key = key_of("crossings", sum(map(len, inputs)), *inputs, bytes(str(n_words), "ascii"))
    columns = find_kept(key)
    if columns is None:
        columns = _find_columns(shapes, link_first, n_words)
        keep(key, columns)
    return columns


def _find_columns(shapes: Polylines, link_first: NDArray[np.int32], n_words: int) -> dict[str, NDArray[Any]]:
    link, other_link, own_m, other_m = _all_crossings(shapes, link_first)
    first = np.searchsorted(link, np.arange(len(shapes) + 1))  # link is in ascending order
    rank = _ranks(link, first, own_m)
    by_other = np.lexsort((other_link, link))
    conflicts = np.zeros((len(shapes), n_words), np.int32)
    np.add.at(conflicts, (link, other_link // WORD_BITS), np.int32(1) << (other_link % WORD_BITS).astype(np.int32))
    kept, crossing_first = _shared_rows(first, rank[by_other], own_m[by_other], other_m[by_other])
    return {
        "conflicts": conflicts.ravel(),
        "crossing_first": np.array(crossing_first, np.int32),
        "crossing_rank": rank[by_other][kept],
        "crossing_m": np.stack((own_m[by_other][kept], other_m[by_other][kept]), axis=1).ravel(),
    }


def _all_crossings(
    shapes: Polylines, link_first: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Lane link, the other one (within its intersection) and both distances of each crossing, in CityFlow's order."""
    most = int(np.diff(link_first).max(initial=0))
    n_pairs = most * (most - 1) // 2
    found_i, found_j = np.zeros(n_pairs, np.int64), np.zeros(n_pairs, np.int64)
    found_own, found_other = np.zeros(n_pairs), np.zeros(n_pairs)
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]] = []
    for begin, end in pairwise(link_first.tolist()):
        if end > begin:
            some = shapes[begin:end]
            n = find_crossings(some.x, some.y, some.first, found_i, found_j, found_own, found_other)
            i, j, own, other = found_i[:n], found_j[:n], found_own[:n], found_other[:n]
            parts.append((_both(i, j) + begin, _both(j, i), _both(own, other), _both(other, own)))
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    link, other_link, own_m, other_m = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(link, kind="stable")
    return link[order], other_link[order], own_m[order], other_m[order]


def _both(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    return np.stack((one, other), axis=1).ravel()


def _ranks(link: NDArray[np.int64], first: NDArray[np.int64], own_m: NDArray[np.float64]) -> NDArray[np.int64]:
    """int64[crossings]: rank along its lane link, 0 is met first; in CityFlow's order where two are at one distance."""
    order = np.lexsort((own_m, link))  # stable, as CityFlow's sort is for few crossings
    rank = np.empty(link.size, np.int64)
    rank[order] = np.arange(link.size) - first[link[order]]
    is_new = np.ones(link.size, bool)
    is_new[1:] = (own_m[order][1:] != own_m[order][:-1]) | (link[order][1:] != link[order][:-1])
    n_values = np.bincount(link[order][is_new], minlength=first.size - 1)
    place = np.empty(link.size, np.int32)  # equal for equal distances
    place[order] = np.cumsum(is_new)
    known: dict[bytes, NDArray[np.int64]] = {}
    counts = np.diff(first)
    for k in np.flatnonzero((counts > SMALL_SORT) & (n_values < counts)):
        rows = slice(first[k], first[k + 1])
        of_link = place[rows] - place[rows].min()
        key = of_link.tobytes()
        if key not in known:
            crossings = [Crossing(at, number, 0.0) for number, at in enumerate(of_link.tolist())]
            sort_like_libstdcxx(crossings)
            known[key] = np.argsort([crossing.other_link for crossing in crossings])
        rank[rows] = known[key]
    return rank


def _shared_rows(
    first: NDArray[np.int64], rank: NDArray[np.int64], own_m: NDArray[np.float64], other_m: NDArray[np.float64]
) -> tuple[NDArray[np.int64], list[int]]:
    """The rows to keep, and where those of each lane link begin among them."""
    rows = np.stack((rank.astype(np.float64), own_m, other_m), axis=1)
    first_of_equal: dict[bytes, int] = {}
    kept: list[NDArray[np.int64]] = []
    crossing_first = []
    n_kept = 0
    for begin, end in pairwise(first.tolist()):
        at = first_of_equal.setdefault(rows[begin:end].tobytes(), n_kept)
        crossing_first.append(at)
        if at == n_kept:
            kept.append(np.arange(begin, end))
            n_kept += end - begin
    return np.concatenate(kept) if kept else np.zeros(0, np.int64), crossing_first
