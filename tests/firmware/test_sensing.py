"""What a light makes of its loops: counts, drift, suspicion and features, in its own C on the host with sanitizers.

Lanes 0 to 2 are the built-in crossing's western approach: left (group 0), straight (group 1), right (group 2, always open).
`host` has no plan of who comes, and lights at the ends of all lanes; `planned` is as built.
"""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from firmware.generator.light.sensing import lane_order
from firmware.generator.policy import PolicyError
from hil.wire.events import Kind
from streetflow.control.features import DEPLOYABLE, FEATURES
from streetflow.control.intersection import signalled_intersections
from streetflow.kernels.sources import Source
from streetflow.networks.catalogue import find_network
from streetflow.roadnet.network_tables import load_network
from tests.firmware.light.host import answers, compile_host
from tests.firmware.light.policies import policy_of_features
from tests.firmware.light.scenes import POLICY, documents

LANES, IN_LANES = 24, 12
ON, OFF = ("sense 4", "sense 4")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_host(POLICY, unplanned(), tmp_path_factory.mktemp("host"))


def unplanned() -> dict[str, Any]:
    document = copy.deepcopy(documents()[0])
    for lane in document["sensing"]["in_lanes"]:
        lane["planned_veh_per_s"] = 0.0
    for lane in document["sensing"]["out_lanes"]:
        lane["is_free"] = False
    return document


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_host(POLICY, documents()[0], tmp_path_factory.mktemp("planned"))


def pulse(*lines: int, ticks: int = 18, gap: int = 4) -> list[str]:
    """Vehicles over loops, all at once; 4 m at 22 m/s."""
    return [f"lines {sum(1 << line for line in lines):x}", f"sense {ticks}", "lines 0", f"sense {gap}"]


def vehicles(counts: dict[int, int]) -> list[str]:
    """So many over each line, no line more often than once a second."""
    script: list[str] = []
    for turn in range(max(counts.values(), default=0)):
        script += [*pulse(*(line for line, count in counts.items() if count > turn)), "sense 78"]
    return script


def entry(lane: int) -> int:
    return 2 * lane


def stop_line(lane: int) -> int:
    return 2 * lane + 1


def last(said: list[list[str]], what: str) -> list[int]:
    return [int(number) for number in [line for line in said if line[0] == what][-1][1:]]


def faults(said: list[list[str]]) -> list[tuple[int, int]]:
    """(kind, line) of each event about a detector's health."""
    events = [(int(kind), int(channel) - 1) for name, _, kind, channel in (line for line in said if line[0] == "event")]
    assert all(said_line[0] for said_line in said)
    return [each for each in events if 83 <= each[0] <= 88]


def test_who_enters_less_who_leaves_is_on_the_lane(host: Path) -> None:
    draw, script, truth = random.Random(1), [], [0] * LANES
    for _ in range(2_000):
        lane = draw.randrange(LANES)
        if truth[lane] and draw.random() < 0.5:
            truth[lane] -= 1
            script += pulse(stop_line(lane))
        elif truth[lane] < 30:
            truth[lane] += 1
            script += pulse(entry(lane))
    said = answers(host, [*script, "counts"])
    assert last(said, "counts") == truth and max(truth) > 5 and faults(said) == []


@pytest.mark.parametrize(("gap", "counted"), [(1, 1), (2, 2), (3, 2)])
def test_two_vehicles_half_a_metre_apart_are_two(host: Path, gap: int, counted: int) -> None:
    """0.5 m at 16.7 m/s take 30 ms, three ticks; a flicker of one tick is none."""
    said = answers(host, [*pulse(entry(0), gap=gap), *pulse(entry(0)), "counts"])
    assert last(said, "counts")[0] == counted


@pytest.mark.parametrize(("ticks", "counted"), [(1, 0), (13, 0), (17, 1)])
@pytest.mark.parametrize("before", range(4))
def test_what_is_over_a_loop_for_less_than_a_vehicle_is_no_vehicle(ticks: int, counted: int, before: int, host: Path) -> None:
    """4 m at 30 m/s take 0.13 s."""
    said = answers(host, [f"sense {before}", *pulse(entry(0), ticks=ticks), "counts"])
    assert last(said, "counts")[0] == counted


def test_a_loop_that_sees_one_vehicle_as_two_counts_it_once(host: Path) -> None:
    said = answers(host, [*[line for _ in range(5) for line in [*pulse(entry(0), ticks=5, gap=5), *pulse(entry(0))]], "counts"])
    assert last(said, "counts")[0] == 5


