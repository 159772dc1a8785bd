"""A road network prepared for an engine: lengths, crossings, phases, routes; cached in the process by file."""

from __future__ import annotations

import math
import os
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streetflow.collection import no_collection
from streetflow.errors import InputError
from streetflow.kernels.tables import WORD_BITS, State
from streetflow.roadnet.crossing_columns import crossing_columns
from streetflow.roadnet.geometry import LANE_LINK_SPEED_LIMIT_MPS, polyline_length, roadnet_lane_shapes
from streetflow.roadnet.link_shapes import roadnet_link_shapes
from streetflow.roadnet.oddities import Oddity, roadnet_oddities
from streetflow.roadnet.polylines import Polylines
from streetflow.roadnet.reader import LaneLink, RoadLink, Roadnet, read_roadnet
from streetflow.roadnet.routing import Router

SEGMENT_M = 70.0  # lanes are cut into segments of at most this length for lane changing
MOST_SEGMENTS = 10_000


@dataclass(frozen=True)
class NetworkTables:
    """All that engines on one road network share. Arrays are never written to."""

    file: Path  # absolute
    roadnet: Roadnet
    router: Router
    lane_shapes: Polylines
    link_shapes: Polylines
    links: list[tuple[int, RoadLink, LaneLink]]  # intersection, road link, lane link
    sizes: dict[str, int]
    arrays: dict[str, NDArray[np.generic]]  # by field name of State
    link_ids: tuple[str, ...]
    oddities: tuple[Oddity, ...]

    def fill(self, state: State) -> None:
        for name, values in self.arrays.items():
            getattr(state, name)[:] = values


_cache: dict[Path, tuple[tuple[int, int], NetworkTables]] = {}
_lock = threading.Lock()


@no_collection()
def load_network(path: str | Path) -> NetworkTables:
    """The tables of a road network file, built once per process and file version. InputError on bad input."""
    key = Path(path).absolute()
    try:
        stat = os.stat(key)
    except (OSError, ValueError):
        return _build(read_roadnet(path), key)  # raises InputError with the reason
    version = (stat.st_mtime_ns, stat.st_size)
    with _lock:
        known = _cache.get(key)
    if known is not None and known[0] == version:
        return known[1]
    tables = _build(read_roadnet(path), key)
    with _lock:
        _cache[key] = version, tables
    return tables


def lane_segments(roadnet: Roadnet, file: str | Path) -> NDArray[np.int32]:
    """For lane changing, int32[lanes + 1]: where each lane's segments start, and how many there are in all.

    InputError for a road of more than 700 km.
    """
    counts = []
    for i, road in enumerate(roadnet.roads):
        length_m = polyline_length(road.points)
        if not length_m <= MOST_SEGMENTS * SEGMENT_M:
            raise InputError(file, f"roads[{i}].points", f"are {length_m:g} m long: too long to change lanes on")
        counts += [max(math.ceil(length_m / SEGMENT_M), 1)] * road.n_lanes
    return _prefix(counts)


def _prefix(counts: list[int]) -> NDArray[np.int32]:
    sums = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=sums[1:])
    return sums


