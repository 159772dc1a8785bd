"""What a light that decides alone knows of its detectors, and how the policy's features are made of them: tables in flash."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from firmware.generator.c_tables import array
from firmware.generator.light.plan import LANES_MAX
from firmware.generator.policy import INT16_MAX, JsonObject, PolicyError

COUNT_MAX = 255  # of a lane
HELD_S = 255  # another light may hold vehicles so long at least, on a lane that leads to it
RATE_S = 256  # in which the planned vehicles of a lane are counted
MISSED = 20  # so many should have come onto a lane that nobody has come onto: its entry is silent
OTHERS_LEAST, OTHERS_MOST, OTHERS_NEVER = 48, 240, 255  # vehicles on other lanes in that time
OTHERS_UNPLANNED = 200
MISSED_LEAST = 12  # where OTHERS_MOST is less than MISSED takes: fewer say nothing
SOURCES = ("end", "vehicles", "action", "changed", "passed")  # by their number in the table

Cell = list[tuple[int, int]]
"""(lane, weight) of each term."""


@dataclass(frozen=True)
class Lane:
    """One lane, as struct sensing_lane has it."""

    groups: int
    most: int
    clear_s: int
    rate: int
    others: int
    is_free: bool
    beside: int


@dataclass(frozen=True)
class Feature:
    """One kept feature; cells only where its source is "vehicles"."""

    source: str
    cells: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Sensing:
    """Lanes that lead in, then those that lead out if a feature needs them."""

    in_lanes: int
    lanes: tuple[Lane, ...]
    features: tuple[Feature, ...]

    @property
    def counts_passed(self) -> bool:
        return any(feature.source == "passed" for feature in self.features)

    @property
    def has_lanes_beside(self) -> bool:
        return any(lane.beside != number for number, lane in enumerate(self.lanes))


NOTHING_SENSED = Sensing(0, (), ())


def sensing_of(document: dict[str, Any], policy: JsonObject) -> Sensing:
    """From the document's `sensing` (hil/build/light_plan.py), for the features that the policy keeps. PolicyError for a
    feature that loops can't measure, and for more lanes than fit."""
    if "sensing" not in document:
        raise PolicyError("sensing: missing; mode alone needs the crossing's lanes and features (hil/build/light_plan.py)")
    given = document["sensing"]
    kept, actions = policy["intersections"][0]["features"], len(document["phases"])
    features = tuple(_feature(each, given["features"], actions) for each in kept)
    in_lanes, out_lanes = given["in_lanes"], given["out_lanes"]
    used = {lane for feature in features for cell in feature.cells for lane, _ in cell}
    lanes = [*in_lanes, *(out_lanes if any(lane >= len(in_lanes) for lane in used) else ())]
    if len(lanes) > LANES_MAX:
        raise PolicyError(
            f"sensing: {len(lanes)} lanes that the policy's features need, the detectors' wires carry {LANES_MAX}"
        )
    if any(not 0 <= lane < len(lanes) for lane in used):
        raise PolicyError(f"sensing: a feature of lane {max(used)}, there are {len(lanes)}")
    planned = sum(lane["planned_veh_per_s"] for lane in in_lanes)
    return Sensing(
        len(in_lanes), tuple(_lane(lane, planned, number, len(lanes)) for number, lane in enumerate(lanes)), features
    )


def tables(sensed: Sensing) -> list[str]:
    """sensing_lanes and feature_terms as C; none where nothing is sensed."""
    if not sensed.lanes:
        return []
    parts = 7 if sensed.has_lanes_beside else 6
    lanes = (f"{{{', '.join(str(int(part)) for part in astuple(lane)[:parts])}}}" for lane in sensed.lanes)
    terms = [byte for feature in sensed.features for byte in _bytes(feature)]
    return [
        array("struct sensing_lane", "sensing_lanes", lanes, storage=""),
        array("uint8_t", "feature_terms", [*terms, SOURCES.index("end")], storage=""),
    ]


def _bytes(feature: Feature) -> list[int]:
    if feature.source != "vehicles":
        return [SOURCES.index(feature.source)]
    cells = [byte for cell in feature.cells for byte in (len(cell), *(part & 0xFF for term in cell for part in term))]
    return [SOURCES.index("vehicles"), len(feature.cells), *cells]


def _feature(kept: JsonObject, known: dict[str, Any], actions: int) -> Feature:
    name = kept["name"]
    if name not in known:
        raise PolicyError(f"features: {name} can't be measured by two loops a lane; mode alone takes {', '.join(known)}")
    source, cells = known[name]["source"], [[(lane, weight) for lane, weight in cell] for cell in known[name]["cells"]]
    width = {"vehicles": len(cells), "action": actions}.get(source, 1)
    if source not in SOURCES[1:] or width != kept["width"]:
        raise PolicyError(f"features: {name} has {width} values at this crossing, the policy takes {kept['width']}")
    for cell in cells:
        if COUNT_MAX * sum(abs(weight) for _, weight in cell) > INT16_MAX or any(not -128 <= w <= 127 for _, w in cell):
            raise PolicyError(f"features: {name} could leave 16 bits")
    return Feature(source, tuple(cells))


def _lane(lane: dict[str, Any], planned: float, number: int, count: int) -> Lane:
    """`planned`: vehicles a second on all lanes that lead in; `count`: of lanes."""
    groups, is_free = sum(1 << group for group in lane["groups"]), lane.get("is_free", False)
    is_out = "is_free" in lane
    most = min(int(lane["most"]), COUNT_MAX)
    clear_s = HELD_S if is_out and not is_free else min(math.ceil(lane["clear_s"]), COUNT_MAX)
    rate = min(round(RATE_S * lane["planned_veh_per_s"]), COUNT_MAX)
    beside = lane.get("beside", number)
    if not (most >= 1 and clear_s >= 1 and 0 <= beside < count):
        raise PolicyError(f"sensing: lane {number}: {lane}")
    chosen = is_out or beside != number  # by its drivers: who comes by which lane beside others, no plan tells
    return Lane(groups, most, clear_s, rate, OTHERS_NEVER if chosen else _others(lane, planned), is_free, beside)


def _others(lane: dict[str, Any], planned: float) -> int:
    """How many vehicles onto other lanes that lead in, and none onto this one, mean that its entry is silent. A light before it
    may hold its vehicles back for long."""
    own = lane["planned_veh_per_s"]
    if not planned:
        return OTHERS_UNPLANNED
    if own * OTHERS_MOST < MISSED_LEAST * (planned - own) or not own:
        return OTHERS_NEVER
    return OTHERS_MOST if lane["is_fed"] else min(max(math.ceil(MISSED * (planned / own - 1)), OTHERS_LEAST), OTHERS_MOST)


def lane_order(document: dict[str, Any], policy: JsonObject) -> Sequence[int]:
    """The engine's numbers of the lanes that the chip senses, in the order of its wires: lane k has lines 2k and 2k + 1."""
    count = len(sensing_of(document, policy).lanes)
    return [lane["lane"] for lane in (*document["sensing"]["in_lanes"], *document["sensing"]["out_lanes"])][:count]