def test_nobody_leaves_an_empty_lane(host: Path) -> None:
    said = answers(host, [*pulse(stop_line(4)), "counts", *pulse(entry(4)), "counts"])
    assert [int(line[5]) for line in said if line[0] == "counts"] == [0, 1]


def test_a_lane_with_vehicles_calls_its_groups(host: Path) -> None:
    said = answers(host, ["calls", *pulse(entry(1)), "calls", *pulse(stop_line(1)), "calls"])
    assert [line[1] for line in said if line[0] == "calls"] == ["0", "2", "0"]


def test_counts_that_have_drifted_are_corrected_in_a_long_green_without_anybody(host: Path) -> None:
    """Lane 0 is 42 s long: a vehicle that entered up to twice as long ago may still be there."""
    ghosts = [line for _ in range(3) for line in pulse(entry(0))]
    said = answers(
        host,
        [*ghosts, "green 0", "sense 20000", "counts", "green 1", "sense 900", "counts", "sense 300", "counts"],
    )
    assert [int(line[1]) for line in said if line[0] == "counts"] == [3, 3, 0], "not in red, not before 10 s of green"
    fresh = answers(host, [*ghosts, "green 1", "sense 2000", "counts"])
    assert last(fresh, "counts")[0] == 3, "they are on their way"


def test_who_still_leaves_keeps_the_count(host: Path) -> None:
    leaving = [line for _ in range(4) for line in [*pulse(stop_line(0)), "sense 800"]]
    said = answers(host, [*vehicles({entry(0): 8}), "sense 20000", "green 1", *leaving, "counts"])
    assert last(said, "counts")[0] == 4, "a queue that discharges"


# Suspicion


def test_a_loop_that_never_clears_is_suspect_and_its_lane_is_counted_as_planned(planned: Path) -> None:
    """10 vehicles in 256 s."""
    stuck = ["lines 1", "sense 25700", "suspects", "counts", "sense 25600", "counts", "lines 0", "sense 2300", "suspects"]
    said = answers(planned, stuck)
    assert faults(said) == [(Kind.DETECTOR_FAULT_WATCHDOG, 0), (Kind.DETECTOR_RESTORED, 0)]
    suspects = [line[1:] for line in said if line[0] == "suspects"]
    assert suspects[0] == ["1", *["0"] * 23] and set(suspects[1]) == {"0"}
    begin, end = (int(line[1]) for line in said if line[0] == "counts")
    assert begin == 1 and end == 11


def test_a_loop_that_chatters_is_suspect_until_it_has_been_still(host: Path) -> None:
    chatter = [line for _ in range(40) for line in pulse(entry(3), ticks=3, gap=3)]
    said = answers(host, [*chatter, "suspects", "counts", "sense 4000"])
    assert faults(said) == [(Kind.DETECTOR_FAULT_EXCESSIVE_CHANGE, 6), (Kind.DETECTOR_RESTORED, 6)]
    assert last(said, "counts")[3] == last(said, "suspects")[3] == 0, "what is too short for a vehicle isn't counted"
    slow = [line for _ in range(40) for line in pulse(entry(3), gap=4)]
    said = answers(host, [*slow, "suspects"])
    assert faults(said)[0] == (Kind.DETECTOR_FAULT_EXCESSIVE_CHANGE, 6) and last(said, "suspects")[3] == 1
    dense = [line for _ in range(60) for line in pulse(entry(3), ticks=40, gap=60)]
    assert all(kind != Kind.DETECTOR_FAULT_EXCESSIVE_CHANGE for kind, _ in faults(answers(host, dense))), "one a second isn't"


def test_a_dead_entry_loop_is_seen_by_those_who_leave(host: Path) -> None:
    said = answers(host, [*[line for _ in range(3) for line in [*pulse(stop_line(5)), "sense 300"]], "suspects"])
    assert faults(said) == [(Kind.DETECTOR_FAULT_OPEN_LOOP, entry(5))]


def test_a_dead_stop_line_loop_is_seen_in_its_green(host: Path) -> None:
    entering = [line for _ in range(14) for line in [*pulse(entry(1)), "sense 300"]]
    said = answers(host, [*entering, "suspects", "green 2", *entering[:60], "sense 2000", "suspects"])
    assert [line[2] for line in said if line[0] == "suspects"] == ["0", "1"], "in red nobody leaves"
    assert faults(said)[0] == (Kind.DETECTOR_FAULT_OPEN_LOOP, stop_line(1))


