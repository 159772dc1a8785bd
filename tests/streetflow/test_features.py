"""Each feature against a case computed by hand, on a fake engine whose lanes are set."""

from __future__ import annotations

import numpy as np
import pytest

from streetflow.control.features import DEPLOYABLE, FEATURES, PRESETS, RELEASE, find_feature, resolve_features
from streetflow.control.intersection import Intersection
from streetflow.control.observation import Observer
from streetflow.engine.vehicles import Vehicles
from streetflow.errors import InputError

# Lanes: 0, 1 = in-road a, from the west; 2 = in-road b, from the south; 3, 4 = out-road c, to the north; 5 = out-road d, to
# the east. Lane links: 0: 0->3, 1: 0->4, 2: 1->5, 3: 2->3, 4: 2->5. Actions open links (0, 1), (2,), (0, 1, 3, 4).
LIGHT = Intersection(
    id="x",
    number=0,
    phase_count=3,
    phases=(0, 1, 2),
    in_roads=("a", "b"),
    out_roads=("c", "d"),
    in_lanes=(0, 1, 2),
    out_lanes=(3, 4, 5),
    in_road_lanes=((0, 1), (2,)),
    out_road_lanes=((3, 4), (5,)),
    lane_links=((0, 3), (0, 4), (1, 5), (2, 3), (2, 5)),
    first_lane_link=0,
    centre_m=(0.0, 0.0),
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
    in_road_lanes=((5,),),
    out_road_lanes=((6,),),
    lane_links=((5, 6),),
    first_lane_link=5,
    centre_m=(120.0, -2.0),
    phase_lane_links=((0,), (0,)),
)
LANES = [
    [(-110.0, -2.0), (-10.0, -2.0)],
    [(-110.0, -5.0), (-10.0, -5.0)],
    [(2.0, -210.0), (2.0, -10.0)],
    [(2.0, 10.0), (2.0, 110.0)],
    [(5.0, 10.0), (5.0, 110.0)],
    [(10.0, -2.0), (110.0, -2.0)],
    [(130.0, -2.0), (230.0, -2.0)],
]
LINKS = [[LANES[start][1], LANES[end][0]] for start, end in (*LIGHT.lane_links, *SMALL.lane_links)]
# (drivable, serial, distance in m, created at s); the numbers on lanes agree with the counts of FakeEngine.
NOW = [
    (0, 1, 99.0, 2), (0, 9, 80.0, 25), (0, 5, 50.0, 10), (0, 10, 24.9, 26),
    (2, 11, 150.0, 27), (2, 12, 149.0, 28),
    (3, 13, 10.0, 3),
    *((4, 14 + n, distance, 3) for n, distance in enumerate((100.0, 60.0, 40.0, 30.0, 20.0, 10.0, 0.0))),
    (5, 3, 99.0, 0), (5, 21, 90.0, 0), (5, 22, 75.0, 0),
    (7, 23, 3.5, 0), (11, 24, 0.0, 0), (11, 4, 5.0, 9), (12, 25, 12.0, 0),
]  # fmt: skip
# At the last decision, at 20 s. Since then 2 has gone, 4 is on lane link 4, 5 has changed lanes within
# the in-road, 6 has gone.
BEFORE = [(0, 1, 9.0, 2), (0, 2, 5.0, 5), (1, 5, 1.0, 10), (2, 4, 99.0, 9), (5, 3, 9.0, 0), (5, 6, 8.0, 1)]


def vehicles(rows: list[tuple[int, int, float, int]]) -> Vehicles:
    made = Vehicles.empty(len(rows))
    for n, (drivable, serial, distance_m, created_s) in enumerate(rows):
        for column, value in zip(made, (drivable, serial, distance_m, created_s), strict=True):
            column[n] = value
    return made


class FakeEngine:
    """Lane states as they are set."""

    lane_max_speed_mps = np.array([10.0, 10.0, 20.0, 10.0, 10.0, 10.0, 10.0])
    lane_length_m = np.array([100.0, 100.0, 200.0, 100.0, 100.0, 100.0, 100.0])
    drivable_shapes = LANES + LINKS

    def __init__(self) -> None:
        self.vehicles = np.array([4, 0, 2, 1, 7, 3, 0], np.int32)
        self.waiting = np.array([2, 0, 1, 1, 0, 3, 0], np.int32)
        self.waiting_time_s = np.array([31.0, 0.0, 8.0, 5.0, 0.0, 60.0, 0.0])
        self.speed_sums_mps = np.array([10.0, 0.0, 25.0, 0.05, 70.0, 0.0, 0.0])
        self.time_s, self.by_vehicle = 20, BEFORE

    def lane_vehicle_counts(self) -> np.ndarray:
        return self.vehicles

    def lane_waiting_counts(self) -> np.ndarray:
        return self.waiting

    def lane_waiting_time_sums_s(self) -> np.ndarray:
        return self.waiting_time_s

    def lane_speed_sums_mps(self) -> np.ndarray:
        return self.speed_sums_mps

    def running_vehicles(self) -> Vehicles:
        return vehicles(self.by_vehicle)

    def get_current_time(self) -> float:
        return float(self.time_s)


