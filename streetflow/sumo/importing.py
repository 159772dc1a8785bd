"""A SUMO scenario as a data set: roadnet.json, flow_0.json, network.json, sumo.json, and SUMO's own files in ``sumo/``."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from streetflow.errors import InputError, cannot_be
from streetflow.networks.write import json_bytes, network_json
from streetflow.roadnet.network_tables import load_network
from streetflow.sumo.approaches import approaches
from streetflow.sumo.binding import FILE, Binding
from streetflow.sumo.demand import Demand, departures, read_demand
from streetflow.sumo.flows import CUT, FlowWriter
from streetflow.sumo.net import Net, read_net
from streetflow.sumo.roadnet import Converted, convert
from streetflow.sumo.scenario import Scenario

FOLDER = "sumo"
CONFIG = f"{FOLDER}/scenario.sumocfg"
_LENGTH_TOLERANCE = 0.02


@dataclass(frozen=True)
class Imported:
    """files: of the data set, by name. taken: how many of what. notes: what was merged, left out or can't be told."""

    files: dict[str, bytes]
    taken: dict[str, int]
    notes: tuple[str, ...]


def import_scenario(
    scenario: Scenario, decision_interval_s: int | None = None, *, in_parts: bool = False, approach_m: float = 0.0
) -> Imported:
    """Convert a scenario.

    Args:
        scenario: the scenario.
        decision_interval_s: seconds between decisions of the network's lights; None: the usual.
        in_parts: cut the vehicles that our own engine can't drive as a whole, rather than leave them out there.
        approach_m: a light on SUMO sees at least so far up its lanes, over the lanes before a shorter one (`approaches.py`).

    Raises:
        InputError: a file is faulty, or the network has no light with anything to choose.
    """
    net = read_net(scenario.net, scenario.additional)
    demand = read_demand([*scenario.routes, *scenario.additional], net)
    begin_s = scenario.begin_s
    end_s = math.ceil(demand.last_s) + 1.0 if scenario.end_s is None else scenario.end_s
    if end_s <= begin_s:
        raise InputError(
            scenario.routes[0], "", f"its last vehicle departs at {demand.last_s:g} s, the run begins at {begin_s:g} s"
        )
    vehicles = sum(1 for journey in demand.journeys for _ in departures(journey, begin_s, end_s))
    if not vehicles:
        when = f"from {begin_s:g} to {end_s:g} s"
        raise InputError(scenario.routes[0], "", f"no vehicle of road traffic departs {when}: give --begin and --end")
    converted = convert(net)
    if not converted.lights:
        why = "none of its traffic lights has two green phases" if net.programs else "it has no traffic light"
        raise InputError(scenario.net, "", f"there is nothing to control: {why}")
    horizon_s = math.ceil(end_s - begin_s)
    roadnet = json_bytes(converted.roadnet)
    flow, left_out = _flow(roadnet, demand, begin_s, end_s, in_parts)
    numbers = {lane: number for number, lane in enumerate(converted.lanes)}
    parts = approaches(net, numbers, approach_m)
    lengths_m = list(converted.lane_lengths_m)
    for part in parts:
        if converted.lanes[part.number] == part.lane:
            lengths_m[part.number] += part.before_m
    binding = Binding(
        CONFIG,
        begin_s,
        scenario.step_s,
        converted.lanes,
        tuple(lengths_m),
        converted.ways,
        converted.lights,
        tuple(parts),
    )
    made_of = {"sumo": [scenario.net.name, *(path.name for path in scenario.routes)], "begin_s": begin_s, "end_s": end_s}
    files = {
        "roadnet.json": roadnet,
        "flow_0.json": json_bytes(flow),
        FILE: json_bytes(binding.content()),
        **network_json(horizon_s, made_of, decision_interval_s),
        **_sumo_files(scenario, end_s),
    }
    taken = _taken(converted) | {"vehicles": vehicles, "vehicles on our own engine": len(flow), "horizon, s": horizon_s}
    return Imported(files, taken, tuple(_notes(scenario, net, converted, demand, left_out)))