def test_a_queue_at_the_next_light_is_no_fault_of_the_lane_that_leads_there(host: Path) -> None:
    """Another light's red may last minutes; nobody here knows when it is green."""
    lane = IN_LANES
    said = answers(host, [*vehicles({entry(lane): 14}), "sense 20000", "counts"])
    assert not faults(said)
    assert last(said, "counts")[lane] == 14


def test_who_waits_long_for_the_next_light_stays_counted(host: Path) -> None:
    """Two leave in twenty minutes."""
    lane = IN_LANES
    leaving = ["sense 40000", *pulse(stop_line(lane))]
    said = answers(host, [*vehicles({entry(lane): 6}), *leaving, *leaving, "sense 40000", "counts"])
    assert last(said, "counts")[lane] == 4


def test_a_dead_lane_is_seen_by_its_neighbours(host: Path, planned: Path) -> None:
    passing = [line for _ in range(201) for line in [*pulse(entry(1)), "sense 150", *pulse(stop_line(1))]]
    said = answers(host, [*passing, "sense 200", "suspects"])
    dead = {(Kind.DETECTOR_FAULT_OPEN_LOOP, entry(lane)) for lane in range(IN_LANES) if lane != 1}
    assert set(faults(said)) == dead
    assert set(faults(answers(host, passing * 4))) == dead, "and stays so, however many pass"
    others = [line for _ in range(90) for line in [*pulse(entry(7)), "sense 150", *pulse(stop_line(7))]]
    dead = {(Kind.DETECTOR_FAULT_OPEN_LOOP, entry(1))}
    assert set(faults(answers(planned, others))) == dead, "a busy lane, as planned, is missed soon"


def test_a_full_lane_that_lets_nobody_in_is_not_dead(planned: Path) -> None:
    others = [line for _ in range(90) for line in [*pulse(entry(7)), "sense 150", *pulse(stop_line(7))]]
    assert not faults(answers(planned, [*vehicles({entry(1): 12}), *others]))


def test_a_dead_entry_loop_of_a_planned_lane_is_counted_as_planned(planned: Path) -> None:
    """36 vehicles in 256 s."""
    dead = [line for _ in range(3) for line in [*pulse(stop_line(1)), "sense 300"]]
    said = answers(planned, [*dead, "counts", "sense 25600", "counts", *pulse(entry(1)), "counts"])
    before, after, felt = (int(line[2]) for line in said if line[0] == "counts")
    assert faults(said)[0] == (Kind.DETECTOR_FAULT_OPEN_LOOP, entry(1))
    assert after - before == 36 and felt == after
    leaving = [line for _ in range(8) for line in [*pulse(stop_line(1)), "sense 80"]]
    assert last(answers(planned, [*dead, "sense 25600", *leaving, "counts"]), "counts")[1] in (29, 30, 31), (
        "but counts who leave"
    )


def test_a_queue_behind_a_dead_stop_line_loop_of_a_planned_lane_leaves_as_queues_do(planned: Path) -> None:
    silent = ["green 2", *vehicles({entry(1): 14}), "sense 3000", "suspects", "sense 10000", "green 0"]
    waiting = [*vehicles({entry(1): 20}), "sense 12000", "counts", "green 2", "sense 1000", "counts", "sense 4000", "counts"]
    said = answers(planned, [*silent, *waiting])
    assert faults(said) == [(Kind.DETECTOR_FAULT_OPEN_LOOP, stop_line(1))] and last(said, "suspects")[1] == 1
    assert [int(line[2]) for line in said if line[0] == "counts"] == [20, 15, 0]


def test_nobody_waits_on_a_lane_that_leads_out_to_no_other_light(planned: Path) -> None:
    """It is 42 s long; its stop line misses whoever passes."""
    lane = IN_LANES
    said = answers(planned, [*vehicles({entry(lane): 6}), "counts", "sense 9000", "counts"])
    assert [int(line[1 + lane]) for line in said if line[0] == "counts"] == [6, 0]


def test_what_a_doubted_loop_shows_speaks_against_no_other(planned: Path) -> None:
    """It chatters slowly enough for vehicles, and nobody else comes."""
    chatter = [line for _ in range(300) for line in pulse(entry(1), gap=4)]
    assert set(faults(answers(planned, chatter))) == {(Kind.DETECTOR_FAULT_EXCESSIVE_CHANGE, entry(1))}