# Delays in 1/256. Lane 0: 1 - 2.5/10 = 0.75; lane 2 has its own limit: 1 - 12.5/20 = 0.375; lane 3: 1 - 0.05/10 = 0.995;
# lane 4: 1 - 10/10 = 0; lane 5 stands: 1; an empty lane: 0.
IN_PARTS = [1, 0, 1, 2, 0, 0, 0, 0, 0, 0, 1, 1]  # 25 m each, of lane 2 50 m; 50 m and 150 m begin a part
OUT_PARTS = [1, 0, 0, 0, 3, 2, 1, 1, 0, 0, 0, 3]
EXPECTED = {
    "lane_2_num_vehicle": [4, 0, 2, 1, 7, 3],
    "lane_2_num_waiting_vehicle": [2, 0, 1, 1, 0, 3],
    "lane_2_sum_waiting_time": [31, 0, 8, 5, 0, 60],
    "lane_2_delay": [192, 0, 96, 255, 0, 256],
    "lane_2_num_vehicle_seg_by_k": IN_PARTS + OUT_PARTS,
    "inlane_2_num_vehicle": [4, 0, 2],
    "inlane_2_num_waiting_vehicle": [2, 0, 1],
    "inlane_2_sum_waiting_time": [31, 0, 8],
    "inlane_2_delay": [192, 0, 96],
    "inlane_2_num_vehicle_seg_by_k": IN_PARTS,
    # lane 0: (4-1) + (4-7); lane 1: 0-3; lane 2: (2-1) + (2-3)
    "inlane_2_pressure": [0, -3, 0],
    "outlane_2_num_vehicle": [1, 7, 3],
    "outlane_2_num_waiting_vehicle": [1, 0, 3],
    "outlane_2_sum_waiting_vehicle": [5, 0, 60],
    "outlane_2_delay": [255, 0, 256],
    "outlane_2_num_vehicle_seg_by_k": OUT_PARTS,
    "inroad_2_num_vehicle": [4, 2],
    "inroad_2_num_waiting_vehicle": [2, 1],
    "inroad_2_sum_waiting_time": [31, 8],
    "inroad_2_delay": [96, 96],  # road a: (0.75 + 0) / 2
    # lanes served: {0}, {1}, {0, 2}; lane 0 counts once though two links leave it
    "phase_2_num_vehicle": [4, 0, 6],
    "phase_2_num_waiting_vehicle": [2, 0, 3],
    "phase_2_sum_waiting_time": [31, 0, 39],
    "phase_2_delay": [192, 0, 144],
    "phase_2_pressure": [0, -3, 0],
    "inter_2_num_vehicle": [17],
    "inter_2_num_waiting_vehicle": [7],
    "inter_2_sum_waiting_time": [104],
    "inter_2_delay": [133],  # (0.75 + 0.375 + 0.995 + 1) / 6 = 0.52: 133.1 / 256
    "inter_2_pressure": [-3],  # links: 3, -3, -3, 1, -1
    "inter_2_vehicle_position_image": None,  # see below
    "inter_2_current_phase": [0, 0, 1],
    "inter_2_phase_has_changed": [1],  # it was 1
    "inter_2_num_passed_vehicle_since_last_action": [2],  # 2 and 4
    "inter_2_sum_travel_time_since_last_action": [26],  # (20 - 5) + (20 - 9)
    "lanelink_2_pressure": [3, -3, -3, 1, -1],
    "lanelink_2_num_vehicle": [1, 0, 0, 0, 2],
}
# Cells of 60 m, rows from the south. Lane 0's vehicles are at x = -11, -30, -60, -86; lane 2's at y = -60 and -61; lane 3's
# at y = 20; lane 4's at 110, 70, 50, 40, 30, 20, 10; lane 5's at x = 109, 100, 85; the links' at (-8, 0), (2, -10), (5, -6).
IMAGE_4 = [[0, 0, 1, 0], [1, 3, 3, 3], [0, 1, 6, 0], [0, 0, 2, 0]]


def observe(*names: str, engine: FakeEngine | None = None, current: tuple[int, int] = (2, 0)) -> np.ndarray:
    """The observation at 40 s, after one at 20 s under the actions (1, 0)."""
    engine = engine or FakeEngine()
    observer = Observer([LIGHT, SMALL], resolve_features(names), engine)
    observer.observe(engine, np.array([1, 0], np.int32))
    engine.time_s, engine.by_vehicle = 40, NOW
    return observer.observe(engine, np.array(current, np.int32))[0]


@pytest.mark.parametrize("name", [name for name, values in EXPECTED.items() if values is not None])
def test_feature_equals_hand_computed_value(name: str) -> None:
    assert observe(name)[0, 0].tolist()[: len(EXPECTED[name])] == EXPECTED[name]
    assert find_feature(name).width(LIGHT) == len(EXPECTED[name])