def _build(roadnet: Roadnet, file: Path) -> NetworkTables:
    lane_shapes = Polylines.of(roadnet_lane_shapes(roadnet))
    link_shapes = roadnet_link_shapes(roadnet)
    lane_lengths, link_lengths = lane_shapes.length_m, link_shapes.length_m
    n_lanes, n_links = len(lane_shapes), len(link_shapes)
    links = [
        (i, road_link, lane_link)
        for i, intersection in enumerate(roadnet.intersections)
        for road_link in intersection.road_links
        for lane_link in road_link.lane_links
    ]
    per_intersection = [sum(len(each.lane_links) for each in one.road_links) for one in roadnet.intersections]
    link_first = _prefix(per_intersection)
    n_words = max([1, *(-(-n // WORD_BITS) for n in per_intersection)])
    ints: dict[str, ArrayLike] = {
        **_link_columns(n_lanes, links),
        **_conflict_bits(links, link_first, n_words),
        **_phase_columns(roadnet, link_first),
        "link_first": link_first,
        "beside_first": [int(link_first[i]) for i, _, _ in links],
        "word_first": [i * n_words for i, _, _ in links],
    }
    crossings = crossing_columns(link_shapes, link_first, n_words)
    ints |= {name: crossings[name] for name in ("conflicts", "crossing_first", "crossing_rank")}
    speed_limits = [v for road in roadnet.roads for v in road.lane_max_speeds_mps]
    reals: dict[str, ArrayLike] = {
        "length": np.concatenate((lane_lengths, link_lengths)),
        "lane_width": [width for road in roadnet.roads for width in road.lane_widths_m],
        "speed_limit": speed_limits + [LANE_LINK_SPEED_LIMIT_MPS] * n_links,
        "crossing_m": crossings["crossing_m"],
        "phase_time": [phase.time_s for intersection in roadnet.intersections for phase in intersection.phases],
    }
    arrays: dict[str, NDArray[np.generic]] = {name: np.array(v, np.int32) for name, v in ints.items()}
    arrays.update({name: np.array(v, np.float64) for name, v in reals.items()})
    link_ids = (f"{roadnet.lane_ids[link.start_lane]}_TO_{roadnet.lane_ids[link.end_lane]}" for _, _, link in links)
    return NetworkTables(
        file=file,
        roadnet=roadnet,
        router=Router(roadnet, lane_lengths.tolist()),
        lane_shapes=lane_shapes,
        link_shapes=link_shapes,
        links=links,
        sizes=_sizes(arrays, n_lanes, n_links, len(roadnet.intersections), n_words),
        arrays=arrays,
        link_ids=tuple(link_ids),
        oddities=roadnet_oddities(roadnet, link_lengths.tolist()),
    )


_Links = list[tuple[int, RoadLink, LaneLink]]


def _link_columns(n_lanes: int, links: _Links) -> dict[str, ArrayLike]:
    """The lanes that each lane link joins, and the lane links that leave each lane."""
    lane_out: list[list[int]] = [[] for _ in range(n_lanes)]
    for k, (_, _, lane_link) in enumerate(links):
        lane_out[lane_link.start_lane].append(n_lanes + k)
    return {
        "out_first": _prefix([len(of_lane) for of_lane in lane_out]),
        "out_links": [k for of_lane in lane_out for k in of_lane],
        "start_lane": [lane_link.start_lane for _, _, lane_link in links],
        "end_lane": [lane_link.end_lane for _, _, lane_link in links],
        "rank": [road_link.rank for _, road_link, _ in links],
        "is_turn": [int(road_link.is_turn) for _, road_link, _ in links],
    }


def _conflict_bits(links: _Links, link_first: NDArray[np.int32], n_words: int) -> dict[str, ArrayLike]:
    """Each lane link's own bit among those of its intersection."""
    own = [k - int(link_first[i]) for k, (i, _, _) in enumerate(links)]
    return {
        "bit_word": [i * n_words + bit // WORD_BITS for bit, (i, _, _) in zip(own, links, strict=True)],
        "bit_mask": [1 << bit % WORD_BITS for bit in own],
    }


def _phase_columns(roadnet: Roadnet, link_first: NDArray[np.int32]) -> dict[str, ArrayLike]:
    """By phase, the lane links that it opens."""
    phase_links: list[list[int]] = []
    for i, intersection in enumerate(roadnet.intersections):
        within = _prefix([len(road_link.lane_links) for road_link in intersection.road_links])
        for phase in intersection.phases:
            open_links = sorted(int(link_first[i]) + k for r in set(phase.road_links) for k in range(within[r], within[r + 1]))
            phase_links.append(open_links)
    return {
        "phase_first": _prefix([len(intersection.phases) for intersection in roadnet.intersections]),
        "phase_link_first": _prefix([len(of_phase) for of_phase in phase_links]),
        "phase_links": [k for of_phase in phase_links for k in of_phase],
    }


def _sizes(
    arrays: dict[str, NDArray[np.generic]], n_lanes: int, n_links: int, n_intersections: int, n_words: int
) -> dict[str, int]:
    """The sizes that the fields of `State` name."""
    n_phases = arrays["phase_time"].size
    return {
        "lanes": n_lanes,
        "lanes_1": n_lanes + 1,
        "links": n_links,
        "links_1": n_links + 1,
        "drivables": n_lanes + n_links,
        "drivable_words": -(-(n_lanes + n_links) // WORD_BITS),
        "lane_words": -(-n_lanes // WORD_BITS),
        "link_words": n_links * n_words,
        "crossings": arrays["crossing_rank"].size,
        "crossings_2": arrays["crossing_m"].size,
        "intersections": n_intersections,
        "intersections_1": n_intersections + 1,
        "intersection_words": n_intersections * n_words,
        "phases": n_phases,
        "phases_1": n_phases + 1,
        "phase_links": arrays["phase_links"].size,
    }
