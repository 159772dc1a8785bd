"""Every option and argument that names a file is given a folder, and vice versa: one line, exit code 2, no harm."""

from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer

from tests.helpers.run_cli import tinylight
from tinylight.cli import COMMANDS, app

EVALUATE = "evaluate --network crossing --flows 0 --agent"
REPLAY = "replay --network crossing --out"
TABLE = "table --networks crossing --models SOTL --flows 0"
TRAIN = "train --network crossing --search-episodes 1 --refine-episodes 1 --out"
NAMES_A_FILE = [
    "board --policy",
    "board --bootloader",
    "board --link",
    "check crossing --json",
    "cost --policy",
    "cost --figure",
    "cost --table",
    "cost --json",
    EVALUATE,
    f"{EVALUATE} SOTL --trips",
    f"{EVALUATE} SOTL --json",
    "flash --policy",
    "hil --policy",
    "hil --json",
    "hil --board",
    "hil --network crossing --record",
    "hil --replay",
    "hil --network crossing --vcd",
    "hil --network crossing --mode alone --events",
    "hil --network crossing --mode alone --page",
    "hil --network crossing --report",
    "make-network new --noise 60 --from",
    "make-flow crossing new --by-road",
    "import-sumo file.png out --json",
    "networks --json",
    "plot",
    "plot log.csv --out",
    f"{REPLAY} page.html --agent",
    REPLAY,
    f"{REPLAY} page.html --json",
    "quantise --network crossing --features deployable --out policy.json",
    "quantise file.png --network crossing --features deployable --out",
    "share",
    "size --policy",
    "size --against",
    "size --json",
    TRAIN,
    f"{TRAIN} policy.json --log",
    f"{TRAIN} policy.json --json",
    "train --out out --sweep",
]
NAMES_A_FOLDER = [
    f"{TABLE} --work",
    f"{TABLE} --report-only --work",
    "stress --network crossing --work",
    f"{TRAIN} policy.json --tensorboard",
    "make-network",
    "make-flow crossing",
]
JUDGED_ELSEWHERE = {("import-sumo", "files")}  # tests/streetflow: many files and a folder in one argument
ANY_NAME = ["table --out", "stress --out"]  # the beginning of three files' names


def refused(command: str, place: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if command.startswith("train"):
        pytest.importorskip("torch", reason="torch is not installed (extra: train)")
    if "figure" in command or command.startswith("plot"):
        pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: plot)")
    monkeypatch.setattr("hil.boards.port_server.PortServer.run", lambda self: self._listener.close())
    before = sorted(Path.cwd().rglob("*"))
    assert tinylight(*command.split(), place) == 2
    out, error = capsys.readouterr()
    assert error.startswith("tinylight: ") and error.endswith("\n") and "\n" not in error[:-1]
    assert Path(place).parts[0] in error and "Errno" not in error
    assert not out or command.startswith("board")
    assert sorted(Path.cwd().rglob("*")) == before


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a file to name wrongly."""
    monkeypatch.chdir(tmp_path)
    for name in ("folder", "folder.png"):
        (tmp_path / name).mkdir()
    for name in ("file", "file.png"):
        (tmp_path / name).write_text("{}")


@pytest.mark.parametrize("command", NAMES_A_FILE)
def test_a_folder_where_a_file_should_be(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(command, "folder.png" if command.startswith("plot log") else "folder", capsys, monkeypatch)


@pytest.mark.parametrize("command", NAMES_A_FOLDER)
@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_file_where_a_folder_should_be(
    command: str, place: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(command, place, capsys, monkeypatch)


@pytest.mark.parametrize("command", [each for each in NAMES_A_FILE if not each.startswith("share")])
def test_a_file_in_the_place_of_the_folder_that_a_file_should_be_in(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(command, "file/below.png", capsys, monkeypatch)


def with_values() -> list[tuple[str, str]]:
    """Every command with every option that takes a value, and with each of its arguments, those before it given."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return [
        (
            name + " crossing" * _number_before(command, parameter),
            parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar,
        )
        for name, command in commands.items()
        for parameter in command.params
        if not getattr(parameter, "is_flag", False)
    ]


def _number_before(command: Any, parameter: Any) -> int:
    """How many arguments come before one; 0 for an option."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    return arguments.index(parameter) if parameter in arguments else 0


@pytest.mark.parametrize(("command", "option"), with_values())
def test_an_empty_value_is_refused(command: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before any other check, and never taken for the default or this folder."""
    before = sorted(Path.cwd().rglob("*"))
    assert tinylight(*command.split(), *([option] if option.startswith("-") else []), "") == 2
    out, error = capsys.readouterr()
    assert (out, error) == ("", f"tinylight: {option}: has no value; see tinylight {command.split()[0]} --help\n")
    assert sorted(Path.cwd().rglob("*")) == before


def test_an_empty_value_among_others_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert tinylight("hil", "--network", "crossing", "--network=", "--board", "host") == 2
    assert capsys.readouterr().err == "tinylight: --network: has no value; see tinylight hil --help\n"
    assert tinylight("check", "crossing", "") == 2
    assert "has no value" in capsys.readouterr().err


def test_no_place_is_forgotten() -> None:
    """What commands take as a path; a few take names too, and are in the lists without being asked for here."""
    group = typer.main.get_command(app)
    for function in COMMANDS:
        name = function.__name__.replace("_", "-")
        parameters = {each.name: each for each in group.commands[name].params}  # type: ignore[attr-defined]
        for argument, kind in get_type_hints(function).items():
            if "Path" in str(kind):
                parameter = parameters[argument]
                last = f" {parameter.opts[0]}" if parameter.opts[0].startswith("-") else ""
                whole = name + " crossing" * _number_before(group.commands[name], parameter)  # type: ignore[attr-defined]
                listed = [each for each in NAMES_A_FILE + NAMES_A_FOLDER + ANY_NAME if each.startswith(name)]
                if (name, argument) not in JUDGED_ELSEWHERE:
                    found = [
                        each for each in listed if (each.endswith(last) if last else f"{each} --".startswith(f"{whole} --"))
                    ]
                    assert found, f"{name}{last or argument}"
