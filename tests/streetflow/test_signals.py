"""The lights, second by second, for each clearance and for a minimum green."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from streetflow.control.clearance import CLEARANCE_S, CLEARANCES, Changes, derive_clearance
from streetflow.control.environment import Environment
from streetflow.control.intersection import Intersection, signalled_intersections
from streetflow.control.signal_groups import signal_plans
from streetflow.control.signals import Signals
from streetflow.errors import InputError
from streetflow.networks.catalogue import HORIZONS_S, find_network
from streetflow.roadnet.json_reader import read_json
from streetflow.roadnet.network_tables import load_network
from streetflow.roadnet.reader import read_roadnet
from tests.helpers.shared_data import needs_data_set

# Phase 0 opens nothing, so action 0 is phase 1, action 1 phase 2, action 2 phase 3.
LIGHT = Intersection(
    id="a",
    number=1,
    phase_count=4,
    phases=(1, 2, 3),
    in_roads=("w", "s"),
    out_roads=("e",),
    in_lanes=(0, 1),
    out_lanes=(2,),
    in_road_lanes=((0,), (1,)),
    out_road_lanes=((2,),),
    lane_links=((0, 2), (1, 2)),
    first_lane_link=0,
    centre_m=(0.0, 0.0),
    phase_lane_links=((0,), (1,), (0, 1)),
)
HOLD = np.full((1, 3, 3), -1, np.int32)
# A table that gives every pair of actions its own clearance phase: 100 + 10 * old + new.
CLEAR = (100 + 10 * np.arange(3)[None, :, None] + np.arange(3)[None, None, :]).astype(np.int32)


def second_by_second(signals: Signals, actions: list[int]) -> list[tuple[int, int, int]]:
    """(phase shown, current action, elapsed) after each second's update; ``actions`` holds one a second."""
    table = []
    for action in actions:
        signals.advance(np.array([action], np.int32), 1)
        table.append((int(signals.shown_phase[0]), int(signals.current_action[0]), int(signals.elapsed_s[0])))
    return table


def three_seconds(phases: np.ndarray) -> Changes:
    return Changes(phases, np.full_like(phases, CLEARANCE_S), np.zeros(phases.shape[:2], np.int32))


def started(clearance_phases: np.ndarray, min_green_s: int = 0) -> Signals:
    signals = Signals([LIGHT], three_seconds(clearance_phases), 3, min_green_s)
    signals.reset()
    return signals


def test_start_shows_action_0_and_counts_it() -> None:
    """Not the file's phase 0, which opens nothing: found by comparing with the released experiment."""
    signals = Signals([LIGHT], three_seconds(HOLD), 3)
    assert signals.reset().tolist() == [-1, 1, -1]  # phase 1 at intersection number 1
    assert second_by_second(signals, [0, 0, 0]) == [(1, 0, 1), (1, 0, 2), (1, 0, 3)]


def test_reset_forgets_everything() -> None:
    signals = started(CLEAR)
    second_by_second(signals, [2] * 9 + [1])
    signals.reset()
    assert second_by_second(signals, [0, 0]) == [(1, 0, 1), (1, 0, 2)]


