"""Each feature against a case computed by hand, on a fake engine whose lanes are set."""

from __future__ import annotations

import numpy as np
import pytest

from streetflow.errors import InputError
from streetflow.features import FEATURES, RELEASE, resolve_features
from streetflow.intersection import Intersection
from streetflow.observation import Observer

# Lanes: 0, 1 = in-road a; 2 = in-road b; 3, 4 = out-road c; 5 = out-road d.
# Lane links: 0: 0->3, 1: 0->4, 2: 1->5, 3: 2->3, 4: 2->5. Actions open links (0, 1), (2,), (0, 1, 3, 4).
LIGHT = Intersection(
    id="x",
    number=0,
    phase_count=3,
    phases=(0, 1, 2),
    in_roads=("a", "b"),
    out_roads=("c", "d"),
    in_lanes=(0, 1, 2),
    out_lanes=(3, 4, 5),
    lane_links=((0, 3), (0, 4), (1, 5), (2, 3), (2, 5)),
    phase_lane_links=((0, 1), (2,), (0, 1, 3, 4)),
)
# A second light with other widths: one in-lane (5, the first one's out-lane), two actions.
SMALL = Intersection(
    id="y",
    number=1,
    phase_count=2,
    phases=(0, 1),
    in_roads=("d",),
    out_roads=("e",),
    in_lanes=(5,),
    out_lanes=(6,),
    lane_links=((5, 6),),
    phase_lane_links=((0,), (0,)),
)


class FakeEngine:
    """Lane states as they are set."""

    lane_max_speed_mps = np.array([10.0, 10.0, 20.0, 10.0, 10.0, 10.0, 10.0])

    def __init__(self) -> None:
        self.vehicles = np.array([4, 0, 2, 1, 7, 3, 0], np.int32)
        self.waiting = np.array([2, 0, 1, 1, 0, 3, 0], np.int32)
        self.waiting_time_s = np.array([31.0, 0.0, 8.0, 5.0, 0.0, 60.0, 0.0])
        self.speed_sums_mps = np.array([10.0, 0.0, 25.0, 0.05, 70.0, 0.0, 0.0])

    def lane_vehicle_counts(self) -> np.ndarray:
        return self.vehicles

    def lane_waiting_counts(self) -> np.ndarray:
        return self.waiting

    def lane_waiting_time_sums_s(self) -> np.ndarray:
        return self.waiting_time_s

    def lane_speed_sums_mps(self) -> np.ndarray:
        return self.speed_sums_mps


EXPECTED = {
    "inlane_2_num_vehicle": [4, 0, 2],
    "inlane_2_num_waiting_vehicle": [2, 0, 1],
    "inlane_2_sum_waiting_time": [31, 0, 8],
    # lane 0: 1 - 2.5/10 = 0.75; lane 1 is empty; lane 2 has its own limit: 1 - 12.5/20 = 0.375
    "inlane_2_delay": [192, 0, 96],
    # lane 0: (4-1) + (4-7); lane 1: 0-3; lane 2: (2-1) + (2-3)
    "inlane_2_pressure": [0, -3, 0],
    # lanes served: {0}, {1}, {0, 2}; lane 0 counts once though two links leave it
    "phase_2_num_vehicle": [4, 0, 6],
    "phase_2_num_waiting_vehicle": [2, 0, 3],
    "phase_2_sum_waiting_time": [31, 0, 39],
    "phase_2_delay": [192, 0, 144],
    "phase_2_pressure": [0, -3, 0],
    "inter_2_current_phase": [0, 0, 1],
}


def observe(*names: str, engine: FakeEngine | None = None, current: tuple[int, int] = (2, 0)) -> np.ndarray:
    engine = engine or FakeEngine()
    observer = Observer([LIGHT, SMALL], resolve_features(names), engine.lane_max_speed_mps)
    return observer.observe(engine, np.array(current, np.int32))[0]


