"""Records of runs: a replay gives the same verdict to the byte, and one that departs from its record says where."""

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hil.boards.faults import BoardDied
from hil.boards.recording import RecordingBoard, ReplayedBoard
from hil.loop import job as job_module
from hil.loop.fault_spec import FaultSpec
from hil.loop.job import Job, run_job
from hil.loop.record import replay, run_recorded
from hil.loop.verdict import Verdict
from model import pretrained_policy
from model.policy.file import load_policy, save_policy
from streetflow.errors import InputError
from tests.helpers.fake_board import FakeBoard
from tests.helpers.run_cli import tinylight

HORIZON_S = 400
PATIENT = {"budget_s": 30.0}  # of the host build, which a busy machine may leave waiting


def short_job(network: str = "crossing", **options: Any) -> Job:
    job = Job.named(network, 0, None, **options)
    return replace(job, network=replace(job.network, horizon_s=HORIZON_S))


def as_json(verdict: Verdict) -> str:
    return json.dumps(verdict.as_dict(), default=str)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Path, Verdict]:
    file = tmp_path_factory.mktemp("record") / "run.record"
    job = short_job()
    return job, file, run_recorded(job, file)


def changed(file: Path, to: Path, change: Callable[[list[Any]], None]) -> Path:
    """The record with its lines changed, and a checksum that fits them."""
    *lines, end = (json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines())
    change(lines)
    texts = [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines]
    end = {"calls": len(lines) - 1, "sha256": hashlib.sha256(b"".join(texts)).hexdigest()}
    to.write_bytes(gzip.compress(b"".join((*texts, json.dumps(end).encode() + b"\n"))))
    return to


def calls(lines: list[Any], name: str) -> list[int]:
    return [number for number, line in enumerate(lines) if isinstance(line, list) and line[1] == name]


