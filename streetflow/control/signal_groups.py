"""Signal groups of a crossing: what has a lamp head of its own, what may be green together, and for how long at least.

A signal group is a set of road links that every phase opens or closes together. Two groups are in conflict where lane links
of theirs cross, or lead from different lanes into one (or where the file says so, as those from SUMO do), and no phase opens
both. Where a phase does open both, the road network means one to yield (right turns to what goes straight, opposite left turns
to each other): such pairs are ``permitted``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, combinations

from streetflow.control.crosswalks import crosswalk_m
from streetflow.control.intersection import is_signalled
from streetflow.control.signal_times import SignalRules
from streetflow.errors import InputError
from streetflow.roadnet.crossings import intersection_crossings
from streetflow.roadnet.geometry import polyline_length
from streetflow.roadnet.network_tables import NetworkTables
from streetflow.roadnet.reader import Intersection

DEFAULT_RULES = SignalRules()


@dataclass(frozen=True)
class SignalGroup:
    """One signal group: its road links (numbers within the intersection, ascending) and its times."""

    road_links: tuple[int, ...]
    is_always_open: bool
    """Every phase opens it, as right turns mostly are: never red in operation, it yields."""
    is_served: bool
    """Some phase opens it. What none opens stays red for ever, and no call helps it."""
    yellow_s: float
    red_clearance_s: float
    min_green_s: float
    max_green_s: float
    walk_and_clearance_s: float
    """Of the crosswalk that goes with it; 0: none does."""


@dataclass(frozen=True)
class SignalPlan:
    """All that a controller of one crossing must know."""

    intersection: str
    number: int
    """Intersection number in the engine."""
    groups: tuple[SignalGroup, ...]
    phases: tuple[tuple[int, ...], ...]
    """Per action: the groups that it opens, ascending."""
    phase_numbers: tuple[int, ...]
    """Per action: the phase in the road network's file."""
    conflicts: frozenset[tuple[int, int]]
    """Pairs of groups, the smaller number first; so are ``permitted``."""
    permitted: frozenset[tuple[int, int]]
    in_lanes: tuple[int, ...]
    """The engine's numbers of the lanes that lead in, in the order of the lane links."""
    lane_groups: tuple[tuple[int, ...], ...]
    """Per in-lane: the groups that it can be left by, ascending."""
    longest_red_s: float
    walk_s: float

    def conflicts_of(self, group: int) -> frozenset[int]:
        """The groups that may never be green or yellow together with this one."""
        return frozenset(a + b - group for a, b in self.conflicts if group in (a, b))

    def change_s(self, start: int, end: int) -> float:
        """How long a change between two actions takes: the yellow of what ends, and its red clearance where what begins is in
        conflict with it."""
        leaving, entering = set(self.phases[start]) - set(self.phases[end]), set(self.phases[end]) - set(self.phases[start])
        needed_s = (
            self.groups[group].yellow_s + (self.groups[group].red_clearance_s if self.conflicts_of(group) & entering else 0.0)
            for group in leaving
        )
        return max(needed_s, default=0.0)

    def least_green_s(self, action: int) -> float:
        """How long an action stays at least: the minimum greens of its groups, and no less than the red clearances of all
        others, which a change into it may not have waited for."""
        within = set(self.phases[action])
        times = [
            each.min_green_s if number in within else each.red_clearance_s
            for number, each in enumerate(self.groups)
            if each.is_served
        ]
        return max(times)


def signal_plans(network: NetworkTables, rules: SignalRules = DEFAULT_RULES) -> tuple[SignalPlan, ...]:
    """The plans of all signalled crossings, in file order. InputError where a phase opens nothing but has to."""
    roadnet = network.roadnet
    counts = [sum(len(road_link.lane_links) for road_link in each.road_links) for each in roadnet.intersections]
    first_links = [0, *accumulate(counts)]
    return tuple(
        _plan(network, number, first_links[number], rules)
        for number, each in enumerate(roadnet.intersections)
        if is_signalled(each)
    )


