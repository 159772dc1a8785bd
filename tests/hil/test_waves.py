"""The wave form of a run: read back, its bits are the bytes on the wire, and its levels are what the chip did."""

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from hil.boards import SimavrBoard
from hil.boards.waves import Event, Happening, vcd
from hil.loop.job import Job
from hil.loop.pins import PinTrace
from hil.loop.record import run_recorded
from hil.loop.verdict import Verdict
from tests.helpers.run_cli import tinylight

F_CPU_HZ = 16_000_000
BIT_NS = {"rx": 1e9 / 115_200, "tx": 17 * 8 * 1e9 / F_CPU_HZ}  # the harness's rate, and the chip's divisor


class Run(NamedTuple):
    verdict: Verdict
    record: list[list[object]]
    text: str
    events: list[Event]
    board: SimavrBoard


class Waves:
    """A VCD file as IEEE 1364-2005, section 18, reads it: each signal's changes, (time in ns, level)."""

    def __init__(self, text: str) -> None:
        head, _, body = text.partition("$enddefinitions $end\n")
        assert re.search(r"\$timescale 1 ns \$end", head)
        kinds = re.findall(r"\$var (wire|event) 1 (\S) (\w+) \$end", head)
        names = {code: name for _, code, name in kinds}
        self.changes: dict[str, list[tuple[int, int]]] = {name: [] for name in names.values()}
        now, initial = -1, False
        for line in body.splitlines():
            if line.startswith("#"):
                assert int(line[1:]) > now, "time goes on"
                now = int(line[1:])
            elif line in ("$dumpvars", "$end"):
                initial = line == "$dumpvars"
            else:
                changes = self.changes[names[line[1]]]
                assert line[0] in "01" and len(line) == 2 and now >= 0
                is_event = ("event", line[1], names[line[1]]) in kinds
                assert initial or is_event or changes[-1][1] != int(line[0]), "a level that is written has changed"
                changes.append((now, int(line[0])))

    def bytes(self, name: str, bit_ns: float = 0.0) -> Iterator[tuple[float, int]]:
        """As a UART reads them: a falling edge, then the middle of each bit; each byte's start, and the byte."""
        free_ns, bit_ns = 0.0, bit_ns or BIT_NS[name]
        changes = self.changes[name]
        for number, (start, level) in enumerate(changes):
            if level or start < free_ns or number == 0:
                continue
            place, value = number, 0
            for bit in range(10):
                middle = start + (bit + 0.5) * bit_ns
                while place + 1 < len(changes) and changes[place + 1][0] <= middle:
                    place += 1
                value |= changes[place][1] << bit
            assert value & 1 == 0 and value >> 9 == 1, "start and stop bit"
            yield start, value >> 1 & 0xFF
            free_ns = start + 9.5 * bit_ns


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Run:
    job = Job.named("crossing", 0, None, sweep=False)
    job = replace(job, network=replace(job.network, horizon_s=400))
    folder, pins = tmp_path_factory.mktemp("waves"), PinTrace()
    verdict = run_recorded(job, folder / "run.record", around=pins)
    assert pins.write(job, folder / "run.vcd")
    lines = [json.loads(line) for line in gzip.decompress((folder / "run.record").read_bytes()).splitlines()]
    board = pins.board
    assert board is not None
    return Run(verdict, lines[1:-1], (folder / "run.vcd").read_text(), board.traced(), board)


@pytest.mark.hil
def test_the_lines_bits_are_the_bytes_on_the_wire(traced: Run) -> None:
    waves = Waves(traced.text)
    for line, name in (("rx", "write"), ("tx", "read")):
        sent = b"".join(bytes.fromhex(str(call[3])) for call in traced.record if call[1] == name)
        assert bytes(value for _, value in waves.bytes(line)) == sent and len(sent) > 400


@pytest.mark.hil
def test_bytes_begin_when_the_record_says(traced: Run) -> None:
    waves = Waves(traced.text)
    starts = {line: [start for start, _ in waves.bytes(line)] for line in ("rx", "tx")}
    for call in traced.record:
        if call[1] == "timing" and call[4] is not None:
            assert min(abs(start - float(str(call[2])) * 1e3) for start in starts["rx"]) <= 1
            assert min(abs(start - float(str(call[4])) * 1e3) for start in starts["tx"]) <= 1


@pytest.mark.hil
def test_the_led_is_lit_while_the_chip_computes(traced: Run) -> None:
    """Once a decision, and about as long as its stopwatch says: the LED is switched around it."""
    changes = Waves(traced.text).changes["PB5_computing"]
    lit = [(end - start) * F_CPU_HZ / 1e9 for (start, level), (end, _) in pairwise(changes) if level]
    cycles = [record.compute_cycles for record in traced.verdict.records]
    assert len(lit) == len(cycles)
    for seen, told in zip(lit, cycles, strict=True):
        assert told is not None and abs(seen - told) < 100


@pytest.mark.hil
def test_the_chip_sleeps_as_long_as_is_counted(traced: Run) -> None:
    waves, slept = Waves(traced.text), sum(event.end - event.start for event in traced.events if event.kind == Happening.ASLEEP)
    changes = waves.changes["awake"]
    seen = sum(end - start for (start, level), (end, _) in pairwise(changes) if not level)
    assert seen == pytest.approx(slept * 1e9 / F_CPU_HZ, rel=1e-5)
    (figures,) = traced.verdict.figures["energy"]  # type: ignore[misc]
    assert 0 < figures["asleep_cycles"] < slept, "of the decisions, without the handshake"


def test_a_reset_ends_what_is_on_the_line_and_a_watchdogs_does_not() -> None:
    byte = Event(1_600, 3_200, Happening.REQUEST_BYTE, 0x55)
    reset = Event(2_000, 2_000, Happening.RESET, 1)
    cut = Waves(vcd([byte, reset], F_CPU_HZ, "x"))
    assert cut.changes["rx"] == [(100_000, 1), (100_000, 0), (110_000, 1), (120_000, 0), (125_000, 1)]
    assert cut.changes["reset"] == [(125_000, 1)]
    whole = Waves(vcd([byte, reset._replace(value=0)], F_CPU_HZ, "x"))
    assert [value for _, value in whole.bytes("rx", bit_ns=10_000)] == [0x55]


@pytest.mark.hil
def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for options, fault in (
        (["--board", "host"], "--vcd: host's pins can't be seen, only those of the board simavr"),
        (["--boards", "per-intersection"], "--vcd: one file holds one chip's pins, and there is one for each intersection"),
        (["--network", "arterial"], "--vcd: holds one run, and these are 2: name one --network"),
    ):
        assert tinylight("hil", "--network", "crossing", "--vcd", "run.vcd", *options) == 2
        assert capsys.readouterr().err == f"tinylight: {fault}\n"
