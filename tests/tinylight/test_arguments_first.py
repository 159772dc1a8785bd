"""Arguments are judged before data is looked for: without any data set, what is blamed is the argument that is wrong.

Every command is run on a data set that is not here, with one wrong argument; a rule over the commands holds the list
complete.
"""

import re
from pathlib import Path
from typing import get_type_hints

import pytest
import typer

from tests.helpers.run_cli import tinylight
from tinylight.cli import COMMANDS, app

# Sound arguments of each command, but for the data set.
BASES = {
    "evaluate": "--network Jinan --agent SOTL",
    "replay": "--network Jinan --out page.html",
    "hil": "--network Jinan",
    "size": "--network Jinan",
    "cost": "--network Jinan",
    "flash": "--network Jinan",
    "train": "--network Jinan --out out.json",
    "table": "--networks Jinan,Hangzhou1",
    "stress": "--network Jinan --agents SOTL",
    "make-network": "new --from Jinan --noise 60",
    "make-flow": "Jinan new.json",
    "check": "Jinan",
    "plot": "log.csv",
    "board": "",
    "share": "/dev/null",
    "networks": "",
    "quantise": "policy.json --network Jinan --features deployable --out out.json",
    "import-sumo": "net.net.xml out",
}
MISSPELT = {
    ("evaluate", "--network"): ("Jinn", "Jinan"),
    ("evaluate", "--agent"): ("SOLT", "SOTL"),
    ("evaluate", "--flows"): ("5-2", ""),
    ("evaluate", "--engine"): ("buildin", "builtin"),
    ("evaluate", "--clearance"): ("all-red", "all_red"),
    ("evaluate", "--trips"): ("none/trips.csv", ""),
    ("evaluate", "--json"): ("none/rows.json", ""),
    ("replay", "--network"): ("Hangzou2", "Hangzhou2"),
    ("replay", "--out"): ("none/page.html", ""),
    ("replay", "--agent"): ("Fixedtim", "FixedTime"),
    ("replay", "--clearance"): ("yelow", "yellow"),
    ("replay", "--json"): ("none/facts.json", ""),
    ("hil", "--board"): ("simvar", "simavr"),
    ("hil", "--network"): ("crosing", "crossing"),
    ("hil", "--policy"): ("polcy.json", "policy.json"),
    ("hil", "--agent"): ("none.json", ""),
    ("hil", "--engine"): ("cityflo", "cityflow"),
    ("hil", "--clearance"): ("al_red", "all_red"),
    ("hil", "--faults"): ("rest@3", "reset"),
    ("hil", "--kernel"): ("tabel", "table"),
    ("hil", "--boards"): ("per_intersection", "per-intersection"),
    ("hil", "--record"): ("none/run.record", ""),
    ("hil", "--replay"): ("none.record", ""),
    ("hil", "--vcd"): ("none/run.vcd", ""),
    ("hil", "--report"): ("none/report.html", ""),
    ("hil", "--json"): ("none/verdict.json", ""),
    ("hil", "--baud"): ("3", ""),
    ("hil", "--f-cpu"): ("3", ""),
    ("hil", "--budget"): ("inf", ""),
    ("hil", "--mode"): ("alon", "alone"),
    ("hil", "--detector-faults"): ("ded:10%", "dead"),
    ("hil", "--lamp-faults"): ("onn@60:green2", "on"),
    ("hil", "--events"): ("none/events.csv", ""),
    ("hil", "--page"): ("none/page.html", ""),
    ("import-sumo", "--json"): ("none/facts.json", ""),
    ("quantise", "--network"): ("Jinn", "Jinan"),
    ("quantise", "--features"): ("deployble", "deployable"),
    ("quantise", "--clearance"): ("al_red", "all_red"),
    ("quantise", "--out"): ("none/policy.json", ""),
    ("size", "--policy"): ("polcy.json", "policy.json"),
    ("size", "--network"): ("Atlnta", "Atlanta"),
    ("size", "--kernel"): ("unroled", "unrolled"),
    ("size", "--against"): ("polcy.json", "policy.json"),
    ("size", "--intersection"): ("intersection_1_9", "intersection_1_1"),
    ("flash", "--intersection"): ("intersection_1_9", "intersection_1_1"),
    ("size", "--json"): ("none/size.json", ""),
    ("size", "--baud"): ("3", ""),
    ("size", "--f-cpu"): ("3", ""),
    ("flash", "--board"): ("simvar", "simavr"),
    ("flash", "--policy"): ("polcy.json", "policy.json"),
    ("flash", "--network"): ("crosing", "crossing"),
    ("flash", "--kernel"): ("tabel", "table"),
    ("flash", "--baud"): ("3", ""),
    ("cost", "--network"): ("LosAngels", "LosAngeles"),
    ("cost", "--policy"): ("polcy.json", "policy.json"),
    ("cost", "--figure"): ("none/cost.svg", ""),
    ("cost", "--table"): ("polcy.json", "policy.json"),
    ("cost", "--json"): ("none/cost.json", ""),
    ("train", "--network"): ("Jinann", "Jinan"),
    ("train", "--out"): ("none/out.json", ""),
    ("train", "--model"): ("ecolite", "EcoLight"),
    ("train", "--features"): ("relase", "release"),
    ("train", "--clearance"): ("holt", "hold"),
    ("train", "--also-flows"): ("5-2", ""),
    ("train", "--cluster"): ("atuo", "auto"),
    ("train", "--sweep"): ("none.toml", ""),
    ("train", "--set"): ("gama=1", "gamma"),
    ("train", "--device"): ("cud", "cuda"),
    ("train", "--log"): ("none/log.csv", ""),
    ("train", "--method"): ("plannd", "planned"),
    ("train", "--tensorboard"): ("policy.json", ""),
    ("train", "--json"): ("none/facts.json", ""),
    ("train", "--search-episodes"): ("0", ""),
    ("train", "--max-parameters"): ("0", ""),
    ("table", "--models"): ("SOLT", "SOTL"),
    ("table", "--networks"): ("Jinan,crosing", "crossing"),
    ("table", "--flows"): ("5-2", ""),
    ("table", "--clearance"): ("al_red", "all_red"),
    ("table", "--work"): ("policy.json", ""),
    ("table", "--out"): ("none/table", ""),
    ("table", "--cluster"): ("atuo", "auto"),
    ("table", "--reference"): ("SOTLL", "SOTL"),
    ("stress", "--network"): ("Jinn", "Jinan"),
    ("stress", "--agents"): ("MaxQueue,SOLT", "SOTL"),
    ("stress", "--columns"): ("as is,volum 1.3", "volume 1.3"),
    ("stress", "--clearance"): ("al_red", "all_red"),
    ("stress", "--work"): ("policy.json", ""),
    ("stress", "--out"): ("none/scores", ""),
    ("make-network", "--from"): ("Jinn", "Jinan"),
    ("make-network", "--noise"): ("-1", ""),
    ("make-network", "--flows"): ("0", ""),
    ("make-network", "--horizon"): ("0", ""),
    ("make-flow", "--turns"): ("0.5", ""),
    ("make-flow", "--by-road"): ("polcy.json", "policy.json"),
    ("make-flow", "--routes"): ("shortst", "shortest"),
    ("make-flow", "--arrivals"): ("poison", "poisson"),
    ("make-flow", "--profile"): ("paek", "peak"),
    ("check", "--json"): ("none/report.json", ""),
    ("check", "--interval"): ("-1", ""),
    ("plot", "--out"): ("none/plot.png", ""),
    ("board", "--link"): ("none/port", ""),
    ("board", "--policy"): ("polcy.json", "policy.json"),
    ("board", "--bootloader"): ("polcy.json", "policy.json"),
    ("board", "--baud"): ("3", ""),
    ("share", "--listen"): ("nowhere", ""),
    ("networks", "--json"): ("none/networks.json", ""),
}
ONLY_NEW_NETWORKS = {"--turns", "--side-turns", "--routes", "--profile"}  # of make-network, refused beside --from
NEEDS_THE_NETWORK = {("cost", "--intersection")}  # names of the network's own intersections


