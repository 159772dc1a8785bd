"""Signal groups, conflicts and times of a crossing, by hand on the built-in crossing, and as rules on drawn ones."""

from __future__ import annotations

import json
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from streetflow.control.signal_groups import SignalPlan, signal_plans
from streetflow.control.signal_times import SignalRules
from streetflow.errors import FieldError, InputError
from streetflow.networks.catalogue import find_network
from streetflow.networks.generate_roadnet import PHASE_PLANS, Grid, roadnet
from streetflow.networks.write import json_bytes
from streetflow.roadnet.network_tables import load_network

LEFT, STRAIGHT, RIGHT = 0, 1, 2  # of an approach: the crossing's road links are three for each of east, north, west, south


def plan_of(folder: Path, grid: Grid) -> SignalPlan:
    (folder / "roadnet.json").write_bytes(json_bytes(roadnet(grid)))
    return signal_plans(load_network(folder / "roadnet.json"))[0]


@pytest.fixture(scope="module")
def crossing() -> SignalPlan:
    return signal_plans(load_network(find_network("crossing").roadnet_file))[0]


def test_groups_are_what_phases_open_together(crossing: SignalPlan) -> None:
    assert [group.road_links for group in crossing.groups] == [
        (0,), (1,), (2, 5, 8, 11), (3,), (4,), (6,), (7,), (9,), (10,)
    ]  # fmt: skip
    assert [group.is_always_open for group in crossing.groups] == [number == 2 for number in range(9)]
    assert all(group.is_served for group in crossing.groups)
    assert crossing.phases[:4] == ((1, 2, 6), (2, 4, 8), (0, 2, 5), (2, 3, 7))
    assert crossing.phase_numbers == tuple(range(8))


def test_conflicts_are_what_crosses_and_no_phase_opens_together(crossing: SignalPlan) -> None:
    """East is approach 0, north 1, west 2, south 3. What goes straight meets both straights and both lefts that come from the
    sides, and the left from ahead; lefts meet the side's lefts, too; lefts from ahead are opened together."""
    number = {
        (approach, turn): g for g, group in enumerate(crossing.groups) for approach, turn in [divmod(group.road_links[0], 3)]
    }
    for approach in range(4):
        ahead, *sides = (approach + 2) % 4, (approach + 1) % 4, (approach + 3) % 4
        meets = {number[side, turn] for side in sides for turn in (LEFT, STRAIGHT)}
        assert crossing.conflicts_of(number[approach, STRAIGHT]) == meets | {number[ahead, LEFT]}
        assert crossing.conflicts_of(number[approach, LEFT]) == meets | {number[ahead, STRAIGHT]}
    assert (number[0, LEFT], number[2, LEFT]) in crossing.permitted
    assert all(2 not in pair for pair in crossing.conflicts), "right turns yield"


def test_times_by_hand(crossing: SignalPlan) -> None:
    """Straight on: 30 m at 11.111 m/s. (30 + 6.1) / 11.111 = 3.249; the longest way slants over two lanes: a little more. From
    rest at 2 m/s2, 30 m take 5.48 s. The crosswalk leads over six lanes of 4 m."""
    straight = crossing.groups[1]
    assert straight.yellow_s == 3.0, "1 + 11.111 / 6.1 = 2.82, but never below 3"
    assert straight.red_clearance_s == pytest.approx(3.249, abs=0.05)
    assert straight.min_green_s == pytest.approx(2 + 5.48, abs=0.05)
    assert straight.walk_and_clearance_s == pytest.approx(7 + 24 / 1.07)
    assert [group.walk_and_clearance_s > 0 for group in crossing.groups] == [g in (1, 4, 6, 8) for g in range(9)]
    assert (straight.max_green_s, crossing.longest_red_s) == (60.0, 120.0)


def test_rules_by_hand() -> None:
    rules = SignalRules()
    assert rules.yellow_s(16.667) == pytest.approx(1 + 16.667 / 6.1)
    assert (rules.yellow_s(5.0), rules.yellow_s(50.0)) == (3.0, 6.0)
    assert rules.red_clearance_s(30.0, 12.0) == pytest.approx(36.1 / 12)
    assert rules.red_clearance_s(100.0, 5.0) == 6.0
    assert rules.min_green_s(16.0, 10.0) == pytest.approx(2 + 4)
    assert rules.min_green_s(45.0, 10.0) == pytest.approx(2 + 5 + 2), "25 m until it is at 10 m/s, and 20 m at that speed"
    assert (rules.min_green_s(1.0, 10.0), rules.min_green_s(500.0, 10.0)) == (5.0, 10.0)
    with pytest.raises(FieldError, match=r"^walk_s: must be above 0, is 0$"):
        SignalRules(walk_s=0)
    with pytest.raises(FieldError, match=r"^least_yellow_s: must be at most most_yellow_s, 2, is 3$"):
        SignalRules(most_yellow_s=2)