@pytest.mark.hil
@pytest.mark.parametrize(
    ("network", "options"),
    [
        ("crossing", {}),
        ("crossing", {"board": "host"} | PATIENT),
        ("crossing", {"baud": 500_000, "faults": FaultSpec.parse("bytes=0.05,reset@9,brownout@30,seed=7")}),
        ("arterial", {"boards": "per-intersection", "sweep": False}),
        ("crossing", {"firmware_flags": ("-DTL_SILENT_AFTER=20",), "sweep": False}),
        ("crossing", {"firmware_flags": ("-DTL_SILENT_AFTER=0",)}),
    ],
    ids=["emulated", "host", "faults", "one chip each", "falls silent", "silent"],
)
def test_a_replay_gives_the_same_bytes(
    network: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And needs neither board nor build. On the emulated chip, recording changes nothing."""
    job, file = short_job(network, **options), tmp_path / "run.record"
    verdict = run_recorded(job, file)
    if job.board == "simavr":
        again = tmp_path / "again.record"
        assert as_json(run_job(job)) == as_json(run_recorded(job, again)) == as_json(verdict)
        assert again.read_bytes() == file.read_bytes()

    def none(*_: object, **__: object) -> None:
        raise AssertionError("a replay needs neither")

    monkeypatch.setattr(job_module, "build", none)
    monkeypatch.setattr(job_module, "open_board", none)
    replayed_job, replayed = replay(file)
    assert replayed_job == job and as_json(replayed) == as_json(verdict)
    assert replayed.footprint == verdict.footprint


@pytest.mark.hil
def test_the_record_has_every_byte_and_its_time(recorded: tuple[Job, Path, Verdict]) -> None:
    """The decisions' figures are in it: the round trip is from a write to the end of the read that answers."""
    _, file, verdict = recorded
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    assert lines[0]["provenance"] == verdict.provenance and lines[0]["boards"][0]["clock"] == "cycles"
    trips = []
    for before, timing in pairwise(lines):
        if isinstance(before, list) and before[1] == "read" and timing[1] == "timing":
            trips.append(timing[5] - timing[2])
    for record in verdict.records:
        assert record.round_trip_us in trips
    assert file.stat().st_size < 40_000


@pytest.mark.hil
def test_a_replay_that_departs_says_where(recorded: tuple[Job, Path, Verdict], tmp_path: Path) -> None:
    _, file, _ = recorded

    def other_request(lines: list[Any]) -> None:
        data = lines[calls(lines, "write")[40]]
        data[3] = "55" + data[3][2:]

    def other_answer(lines: list[Any]) -> None:
        data = lines[calls(lines, "read")[60]]
        data[3] = data[3][:8] + ("00" if data[3][8:10] != "00" else "11") + data[3][10:]

    def no_bytes(lines: list[Any]) -> None:
        lines[calls(lines, "read")[3]][3] = "xy"

    def cut_short(lines: list[Any]) -> None:
        del lines[-30:]

    def goes_on(lines: list[Any]) -> None:
        lines.append([0, "drain", 0])

    def other_policy(lines: list[Any]) -> None:
        lines[0]["provenance"]["policy_sha256"] = "ab" * 32

    def other_flow(lines: list[Any]) -> None:
        lines[0]["provenance"]["flow_sha256"] = "ab" * 32

    for change, fault in (
        (other_request, r"line \d+: the replay departs from the record: the record has write [\d.]+ 55.*, the run asks"),
        (other_answer, r"line \d+: the replay departs from the record: the record has .*, the run asks for"),
        (no_bytes, r"line \d+: xy are no bytes"),
        (cut_short, r"line \d+: the replay departs from the record: the record ends here; the run goes on with"),
        (goes_on, r"line \d+: the replay departs from the record: the run ends here; the record goes on with drain 0"),
        (other_policy, "is policy .*, and .* is of abababababab"),
        (other_flow, "isn't the flow file that .* was recorded with"),
    ):
        with pytest.raises(InputError, match=fault):
            replay(changed(file, tmp_path / f"{change.__name__}.record", change))


@pytest.mark.hil
def test_a_wrong_answer_in_a_record_fails_the_verdict(recorded: tuple[Job, Path, Verdict], tmp_path: Path) -> None:
    """A record whose frames are sound, but in which the chip took longer than it may."""
    _, file, verdict = recorded

    def late(lines: list[Any]) -> None:
        last = calls(lines, "timing")[-3]
        lines[last][5] += 200_000

    _, replayed = replay(changed(file, tmp_path / "late.record", late))
    assert verdict.check("latency").outcome == "pass" and replayed.check("latency").outcome == "fail"


def test_a_board_that_dies_dies_again() -> None:
    class Dying(FakeBoard):
        def read(self, deadline_us: float) -> bytes:
            raise BoardDied("the cable was pulled")

    noted: list[list[Any]] = []
    board = RecordingBoard(Dying(), noted.append)
    with pytest.raises(BoardDied):
        board.read(1.0)
    assert noted == [["read died", "the cable was pulled"]]
    with pytest.raises(BoardDied, match=r"^the cable was pulled$"):
        ReplayedBoard(board.facts, enumerate(noted, 1), "a record").read(1.0)


@pytest.mark.hil
def test_no_record(recorded: tuple[Job, Path, Verdict], tmp_path: Path) -> None:
    _, file, _ = recorded
    whole = file.read_bytes()
    spoilt = {
        "text": (b"nothing of the kind", "no record of a run"),
        "half": (whole[: len(whole) // 2], "no record of a run"),
        "other": (gzip.compress(b'{"format":"x"}\n{}\n'), "no record of a run"),
        "list": (gzip.compress(b"[1]\n[2]\n"), "no record of a run"),
        "changed": (gzip.compress(gzip.decompress(whole).replace(b'"read"', b'"READ"', 1)), "its checksum differs"),
        "newer": (gzip.compress(gzip.decompress(whole).replace(b'"version":1', b'"version":9', 1)), "version 9 of the format"),
    }
    for name, (content, fault) in spoilt.items():
        bad = tmp_path / name
        bad.write_bytes(content)
        with pytest.raises(InputError, match=fault):
            replay(bad)
    with pytest.raises(InputError, match="none"):
        replay(tmp_path / "none")


@pytest.mark.hil
def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["hil", "--network", "crossing", "--no-sweep"]
    assert tinylight(*run, "--record", "run.record", "--json", "run.json") == 0
    assert tinylight("hil", "--replay", "run.record", "--json", "replayed.json") == 0
    assert Path("run.json").read_bytes() == Path("replayed.json").read_bytes()
    policy = load_policy(pretrained_policy("crossing"))
    save_policy(policy, tmp_path / "copy.json")
    assert tinylight("hil", "--replay", "run.record", "--policy", "copy.json") == 0
    other = str(pretrained_policy("arterial"))
    capsys.readouterr()
    for arguments, fault in (
        (["--replay", "run.record", "--policy", other], f"{other}: is policy"),
        (["--replay", "run.record", "--board", "host"], "--board: --replay has this from its file: leave it out"),
        (["--record", "run.record", "--network", "crossing", "--network", "arterial"], "--record: holds one run"),
    ):
        assert tinylight("hil", *arguments) == 2
        error = capsys.readouterr().err
        assert fault in error and error.count("\n") == 1
