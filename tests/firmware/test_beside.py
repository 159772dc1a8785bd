"""What a light makes of its loops where vehicles change lanes: `firmware/src/light/beside.c`, on the host with sanitizers."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from firmware.generator.policy import PolicyError
from hil.wire.events import Kind
from tests.firmware.light.host import answers, compile_host
from tests.firmware.light.scenes import POLICY, documents
from tests.firmware.test_sensing import entry, faults, host, last, planned, pulse, stop_line, unplanned, vehicles

__all__ = ["host", "planned"]


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lanes 0 to 2 are one road's, whose vehicles change lanes; nothing is planned."""
    document = unplanned()
    for number, lane in enumerate(document["sensing"]["in_lanes"][:3]):
        lane["beside"] = (number + 1) % 3
    return compile_host(POLICY, document, tmp_path_factory.mktemp("beside"))


def test_who_leaves_an_empty_lane_is_one_of_those_on_the_fullest_beside(beside: Path, host: Path) -> None:
    came = vehicles({entry(1): 4, entry(2): 2})
    assert last(answers(beside, [*came, *pulse(stop_line(0)), "counts"]), "counts")[:4] == [0, 3, 2, 0]
    assert last(answers(host, [*came, *pulse(stop_line(0)), "counts"]), "counts")[:4] == [0, 4, 2, 0]
    all_leave = [line for _ in range(6) for line in [*pulse(stop_line(0)), "sense 300"]]
    said = answers(beside, [*came, *all_leave, "counts", *pulse(stop_line(3)), "counts"])
    assert last(said, "counts")[:4] == [0, 0, 0, 0] and not faults(said)


def test_a_road_that_is_left_by_more_than_have_come_has_a_dead_entry(beside: Path) -> None:
    said = answers(
        beside, [*vehicles({entry(1): 1}), *[line for _ in range(4) for line in [*pulse(stop_line(0)), "sense 300"]]]
    )
    assert faults(said) == [(Kind.DETECTOR_FAULT_OPEN_LOOP, entry(0))]


def test_who_is_gone_from_a_green_lane_waits_beside_it_and_is_not_handed_back(beside: Path) -> None:
    """Lane 0 is green, 1 red; then the other way round, and nobody comes."""
    quiet = ["sense 20000", "green 1", "sense 2300", "counts", "green 2", "sense 2300", "counts"]
    said = answers(beside, [*vehicles({entry(0): 3}), *quiet])
    assert [line[1:4] for line in said if line[0] == "counts"] == [["0", "2", "1"], ["0", "0", "1"]]
    said = answers(beside, [*vehicles({entry(0): 3}), *quiet[:3], "green 2", *pulse(stop_line(1)), "sense 300", "counts"])
    assert last(said, "counts")[:3] == [0, 1, 1], "they were there"


def test_more_than_fit_on_a_lane_are_beside_it(beside: Path) -> None:
    """39 fit."""
    came = [line for _ in range(45) for line in [*pulse(entry(0)), "sense 60"]]
    said = answers(beside, [*came, "counts"])
    assert last(said, "counts")[:3] in ([39, 6, 0], [39, 3, 3]) and not faults(said)


def test_whoever_is_on_a_road_calls_for_all_its_lanes(beside: Path, host: Path) -> None:
    came = [*vehicles({entry(1): 1}), "calls", *pulse(stop_line(1)), "calls"]
    for program, called in ((host, "2"), (beside, "7")):
        said = [line[1] for line in answers(program, came) if line[0] == "calls"]
        assert said == [called, "0"]


def test_a_plan_says_nothing_of_a_lane_that_drivers_choose(planned: Path, tmp_path: Path) -> None:
    document = copy.deepcopy(documents()[0])
    for number, lane in enumerate(document["sensing"]["in_lanes"][:3]):
        lane["beside"] = (number + 1) % 3
    others = [line for _ in range(90) for line in [*pulse(entry(7)), "sense 150", *pulse(stop_line(7))]]
    assert faults(answers(planned, others)) and not faults(answers(compile_host(POLICY, document, tmp_path), others))


def test_a_lane_beside_that_there_is_not_is_refused(tmp_path: Path) -> None:
    document = copy.deepcopy(documents()[0])
    document["sensing"]["in_lanes"][0]["beside"] = 99
    with pytest.raises(PolicyError, match="sensing: lane 0: "):
        compile_host(POLICY, document, tmp_path)


def test_who_is_handed_over_waits_on_the_emptiest_lane_that_is_not_green(beside: Path) -> None:
    """Lanes 0 to 2 are of the groups 0 to 2. 0 is green and quiet: first 1 and 2 wait, then 1 is green, too."""
    came = [*vehicles({entry(0): 6, entry(1): 4, entry(2): 0}), "sense 20000", "green 1"]
    assert last(answers(beside, [*came, "sense 2300", "counts"]), "counts")[:3] == [0, 5, 5]
    came = [*vehicles({entry(0): 6, entry(1): 4}), "sense 20000", "green 3", *pulse(stop_line(1)), "sense 2300", "counts"]
    assert last(answers(beside, came), "counts")[:3] == [0, 0, 9], "nobody was handed to the green lane 1"


def test_a_lane_that_leads_nowhere_has_no_silent_stop_line(tmp_path: Path) -> None:
    document = unplanned()
    for number, lane in enumerate(document["sensing"]["in_lanes"][:3]):
        lane["beside"] = (number + 1) % 3
    document["sensing"]["in_lanes"][0]["groups"] = []
    host = compile_host(POLICY, document, tmp_path)
    assert not faults(answers(host, [*vehicles({entry(0): 14}), "sense 6000"]))


def test_a_doubted_loop_calls_for_all_lanes_of_its_road(beside: Path) -> None:
    said = answers(beside, ["lines 1", "sense 25700", "lines 0", "sense 20", *pulse(stop_line(0)), "counts", "calls"])
    assert last(said, "counts")[:3] == [0, 0, 0] and [line[1] for line in said if line[0] == "calls"] == ["7"]