@pytest.mark.parametrize("phases", sorted(PHASE_PLANS))
@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_no_phase_opens_a_conflict_and_each_group_is_in_one(tmp_path: Path, phases: int, lanes: int) -> None:
    plan = plan_of(tmp_path, Grid(phases=phases, lanes=lanes, speed_mps=16.0))
    assert sorted(link for group in plan.groups for link in group.road_links) == list(range(12))
    for groups in plan.phases:
        assert not plan.conflicts & set(combinations(groups, 2))
    assert plan.conflicts, "there is something to keep apart"
    assert not plan.conflicts & plan.permitted
    assert len(plan.in_lanes) == len(plan.lane_groups) == 2 * lanes + 2 * 3


def test_a_change_waits_for_red_only_where_what_begins_conflicts(crossing: SignalPlan) -> None:
    """Phase 0 is both straights of the main road, 4 the eastern approach alone: the western straight ends, the eastern left,
    in conflict with it, begins."""
    west = crossing.groups[6]
    assert crossing.change_s(0, 4) == west.yellow_s + west.red_clearance_s
    assert crossing.change_s(0, 0) == 0.0


def test_nothing_begins_before_the_red_clearance_of_what_ended_two_phases_ago(tmp_path: Path) -> None:
    """In Jinan's plan phase 0 opens right turns alone: a change into it waits for no red, so it lasts as long as that."""
    plan = plan_of(tmp_path, Grid(phases=9))
    assert plan.phases[0] == tuple(number for number, group in enumerate(plan.groups) if group.is_always_open)
    longest = max(group.red_clearance_s for group in plan.groups)
    assert plan.change_s(1, 0) == 3.0 and plan.least_green_s(0) >= longest


def test_a_group_that_no_phase_opens_is_not_served(tmp_path: Path) -> None:
    content = roadnet(Grid(phases=4))
    for phase in content["intersections"][0]["trafficLight"]["lightphases"]:
        phase["availableRoadLinks"] = [link for link in phase["availableRoadLinks"] if link != 0]
    (tmp_path / "roadnet.json").write_text(json.dumps(content))
    (plan,) = signal_plans(load_network(tmp_path / "roadnet.json"))
    assert [group.road_links for group in plan.groups if not group.is_served] == [(0,)]
    assert all(group.walk_and_clearance_s == 0 for group in plan.groups if not group.is_served)


def test_a_crosswalk_never_leads_into_what_its_phase_opens(tmp_path: Path) -> None:
    """Here the eastern straight is open together with the western left, which enters the leg that its crosswalk leads over."""
    content = roadnet(Grid(phases=4))
    phases = content["intersections"][0]["trafficLight"]["lightphases"]
    rights = [2, 5, 8, 11]
    for phase, opened in zip(phases, ([1, 6], [4, 9], [7, 0], [10, 3]), strict=True):
        phase["availableRoadLinks"] = sorted(opened + rights)
    (tmp_path / "roadnet.json").write_text(json.dumps(content))
    (plan,) = signal_plans(load_network(tmp_path / "roadnet.json"))
    assert [group.walk_and_clearance_s for group in plan.groups] == [0.0] * len(plan.groups)


def test_a_light_that_opens_nothing_is_refused(tmp_path: Path) -> None:
    content = roadnet(Grid(phases=4))
    for phase in content["intersections"][0]["trafficLight"]["lightphases"]:
        phase["availableRoadLinks"] = []
    (tmp_path / "roadnet.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"intersections\[0\].trafficLight.lightphases: no phase opens anything"):
        signal_plans(load_network(tmp_path / "roadnet.json"))


def test_plans_are_in_file_order() -> None:
    plans = signal_plans(load_network(find_network("arterial").roadnet_file))
    assert len(plans) == 3 and all(a.number < b.number for a, b in pairwise(plans))
