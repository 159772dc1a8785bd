"""Which sums of a policy's values two loops a lane can tell where vehicles change lanes."""

from __future__ import annotations

import numpy as np
import pytest

from hil.light.whole_roads import whole_road_sums
from model.policy.file import FeatureInput, IntersectionPolicy
from model.policy.synthetic import random_intersection
from streetflow.control.features import find_feature
from streetflow.control.intersection import Intersection, signalled_intersections
from streetflow.networks.catalogue import find_network
from streetflow.roadnet.network_tables import load_network


@pytest.fixture(scope="module")
def crossing() -> Intersection:
    """Four roads in, of three lanes each; a value for each of its 8 phases."""
    return signalled_intersections(load_network(find_network("crossing").roadnet_file).roadnet)[0]


def policy_of(crossing: Intersection, *names: str) -> IntersectionPolicy:
    widths = [find_feature(name).width(crossing) for name in names]
    part = random_intersection(1, intersection_id=crossing.id, n_phases=crossing.action_count, widths=widths, hidden=(4, 4))
    features = [
        FeatureInput(name=name, width=width, lsb_per_unit=1, offset=0, multiplier=8, shift=0)
        for name, width in zip(names, widths, strict=True)
    ]
    return part.model_copy(update={"features": features})


def test_lanes_are_summed_by_roads_and_nothing_else_of_them_is_left(crossing: Intersection) -> None:
    sums = whole_road_sums(policy_of(crossing, "inlane_2_num_vehicle"), crossing)
    assert sums.shape == (4, 12)
    assert (sums.sum(axis=0) == 1).all() and (sums.sum(axis=1) == 3).all()
    for row, road in zip(sums, crossing.in_road_lanes, strict=True):
        assert {crossing.in_lanes[place] for place in np.flatnonzero(row)} == set(road)


def test_a_phase_of_some_lanes_of_a_road_is_left_out_and_a_whole_road_stays(crossing: Intersection) -> None:
    assert whole_road_sums(policy_of(crossing, "phase_2_num_vehicle"), crossing).shape == (0, 8)
    assert (whole_road_sums(policy_of(crossing, "inroad_2_num_vehicle"), crossing) == np.eye(4)).all()


def test_what_is_not_on_lanes_stays_but_for_those_who_have_passed(crossing: Intersection) -> None:
    names = ("inter_2_current_phase", "inter_2_num_passed_vehicle_since_last_action", "inter_2_phase_has_changed")
    sums = whole_road_sums(policy_of(crossing, *names), crossing)
    assert sums.shape == (9, 10)
    assert [int(np.flatnonzero(row)[0]) for row in sums] == [0, 1, 2, 3, 4, 5, 6, 7, 9]


@pytest.mark.parametrize("seed", range(20))
def test_a_vehicle_that_changes_lanes_moves_no_sum(seed: int, crossing: Intersection) -> None:
    """Weights of the cells, straight from the feature table."""
    names = ("inlane_2_num_vehicle", "outlane_2_num_vehicle", "phase_2_pressure", "inter_2_pressure", "inroad_2_num_vehicle")
    sums = whole_road_sums(policy_of(crossing, *names), crossing)
    draw = np.random.default_rng(seed)
    road = draw.permutation([*map(tuple, crossing.in_road_lanes), *map(tuple, crossing.out_road_lanes)])[0]
    start, end = draw.permutation(road)[:2]
    change = [
        sum(weight * (int(lane == end) - int(lane == start)) for lane, weight in cell)
        for name in names
        for cell in find_feature(name).cells(crossing)
    ]
    assert any(change) and not (sums @ np.array(change)).any()