def test_every_feature_of_the_table_has_a_hand_computed_case() -> None:
    assert list(EXPECTED) == list(FEATURES) and len(FEATURES) == 37


def test_image_equals_hand_drawn_one() -> None:
    assert observe("inter_2_vehicle_position_image_4")[0, 0].reshape(4, 4).tolist() == IMAGE_4
    fine = observe("inter_2_vehicle_position_image")[0, 0].reshape(12, 12)
    assert fine.sum() == sum(map(sum, IMAGE_4))
    assert fine[5, :6].tolist() == [0, 1, 0, 1, 1, 1]  # lane 0 in cells of 20 m
    coarse = fine.reshape(4, 3, 4, 3).sum(axis=(1, 3))
    assert coarse.tolist() == IMAGE_4


def test_a_name_may_state_its_number_of_parts() -> None:
    assert observe("inlane_2_num_vehicle_seg_by_2")[0, 0].tolist() == [1, 3, 0, 0, 0, 2]
    both = observe("inlane_2_num_vehicle_seg_by_2", "inlane_2_num_vehicle_seg_by_k")[0]
    assert both[0, :6].tolist() == [1, 3, 0, 0, 0, 2] and both[1].tolist() == IN_PARTS
    for name in ("inlane_2_num_vehicle_seg_by_0", "inlane_2_num_vehicle_seg_by_x", "inlane_2_num_vehicle_2"):
        with pytest.raises(InputError, match="unknown feature"):
            find_feature(name)


def test_the_neighbour_has_its_own_passed_vehicles_and_lane_links() -> None:
    passed, travel_s, links, image = observe(
        "inter_2_num_passed_vehicle_since_last_action",
        "inter_2_sum_travel_time_since_last_action",
        "lanelink_2_num_vehicle",
        "inter_2_vehicle_position_image_2",
    )[1]
    assert (passed[0], travel_s[0], links[0]) == (1, 19, 1)
    assert image[:4].tolist() == [0, 0, 3, 1]  # 120 m: lane 5 to the west, lane link and lane 6 to the east; y = -2 is row 1


def test_looking_twice_at_one_time_changes_nothing_and_reset_forgets() -> None:
    names = ("inter_2_phase_has_changed", "inter_2_num_passed_vehicle_since_last_action")
    engine = FakeEngine()
    observer = Observer([LIGHT, SMALL], resolve_features(names), engine)
    old, new = np.array([1, 0], np.int32), np.array([2, 0], np.int32)
    assert observer.observe(engine, old)[0][:, :, 0].tolist() == [[0, 0], [0, 0]]
    engine.time_s, engine.by_vehicle = 40, NOW
    for _ in range(2):
        assert observer.observe(engine, new)[0][:, :, 0].tolist() == [[1, 2], [0, 1]]
    observer.reset()
    engine.time_s = 0
    assert observer.observe(engine, old)[0][:, :, 0].tolist() == [[0, 0], [0, 0]]


def test_presets() -> None:
    assert PRESETS["all"] == tuple(FEATURES) and PRESETS["release"] == RELEASE
    assert PRESETS["deployable"] == tuple(DEPLOYABLE) and all(DEPLOYABLE.values())
    unseen = ("waiting", "delay", "seg_by", "image", "travel_time", "lanelink_2_num")
    assert set(DEPLOYABLE) == {name for name in FEATURES if not any(word in name for word in unseen)}


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
    observer = Observer([LIGHT, SMALL], resolve_features(RELEASE), FakeEngine())
    assert observer.max_width == 3
    widths = [dict(zip(RELEASE, row, strict=True)) for row in observer.feature_widths.tolist()]
    assert widths[0] == dict.fromkeys(RELEASE, 3)
    assert widths[1] == {name: 1 if name.startswith("inlane") else 2 for name in RELEASE}


def test_pressure_for_the_reward_is_in_lanes_minus_out_lanes() -> None:
    engine = FakeEngine()
    observer = Observer([LIGHT, SMALL], resolve_features(["phase_2_delay"]), engine)
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
    observer = Observer([LIGHT], resolve_features(["inlane_2_num_vehicle"]), engine)
    first, _ = observer.observe(engine, np.zeros(1, np.int32))
    engine.vehicles[:] = 9
    observer.observe(engine, np.zeros(1, np.int32))
    assert first[0, 0].tolist() == [4, 0, 2]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (["phase_2_presure"], "phase_2_presure: unknown feature; did you mean phase_2_pressure"),
        ("everything", "unknown preset; there are all, release, deployable"),
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


def test_times_come_in_decision_intervals_with_whole_seconds_as_integers() -> None:
    times = [spec for spec in FEATURES.values() if "time" in spec.description]
    assert len(times) == 7
    assert {(spec.unit, spec.lsb_per_unit, spec.source_units) for spec in times} == {("20 s", 20, 20)}
