"""Fixed time by Webster's method, from the volumes of the demand itself (Webster, "Traffic signal settings", 1958)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streetflow.control.environment import Environment
from streetflow.control.intersection import Intersection
from streetflow.control.stages import covers
from streetflow.roadnet.flow import Flow
from streetflow.roadnet.network_tables import load_network

START_UP_S = 2.0
"""Green that a queue loses by starting."""


class Webster:
    """Each light repeats a plan of its own, made before the run: which phases, and for how many decisions each.

    The volumes are those of the environment's flow file, so it knows the demand of the very run. The plans aren't coordinated.

    Args:
        lost_s: time that each stage loses; None: a start-up of 2 s, and the clearance (the mean of the light's changes), unless
            that is ``hold``, which goes on serving.
        max_cycle_s: the longest cycle, unless the phases that are needed take longer with one decision each.
    """

    features = ("inter_2_current_phase",)  # unused: an environment observes at least one feature

    def __init__(self, lost_s: float | None = None, max_cycle_s: int = 120) -> None:
        self.lost_s, self.max_cycle_s = lost_s, max_cycle_s

    def reset(self, environment: Environment) -> None:
        ratios = flow_ratios(environment)
        self.plans = [
            plan(
                streams(each, ratios),
                each.action_count,
                environment.decision_interval_s,
                _lost_s(environment, i) if self.lost_s is None else self.lost_s,
                self.max_cycle_s,
            )
            for i, each in enumerate(environment.intersections)
        ]
        self._turn = 0

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        actions = [each[self._turn % len(each)] for each in self.plans]
        self._turn += 1
        return np.array(actions, np.int32)


def _lost_s(environment: Environment, light: int) -> float:
    if environment.clearance == "hold":
        return START_UP_S
    count = environment.intersections[light].action_count
    other = ~np.eye(count, dtype=bool)
    return START_UP_S + float(environment.changes.seconds[light, :count, :count][other].mean()) if count > 1 else START_UP_S


class Stream(NamedTuple):
    """What one in-lane brings for one out-road."""

    lane: int
    actions: frozenset[int]
    """Those that open it."""
    ratio: float
    """Its vehicles an hour by those that a lane can discharge in an hour of green."""


def flow_ratios(environment: Environment) -> dict[tuple[str, str], float]:
    """By in-road and out-road: the sum over the vehicles of a run of the green that each needs, over the run's length.

    A queue discharges one vehicle per ``headway + length / speed`` (tests/streetflow/test_engine_theory.py).
    """
    return _of_movements(environment, lambda flow: flow.kind.headway_s + flow.kind.length_m / flow.kind.max_speed_mps)


def volumes_veh_per_s(environment: Environment) -> dict[tuple[str, str], float]:
    """By in-road and out-road: the vehicles of a run, over the run's length."""
    return _of_movements(environment, lambda flow: 1.0)


def _of_movements(environment: Environment, each: Callable[[Flow], float]) -> dict[tuple[str, str], float]:
    """By in-road and out-road: `each` of a flow, summed over the vehicles of a run, over the run's length."""
    network = load_network(environment.network.roadnet_file)
    roads = network.roadnet.roads
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for flow in environment.demand:
        for start, end in pairwise(network.router.plan(flow.anchors) or ()):
            found[roads[start].id, roads[end].id] += vehicles(flow, environment.horizon_s) * each(flow) / environment.horizon_s
    return found


def vehicles(flow: Flow, horizon_s: int) -> int:
    """How many it creates before the horizon."""
    first, last = max(flow.start_s, 0), horizon_s - 1
    if flow.start_s == flow.end_s != -1:
        return int(0 <= flow.start_s <= last)
    last = last if flow.end_s == -1 else min(flow.end_s, last)
    return max(math.floor((last - first) / flow.interval_s) + 1, 0)


def streams(intersection: Intersection, ratios: Mapping[tuple[str, str], float]) -> list[Stream]:
    """Those with vehicles that some actions open and others don't; a movement's vehicles spread evenly over its lanes."""
    road_in = {lane: road for road, lanes in enumerate(intersection.in_road_lanes) for lane in lanes}
    road_out = {lane: road for road, lanes in enumerate(intersection.out_road_lanes) for lane in lanes}
    opened: dict[tuple[int, int], dict[int, set[int]]] = {}  # by movement, then in-lane
    for link, (lane_in, lane_out) in enumerate(intersection.lane_links):
        movement = opened.setdefault((road_in[lane_in], road_out[lane_out]), {})
        movement.setdefault(lane_in, set()).update(
            action for action, links in enumerate(intersection.phase_lane_links) if link in links
        )
    return [
        Stream(lane, frozenset(actions), ratio / len(lanes))
        for (start, end), lanes in opened.items()
        if (ratio := ratios.get((intersection.in_roads[start], intersection.out_roads[end]), 0.0)) > 0
        for lane, actions in lanes.items()
        if 0 < len(actions) < intersection.action_count
    ]


def plan(found: Sequence[Stream], actions: int, interval_s: int, lost_s: float, max_cycle_s: int) -> list[int]:
    """The action of each decision of a cycle: of all sets of phases that cover the streams, the one with the least delay.

    Args:
        found: the light's streams; without any, it rests in action 0.
        actions: how many the light has.
        interval_s: a decision's.
        lost_s: by each stage.
        max_cycle_s: as in `Webster`.
    """
    if not found:
        return [0]

    def lost(stages: Sequence[int]) -> Times:
        return dict.fromkeys(stages, lost_s)

    decisions = best_plan(found, actions, interval_s, max_cycle_s, lost, lambda stages: dict.fromkeys(stages, 1))
    return [action for action, count in decisions.items() for _ in range(count)]


Times = dict[int, float]
"""By stage, s."""


def best_plan(
    found: Sequence[Stream],
    actions: int,
    interval_s: int,
    max_cycle_s: float,
    lost_s: Callable[[Sequence[int]], Times],
    least: Callable[[Sequence[int]], dict[int, int]],
) -> dict[int, int]:
    """How many intervals each stage of a cycle gets, in the stages' order.

    Args:
        found, actions, max_cycle_s: as in `plan`; there is a stream.
        interval_s: what a stage's time is a multiple of.
        lost_s: what each stage of a set loses.
        least: how many intervals each stage of a set needs at least.
    """
    best: tuple[tuple[float, float], dict[int, int]] | None = None
    for stages in covers([each.actions for each in found], actions):
        needs, lost = critical(found, stages), lost_s(stages)
        cycle_s = min(webster_cycle_s(needs, stages, sum(lost.values())), max_cycle_s)
        intervals = share(needs, least(stages), round(cycle_s / interval_s), interval_s, lost)
        cost = delay(needs, intervals, interval_s, lost)
        if best is None or cost < best[0]:
            best = cost, intervals
    assert best is not None  # all actions together cover everything
    return best[1]


Needs = dict[tuple[int, frozenset[int]], float]
"""By in-lane and stages: the share of the cycle that these must be green for it, all together."""


def critical(found: Sequence[Stream], stages: Sequence[int]) -> Needs:
    """What each lane needs of each set of stages: its streams that have no other stage among these."""
    own = [(each.lane, each.actions.intersection(stages), each.ratio) for each in found]
    return {
        (lane, among): sum(ratio for other, within, ratio in own if other == lane and within <= among)
        for lane, among in dict.fromkeys((lane, among) for lane, among, _ in own)
    }


def webster_cycle_s(needs: Needs, stages: Sequence[int], lost_s: float) -> float:
    """Webster's optimum, (1.5 L + 5) / (1 - Y), where all stages lose L together; infinite where Y, the sum of the critical
    shares, is 1 or more."""
    shares = dict.fromkeys(stages, 0.0)
    for (_, among), ratio in sorted(needs.items(), key=lambda item: len(item[0][1])):
        missing = ratio - sum(shares[stage] for stage in among)
        if missing > 0:
            weight = {stage: sum(r for (_, other), r in needs.items() if stage in other) for stage in sorted(among)}
            shares[max(weight, key=weight.__getitem__)] += missing
    left = 1.0 - sum(shares.values())
    return (1.5 * lost_s + 5.0) / left if left > 0 else math.inf


def share(needs: Needs, least: Mapping[int, int], cycle: int, interval_s: int, lost_s: Times) -> dict[int, int]:
    """Intervals of each stage: the least, and each further one of the cycle where it lowers the greatest saturations most."""
    intervals = dict(least)
    for _ in range(cycle - sum(least.values())):
        tried = [intervals | {stage: count + 1} for stage, count in intervals.items()]
        intervals = min(tried, key=lambda each: sorted(saturations(needs, each, interval_s, lost_s), reverse=True))
    return intervals


def saturations(needs: Needs, intervals: Mapping[int, int], interval_s: int, lost_s: Times) -> list[float]:
    """Of each need: its vehicles by those that its green can serve."""
    cycle_s = sum(intervals.values()) * interval_s
    return [ratio * cycle_s / _green_s(among, intervals, interval_s, lost_s) for (_, among), ratio in needs.items()]


def _green_s(among: frozenset[int], intervals: Mapping[int, int], interval_s: int, lost_s: Times) -> float:
    """Effective: without what its stages lose."""
    return max(sum(intervals[stage] * interval_s - lost_s[stage] for stage in among), 1e-9)


def delay(needs: Needs, intervals: Mapping[int, int], interval_s: int, lost_s: Times) -> tuple[float, float]:
    """Webster's delay of all vehicles (uniform and random arrivals, up to a common factor), infinite if oversaturated; then the
    greatest saturation."""
    cycle_s = sum(intervals.values()) * interval_s
    all_x = saturations(needs, intervals, interval_s, lost_s)
    if max(all_x) >= 1:
        return math.inf, max(all_x)
    total = 0.0
    for ratio, x in zip(needs.values(), all_x, strict=True):
        red = 1 - ratio / x  # share of the cycle: x is ratio / green share
        total += ratio * cycle_s * red**2 / (2 * (1 - ratio)) + x**2 / (2 * (1 - x))
    return total, max(all_x)
