"""`tinylight flash` where something is wrong: each cause with its remedy. That it works is in test_whole_way.py."""

import os
import pty
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from hil.boards import avrdude
from streetflow.errors import InputError
from tests.helpers.random_policy import write_random_policy
from tests.helpers.run_cli import tinylight


@pytest.fixture
def port() -> Iterator[str]:
    """A port at which no board answers."""
    controller, device = pty.openpty()
    yield os.ttyname(device)
    os.close(controller)
    os.close(device)


def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """An avrdude that does this."""
    program = tmp_path / "bin" / "avrdude"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert tinylight("flash", *arguments) == 2
    error = capsys.readouterr().err.removeprefix("tinylight: ").rstrip("\n")
    assert error and "\n" not in error
    return error


def test_avrdude_is_asked_for_the_unos_bootloader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    played(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/asked')
    avrdude.upload(Path("/somewhere/firmware.hex"), port, bootloader_baud=57_600)
    asked = (tmp_path / "asked").read_text().strip()
    assert asked == f"-q -p atmega328p -c arduino -P {port} -b 57600 -D -U flash:w:/somewhere/firmware.hex:i"


def test_a_missing_avrdude_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], port: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert error_of(capsys, "--board", port) == "avrdude: not on PATH; install it: apt install avrdude"


def test_a_silent_bootloader_is_given_up_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    """avrdude itself tries ten times, a minute in all."""
    attempt = 'echo "avrdude warning: attempt $n of 10: not in sync: resp=0x00" >&2'
    played(tmp_path, monkeypatch, f"for n in 1 2; do {attempt}; done; exec sleep 60")
    begun = time.monotonic()
    with pytest.raises(InputError, match=r"the bootloader doesn't answer\. Usual causes: .*--upload-baud 57600") as refused:
        avrdude.upload(tmp_path / "firmware.hex", port)
    assert refused.value.file == port and time.monotonic() - begun < 30


def test_what_avrdude_finds_wrong_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    played(
        tmp_path, monkeypatch, 'echo "avrdude error: verification mismatch at 0x0012\n\navrdude done.  Thank you." >&2; exit 1'
    )
    with pytest.raises(InputError, match=rf"^{port}: avrdude failed: avrdude error: verification mismatch at 0x0012$"):
        avrdude.upload(tmp_path / "firmware.hex", port)


def test_a_failure_without_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    played(tmp_path, monkeypatch, "exit 1")
    with pytest.raises(InputError, match="avrdude failed: no reason given"):
        avrdude.upload(tmp_path / "firmware.hex", port)


@pytest.mark.parametrize(
    ("board", "named"),
    [
        ("simavr", "--board: simavr needs no upload: tinylight hil --board simavr builds its firmware itself"),
        ("host", "--board: host needs no upload"),
        ("socket://bench:4000", "socket://bench:4000: a bootloader can't be reached across a network"),
        ("/dev/no_such_port", "/dev/no_such_port: there is no such port"),
        (__file__, "is not a serial port"),
    ],
)
def test_what_cannot_be_flashed(board: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert named in error_of(capsys, "--board", board)


def test_auto_takes_boards_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As tinylight hil --board auto: a port without a board's USB id is none."""
    plain = SimpleNamespace(device="/dev/ttyS0", description="n/a", vid=None, pid=None)
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: [plain])
    assert error_of(capsys) == "auto: no port looks like a board: the ports present are /dev/ttyS0 (n/a)"


def test_a_policy_too_large_is_refused_before_the_upload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], port: str
) -> None:
    played(tmp_path, monkeypatch, f"touch {tmp_path}/called")
    write_random_policy(tmp_path / "large.json", shapes=[((12, 9), (18, 20), 9)] * 40)
    error = error_of(capsys, "--board", port, "--policy", str(tmp_path / "large.json"))
    assert "large.json: takes " in error and "an Uno has 32256 and 2048; see tinylight size" in error
    assert not (tmp_path / "called").exists()


def test_a_board_that_is_silent_after_the_upload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], port: str
) -> None:
    played(tmp_path, monkeypatch, "exit 0")
    monkeypatch.setattr("hil.boards.SerialBoard.boot_us", 300_000)
    error = error_of(capsys, "--board", port)
    assert error.startswith(f"{port}: the firmware is on the board, but ") and "usual causes" in error
