"""Faulty detectors show what they should in every feature, and a shut lane stops its vehicles for its time; all repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streetflow.control.conditions import MOST_STUCK, Conditions, ShutLane
from streetflow.control.environment import Environment
from streetflow.engine.core import EngineCore
from streetflow.errors import FieldError, InputError

COUNTS = ("inlane_2_num_vehicle", "inlane_2_num_waiting_vehicle")
LANES = (*COUNTS, "inlane_2_sum_waiting_time", "inlane_2_delay")
SUMS = ("phase_2_num_vehicle", "phase_2_num_waiting_vehicle", "inroad_2_num_vehicle", "inlane_2_num_vehicle_seg_by_k")
HORIZON_S = 1200


def observed(features: tuple[str, ...], conditions: Conditions, network: str = "arterial") -> NDArray[np.int32]:
    """int32[T, N, F, W]: what is seen under the same random actions, whatever the conditions."""
    environment = Environment(network, 1, features=features, horizon_s=HORIZON_S, conditions=conditions)
    return driven(environment)


def driven(environment: Environment) -> NDArray[np.int32]:
    rng = np.random.default_rng(8)
    counts = [each.action_count for each in environment.intersections]
    seen, done = [environment.reset()], False
    while not done:
        observation, _, done = environment.step(rng.integers(0, counts).astype(np.int32))
        seen.append(observation)
    return np.array(seen)


def test_miscounts_are_by_one_vehicle_up_and_down_alike() -> None:
    truth = observed(("lane_2_num_vehicle", "lane_2_num_waiting_vehicle"), Conditions())
    shown = observed(("lane_2_num_vehicle", "lane_2_num_waiting_vehicle"), Conditions(miscount=0.5, seed=3))
    many = truth > 0  # an empty lane's count can't fall
    errors = (shown - truth)[many]
    assert set(errors) == {-1, 0, 1} and many.sum() > 2000
    for error in (-1, 1):
        assert np.mean(errors == error) == pytest.approx(0.25, abs=0.03)
    assert set((shown - truth)[~many]) == {0, 1} and shown.min() == 0
    vehicles, waiting = (shown - truth)[:, :, 0], (shown - truth)[:, :, 1]
    assert (vehicles != waiting).mean() > 0.2, "the two counts go wrong each by itself"


def test_a_miscount_is_the_same_in_all_features_of_a_count() -> None:
    shown = observed((*COUNTS, *SUMS[:2]), Conditions(miscount=0.5, seed=3))
    environment = Environment("arterial", 1)
    for light, each in enumerate(environment.intersections):
        for action in range(each.action_count):
            served = sorted({each.in_lanes.index(each.lane_links[link][0]) for link in each.phase_lane_links[action]})
            for lane_count, phase_count in ((0, 2), (1, 3)):
                assert (shown[:, light, lane_count, served].sum(axis=1) == shown[:, light, phase_count, action]).all()


def faulty_lane(conditions: Conditions) -> tuple[int, int, NDArray[np.int32], NDArray[np.int32], Environment]:
    """(light, place of its in-lane) of the one lane with a fault, what it and all else should show, and what is shown."""
    truth, shown = (observed(LANES + SUMS, each) for each in (Conditions(), conditions))
    environment = Environment("arterial", 1, features=LANES + SUMS)
    lanes = np.argwhere((truth[:, :, 0] != shown[:, :, 0]).any(axis=0))
    assert len(lanes) == 1
    return int(lanes[0][0]), int(lanes[0][1]), truth, shown, environment


@pytest.mark.parametrize("fault", ["dead_lanes", "stuck_lanes"])
def test_a_faulty_lane_shows_its_fault_in_every_feature_and_no_other_does(fault: str) -> None:
    light, lane, truth, shown, environment = faulty_lane(Conditions(**{fault: 1}, seed=5))
    assert len(set(truth[:, light, 0, lane])) > 3, "a lane with traffic"
    count = int(shown[0, light, 0, lane])
    assert count == 0 if fault == "dead_lanes" else 1 <= count <= MOST_STUCK
    delay = 0 if fault == "dead_lanes" else 256  # all of it: they stand
    assert (shown[:, light, : len(LANES), lane] == [count, count, 0, delay]).all()
    expected = truth.copy()
    expected[:, light, : len(LANES), lane] = [count, count, 0, delay]
    each = environment.intersections[light]
    for k, of in ((4, 0), (5, 1)):
        for action, links in enumerate(each.phase_lane_links):
            if each.in_lanes[lane] in {each.lane_links[link][0] for link in links}:
                expected[:, light, k, action] += count - truth[:, light, of, lane]
    for road, lanes in enumerate(each.in_road_lanes):
        if each.in_lanes[lane] in lanes:
            expected[:, light, 6, road] += count - truth[:, light, 0, lane]
    parts = slice(4 * lane, 4 * lane + 4)
    assert (shown[:, light, 7, parts].sum(axis=1) == count).all() and (
        shown[:, light, 7, parts] == shown[0, light, 7, parts]
    ).all()
    expected[:, light, 7, parts] = shown[:, light, 7, parts]
    # a lane that leads from one light to the next is an out-lane, too, but no feature here looks at those
    assert (shown == expected).all()


def test_a_stuck_lanes_vehicles_stand_at_the_stop_line_and_never_pass() -> None:
    features = ("inlane_2_num_vehicle", "inlane_2_num_vehicle_seg_by_20", "inter_2_num_passed_vehicle_since_last_action")
    truth, shown = (observed(features, each, "crossing") for each in (Conditions(), Conditions(stuck_lanes=3, seed=1)))
    lanes = np.flatnonzero((truth[:, 0, 0] != shown[:, 0, 0]).any(axis=0))
    assert len(lanes) == 3
    for lane in lanes:
        parts = shown[0, 0, 1, 20 * lane : 20 * lane + 20]
        assert parts[-1] > 0 and parts[: -1 - int(np.ceil(parts.sum() * 7.5 / 15))].sum() == 0  # 300 m in 20 parts
    assert (shown[:, 0, 2] <= truth[:, 0, 2]).all() and (shown[:, 0, 2] < truth[:, 0, 2]).any()


def test_all_detectors_of_a_network_may_be_dead() -> None:
    seen = observed(
        ("inlane_2_num_vehicle", "inter_2_num_passed_vehicle_since_last_action"), Conditions(dead_lanes=999, stuck_lanes=9)
    )
    assert not seen.any()


ALL = Conditions(miscount=0.4, dead_lanes=1, stuck_lanes=1, shut_s=300, seed=2)


def test_a_run_repeats_exactly() -> None:
    environment = Environment("arterial", 1, features="all", horizon_s=HORIZON_S, conditions=ALL)
    first, second = driven(environment), driven(environment)
    assert (first == second).all() and (first == observed(tuple(environment.feature_names), ALL)).all()
    other = Conditions(miscount=0.4, dead_lanes=1, stuck_lanes=1, shut_s=300, seed=3)
    assert (first != observed(tuple(environment.feature_names), other)).any()


def on_lane(environment: Environment, lane: int) -> dict[int, float]:
    """By serial: where each vehicle is on the lane."""
    vehicles = environment.engine.running_vehicles()
    here = vehicles.drivable == lane
    return dict(zip(vehicles.serial[here].tolist(), vehicles.distance_m[here].tolist(), strict=True))


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_a_shut_lane_stops_its_vehicles_for_its_time_and_recovers(seed: int) -> None:
    environment = Environment("crossing", 0, horizon_s=3600, conditions=Conditions(shut_s=600, seed=seed))
    shut = environment._shut_lane
    assert shut is not None and 360 <= shut.start_s <= 1800 and shut.start_s % 20 == 0 and shut.end_s == shut.start_s + 600
    assert shut.lane in environment.intersections[0].in_lanes
    environment.reset()
    places: dict[int, dict[int, float]] = {}
    for decision in range(environment.n_decisions):
        places[environment.time_s] = on_lane(environment, shut.lane)
        environment.step([decision // 2 % environment.intersections[0].action_count])
    seconds = range(shut.start_s + 20, shut.end_s, 20)  # from a moment for braking on
    assert len(places[shut.end_s]) > 0, "a lane with traffic"
    for now_s in seconds:
        now, later = places[now_s], places[now_s + 20]
        assert now.keys() <= later.keys(), "none leaves"
        assert all(later[serial] - now[serial] <= 1e-3 for serial in places[shut.start_s + 20])
    before, during, after = ({serial for s in part for serial in places[s]} for part in (
        range(0, shut.start_s, 20), seconds, range(shut.end_s + 300, 3600, 20)))  # fmt: skip
    assert not places[shut.end_s].keys() & after, "all have left within five minutes"
    assert len(after) > len(during) > 0 and len(before) > 0


def test_a_reset_opens_the_lane() -> None:
    environment = Environment("crossing", 0, conditions=Conditions(shut_s=600, seed=1))
    shut, engine = environment._shut_lane, environment.engine
    assert shut is not None and isinstance(engine, EngineCore)
    usual = engine.state.speed_limit[shut.lane]
    environment.reset()
    while environment.time_s < shut.start_s:
        assert engine.state.speed_limit[shut.lane] == usual
        environment.step([0])
    assert engine.state.speed_limit[shut.lane] < 0.1
    environment.reset()
    assert engine.state.speed_limit[shut.lane] == usual


def test_there_is_no_delay_against_a_shut_lanes_limit() -> None:
    delays = {}
    for shut_s in (0, 100):
        environment = Environment("crossing", 0, horizon_s=300, conditions=Conditions(shut_s=shut_s))
        driven(environment)
        delays[shut_s] = environment.measures()["delay_s"]
    assert delays[0] is not None and delays[100] is None


def test_only_the_builtin_engine_shuts_a_lane() -> None:
    environment = Environment("crossing")
    with pytest.raises(InputError, match="conditions: shut_s: only the built-in engine"):
        ShutLane(object(), environment.intersections, Conditions(shut_s=60), 3600, 20)


@pytest.mark.parametrize(
    ("values", "field"),
    [({"miscount": 1.1}, "miscount"), ({"miscount": float("nan")}, "miscount"), ({"dead_lanes": -1}, "dead_lanes"),
     ({"stuck_lanes": -1}, "stuck_lanes"), ({"shut_s": -60}, "shut_s"), ({"seed": -1}, "seed")],
)  # fmt: skip
def test_conditions_that_make_no_sense(values: dict[str, Any], field: str) -> None:
    with pytest.raises(FieldError) as error:
        Conditions(**values)
    assert error.value.field == field