CHANGES = {
    # After 3 s with action 0, action 2 comes at second 3 and shows at second 6.
    "hold": (HOLD, [(1, 0, 1), (1, 0, 2), (1, 0, 3), (3, 2, 1), (3, 2, 2), (3, 2, 3)]),
    "clearance phase": (CLEAR, [(102, 0, 1), (102, 0, 2), (102, 0, 3), (3, 2, 1), (3, 2, 2), (3, 2, 3)]),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_change_shows_after_three_seconds(kind: str) -> None:
    table, expected = CHANGES[kind]
    signals = started(table)
    second_by_second(signals, [0, 0, 0])
    assert second_by_second(signals, [2] * 6) == expected


def test_change_back_runs_through_a_clearance_of_its_own() -> None:
    signals = started(CLEAR)
    second_by_second(signals, [2] * 5)
    assert second_by_second(signals, [1] * 4) == [(121, 2, 1), (121, 2, 2), (121, 2, 3), (2, 1, 1)]


def test_begun_change_is_carried_through() -> None:
    """The action changes again one second into the clearance: what the yellow announced comes first."""
    signals = started(CLEAR)
    assert second_by_second(signals, [2, 1, 1, 1, 1, 1, 1, 1]) == [
        (102, 0, 1), (102, 0, 2), (102, 0, 3), (3, 2, 1), (121, 2, 1), (121, 2, 2), (121, 2, 3), (2, 1, 1),
    ]  # fmt: skip


def test_min_green_delays_the_change_only() -> None:
    signals = started(CLEAR, min_green_s=5)
    second_by_second(signals, [0] * 6)
    second_by_second(signals, [1] * 4)  # 3 s clearance, then green for the first second
    rows = second_by_second(signals, [2] * 9)
    assert rows[:4] == [(2, 1, 2), (2, 1, 3), (2, 1, 4), (2, 1, 5)]  # green for 5 s in all
    assert rows[4:8] == [(112, 1, 1), (112, 1, 2), (112, 1, 3), (3, 2, 1)]


def test_each_change_lasts_its_own_seconds_and_each_green_its_own_minimum() -> None:
    seconds = np.array([[[0, 2, 5], [1, 0, 0], [4, 3, 0]]], np.int32)
    signals = Signals([LIGHT], Changes(CLEAR, seconds, np.array([[2, 1, 3]], np.int32)), 3)
    signals.reset()
    assert second_by_second(signals, [1] * 5) == [(1, 0, 1), (1, 0, 2), (101, 0, 1), (101, 0, 2), (2, 1, 1)]
    assert second_by_second(signals, [2, 0, 0, 0]) == [(3, 2, 1), (3, 2, 2), (3, 2, 3), (120, 2, 1)]  # at once, then 4 s
    assert second_by_second(signals, [0] * 4)[2:] == [(120, 2, 4), (1, 0, 1)]


def test_the_option_and_the_crossing_share_the_minimum_green() -> None:
    changes = Changes(HOLD, np.zeros_like(HOLD), np.array([[2, 9, 2]], np.int32))
    signals = Signals([LIGHT], changes, 3, min_green_s=4)
    signals.reset()
    assert [current for _, current, _ in second_by_second(signals, [1] * 5 + [2] * 10)] == [0] * 4 + [1] * 9 + [2] * 2


def test_negative_min_green_is_refused() -> None:
    with pytest.raises(InputError, match="min_green_s: must not be negative, is -1"):
        Signals([LIGHT], three_seconds(HOLD), 3, min_green_s=-1)


@pytest.mark.parametrize("min_green_s", [0, 7])
def test_many_seconds_at_once_equal_single_seconds(min_green_s: int) -> None:
    """Two lights, random actions: the runs of one long advance hold the same phases at the same seconds."""
    rng = np.random.default_rng(5)
    lights = [LIGHT, Intersection(**{**LIGHT.__dict__, "id": "b", "number": 2})]
    table = three_seconds(np.concatenate([CLEAR, CLEAR]))
    whole, single = Signals(lights, table, 3, min_green_s), Signals(lights, table, 3, min_green_s)
    single.reset()
    shown = np.maximum(whole.reset(), 0)
    for _ in range(50):
        actions = rng.integers(0, 3, 2).astype(np.int32)
        seconds = int(rng.integers(1, 12))
        expanded = []
        for phases, run_s in whole.advance(actions, seconds):
            if phases is not None:
                shown = np.where(phases >= 0, phases, shown)
            expanded += [shown.tolist()] * run_s
        expected = []
        for _ in range(seconds):
            single.advance(actions, 1)
            expected.append([0, *single.shown_phase.tolist()])
        assert expanded == expected


def small_roadnet(tmp_path: Path) -> Path:
    """A crossing of two one-way streets; phase 0 opens nothing. One number has more digits than a double."""
    centre = {"id": "c", "point": {"x": 0, "y": 0}, "width": 5.000000000000000055511151, "virtual": False}
    ends = {"w": (-100, 0), "e": (100, 0), "s": (0, -100), "n": (0, 100)}
    roads = [{"id": f"from_{k}", "startIntersection": k, "endIntersection": "c"} for k in ("w", "s")] + [
        {"id": f"to_{k}", "startIntersection": "c", "endIntersection": k} for k in ("e", "n")
    ]
    for road in roads:
        start, end = (ends.get(road[k], (0, 0)) for k in ("startIntersection", "endIntersection"))
        road["points"] = [{"x": x, "y": y} for x, y in (start, end)]  # type: ignore[assignment]
        road["lanes"] = [{"width": 3, "maxSpeed": 11.11}]  # type: ignore[assignment]
    links = [
        ("go_straight", "w", "e"),
        ("turn_left", "w", "n"),
        ("go_straight", "s", "n"),
        ("turn_right", "s", "e"),
    ]
    centre["roads"] = [road["id"] for road in roads]
    centre["roadLinks"] = [
        {
            "type": kind,
            "startRoad": f"from_{a}",
            "endRoad": f"to_{b}",
            "laneLinks": [{"startLaneIndex": 0, "endLaneIndex": 0}],
        }
        for kind, a, b in links
    ]
    opened = [[], [0, 1, 3], [2, 3], [0, 3]]
    centre["trafficLight"] = {"lightphases": [{"time": 5, "availableRoadLinks": each} for each in opened]}
    rim = [{"id": k, "point": {"x": x, "y": y}, "virtual": True, "roads": []} for k, (x, y) in ends.items()]
    file = tmp_path / "roadnet.json"
    text = json.dumps({"intersections": [centre, *rim], "roads": roads})
    file.write_text(text.replace('"width": 5.0', '"width": 5.000000000000000055511151'))
    return file


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def opened_by(file: Path) -> list[list[int]]:
    return [phase["availableRoadLinks"] for phase in read_json(file)["intersections"][0]["trafficLight"]["lightphases"]]


def test_hold_changes_nothing(own_cache: Path) -> None:
    file = small_roadnet(own_cache)
    table = derive_clearance(load_network(file), "hold")
    assert table.network.file == file
    assert (table.phases == -1).all() and table.phases.shape == (1, 3, 3)


def test_yellow_keeps_what_goes_on(own_cache: Path) -> None:
    file = small_roadnet(own_cache)
    table = derive_clearance(load_network(file), "yellow")
    phases = opened_by(table.network.file)
    assert phases[:4] == opened_by(file)
    between = [[phases[table.phases[0, a, b]] for b in range(3)] for a in range(3)]
    assert between == [
        [[0, 1, 3], [3], [0, 3]],
        [[3], [2, 3], [3]],
        [[0, 3], [3], [0, 3]],
    ]


def test_all_red_closes_everything(own_cache: Path) -> None:
    table = derive_clearance(load_network(small_roadnet(own_cache)), "all_red")
    phases = opened_by(table.network.file)
    assert len(phases) == 5
    assert (table.phases == 4).all() and phases[4] == []


@pytest.mark.parametrize("clearance", CLEARANCES)
def test_derived_roadnet_keeps_every_digit_and_the_actions(own_cache: Path, clearance: str) -> None:
    file = small_roadnet(own_cache)
    derived = derive_clearance(load_network(file), clearance).network.file
    assert '"width": 5.000000000000000055511151' in derived.read_text()
    before, after = read_json(file), read_json(derived)
    for content in (before, after):
        del content["intersections"][0]["trafficLight"]["lightphases"][4:]
    assert after == before


@pytest.mark.parametrize("clearance", CLEARANCES)
def test_phases_are_found_by_what_they_open(own_cache: Path, clearance: str) -> None:
    table = derive_clearance(load_network(small_roadnet(own_cache)), clearance)
    for number, links in enumerate(opened_by(table.network.file)[:4]):
        assert table.phase_of(0, frozenset(links)) == number
    only_right = {"hold": None, "yellow": 4, "all_red": None, "computed": 4, "shell": 4}  # phase 0 of the file is all red here
    found = table.phase_of(0, frozenset({3}))
    assert (found is None) == (only_right[clearance] is None)
    assert found is None or opened_by(table.network.file)[found] == [3]
    assert table.phase_of(0, frozenset({2})) is None


NETWORKS = ["crossing", "arterial", *(pytest.param(each, marks=needs_data_set(each)) for each in HORIZONS_S)]


@pytest.mark.parametrize("name", NETWORKS)
def test_computed_times_are_those_of_the_signal_plans(name: str) -> None:
    """Lamps between two actions: what goes on is open, nothing else, for the plan's time rounded up to seconds."""
    network = load_network(find_network(name).roadnet_file)
    table, plans = derive_clearance(network, "computed"), signal_plans(network)
    assert table.seconds.shape[0] == len(plans)
    for i, plan in enumerate(plans):
        opened = [frozenset(link for group in groups for link in plan.groups[group].road_links) for groups in plan.phases]
        derived = [frozenset(phase.road_links) for phase in table.network.roadnet.intersections[plan.number].phases]
        assert table.phase_of(i, frozenset()) is not None
        for a, old in enumerate(opened):
            needed_s = plan.least_green_s(a)
            assert needed_s <= table.least_green_s[i, a] < needed_s + 1 and table.least_green_s[i, a] >= 5
            for b, new in enumerate(opened):
                assert plan.change_s(a, b) <= table.seconds[i, a, b] < plan.change_s(a, b) + 1
                assert (table.seconds[i, a, b] == 0) == (old <= new)
                assert derived[table.phases[i, a, b]] == old & new
                assert derived[table.phase_of(i, old & new) or 0] == old & new


@pytest.mark.parametrize("name", ["crossing", "arterial"])
def test_lamps_go_through_their_clearance_in_order(name: str) -> None:
    """Second by second under random wishes: a change shows what both actions open for its time, then the new action."""
    environment = Environment(name, clearance="computed")
    environment.reset()
    table, rng = environment.changes, np.random.default_rng(3)
    lights, signals = environment.intersections, environment.signals
    shown: list[list[int]] = [[] for _ in lights]
    for _ in range(3000):
        signals.advance(rng.integers(0, [each.action_count for each in lights]).astype(np.int32), 1)
        for own, phase in zip(shown, signals.shown_phase, strict=True):
            own.append(int(phase))
    changes = 0
    for i, (light, own) in enumerate(zip(lights, shown, strict=True)):
        runs = [(phase, len(list(group))) for phase, group in itertools.groupby(own)][:-1]
        greens = [k for k, (phase, _) in enumerate(runs) if phase in light.phases]
        for before, after in itertools.pairwise(greens):
            a, b = light.phases.index(runs[before][0]), light.phases.index(runs[after][0])
            between = runs[before + 1 : after]
            assert sum(seconds for _, seconds in between) == table.seconds[i, a, b]
            assert [phase for phase, _ in between] == [table.phases[i, a, b]] * len(between)
            changes += 1
        assert all(runs[k][1] >= table.least_green_s[i, light.phases.index(runs[k][0])] for k in greens)
    assert changes > 100 * len(lights)


def test_derivation_follows_a_changed_file(own_cache: Path) -> None:
    file = small_roadnet(own_cache)
    first = derive_clearance(load_network(file), "yellow").network.file
    file.write_text(file.read_text().replace("11.11", "13.5"))
    second = derive_clearance(load_network(file), "yellow").network.file
    assert first != second and "13.5" in second.read_text()


def test_unknown_clearance_is_an_input_error(own_cache: Path) -> None:
    with pytest.raises(InputError, match="flashing: unknown; there are hold, yellow, all_red, computed, shell"):
        derive_clearance(load_network(small_roadnet(own_cache)), "flashing")


def test_right_turns_of_the_crossing_stay_open_in_yellow() -> None:
    network = find_network("crossing")
    (light,) = signalled_intersections(read_roadnet(network.roadnet_file))
    table = derive_clearance(load_network(network.roadnet_file), "yellow")
    phases = opened_by(table.network.file)
    rights = [i for i, link in enumerate(read_json(network.roadnet_file)["intersections"][0]["roadLinks"])
              if link["type"] == "turn_right"]  # fmt: skip
    assert light.action_count == 8 and len(rights) == 4
    for a in range(8):
        for b in range(8):
            expected = sorted(set(phases[a]) & set(phases[b]))
            assert phases[table.phases[0, a, b]] == expected and set(rights) <= set(expected)
