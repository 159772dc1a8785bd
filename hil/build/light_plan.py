"""All that the chips of a network's lights need of it: each crossing's signal plan, its lanes and features, its fixed times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from hil.build.signal_plan import plan_document
from streetflow.control.environment import Environment
from streetflow.control.features import DEPLOYABLE, FEATURES
from streetflow.control.intersection import Intersection, is_signalled
from streetflow.control.signal_groups import SignalPlan, signal_plans
from streetflow.control.webster import START_UP_S, flow_ratios, plan, streams, volumes_veh_per_s
from streetflow.kernels.sources import CHANGED, PASSED, Source
from streetflow.networks.catalogue import Network, find_network
from streetflow.roadnet.network_tables import NetworkTables, load_network
from streetflow.sumo.binding import FILE as SUMO_BINDING
from streetflow.sumo.binding import read_binding

VEHICLE_M = 7.5
"""What a standing vehicle takes of a lane, its gap included."""
SLOWER = 1.25
SPARE_S = 10.0
MAX_CYCLE_S = 120


def light_documents(network: str | Network, flow: int = 0) -> list[dict[str, Any]]:
    """The documents of all signalled crossings, for `build_firmware`'s `plans`, in file order.

    Args:
        network: its name, or itself.
        flow: the demand that the fixed times are made for.
    """
    environment = Environment(network, flow, features=("inter_2_current_phase",))
    found = find_network(network) if isinstance(network, str) else network
    folder = found.roadnet_file.parent
    on_sumo = read_binding(folder) if (folder / SUMO_BINDING).is_file() else None
    tables = load_network(found.roadnet_file)
    ratios, volumes = flow_ratios(environment), volumes_veh_per_s(environment)
    documents = []
    for each, crossing in zip(signal_plans(tables), environment.intersections, strict=True):
        actions = plan(
            streams(crossing, ratios), crossing.action_count, environment.decision_interval_s, lost_s(each), MAX_CYCLE_S
        )
        steps = [[action, len(list(run)) * environment.decision_interval_s] for action, run in groupby(actions)]
        lengths_m = tables.lane_shapes.length_m.tolist() if on_sumo is None else on_sumo.lane_lengths_m
        sensed = sensing(tables, each, crossing, volumes, lengths_m)
        if on_sumo is not None:  # there vehicles change lanes
            name_lanes_beside(sensed, crossing)
        documents.append(plan_document(each) | {"plan": steps, "sensing": sensed})
    return documents


def lost_s(plan_of_light: SignalPlan) -> float:
    """Of a stage: starting up, and the mean of its changes."""
    actions = range(len(plan_of_light.phases))
    changes = [plan_of_light.change_s(a, b) for a in actions for b in actions if a != b]
    return START_UP_S + sum(changes) / len(changes)


def sensing(
    network: NetworkTables,
    plan_of_light: SignalPlan,
    crossing: Intersection,
    volumes: Mapping[tuple[str, str], float],
    lengths_m: Sequence[float],
) -> dict[str, Any]:
    """Lanes in the order of the wires, and the features that two loops a lane can measure, as sums over these lanes.

    Args:
        network: that the crossing is of.
        plan_of_light: its signal plan.
        crossing: as the engine has it.
        volumes: by in-road and out-road, vehicles a second.
        lengths_m: of the network's lanes.
    """
    order = {lane: number for number, lane in enumerate([*sensed_in_lanes(plan_of_light, crossing), *crossing.out_lanes])}
    groups = dict(zip(plan_of_light.in_lanes, plan_of_light.lane_groups, strict=True))
    roads_in, roads_out = ({lane: road for road, own in enumerate(of) for lane in own} for of in (
        crossing.in_road_lanes, crossing.out_road_lanes
    ))  # fmt: skip
    lit = [is_signalled(each) for each in network.roadnet.intersections]
    from_light = {road.id for road in network.roadnet.roads if lit[road.start_intersection]}
    to_light = {road.id for road in network.roadnet.roads if lit[road.end_intersection]}
    planned = lane_volumes(crossing, volumes)
    in_lanes = [
        _lane(network, lane, lengths_m[lane], planned)
        | {"groups": list(groups.get(lane, ())), "is_fed": crossing.in_roads[roads_in[lane]] in from_light}
        for lane in sensed_in_lanes(plan_of_light, crossing)
    ]
    out_lanes = [
        _lane(network, lane, lengths_m[lane], planned)
        | {"groups": [], "is_free": crossing.out_roads[roads_out[lane]] not in to_light}
        for lane in crossing.out_lanes
    ]
    return {
        "in_lanes": in_lanes,
        "out_lanes": out_lanes,
        "features": {name: _feature(name, crossing, order) for name in DEPLOYABLE},
    }


def sensed_in_lanes(plan_of_light: SignalPlan, crossing: Intersection) -> tuple[int, ...]:
    """The lanes that lead in, in the order of their lines; last those that lead nowhere out: their vehicles change lanes."""
    return (*plan_of_light.in_lanes, *(lane for lane in crossing.in_lanes if lane not in plan_of_light.in_lanes))


def name_lanes_beside(sensed: dict[str, Any], crossing: Intersection) -> None:
    """For a street whose vehicles change lanes: each lane of several of its road names the next of them, in a ring."""
    lanes = [*sensed["in_lanes"], *sensed["out_lanes"]]
    number_of = {lane["lane"]: number for number, lane in enumerate(lanes)}
    for road in (*crossing.in_road_lanes, *crossing.out_road_lanes):
        own = [number_of[lane] for lane in road if lane in number_of]
        for number, following in zip(own, [*own[1:], *own[:1]], strict=True):
            lanes[number]["beside"] = following


def lane_volumes(crossing: Intersection, volumes: Mapping[tuple[str, str], float]) -> dict[int, float]:
    """Vehicles a second of each lane that leads in or out: a movement's spread evenly over its lanes."""
    road_in = {lane: road for road, lanes in enumerate(crossing.in_road_lanes) for lane in lanes}
    road_out = {lane: road for road, lanes in enumerate(crossing.out_road_lanes) for lane in lanes}
    ends: defaultdict[tuple[str, str], tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    for lane, out in crossing.lane_links:
        own, others = ends[crossing.in_roads[road_in[lane]], crossing.out_roads[road_out[out]]]
        own.add(lane)
        others.add(out)
    found = dict.fromkeys([*road_in, *road_out], 0.0)
    for movement, (own, others) in ends.items():
        for lanes in (own, others):
            for lane in lanes:
                found[lane] += volumes.get(movement, 0.0) / len(lanes)
    return found


def _lane(network: NetworkTables, lane: int, length_m: float, planned: Mapping[int, float]) -> dict[str, Any]:
    speed_mps = float(network.arrays["speed_limit"][lane])
    return {
        "lane": int(lane),
        "planned_veh_per_s": planned[lane],
        "most": int(length_m / VEHICLE_M) + 1,
        "clear_s": float(SLOWER * length_m / speed_mps + SPARE_S),
    }


def _feature(name: str, crossing: Intersection, order: dict[int, int]) -> dict[str, Any]:
    spec = FEATURES[name]
    if spec.source is Source.ACTION:
        return {"source": "action", "cells": []}
    if spec.source is Source.OWN:
        ((index, _),) = spec.cells(crossing)[0]
        return {"source": {CHANGED: "changed", PASSED: "passed"}[index], "cells": []}
    assert spec.source is Source.VEHICLES and spec.lsb_per_unit == spec.source_units == 1, name
    return {"source": "vehicles", "cells": [[[order[lane], weight] for lane, weight in cell] for cell in spec.cells(crossing)]}
