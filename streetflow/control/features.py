"""What a controller can observe of its intersection: the one table of all 37 features of the paper's Appendix A.

A feature is a list of cells, and a cell is a weighted sum of entries of one *source* (a number per lane, per lane
link, ...; see ``feature_cells.py``). So a feature is data, not code: ``observation.py`` computes any choice of them in
one compiled loop.

Every value is an integer in the int16 range, since the chip has no floats: quantity = integer / ``lsb_per_unit``, rounded
to the nearest, clamped to ``minimum`` .. ``maximum``. Times have ``TIME_UNIT_S`` seconds to the unit.

Names are the paper's (``outlane_2_sum_waiting_vehicle`` is a sum of waiting times, as its formula says). Two
of them have a number that the paper leaves open, and a name may state another one than the default: the parts of a lane
(``inlane_2_num_vehicle_seg_by_6``; ``..._by_k`` is 4) and the image's cells a side (``inter_2_vehicle_position_image_8``;
without a number 12).

Where the paper's text and its released code differ, this table follows the paper: waiting time is since the vehicle's last
stop (its unit, a decision's 20 s, is about that of the release's counter, which grows by one per decision); the delay of a lane
is against its own limit; the delay of a phase is the average over the lanes that it serves, each once; pressure is in - out,
summed over lane links; has_changed is 1 for a change.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streetflow.control import feature_cells as c
from streetflow.control.feature_cells import Terms
from streetflow.control.intersection import Intersection
from streetflow.errors import FieldError
from streetflow.kernels.sources import CHANGED, PASSED, PASSED_TRAVEL_TIME, Source
from streetflow.near import did_you_mean, or_else

INT16_MIN, INT16_MAX = -32768, 32767
DELAY_LSB = 256
TIME_UNIT_S = 20
TIME_UNIT = f"{TIME_UNIT_S} s"
"""Times are in decision intervals, though an integer is still a second. In seconds their sums reach thousands where vehicles
are counted in tens, and the search learns far worse (docs/training.md)."""
SEGMENTS = 4
IMAGE_SIDE = 12
IMAGE_EXTENT_M = 240.0
"""The image is a square of this side around the intersection's centre, its sides along x and y."""


@dataclass(frozen=True)
class FeatureSpec:
    """One row of the table. ``cells(intersection)`` gives, per value, what it sums."""

    name: str
    scope: str
    """The shape, i.e. what each value belongs to: "in-lane", "phase" (an action), "lane x part", ..."""
    unit: str
    lsb_per_unit: int
    minimum: int
    maximum: int
    source: Source
    cells: Callable[[Intersection], list[Terms]]
    average: bool
    """Divide each sum by its number of terms."""
    description: str
    resolution: int = 0
    """Parts of a lane, or the image's cells a side; 0 for all other features."""
    source_units: int = 1
    """How many of the source's units make one of the feature's."""

    def width(self, intersection: Intersection) -> int:
        """How many values the feature has at ``intersection``."""
        return len(self.cells(intersection))


def _segmented(prefix: str, scope: str, lanes: Callable[[Intersection], Sequence[int]], k: int) -> FeatureSpec:
    return FeatureSpec(f"{prefix}_seg_by_{k}", f"{scope} x part", "vehicles", 1, 0, INT16_MAX, _S.SEGMENT_VEHICLES,
                       lambda intersection: c.segments(lanes(intersection), k), False,
                       f"vehicles on each of {k} equal parts of the {scope}, the first where it begins", k)  # fmt: skip


def _image(name: str, side: int) -> FeatureSpec:
    return FeatureSpec(name, "cell x cell", "vehicles", 1, 0, INT16_MAX, _S.IMAGE,
                       lambda _: [[(cell, 1)] for cell in range(side * side)], False,
                       f"vehicles of the in-lanes, lane links and out-lanes in each of {side} x {side} cells of a square of "
                       f"{IMAGE_EXTENT_M:.0f} m, row by row from the south-west", side)  # fmt: skip


