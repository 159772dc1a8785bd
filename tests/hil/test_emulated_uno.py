"""The emulated Uno on its pseudo-terminal: opens reset it, its line rate is the port's, and the harness talks to it as to any
serial board. Waits are long deadlines only: no test here depends on how fast this machine is."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import serial

from hil.boards import SerialBoard, SimavrBoard
from hil.boards.bootloader import find_bootloader
from hil.boards.emulated_uno import EmulatedUno
from hil.boards.pseudo_terminal import PseudoTerminal
from hil.build.firmware import Firmware, build_firmware
from hil.loop.job import Job, run_job
from hil.wire.link import Link, LinkError
from hil.wire.probe import answering_baud
from model import pretrained_policy
from streetflow.errors import InputError

PATIENCE_S = 30.0
BUDGET_S = 10.0  # of a decision: the machine may be busy with other things


@pytest.fixture(scope="module")
def firmware() -> Firmware:
    return build_firmware(pretrained_policy("crossing"))


@pytest.fixture
def uno(firmware: Firmware) -> Iterator[EmulatedUno]:
    """Holds the firmware, as after an upload."""
    with SimavrBoard(firmware.elf, f_cpu_hz=16_000_000, baud=115_200, bootloader=find_bootloader()) as chip:
        port = PseudoTerminal()
        uno = EmulatedUno(chip, port)
        thread = threading.Thread(target=uno.run)
        thread.start()
        yield uno
        uno.stop()
        thread.join()
        port.close()


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def test_the_firmware_answers_after_the_bootloader(uno: EmulatedUno, firmware: Firmware) -> None:
    with SerialBoard(uno.port.name, baud=115_200) as board:
        link = Link(board, budget_s=BUDGET_S)
        link.hello(firmware.policy_sha256, patience_s=PATIENCE_S)
        assert link.decide(0, [1] * 28).action < 8
        assert link.stats().decisions >= 1
    assert uno.resets == 1, "opening the port resets the board"


def test_each_opening_is_a_reset_unless_hupcl_is_off(uno: EmulatedUno, firmware: Firmware) -> None:
    with serial.Serial(uno.port.name, 115_200):
        assert eventually(lambda: uno.resets == 1)
    with serial.Serial(uno.port.name, 115_200):
        assert eventually(lambda: uno.resets == 2)
    assert eventually(lambda: not uno.port.is_open)
    subprocess.run(["stty", "-F", uno.port.name, "-hupcl"], check=True)  # this opens the port once more
    assert eventually(lambda: uno.resets == 3)
    with SerialBoard(uno.port.name, baud=115_200) as board:
        link = Link(board, budget_s=BUDGET_S)
        link.hello(firmware.policy_sha256, patience_s=PATIENCE_S)
        link.decide(0, [1] * 28)
    with SerialBoard(uno.port.name, baud=115_200) as board:
        link = Link(board, budget_s=BUDGET_S)
        link.hello(firmware.policy_sha256, patience_s=PATIENCE_S)
        assert link.stats().decisions >= 1, "it has gone on running"
    assert uno.resets == 3


def test_a_board_reset_from_the_harness(uno: EmulatedUno, firmware: Firmware) -> None:
    """Without modem lines the port is closed and opened again."""
    with SerialBoard(uno.port.name, baud=115_200) as board:
        link = Link(board, budget_s=BUDGET_S)
        link.hello(firmware.policy_sha256, patience_s=PATIENCE_S)
        link.decide(0, [1] * 28)
        board.reset()
        link.hello(firmware.policy_sha256, patience_s=PATIENCE_S)
        assert link.stats().decisions == 0
    assert uno.resets == 2


def test_a_wrong_baud_rate_gives_no_answer_and_the_right_one_is_named(uno: EmulatedUno) -> None:
    with SerialBoard(uno.port.name, baud=57_600) as board:
        with pytest.raises(LinkError, match="another baud rate than 57600"):
            Link(board).hello(patience_s=3)
        assert answering_baud(board) == 115_200
        assert board.baud == 57_600


def test_bytes_for_nobody_are_lost(uno: EmulatedUno) -> None:
    with serial.Serial(uno.port.name, 115_200) as port:
        port.write(b"\x00\x03\x01\x01\x00")
    with serial.Serial(uno.port.name, 115_200, timeout=0) as port:
        assert port.read(100) == b""


def test_rates_without_a_name_are_seen(uno: EmulatedUno) -> None:
    for baud in (250_000, 9_600, 123_456):
        with serial.Serial(uno.port.name, baud):
            assert uno.port.baud == baud


def test_a_verdict_names_the_baud_rate_that_works(uno: EmulatedUno, tmp_path: Path) -> None:
    job = Job.named("crossing", 0, pretrained_policy("crossing"), board=uno.port.name, baud=38_400)
    handshake = run_job(job).check("handshake")
    assert handshake.outcome == "fail"
    assert "not at 38400 baud, but at 115200 the board answers: use `baud` 115200" in handshake.measured


def test_the_old_bootloader_of_the_nano(firmware: Firmware) -> None:
    """ATmegaBOOT at 57600 baud takes a real avrdude too; the program then runs at its own rate."""
    loader = find_bootloader().parents[1] / "atmega" / "ATmegaBOOT_168_atmega328.hex"
    with SimavrBoard(None, f_cpu_hz=16_000_000, baud=57_600, bootloader=loader) as chip:
        port = PseudoTerminal()
        uno = EmulatedUno(chip, port)
        thread = threading.Thread(target=uno.run)
        thread.start()
        try:
            command = ["avrdude", "-p", "atmega328p", "-c", "arduino", "-P", port.name, "-b", "57600", "-D"]
            done = subprocess.run([*command, "-U", f"flash:w:{firmware.hex}:i"], capture_output=True, text=True)
            assert done.returncode == 0 and "verified" in done.stderr, done.stderr
            with SerialBoard(port.name, baud=115_200) as board:
                Link(board).hello(firmware.policy_sha256, patience_s=PATIENCE_S)
        finally:
            uno.stop()
            thread.join()
            port.close()


class TestTheLink:
    def test_it_points_to_the_port_and_goes_away(self, tmp_path: Path) -> None:
        link = tmp_path / "uno"
        port = PseudoTerminal(link)
        assert os.readlink(link) == port.name
        port.close()
        assert not link.is_symlink()

    def test_a_dead_one_is_replaced(self, tmp_path: Path) -> None:
        link = tmp_path / "uno"
        link.symlink_to(tmp_path / "gone")
        port = PseudoTerminal(link)
        assert os.readlink(link) == port.name
        port.close()

    def test_one_to_the_same_number_is_replaced(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A killed run leaves its link, and the kernel gives the terminal's number again."""
        pair = os.openpty()
        monkeypatch.setattr(os, "openpty", lambda: pair)
        link = tmp_path / "uno"
        link.symlink_to(os.ttyname(pair[1]))
        port = PseudoTerminal(link)
        assert os.readlink(link) == port.name
        port.close()
        assert not link.is_symlink()

    def test_one_that_is_older_than_its_terminal_is_replaced(self, tmp_path: Path) -> None:
        others = PseudoTerminal()
        link = tmp_path / "uno"
        link.symlink_to(others.name)
        os.utime(link, (1e9, 1e9), follow_symlinks=False)
        port = PseudoTerminal(link)
        assert os.readlink(link) == port.name != others.name
        port.close()
        others.close()

    def test_one_in_use_is_left_alone(self, tmp_path: Path) -> None:
        link = tmp_path / "uno"
        port = PseudoTerminal(link)
        with pytest.raises(InputError, match="File exists"):
            PseudoTerminal(link)
        assert os.readlink(link) == port.name
        port.close()

    def test_a_killed_run_is_followed_by_another(self, tmp_path: Path) -> None:
        link = tmp_path / "uno"
        for _ in range(2):
            command = [sys.executable, "-m", "tinylight.cli", "board", "--link", str(link)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
                assert run.stdout is not None
                assert f"Arduino Uno at {link}" in run.stdout.readline()
                run.kill()
        assert link.is_symlink()

    def test_what_is_there_is_left_alone(self, tmp_path: Path) -> None:
        file = tmp_path / "uno"
        file.write_text("mine")
        with pytest.raises(InputError, match="File exists"):
            PseudoTerminal(file)
        assert file.read_text() == "mine"
