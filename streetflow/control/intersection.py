"""The signalled intersections of a road network, as lane and phase numbers.

"Signalled" and the order of lanes are those of the paper's experiment: an intersection that isn't virtual and has
more than one phase; its actions are the phases that open anything, in file order; its in-lanes and out-lanes are the
lanes of the start and end roads of its road links, in road-link order, each road once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from streetflow.errors import InputError
from streetflow.roadnet import reader
from streetflow.roadnet.reader import Roadnet

T = TypeVar("T")


@dataclass(frozen=True)
class Intersection:
    """One signalled intersection. Lanes are the engine's lane numbers, phases its phase numbers."""

    id: str
    number: int
    """Intersection number in the engine (position in the file)."""
    phase_count: int
    """Phases in the file, those that open nothing included."""
    phases: tuple[int, ...]
    """Phase of each action."""
    in_roads: tuple[str, ...]
    out_roads: tuple[str, ...]
    in_lanes: tuple[int, ...]
    """Lanes of the in-roads, road by road; so are ``out_lanes``."""
    out_lanes: tuple[int, ...]
    in_road_lanes: tuple[tuple[int, ...], ...]
    """The in-lanes again, per in-road."""
    out_road_lanes: tuple[tuple[int, ...], ...]
    """The out-lanes again, per out-road."""
    lane_links: tuple[tuple[int, int], ...]
    """(in-lane, out-lane) of each lane link, in file order."""
    first_lane_link: int
    """The engine's number of the first of them, counted over all intersections of the file; the others follow it."""
    centre_m: tuple[float, float]
    """Position of the intersection in the file, m."""
    phase_lane_links: tuple[tuple[int, ...], ...]
    """Per action: the lane links that it opens, as indices into ``lane_links``, ascending."""

    @property
    def action_count(self) -> int:
        return len(self.phases)

    @property
    def phase_in_lanes(self) -> tuple[tuple[int, ...], ...]:
        """Per action: the in-lanes that it serves, each once, in the order of the lane links."""
        return tuple(_unique(self.lane_links[link][0] for link in links) for links in self.phase_lane_links)


def is_signalled(intersection: reader.Intersection) -> bool:
    """Whether there is anything to control."""
    return not intersection.virtual and len(intersection.phases) > 1


def signalled_intersections(roadnet: Roadnet) -> tuple[Intersection, ...]:
    """All signalled intersections of a road network, in file order.

    Raises InputError if it has none, or one without anything to choose from.
    """
    counts = [sum(len(road_link.lane_links) for road_link in each.road_links) for each in roadnet.intersections]
    first_links = [0, *accumulate(counts)]
    found = tuple(
        _tabulate(number, first_links[number], each, roadnet)
        for number, each in enumerate(roadnet.intersections)
        if is_signalled(each)
    )
    if not found:
        raise InputError(roadnet.file, "intersections", "none has more than one phase: nothing to control")
    for each in found:
        if not each.phases:
            place = f"intersections[{each.number}].trafficLight.lightphases"
            raise InputError(roadnet.file, place, "no phase opens anything: nothing to choose from")
    return found


def _tabulate(number: int, first_lane_link: int, read: reader.Intersection, net: Roadnet) -> Intersection:
    lane_links: list[tuple[int, int]] = []
    links_of_road_link: list[range] = []
    for road_link in read.road_links:
        first = len(lane_links)
        lane_links += [(link.start_lane, link.end_lane) for link in road_link.lane_links]
        links_of_road_link.append(range(first, len(lane_links)))
    in_roads = _unique(road_link.start_road for road_link in read.road_links)
    out_roads = _unique(road_link.end_road for road_link in read.road_links)
    opened = [sorted(set(phase.road_links)) for phase in read.phases]
    actions = tuple(p for p, road_links in enumerate(opened) if road_links)
    return Intersection(
        id=read.id,
        number=number,
        phase_count=len(read.phases),
        phases=actions,
        in_roads=tuple(net.roads[road].id for road in in_roads),
        out_roads=tuple(net.roads[road].id for road in out_roads),
        in_lanes=_lanes(in_roads, net),
        out_lanes=_lanes(out_roads, net),
        in_road_lanes=tuple(_lanes((road,), net) for road in in_roads),
        out_road_lanes=tuple(_lanes((road,), net) for road in out_roads),
        lane_links=tuple(lane_links),
        first_lane_link=first_lane_link,
        centre_m=read.point,
        phase_lane_links=tuple(
            tuple(link for road_link in opened[p] for link in links_of_road_link[road_link]) for p in actions
        ),
    )


def _lanes(roads: Iterable[int], net: Roadnet) -> tuple[int, ...]:
    first_and_count = ((net.roads[road].first_lane, net.roads[road].n_lanes) for road in roads)
    return tuple(lane for first, count in first_and_count for lane in range(first, first + count))


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


def neighbours(intersections: Sequence[Intersection], index: int) -> list[int]:
    """Signalled intersections that a road joins to this one, in either direction, in the network's order."""
    own = intersections[index]
    mine_in, mine_out = set(own.in_roads), set(own.out_roads)
    return [
        number
        for number, other in enumerate(intersections)
        if number != index and (mine_in & set(other.out_roads) or mine_out & set(other.in_roads))
    ]