def _flow(
    roadnet: bytes, demand: Demand, begin_s: float, end_s: float, in_parts: bool
) -> tuple[list[dict[str, object]], Counter[str]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "roadnet.json"
        file.write_bytes(roadnet)
        return FlowWriter(load_network(file), in_parts=in_parts).flow(demand, begin_s, end_s)


def _sumo_files(scenario: Scenario, end_s: float) -> dict[str, bytes]:
    """The scenario's files and a configuration of the run, in one folder."""
    names: dict[Path, str] = {}
    files: dict[str, bytes] = {}
    for path in (scenario.net, *scenario.routes, *scenario.additional):
        name = path.name
        while name in names.values() and path not in names:
            name = f"_{name}"
        names[path] = name
        try:
            files[f"{FOLDER}/{name}"] = path.read_bytes()
        except OSError as fault:
            raise cannot_be("read", path, fault) from None
    return files | {CONFIG: scenario.config(names, end_s)}


def _taken(converted: Converted) -> dict[str, int]:
    crossings = [each for each in converted.roadnet["intersections"] if not each["virtual"]]
    lit = {light.intersection for light in converted.lights}
    return {
        "intersections": len(crossings),
        "lights": len(converted.lights),
        "phases to choose from": sum(len(light.states) for light in converted.lights),
        "roads": len(converted.roadnet["roads"]),
        "lanes": len(converted.lanes),
        "movements": sum(len(each["roadLinks"]) for each in crossings),
        "movements at lights": sum(len(each["roadLinks"]) for each in crossings if each["id"] in lit),
        "lane links": len(converted.ways),
    }


def _notes(scenario: Scenario, net: Net, converted: Converted, demand: Demand, left_out: Counter[str]) -> Iterable[str]:
    for light, junctions in converted.joined.items():
        yield f"merged: the light {light!r} sets {len(junctions)} junctions; all its movements are at {junctions[0]!r}"
    edges = len(net.edges) - len(converted.roadnet["roads"])
    lanes = sum(len(edge.lanes) for edge in net.edges.values()) - len(converted.lanes)
    if lanes:
        yield f"left out: {lanes} lanes that aren't for road traffic, and {edges} edges that have no other"
    for what, count in net.passed_over.items():
        yield f"left out: {count} {what}"
    if converted.left_alone:
        yield f"left to their own programs: {_some(converted.left_alone)} (fewer than two green phases for road traffic)"
    several = [name for name, program in net.programs.items() if program.others]
    if several:
        yield f"of several programs the last one counts: {_some(several)}"
    kinds = Counter(net.programs[light.light].kind for light in converted.lights)
    for kind in sorted(kinds.keys() - {"static"}):
        yield f"{kinds[kind]} {kind} programs: their green phases are taken; they run as SUMO has them where no agent decides"
    on_red = sum("s" in state for light in converted.lights for state in light.states)
    if on_red:
        yield f"{on_red} phases let vehicles turn on red after a stop: SUMO does, our own engine keeps them waiting"
    if any("bus" in lane.classes and "passenger" not in lane.classes for _, lanes in net.lane_edges() for lane in lanes):
        yield "some lanes are for buses or other vehicles alone: on our own engine all may use them"
    if converted.without_conflicts:
        count = converted.without_conflicts
        yield f"{count} intersections whose right of way isn't in the file: their conflicts are those of the shapes"
    yield from (f"passed over, SUMO drives them: {count} {what}" for what, count in demand.passed_over.items())
    if left_out[CUT]:
        yield f"on our own engine: {left_out.pop(CUT)} {CUT}"
    yield from (f"not on our own engine, SUMO drives them: {count} {what}" for what, count in left_out.items() if count)
    other = _other_lengths(converted)
    if other:
        yield f"{other} lanes are drawn longer or shorter than SUMO counts them: our own engine drives them as drawn"
    if scenario.dropped:
        yield f"options left out, since they change nothing in a run or are ours: {_some(sorted(set(scenario.dropped)))}"


def _other_lengths(converted: Converted) -> int:
    drawn = [
        sum(math.dist((a["x"], a["y"]), (b["x"], b["y"])) for a, b in zip(road["points"], road["points"][1:], strict=False))
        for road in converted.roadnet["roads"]
        for _ in road["lanes"]
    ]
    pairs = zip(drawn, converted.lane_lengths_m, strict=True)
    return sum(abs(ours - theirs) > max(_LENGTH_TOLERANCE * theirs, 0.5) for ours, theirs in pairs)


def _some(names: Sequence[str]) -> str:
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + rest
