"""The fast ways through files give what the careful ones give, and leave all else to them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from streetflow import InputError
from streetflow.roadnet import flow, reader
from streetflow.roadnet.flow import read_flows
from streetflow.roadnet.json_reader import array_elements, number_from_token, parse_json, read_json
from streetflow.roadnet.reader import read_roadnet
from tests.helpers.small_network import CAR, demand, grid

ROADNET = grid(2, 2, seed=3)
ROADS = {road["id"]: number for number, road in enumerate(ROADNET["roads"])}


def test_short_numbers_are_read_as_long_ones_are() -> None:
    draw = random.Random(1)
    for _ in range(200_000):
        digits = "".join(draw.choices("0123456789", k=draw.randint(2, 17)))
        cut = draw.randint(1, len(digits) - 1)
        token = (
            f"{draw.choice(['', '-'])}{digits[:cut].lstrip('0') or '0'}.{digits[cut:]}{draw.choice(['', '', '', 'e2', 'E-3'])}"
        )
        assert repr(parse_json(token, "numbers")) == repr(number_from_token(token)), token


@pytest.mark.parametrize("text", ["[]", " [ ] ", "[1]", '\n[1, [2, 3],\t{"a": [4]} ]\r\n', "[1.5,null,true]"])
def test_elements_are_those_of_the_whole(tmp_path: Path, text: str) -> None:
    file = tmp_path / "array.json"
    file.write_bytes(text.encode())
    assert list(array_elements(file)) == read_json(file)


@pytest.mark.parametrize(
    "text", ["", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1]]", "[1] x", "{}", "1", "[1}", '[{"a": 1, "a": 2}]', "[NaN]"]
)
def test_no_elements_of_what_is_no_array(tmp_path: Path, text: str) -> None:
    file = tmp_path / "array.json"
    file.write_text(text)
    with pytest.raises(ValueError):  # read_json says why
        list(array_elements(file))


def careful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "_parse_plain", lambda *_: None)
    monkeypatch.setattr(flow, "_last", None)
    monkeypatch.setattr(reader, "_plain_lane_links", lambda *_: None)


def outcome(read: Any, *arguments: Any) -> str:
    try:
        return repr(read(*arguments))
    except InputError as fault:
        return f"{fault!s} {fault.others}"


GOOD = {"vehicle": dict(CAR), "route": list(ROADS)[:2], "interval": 2.0, "startTime": 3, "endTime": 30}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != name}


@pytest.mark.parametrize(
    "one",
    [
        GOOD,
        without("startTime"),
        without("endTime"),
        without("vehicle"),
        without("interval"),
        GOOD | {"other": 1},
        GOOD | {"interval": 1},
        GOOD | {"interval": 0.5},
        GOOD | {"interval": 0.5, "startTime": 30},
        GOOD | {"interval": "2"},
        GOOD | {"interval": True},
        GOOD | {"interval": 1e400},
        GOOD | {"startTime": 3.0},
        GOOD | {"startTime": True},
        GOOD | {"endTime": 2**31},
        GOOD | {"endTime": None},
        GOOD | {"route": []},
        GOOD | {"route": "r"},
        GOOD | {"route": {next(iter(ROADS)): 1}},
        GOOD | {"route": [["r"]]},
        GOOD | {"route": ["nowhere"]},
        GOOD | {"vehicle": CAR | {"length": 5}},
        GOOD | {"vehicle": CAR | {"length": 1}},
        GOOD | {"vehicle": CAR | {"length": True}},
        GOOD | {"vehicle": CAR | {"length": 0}},
        GOOD | {"vehicle": CAR | {"length": "5"}},
        GOOD | {"vehicle": CAR | {"colour": [1]}},
        GOOD | {"vehicle": []},
        [],
        None,
    ],
)
def test_flows_and_their_faults_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: Any) -> None:
    file = tmp_path / "flow.json"
    file.write_text(json.dumps([GOOD, GOOD | {"vehicle": CAR | {"length": 1.0}}, one]).replace("Infinity", "1e400"))
    fast = outcome(read_flows, file, ROADS)
    careful(monkeypatch)
    assert outcome(read_flows, file, ROADS) == fast


def test_whole_demand_is_read_the_fast_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "flow.json"
    file.write_text(json.dumps(demand(ROADNET, 50, 100, seed=3)))
    monkeypatch.setattr(flow, "read_json", None)  # must not be needed
    assert len(read_flows(file, ROADS)) >= 50


def break_lane_link(content: Any, change: dict[str, Any]) -> Any:
    crossing = next(each for each in content["intersections"] if not each["virtual"])
    crossing["roadLinks"][1]["laneLinks"][0] |= change
    return content


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"points": []},
        {"points": None},
        {"points": 0},
        {"points": [{"x": 0, "y": 1.5}, {"x": 3, "y": 4}]},
        {"points": [{"x": 0, "y": 1.5}]},
        {"startLaneIndex": 9},
        {"startLaneIndex": -1},
        {"startLaneIndex": 0.0},
        {"endLaneIndex": True},
        {"endLaneIndex": None},
        {"other": 1},
    ],
)
def test_lane_links_and_their_faults_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    file = tmp_path / "roadnet.json"
    file.write_text(json.dumps(break_lane_link(grid(2, 2, seed=3), change)))
    fast = outcome(read_roadnet, file)
    careful(monkeypatch)
    assert outcome(read_roadnet, file) == fast