def test_a_stuck_stop_line_of_a_lane_that_leads_out_keeps_nobody_there(planned: Path) -> None:
    """A vehicle each 4 s onto a lane that is 42 s long."""
    lane = IN_LANES
    stuck, both = f"{1 << stop_line(lane):x}", f"{1 << stop_line(lane) | 1 << entry(lane):x}"
    said = answers(planned, [*[f"lines {both}", "sense 20", f"lines {stuck}", "sense 380"] * 100, "counts"])
    assert set(faults(said)) == {(Kind.DETECTOR_FAULT_WATCHDOG, stop_line(lane))}
    assert last(said, "counts")[lane] < 25


def test_more_vehicles_than_fit_are_not_believed(host: Path) -> None:
    said = answers(host, [*[line for _ in range(41) for line in [*pulse(entry(0)), "sense 60"]], "sense 100", "counts"])
    assert (Kind.DETECTOR_FAULT_OTHER, entry(0)) in faults(said)
    assert last(said, "counts")[0] == 39


def test_with_suspicion_off_everything_is_believed(tmp_path: Path) -> None:
    host = compile_host(POLICY, documents()[0], tmp_path, "-DTL_NO_SUSPICION")
    said = answers(host, ["lines 1", "sense 30000", "suspects", "counts"])
    assert faults(said) == [] and last(said, "counts")[0] == 1


# Features


TOGETHER = (list(DEPLOYABLE)[:4], [*list(DEPLOYABLE)[4:9], *list(DEPLOYABLE)[10:]], ["lanelink_2_pressure"])  # as a frame holds


@pytest.mark.parametrize("names", TOGETHER, ids=("lanes", "sums", "links"))
def test_each_deployable_feature_is_what_the_simulators_own_definition_gives(names: list[str], tmp_path: Path) -> None:
    document = unplanned()
    policy_file = policy_of_features(document, names, tmp_path)
    host = compile_host(policy_file, document, tmp_path)
    order = lane_order(document, json.loads(policy_file.read_text()))
    crossing = signalled_intersections(load_network(find_network("crossing").roadnet_file).roadnet)[0]
    draw = random.Random(7)
    counts = {lane: draw.randrange(1, 12) for lane in order}
    left = {lane: draw.randrange(counts[lane]) for lane in order[:IN_LANES]}
    script = vehicles({entry(k): counts[lane] for k, lane in enumerate(order)})
    leaving = vehicles({stop_line(k): left[lane] for k, lane in enumerate(order[:IN_LANES])})
    said = answers(host, [*script, "values 2", *leaving, "values 5"])
    now = {lane: counts[lane] - left.get(lane, 0) for lane in order}
    expected: tuple[list[int], list[int]] = [], []
    for spec in (FEATURES[name] for name in names):
        for values, held, action, own in ((expected[0], counts, 2, (0, 0)), (expected[1], now, 5, (1, sum(left.values())))):
            if spec.source is Source.VEHICLES:
                values += [sum(weight * held[lane] for lane, weight in cell) for cell in spec.cells(crossing)]
            elif spec.source is Source.ACTION:
                values += [int(each == action) for each in range(8)]
            else:
                values.append(own["passed" in spec.name])
    assert [[int(n) for n in line[2:]] for line in said if line[0] == "values"] == list(expected)


def test_a_feature_that_loops_cannot_measure_is_refused_by_its_name(tmp_path: Path) -> None:
    document = documents()[0]
    with pytest.raises(PolicyError, match="features: inlane_2_delay can't be measured by two loops a lane"):
        compile_host(policy_of_features(document, ["inlane_2_delay"], tmp_path), document, tmp_path)


def test_too_many_lanes_are_refused_with_their_number(tmp_path: Path) -> None:
    document = json.loads(json.dumps(documents()[0]))
    document["sensing"]["out_lanes"] *= 2
    policy_file = policy_of_features(documents()[0], ["outlane_2_num_vehicle"], tmp_path)
    with pytest.raises(PolicyError, match="sensing: 36 lanes that the policy's features need, the detectors' wires carry 32"):
        compile_host(policy_file, document, tmp_path)


def test_another_crossings_plan_is_refused(tmp_path: Path) -> None:
    document = documents()[0] | {"intersection": "elsewhere"}
    with pytest.raises(PolicyError, match="intersection: 'elsewhere', the policy is of 'intersection_1_1'"):
        compile_host(POLICY, document, tmp_path)
