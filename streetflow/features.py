"""What a controller may know of its intersection: the one table of features.

A feature is a list of cells, and a cell is a weighted sum of entries of one *source* (a number per lane, or per
action). So a feature is data, not code: ``observation.py`` computes any choice of them in one compiled loop.

Names and meaning follow the paper's Appendix A. Every value is an integer in the int16 range, since the chip has no
floats: quantity = integer / ``lsb_per_unit``, rounded to the nearest, clamped to ``minimum`` .. ``maximum``.

Where the paper's text and its released code differ, this table follows the paper: waiting time is in seconds since the
vehicle's last stop; the delay of a lane is against its own limit; the delay of a phase is the average over the lanes
that it serves, each once; pressure is in - out, summed over lane links.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from streetflow.errors import InputError
from streetflow.intersection import Intersection

INT16_MIN, INT16_MAX = -32768, 32767
DELAY_LSB = 256

Terms = list[tuple[int, int]]
"""(index into a source, weight) of each entry that a cell sums."""


class Source(IntEnum):
    """Arrays that cells read. All have one entry a lane, except ACTION: one an action of the intersection."""

    VEHICLES = 0
    WAITING = 1  # vehicles slower than 0.1 m/s
    WAITING_TIME = 2  # s, summed over the lane's vehicles: since when each has been slower than 0.1 m/s
    DELAY = 3  # 1 - mean speed / the lane's limit; 0 on an empty lane
    ACTION = 4  # 1 for the action in force, 0 for the others


@dataclass(frozen=True)
class FeatureSpec:
    """One row of the table. ``cells(intersection)`` gives, per value, what it sums."""

    name: str
    scope: str
    """What there is one value for: "in-lane" or "phase" (one per action)."""
    unit: str
    lsb_per_unit: int
    minimum: int
    maximum: int
    source: Source
    cells: Callable[[Intersection], list[Terms]]
    average: bool
    """Divide each sum by its number of terms."""
    description: str

    def width(self, intersection: Intersection) -> int:
        """How many values the feature has at ``intersection``."""
        return len(self.cells(intersection))


def in_lanes(intersection: Intersection) -> list[Terms]:
    """Each in-lane by itself."""
    return [[(lane, 1)] for lane in intersection.in_lanes]


def served_lanes(intersection: Intersection) -> list[Terms]:
    """Per action, the in-lanes that its phase serves, each once."""
    return [[(lane, 1) for lane in lanes] for lanes in intersection.phase_in_lanes]


def in_lane_links(intersection: Intersection) -> list[Terms]:
    """Per in-lane, the pressure of the lane links that leave it."""
    links = intersection.lane_links
    return [_pressure(link for link in links if link[0] == lane) for lane in intersection.in_lanes]


def opened_links(intersection: Intersection) -> list[Terms]:
    """Per action, the pressure of the lane links that its phase opens."""
    links = intersection.lane_links
    return [_pressure(links[number] for number in opened) for opened in intersection.phase_lane_links]


def actions(intersection: Intersection) -> list[Terms]:
    """Each action by itself."""
    return [[(action, 1)] for action in range(intersection.action_count)]


def total_pressure(intersection: Intersection) -> Terms:
    """Vehicles on all in-lanes - vehicles on all out-lanes; its negative is the reward."""
    return [(lane, 1) for lane in intersection.in_lanes] + [(lane, -1) for lane in intersection.out_lanes]


def _pressure(links: Iterable[tuple[int, int]]) -> Terms:
    """Sum over ``links`` of (vehicles on the in-lane - vehicles on the out-lane), terms of one lane merged."""
    weight: dict[int, int] = {}
    for lane_in, lane_out in links:
        weight[lane_in] = weight.get(lane_in, 0) + 1
        weight[lane_out] = weight.get(lane_out, 0) - 1
    return list(weight.items())


_S = Source
_TABLE = (
    # name, scope, unit, lsb_per_unit, minimum, maximum, source, cells, average, description
    FeatureSpec("inlane_2_num_vehicle", "in-lane", "vehicles", 1, 0, INT16_MAX, _S.VEHICLES, in_lanes, False,
                "vehicles on the in-lane"),
    FeatureSpec("inlane_2_num_waiting_vehicle", "in-lane", "vehicles", 1, 0, INT16_MAX, _S.WAITING, in_lanes, False,
                "vehicles on the in-lane slower than 0.1 m/s"),
    FeatureSpec("inlane_2_sum_waiting_time", "in-lane", "s", 1, 0, INT16_MAX, _S.WAITING_TIME, in_lanes, False,
                "time that the in-lane's vehicles have stood since their last stop, summed"),
    FeatureSpec("inlane_2_delay", "in-lane", "1", DELAY_LSB, 0, DELAY_LSB, _S.DELAY, in_lanes, True,
                "1 - mean speed / speed limit of the in-lane, 0 when empty"),
    FeatureSpec("inlane_2_pressure", "in-lane", "vehicles", 1, INT16_MIN, INT16_MAX, _S.VEHICLES, in_lane_links, False,
                "vehicles on the in-lane - on the out-lane, summed over the in-lane's lane links"),
    FeatureSpec("phase_2_num_vehicle", "phase", "vehicles", 1, 0, INT16_MAX, _S.VEHICLES, served_lanes, False,
                "vehicles on the in-lanes that the phase serves"),
    FeatureSpec("phase_2_num_waiting_vehicle", "phase", "vehicles", 1, 0, INT16_MAX, _S.WAITING, served_lanes, False,
                "vehicles slower than 0.1 m/s on the in-lanes that the phase serves"),
    FeatureSpec("phase_2_sum_waiting_time", "phase", "s", 1, 0, INT16_MAX, _S.WAITING_TIME, served_lanes, False,
                "time that vehicles on the in-lanes that the phase serves have stood since their last stop, summed"),
    FeatureSpec("phase_2_delay", "phase", "1", DELAY_LSB, 0, DELAY_LSB, _S.DELAY, served_lanes, True,
                "mean of the delays of the in-lanes that the phase serves"),
    FeatureSpec("phase_2_pressure", "phase", "vehicles", 1, INT16_MIN, INT16_MAX, _S.VEHICLES, opened_links, False,
                "vehicles on the in-lane - on the out-lane, summed over the lane links that the phase opens"),
    FeatureSpec("inter_2_current_phase", "phase", "1", 1, 0, 1, _S.ACTION, actions, False,
                "1 for the action in force, 0 for the others"),
)  # fmt: skip

FEATURES: dict[str, FeatureSpec] = {spec.name: spec for spec in _TABLE}

RELEASE = (
    "phase_2_num_vehicle",
    "phase_2_num_waiting_vehicle",
    "phase_2_sum_waiting_time",
    "phase_2_delay",
    "phase_2_pressure",
    "inlane_2_num_vehicle",
    "inlane_2_num_waiting_vehicle",
    "inlane_2_sum_waiting_time",
    "inlane_2_delay",
    "inlane_2_pressure",
    "inter_2_current_phase",
)
"""The features that the paper's released code searches, in its order."""

PRESETS: dict[str, tuple[str, ...]] = {"release": RELEASE}


def resolve_features(features: str | Sequence[str]) -> tuple[FeatureSpec, ...]:
    """Rows of the table for a preset's name or a list of feature names; InputError names what is unknown."""
    if isinstance(features, str):
        if features not in PRESETS:
            raise InputError("features", features, f"unknown preset; there are {', '.join(PRESETS)}")
        features = PRESETS[features]
    for name in features:
        if name not in FEATURES:
            near = difflib.get_close_matches(name, FEATURES, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else f"; there are {', '.join(FEATURES)}"
            raise InputError("features", name, f"unknown feature{hint}")
    if not features or len(set(features)) != len(features):
        raise InputError("features", ", ".join(features), "must name at least one feature, and each once")
    return tuple(FEATURES[name] for name in features)