def with_words() -> set[tuple[str, str]]:
    """Every option that takes a word or a file, of every command."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found = set()
    for function in COMMANDS:
        name = function.__name__.replace("_", "-")
        kinds = get_type_hints(function)
        options = [each for each in commands[name].params if each.param_type_name == "option" and each.name in kinds]
        found |= {(name, each.opts[0]) for each in options if re.search(r"\b(str|Path)\b", str(kinds[each.name]))}
    return found


def test_no_option_is_forgotten() -> None:
    new = {("make-network", option) for option in ONLY_NEW_NETWORKS}
    assert with_words() - new - NEEDS_THE_NETWORK <= MISSPELT.keys()


@pytest.fixture(params=["no folder", "an empty folder"])
def no_data(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a few files, and no data set anywhere."""
    (tmp_path / "data").mkdir()
    here = tmp_path / "here"
    here.mkdir()
    (here / "policy.json").touch()
    monkeypatch.chdir(here)
    monkeypatch.setenv("TINYLIGHT_DATA", "" if request.param == "no folder" else str(tmp_path / "data"))
    return here


@pytest.mark.parametrize(("command", "option"), list(MISSPELT), ids=" ".join)
def test_the_wrong_argument_is_blamed(command: str, option: str, no_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if command == "train":
        pytest.importorskip("torch", reason="torch is not installed (extra: train)")
    if command == "plot" or option == "--figure":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: plot)")
    value, meant = MISSPELT[command, option]
    # of an option that is given twice the last value counts, but for lists
    sound = [] if (command, option) == ("hil", "--network") else BASES[command].split()
    assert tinylight(command, *sound, f"{option}={value}") == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "unexpected" not in error
    assert option in error or value.split("=")[0].split(",")[-1] in error or option.lstrip("-") in error.split(": ")
    if meant:
        assert meant in error.partition("did you mean ")[2].partition("?")[0].split(" or ")
    assert "Jinan: unknown" not in error and "Hangzhou1: unknown" not in error
    assert [each.name for each in no_data.iterdir()] == ["policy.json"]


def test_a_baselines_options_are_looked_at_after_its_name(no_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="torch is not installed (extra: train)")
    train = ("train", "--network", "Jinan", "--out", "out.npz", "--search-episodes", "1", "--model")
    assert tinylight(*train, "ppo") == 2
    assert capsys.readouterr().err.startswith("tinylight: --model: unknown model 'ppo'")
    assert tinylight(*train, "FRAP") == 2
    assert capsys.readouterr().err.startswith("tinylight: --search-episodes: a baseline has the paper's settings")


@pytest.mark.parametrize("command", ["evaluate", "replay", "hil", "cost", "train", "make-network", "stress"])
def test_sound_arguments_blame_the_data_set(command: str, no_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if command == "train":
        pytest.importorskip("torch", reason="torch is not installed (extra: train)")
    assert tinylight(command, *BASES[command].split()) == 2
    option = "--from" if command == "make-network" else "--network"
    assert capsys.readouterr().err.startswith(f"tinylight: {option}: Jinan: ")