_S = Source
_PARAMETRISED: dict[str, Callable[[int], FeatureSpec]] = {
    "lane_2_num_vehicle_seg_by": functools.partial(
        _segmented, "lane_2_num_vehicle", "lane", lambda i: (*i.in_lanes, *i.out_lanes)
    ),
    "inlane_2_num_vehicle_seg_by": functools.partial(_segmented, "inlane_2_num_vehicle", "in-lane", lambda i: i.in_lanes),
    "outlane_2_num_vehicle_seg_by": functools.partial(_segmented, "outlane_2_num_vehicle", "out-lane", lambda i: i.out_lanes),
    "inter_2_vehicle_position_image": lambda side: _image(f"inter_2_vehicle_position_image_{side}", side),
}


def _by_k(prefix: str) -> FeatureSpec:
    """The row under the paper's own name, with the default number of parts."""
    spec = _PARAMETRISED[f"{prefix}_seg_by"](SEGMENTS)
    return FeatureSpec(**{**vars(spec), "name": f"{prefix}_seg_by_k"})


def _waiting_time(name: str, scope: str, cells: Callable[[Intersection], list[Terms]], vehicles: str) -> FeatureSpec:
    return FeatureSpec(name, scope, TIME_UNIT, TIME_UNIT_S, 0, INT16_MAX, _S.WAITING_TIME, cells, False,
                       f"time that {vehicles} have stood since their last stop, summed", source_units=TIME_UNIT_S)  # fmt: skip


