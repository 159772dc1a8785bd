"""The command line where the system refuses, warns or interrupts: one line, and nothing harmed."""

import errno
import json
import os
from pathlib import Path

import pytest

from model import pretrained_policy
from model.policy.file import CHIP_INPUTS, CHIP_PHASES, load_policy, save_policy
from model.policy.provenance import tool_version
from model.report import results
from streetflow.errors import InputError, StepError
from streetflow.networks.catalogue import find_network
from tests.helpers.run_cli import tinylight

EVALUATE = ["evaluate", "--network", "crossing", "--agent", "SOTL"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("TINYLIGHT_DATA", raising=False)


@pytest.fixture
def data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The built-in crossing as the data set `mine`, with one demand."""
    source, folder = find_network("crossing"), tmp_path / "data" / "mine"
    folder.mkdir(parents=True)
    (folder / "roadnet.json").write_bytes(source.roadnet_file.read_bytes())
    (folder / "flow_0.json").write_bytes(source.flow_files[0].read_bytes())
    monkeypatch.setenv("TINYLIGHT_DATA", str(tmp_path / "data"))
    return folder


@pytest.mark.parametrize("kind", ["folder", "pipe"])
@pytest.mark.parametrize("option", ["out", "log", "json"])
def test_a_result_takes_the_place_of_regular_files_only(
    kind: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused before the training, which would end with the device's name given to a policy."""
    taken = Path.cwd() / "taken"
    os.mkfifo(taken) if kind == "pipe" else taken.mkdir()
    before = taken.stat()
    files = {"out": "policy.json"} | {option: "taken"}
    named = [word for name, file in files.items() for word in (f"--{name}", file)]
    assert tinylight("train", "--network", "crossing", "--search-episodes", "1", "--refine-episodes", "1", *named) == 2
    fault = "it is a folder" if kind == "folder" else "it is not a regular file"
    assert capsys.readouterr().err.strip() == f"tinylight: taken: can't be written: {fault}"
    assert taken.stat() == before and list(Path.cwd().iterdir()) == [taken]


def test_a_policy_that_no_request_could_feed_is_reported(data_set: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The paper's extraction knows no chip, so it isn't refused."""
    pytest.importorskip("torch", reason="torch is not installed (extra: train)")
    (data_set / "network.json").write_text('{"horizon_s": 400}')
    short = ["--search-episodes", "1", "--refine-episodes", "1", "--kept-features", "1", "--out", "wide.json"]
    for feature, warned in (("inter_2_vehicle_position_image", True), ("phase_2_pressure", False)):
        assert tinylight("train", "--network", "mine", "--features", feature, *short) == 0
        output = " ".join(capsys.readouterr().out.split())
        assert (f"144 values, more than the {CHIP_INPUTS} that a request to the chip carries" in output) is warned


def test_saving_a_policy_never_replaces_a_device(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="not a regular file"):
        save_policy(load_policy(pretrained_policy("crossing")), pipe)
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    "arguments",
    [
        ["networks", "--json"],
        ["check", "crossing", "--json"],
        ["hil", "--json"],
        ["size", "--json"],
        ["cost", "--json"],
        ["cost", "--figure"],
        [*EVALUATE, "--json"],
        [*EVALUATE, "--trips"],
        ["replay", "--network", "crossing", "--out"],
        ["plot", "log.csv", "--out"],
        ["table", "--networks", "crossing", "--work", "work", "--out"],
        ["train", "--network", "crossing", "--out", "policy.json", "--log"],
        ["train", "--network", "crossing", "--out"],
    ],
    ids=" ".join,
)
def test_every_command_finds_out_early_that_it_cannot_write(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that no file can be made in; as root may write anywhere, the refusal is played."""

    def refusing(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("streetflow.files.tempfile.NamedTemporaryFile", refusing)
    assert tinylight(*arguments, "result.png" if arguments[0] == "plot" else "result") == 2
    out, err = capsys.readouterr()
    assert out == "" and "\n" not in err.strip() and "can't be written: Permission denied" in err


def test_what_the_system_refuses_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no command has its own message: here a file is where the folder of builds should be."""
    (tmp_path / "builds").touch()
    monkeypatch.setattr("hil.build.firmware.default_build_dir", lambda: tmp_path / "builds")
    assert tinylight("size") == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("tinylight: ") and "\n" not in error and f"{tmp_path}/builds" in error


def test_a_step_that_cannot_be_finished_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise StepError("second 7: vehicle flow_0_1 is at the end of its lane")

    monkeypatch.setattr("streetflow.control.environment.Environment.step", failing)
    assert tinylight(*EVALUATE, "--flows", "0") == 2
    assert capsys.readouterr().err.strip() == "tinylight: second 7: vehicle flow_0_1 is at the end of its lane"


@pytest.mark.parametrize("command", [EVALUATE, ["check", "crossing"], ["replay", "--network", "crossing", "--out", "page"]])
def test_ctrl_c_is_told_by_every_command(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("streetflow.control.environment.Environment.step", stopped)
    monkeypatch.setattr("streetflow.check.report.check", stopped)
    assert tinylight(*command) == 130
    assert capsys.readouterr().err.strip().endswith("tinylight: stopped")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert tinylight("--version") == 0
    assert capsys.readouterr().out.strip() == f"tinylight {tool_version()}"


def test_a_bad_data_set_is_told_in_one_line_and_the_others_are_listed(
    data_set: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data_set / "flow_2.json").write_text("[]")
    assert tinylight("networks") == 0
    out, err = capsys.readouterr()
    why = f"{data_set}: flow_1.json: missing: flow files are numbered 0, 1, 2, ..."
    assert err.strip() == f"tinylight: warning: the network mine is left out: {why}"
    assert "crossing" in out and "arterial" in out and "mine" not in out


@pytest.mark.parametrize("command", ["evaluate", "table"])
def test_a_doubtful_demand_is_told_in_one_line(command: str, data_set: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """By the processes that a table is made in, too."""
    content = json.loads((data_set / "flow_0.json").read_text())
    content[0] |= {"startTime": 5, "endTime": 4}
    (data_set / "flow_0.json").write_text(json.dumps(content))
    if command == "evaluate":
        assert tinylight("evaluate", "--network", "mine", "--agent", "FixedTime", "--flows", "0") == 0
    else:
        options = ["--models", "FixedTime", "--reference", "FixedTime", "--flows", "0", "--work", "work"]
        assert tinylight("table", "--networks", "mine", *options) == 0
    lines = [line for line in capfd.readouterr().err.strip().splitlines() if not line.startswith("FixedTime on mine")]
    assert len(lines) == 1 and lines[0].startswith(f"tinylight: warning: {data_set}/flow_0.json: 1 flows that never fire")


@pytest.mark.parametrize(
    ("count", "fault"),
    [
        (CHIP_PHASES + 1, f"has {CHIP_PHASES + 1} phases; the chip's link carries the values of {CHIP_PHASES}"),
        (256, "has 256 phases"),
        (320, "phases up to number 319; a policy chooses among the numbers 0 to 255"),
    ],
)
def test_too_many_phases_are_refused_before_the_training(
    count: int, fault: str, data_set: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="torch is not installed (extra: train)")
    roadnet = json.loads((data_set / "roadnet.json").read_text())
    light = next(each for each in roadnet["intersections"] if not each["virtual"])["trafficLight"]
    light["lightphases"] *= count // len(light["lightphases"]) + 1
    del light["lightphases"][count:]
    (data_set / "roadnet.json").write_text(json.dumps(roadnet))
    options = ["--search-episodes", "1", "--refine-episodes", "1", "--features", "inlane_2_num_vehicle,phase_2_delay"]
    assert tinylight("train", "--network", "mine", "--out", "policy.json", *options) == 2
    assert fault in capsys.readouterr().err and list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--flows", "a"], "--flows: 'a' is not a number"),
        (["--flows", "9" * 5000], "--flows: there is no flow"),
        (["--flows", "3-1"], "--flows: '3-1' runs backwards"),
        (["--network", "crosing"], "did you mean crossing?"),
        (["--policy", "none.json"], "none.json: there is no such file"),
        (["--out", "taken/x"], "taken/x.json: can't be written"),
    ],
)
def test_result_files_with_bad_arguments(
    arguments: list[str], named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (Path.cwd() / "taken" / "x.json").mkdir(parents=True)
    sound = ["--network", "crossing", "--policy", str(pretrained_policy("crossing")), "--out", "rows"]
    monkeypatch.setattr("sys.argv", ["results", *sound, *arguments])
    with pytest.raises(SystemExit) as left:
        results.main()
    error = capsys.readouterr().err.strip()
    assert left.value.code == 2 and "\n" not in error and named in error