@pytest.mark.parametrize("name", RELEASE)
def test_feature_equals_hand_computed_value(name: str) -> None:
    assert observe(name)[0, 0].tolist() == EXPECTED[name]


def test_every_feature_of_the_table_has_a_hand_computed_case() -> None:
    assert set(EXPECTED) == set(FEATURES)


def test_all_at_once_equal_one_by_one_and_are_padded_with_zeros() -> None:
    observation = observe(*RELEASE)
    assert observation.shape == (2, 11, 3) and observation.dtype == np.int32
    for f, name in enumerate(RELEASE):
        assert observation[0, f].tolist() == EXPECTED[name]
    small = dict(zip(RELEASE, observation[1].tolist(), strict=True))
    assert small["inlane_2_num_vehicle"] == [3, 0, 0]
    assert small["inlane_2_delay"] == [256, 0, 0]  # three standing vehicles
    assert small["phase_2_pressure"] == [3, 3, 0]
    assert small["inter_2_current_phase"] == [1, 0, 0]


def test_widths() -> None:
    observer = Observer([LIGHT, SMALL], resolve_features(RELEASE), FakeEngine.lane_max_speed_mps)
    assert observer.max_width == 3
    widths = [dict(zip(RELEASE, row, strict=True)) for row in observer.feature_widths.tolist()]
    assert widths[0] == dict.fromkeys(RELEASE, 3)
    assert widths[1] == {name: 1 if name.startswith("inlane") else 2 for name in RELEASE}


def test_pressure_for_the_reward_is_in_lanes_minus_out_lanes() -> None:
    engine = FakeEngine()
    observer = Observer([LIGHT, SMALL], resolve_features(["phase_2_delay"]), engine.lane_max_speed_mps)
    _, pressure = observer.observe(engine, np.zeros(2, np.int32))
    assert pressure.tolist() == [(4 + 0 + 2) - (1 + 7 + 3), 3 - 0]


def test_values_are_clamped_to_the_stated_range() -> None:
    engine = FakeEngine()
    engine.waiting_time_s[0] = 40_000.0
    assert observe("inlane_2_sum_waiting_time", engine=engine)[0, 0].tolist() == [32767, 0, 8]
    engine.speed_sums_mps[0] = 44.0  # faster than the limit of 10 m/s
    assert observe("inlane_2_delay", engine=engine)[0, 0].tolist() == [0, 0, 96]


def test_delay_is_rounded_to_the_nearest_step() -> None:
    engine = FakeEngine()
    engine.speed_sums_mps[0] = 4 * 10.0 * (1 - 100.5 / 256)  # half a step above 100
    engine.speed_sums_mps[2] = 2 * 20.0 * (1 - 100.4375 / 256)
    assert observe("inlane_2_delay", engine=engine)[0, 0].tolist() == [101, 0, 100]


def test_observations_are_fresh_arrays() -> None:
    engine = FakeEngine()
    observer = Observer([LIGHT], resolve_features(["inlane_2_num_vehicle"]), engine.lane_max_speed_mps)
    first, _ = observer.observe(engine, np.zeros(1, np.int32))
    engine.vehicles[:] = 9
    observer.observe(engine, np.zeros(1, np.int32))
    assert first[0, 0].tolist() == [4, 0, 2]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (["phase_2_presure"], "phase_2_presure: unknown feature; did you mean phase_2_pressure"),
        ("everything", "unknown preset; there are release"),
        ([], "at least one"),
        (["inlane_2_delay", "inlane_2_delay"], "each once"),
    ],
)
def test_bad_feature_lists_are_input_errors(features: str | list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve_features(features)


def test_table_states_an_int16_range_and_a_scale() -> None:
    for spec in FEATURES.values():
        assert -32768 <= spec.minimum < spec.maximum <= 32767
        assert spec.lsb_per_unit >= 1 and spec.unit and spec.description