_LOW, _HIGH = INT16_MIN, INT16_MAX
_TABLE = (
    # name, scope, unit, lsb_per_unit, minimum, maximum, source, cells, average, description
    FeatureSpec("lane_2_num_vehicle", "lane", "vehicles", 1, 0, _HIGH, _S.VEHICLES, c.all_lanes, False,
                "vehicles on the lane; in-lanes, then out-lanes"),
    FeatureSpec("lane_2_num_waiting_vehicle", "lane", "vehicles", 1, 0, _HIGH, _S.WAITING, c.all_lanes, False,
                "vehicles on the lane slower than 0.1 m/s"),
    _waiting_time("lane_2_sum_waiting_time", "lane", c.all_lanes, "the lane's vehicles"),
    FeatureSpec("lane_2_delay", "lane", "1", DELAY_LSB, 0, DELAY_LSB, _S.DELAY, c.all_lanes, True,
                "1 - mean speed / speed limit of the lane, 0 when empty"),
    _by_k("lane_2_num_vehicle"),
    FeatureSpec("inlane_2_num_vehicle", "in-lane", "vehicles", 1, 0, _HIGH, _S.VEHICLES, c.in_lanes, False,
                "vehicles on the in-lane"),
    FeatureSpec("inlane_2_num_waiting_vehicle", "in-lane", "vehicles", 1, 0, _HIGH, _S.WAITING, c.in_lanes, False,
                "vehicles on the in-lane slower than 0.1 m/s"),
    _waiting_time("inlane_2_sum_waiting_time", "in-lane", c.in_lanes, "the in-lane's vehicles"),
    FeatureSpec("inlane_2_delay", "in-lane", "1", DELAY_LSB, 0, DELAY_LSB, _S.DELAY, c.in_lanes, True,
                "1 - mean speed / speed limit of the in-lane, 0 when empty"),
    _by_k("inlane_2_num_vehicle"),
    FeatureSpec("inlane_2_pressure", "in-lane", "vehicles", 1, _LOW, _HIGH, _S.VEHICLES, c.in_lane_links, False,
                "vehicles on the in-lane - on the out-lane, summed over the in-lane's lane links"),
    FeatureSpec("outlane_2_num_vehicle", "out-lane", "vehicles", 1, 0, _HIGH, _S.VEHICLES, c.out_lanes, False,
                "vehicles on the out-lane"),
    FeatureSpec("outlane_2_num_waiting_vehicle", "out-lane", "vehicles", 1, 0, _HIGH, _S.WAITING, c.out_lanes, False,
                "vehicles on the out-lane slower than 0.1 m/s"),
    _waiting_time("outlane_2_sum_waiting_vehicle", "out-lane", c.out_lanes, "the out-lane's vehicles"),
    FeatureSpec("outlane_2_delay", "out-lane", "1", DELAY_LSB, 0, DELAY_LSB, _S.DELAY, c.out_lanes, True,
                "1 - mean speed / speed limit of the out-lane, 0 when empty"),
    _by_k("outlane_2_num_vehicle"),
    FeatureSpec("inroad_2_num_vehicle", "in-road", "vehicles", 1, 0, _HIGH, _S.VEHICLES, c.in_roads, False,
                "vehicles on the in-road"),
    FeatureSpec("inroad_2_num_waiting_vehicle", "in-road", "vehicles", 1, 0, _HIGH, _S.WAITING, c.in_roads, False,
                "vehicles on the in-road slower than 0.1 m/s"),
    _waiting_time("inroad_2_sum_waiting_time", "in-road", c.in_roads, "the in-road's vehicles"),
    FeatureSpec("inroad_2_delay", "in-road", "1", DELAY_LSB, 0, DELAY_LSB, _S.DELAY, c.in_roads, True,
                "mean of the delays of the in-road's lanes"),
    FeatureSpec("phase_2_num_vehicle", "phase", "vehicles", 1, 0, _HIGH, _S.VEHICLES, c.served_lanes, False,
                "vehicles on the in-lanes that the phase serves"),
    FeatureSpec("phase_2_num_waiting_vehicle", "phase", "vehicles", 1, 0, _HIGH, _S.WAITING, c.served_lanes, False,
                "vehicles slower than 0.1 m/s on the in-lanes that the phase serves"),
    _waiting_time("phase_2_sum_waiting_time", "phase", c.served_lanes, "vehicles on the in-lanes that the phase serves"),
    FeatureSpec("phase_2_delay", "phase", "1", DELAY_LSB, 0, DELAY_LSB, _S.DELAY, c.served_lanes, True,
                "mean of the delays of the in-lanes that the phase serves"),
    FeatureSpec("phase_2_pressure", "phase", "vehicles", 1, _LOW, _HIGH, _S.VEHICLES, c.opened_links, False,
                "vehicles on the in-lane - on the out-lane, summed over the lane links that the phase opens"),
    FeatureSpec("inter_2_num_vehicle", "intersection", "vehicles", 1, 0, _HIGH, _S.VEHICLES, c.whole, False,
                "vehicles on all in-lanes and out-lanes"),
    FeatureSpec("inter_2_num_waiting_vehicle", "intersection", "vehicles", 1, 0, _HIGH, _S.WAITING, c.whole, False,
                "vehicles slower than 0.1 m/s on all in-lanes and out-lanes"),
    _waiting_time("inter_2_sum_waiting_time", "intersection", c.whole, "the vehicles on all in-lanes and out-lanes"),
    FeatureSpec("inter_2_delay", "intersection", "1", DELAY_LSB, 0, DELAY_LSB, _S.DELAY, c.whole, True,
                "mean of the delays of all in-lanes and out-lanes"),
    FeatureSpec("inter_2_pressure", "intersection", "vehicles", 1, _LOW, _HIGH, _S.VEHICLES, c.whole_links, False,
                "vehicles on the in-lane - on the out-lane, summed over all lane links"),
    FeatureSpec(**{**vars(_image("", IMAGE_SIDE)), "name": "inter_2_vehicle_position_image"}),
    FeatureSpec("inter_2_current_phase", "phase", "1", 1, 0, 1, _S.ACTION, c.actions, False,
                "1 for the action in force, 0 for the others"),
    FeatureSpec("inter_2_phase_has_changed", "intersection", "1", 1, 0, 1, _S.OWN, lambda _: [[(CHANGED, 1)]], False,
                "1 if the action in force is another than at the last decision"),
    FeatureSpec("inter_2_num_passed_vehicle_since_last_action", "intersection", "vehicles", 1, 0, _HIGH, _S.OWN,
                lambda _: [[(PASSED, 1)]], False,
                "vehicles that were on the in-lanes at the last decision and no longer are"),
    FeatureSpec("inter_2_sum_travel_time_since_last_action", "intersection", TIME_UNIT, TIME_UNIT_S, 0, _HIGH, _S.OWN,
                lambda _: [[(PASSED_TRAVEL_TIME, 1)]], False,
                "travel times, as they were at the last decision, of the vehicles that have left the in-lanes since, summed",
                source_units=TIME_UNIT_S),
    FeatureSpec("lanelink_2_pressure", "lane link", "vehicles", 1, _LOW, _HIGH, _S.VEHICLES, c.each_link, False,
                "vehicles on the lane link's in-lane - on its out-lane"),
    FeatureSpec("lanelink_2_num_vehicle", "lane link", "vehicles", 1, 0, _HIGH, _S.LINK_VEHICLES, c.on_links, False,
                "vehicles on the lane link itself"),
)  # fmt: skip

