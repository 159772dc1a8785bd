"""`tinylight make-flow`: files and folders that it makes, and what it says of bad options and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streetflow.control.environment import Environment
from streetflow.errors import InputError
from streetflow.networks.by_road import read_by_road
from streetflow.networks.generate_roadnet import Grid, roadnet
from streetflow.roadnet.network_tables import load_network
from tinylight.cli import app


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["make-flow", *map(str, arguments)])


def test_the_command_makes_a_file_or_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--rate", 200, "--horizon", 300, "--seed", 3, "--routes", "fastest", "--arrivals", "regular")
    result = run("crossing", tmp_path / "one.json", *options)
    assert result.exit_code == 0 and "1 demand file" in result.output and "from 4 roads to 4" in result.output
    assert run("crossing", tmp_path / "many", *options, "--flows", 3).exit_code == 0
    assert sorted(each.name for each in (tmp_path / "many").iterdir()) == [
        "flow_0.json", "flow_1.json", "flow_2.json", "network.json", "roadnet.json",
    ]  # fmt: skip
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "many" / "flow_0.json").read_bytes()
    assert len({each.read_bytes() for each in (tmp_path / "many").glob("flow_*.json")}) == 3
    monkeypatch.setenv("TINYLIGHT_DATA", str(tmp_path))
    assert Environment("many", 2).horizon_s == 300
    assert json.loads((tmp_path / "many" / "network.json").read_bytes())["made_of"]["routes"] == "fastest"
    assert run("many", tmp_path / "again.json", "--rate", 200).exit_code == 0  # the network's own horizon
    assert max(each["startTime"] for each in json.loads((tmp_path / "again.json").read_bytes())) < 300


def test_the_command_says_what_check_says(tmp_path: Path) -> None:
    result = run("crossing", tmp_path / "jam.json", "--rate", 1800, "--horizon", 300)
    assert result.exit_code == 0 and "warning: demand above capacity" in result.output
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "roadnet.json").write_text(json.dumps(roadnet(Grid())))  # a network without demand
    result = run(tmp_path / "net", tmp_path / "free.json", "--horizon", 300)
    assert result.exit_code == 0 and "warning" not in result.output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "by.json: must be an object, not an array"),
        ({"rate": {}}, "rate: unknown; did you mean rates?"),
        ({"rates": {"road_0_1_9": 5}}, "rates: there is no road 'road_0_1_9'; did you mean road_0_1_0"),
        ({"rates": {"road_0_1_0": -5}}, "rates.road_0_1_0: must be at least 0, is -5"),
        ({"rates": {"road_0_1_0": "many"}}, "rates.road_0_1_0: must be a number, not a string"),
        ({"turns": {"road_0_1_0": {"lft": 1}}}, "turns.road_0_1_0: there is no turn or next road 'lft'; did you mean left?"),
        ({"turns": {"road_0_1_0": {"road_0_1_0": 1}}}, "there is no turn or next road 'road_0_1_0'"),
        ({"turns": {"road_1_1_0": {"left": 1}}}, "turns.road_1_1_0.left: no such turn from this road; there are: none"),
        ({"turns": {"road_0_1_0": {"left": 0}}}, "turns.road_0_1_0: must hold a part above 0"),
        ({"turns": {"road_0_1_0": {"left": -1}}}, "turns.road_0_1_0.left: must be at least 0"),
        ({"exits": {}}, "exits: must hold a road with a part above 0"),
        ({"exits": {"road_1_1_0": 0}}, "exits: must hold a road with a part above 0"),
        ({"exits": {"nowhere": 1}}, "exits: there is no road 'nowhere'"),
        ({"rates": {"road_1_1_0": 5}}, "rates.road_1_1_0: no lane link leads on from this road"),
        ({"rates": {}, "exits": {"road_0_1_0": 1}}, "no route leads from this road to one on which trips end"),
    ],
)
def test_bad_files_by_road(tmp_path: Path, content: Any, message: str) -> None:
    (tmp_path / "by.json").write_text(json.dumps(content))
    result = run("crossing", tmp_path / "new.json", "--by-road", tmp_path / "by.json")
    assert isinstance(result.exception, InputError) and message in str(result.exception)
    assert not (tmp_path / "new.json").exists()


def test_a_file_by_road_says_turns_and_next_roads(tmp_path: Path) -> None:
    (tmp_path / "roadnet.json").write_text(json.dumps(roadnet(Grid())))
    net = load_network(tmp_path / "roadnet.json")
    (tmp_path / "by.json").write_text(
        json.dumps({
            "turns": {"road_0_1_0": {"left": 1, "straight": 3}, "road_1_0_1": {"road_1_1_0": 2}},
            "rates": {"road_0_1_0": 60},
            "exits": {"road_1_1_0": 1, "road_1_1_1": 1},
        })
    )  # fmt: skip
    read, index = read_by_road(tmp_path / "by.json", net), net.roadnet.road_index
    assert read.rates == {index["road_0_1_0"]: 60} and set(read.exits) == {index["road_1_1_0"], index["road_1_1_1"]}
    assert read.turns[index["road_0_1_0"]] == {index["road_1_1_1"]: 1, index["road_1_1_0"]: 3, index["road_1_1_3"]: 0}
    assert {road: part for road, part in read.turns[index["road_1_0_1"]].items() if part} == {index["road_1_1_0"]: 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rate", -1), "--rate: must be 0 vehicles an hour or more"),
        (("--rate", "inf"), "--rate: must be 0 vehicles an hour or more"),
        (("--rate", 0), "--rate: no road has a rate above 0"),
        (("--rate", 1e9), "--rate: makes more than 2000000 vehicles"),
        (("--turns", "0.5"), "--turns: '0.5' is not two shares"),
        (("--turns", "0.5,0.6"), "--turns: must be two shares of 0 or more, together at most 1"),
        (("--routes", "shortst"), "--routes: unknown 'shortst'; did you mean shortest?"),
        (("--arrivals", "poison"), "--arrivals: unknown 'poison'; did you mean poisson?"),
        (("--profile", "rush"), "--profile: unknown 'rush'; there are flat, peak"),
        (("--vehicle-speed", 0.5), "--vehicle-speed: must be from 1 to 100 m/s"),
        (("--horizon", 0), "--horizon: must be from 1 s"),
        (("--flows", 0), "--flows: must be at least 1"),
        (("--flows", 2), "--flows: 2 demands don't fit one file"),
        (("--by-road", "none.json"), "none.json: there is no such file"),
    ],
)
def test_bad_options(tmp_path: Path, arguments: tuple[object, ...], message: str) -> None:
    result = run("crossing", tmp_path / "new.json", *arguments)
    assert isinstance(result.exception, InputError) and message in str(result.exception)
    assert not (tmp_path / "new.json").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "there.json").write_text("precious")
    (tmp_path / "there").mkdir()
    for name in ("there.json", "there"):
        result = run("crossing", tmp_path / name)
        assert isinstance(result.exception, InputError) and "is there already" in str(result.exception)
    assert (tmp_path / "there.json").read_text() == "precious"