def _plan(network: NetworkTables, number: int, first_link: int, rules: SignalRules) -> SignalPlan:
    read = network.roadnet.intersections[number]
    opened = [frozenset(phase.road_links) for phase in read.phases]
    actions = [phase for phase, road_links in enumerate(opened) if road_links]
    if not actions:
        place = f"intersections[{number}].trafficLight.lightphases"
        raise InputError(network.roadnet.file, place, "no phase opens anything: nothing to choose from")
    members: dict[tuple[bool, ...], list[int]] = {}
    for road_link in range(len(read.road_links)):
        members.setdefault(tuple(road_link in opened[action] for action in actions), []).append(road_link)
    groups = tuple(
        _group(network, number, first_link, (tuple(road_links), pattern), rules) for pattern, road_links in members.items()
    )
    phases = tuple(tuple(g for g, pattern in enumerate(members) if pattern[a]) for a in range(len(actions)))
    together = {pair for groups_open in phases for pair in combinations(groups_open, 2)}
    group_of = {road_link: g for g, road_links in enumerate(members.values()) for road_link in road_links}
    touching = {
        (min(group_of[a], group_of[b]), max(group_of[a], group_of[b]))
        for a, b in _touching(read, list(network.link_shapes[first_link:]))
        if group_of[a] != group_of[b]
    }
    links = [(group_of[number], link) for number, road_link in enumerate(read.road_links) for link in road_link.lane_links]
    in_lanes = tuple(dict.fromkeys(link.start_lane for _, link in links))
    return SignalPlan(
        intersection=read.id,
        number=number,
        groups=groups,
        phases=phases,
        phase_numbers=tuple(actions),
        conflicts=frozenset(touching - together),
        permitted=frozenset(touching & together),
        in_lanes=in_lanes,
        lane_groups=tuple(tuple(sorted({group for group, link in links if link.start_lane == lane})) for lane in in_lanes),
        longest_red_s=rules.longest_red_s,
        walk_s=rules.walk_s,
    )


def _group(
    network: NetworkTables,
    number: int,
    first_link: int,
    members: tuple[tuple[int, ...], tuple[bool, ...]],
    rules: SignalRules,
) -> SignalGroup:
    """members: its road links, and by action whether it is open."""
    read, roads = network.roadnet.intersections[number], network.roadnet.roads
    road_links, pattern = members
    first = [first_link, *accumulate((len(each.lane_links) for each in read.road_links), initial=first_link)][1:]
    ways: list[tuple[float, float, float]] = []  # of each lane link: length, speed before and within the crossing
    for road_link in road_links:
        movement = read.road_links[road_link]
        road = roads[movement.start_road]
        for k, link in enumerate(movement.lane_links):
            limit_mps = road.lane_max_speeds_mps[link.start_lane - road.first_lane]
            inside_mps = min(limit_mps, rules.turning_speed_mps) if movement.is_turn else limit_mps
            ways.append((polyline_length(network.link_shapes[first[road_link] + k]), limit_mps, inside_mps))
    walked_m = 0.0 if all(pattern) else crosswalk_m(network.roadnet, number, road_links, _opened_with(read, road_links))
    return SignalGroup(
        road_links=road_links,
        is_always_open=all(pattern),
        is_served=any(pattern),
        yellow_s=max((rules.yellow_s(limit) for _, limit, _ in ways), default=rules.least_yellow_s),
        red_clearance_s=max((rules.red_clearance_s(way, inside) for way, _, inside in ways), default=0.0),
        min_green_s=max((rules.min_green_s(way, inside) for way, _, inside in ways), default=rules.least_min_green_s),
        max_green_s=rules.max_green_s,
        walk_and_clearance_s=rules.walk_and_clearance_s(walked_m) if walked_m else 0.0,
    )


def _opened_with(read: Intersection, road_links: Iterable[int]) -> frozenset[int]:
    """Road links that some phase opens together with one of these."""
    own = set(road_links)
    return frozenset(each for phase in read.phases if own & set(phase.road_links) for each in phase.road_links)


def _touching(read: Intersection, shapes: list[list[tuple[float, float]]]) -> set[tuple[int, int]]:
    """Pairs of road links of which lane links cross, or lead from different lanes into one. Lane links that leave one lane part
    from each other: no conflict. What the file says of conflicts goes before."""
    if read.conflicts is not None:
        return set(read.conflicts)
    links = [(number, link) for number, road_link in enumerate(read.road_links) for link in road_link.lane_links]
    found = set()
    for a, crossings in enumerate(intersection_crossings(shapes[: len(links)])):
        found |= {(a, crossing.other_link) for crossing in crossings}
    found |= {(a, b) for a, b in combinations(range(len(links)), 2) if links[a][1].end_lane == links[b][1].end_lane}
    return {(links[a][0], links[b][0]) for a, b in found if links[a][1].start_lane != links[b][1].start_lane}