FEATURES: dict[str, FeatureSpec] = {spec.name: spec for spec in _TABLE}
"""The paper's 37, in its order."""

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

DEPLOYABLE = {
    "lane_2_num_vehicle": "a loop where the lane begins counts up, one at its stop line counts down",
    "inlane_2_num_vehicle": "the same, in-lanes only",
    "outlane_2_num_vehicle": "the same, out-lanes only (the next crossing's loops)",
    "inroad_2_num_vehicle": "sum of lanes",
    "phase_2_num_vehicle": "sum of lanes; which ones a phase serves is known",
    "inter_2_num_vehicle": "sum of lanes",
    "inlane_2_pressure": "differences of lanes",
    "phase_2_pressure": "differences of lanes",
    "inter_2_pressure": "differences of lanes",
    "lanelink_2_pressure": "difference of two lanes",
    "inter_2_current_phase": "the controller sets it",
    "inter_2_phase_has_changed": "the controller and its clock",
    "inter_2_num_passed_vehicle_since_last_action": "what the stop lines' loops counted since the last decision",
}
"""Features that two inductive loops per lane and a clock can measure, with the reason. Left out: speeds and what depends on
them (which vehicles wait, for how long, delay), positions within a lane (segments, image), identities (travel times), and the
crossing's inside (vehicles on a lane link: which movement a vehicle made isn't detected)."""

PRESETS: dict[str, tuple[str, ...]] = {"all": tuple(FEATURES), "release": RELEASE, "deployable": tuple(DEPLOYABLE)}


def find_feature(name: str) -> FeatureSpec:
    """The row of a feature, with or without a number of parts or cells in its name; FieldError for an unknown name."""
    if name in FEATURES:
        return FEATURES[name]
    stem, _, number = name.rpartition("_")
    if stem in _PARAMETRISED and re.fullmatch("[1-9][0-9]?", number):
        return _PARAMETRISED[stem](int(number))
    hint = did_you_mean(name, [*FEATURES, *PRESETS]) or f"; there are {', '.join(FEATURES)}"
    raise FieldError("features", f"unknown feature{hint}", name)


def feature_list(text: str) -> str | list[str]:
    """The features of a text: a preset's name, or names separated by commas."""
    return text if text in PRESETS else [name.strip() for name in text.split(",")]


def resolve_features(features: str | Sequence[str]) -> tuple[FeatureSpec, ...]:
    """Rows of the table for a preset's name or a list of feature names; FieldError names what is unknown."""
    if isinstance(features, str):
        if features not in PRESETS:
            raise FieldError("features", f"unknown preset{or_else(features, PRESETS)}", features)
        features = PRESETS[features]
    specs = tuple(find_feature(name) for name in features)
    if not specs or len(set(features)) != len(features):
        raise FieldError("features", "must name at least one feature, and each once", ", ".join(features))
    return specs
