"""The emulated board, against a probe firmware of ours: times in cycles, and every kind of death of the chip."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.boards import SimavrBoard, open_board, simavr_library
from hil.boards.faults import BoardDied
from hil.wire.link import Link, NoAnswer
from streetflow.errors import InputError
from tests.helpers.firmware_probe import build_probe

F_CPU_HZ = 16_000_000
BAUD = 115_200
REQUEST_BYTE_CYCLES = 10 * F_CPU_HZ / BAUD  # 1388.9: this end's rate
REPLY_BYTE_CYCLES = 10 * 8 * 17  # 1360: divisor 16 at double speed
PATIENCE_US = 50_000


@pytest.fixture(scope="module", params=[(), ("-DPOLLED",)], ids=["interrupts", "polled"])
def probe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_probe(tmp_path_factory.mktemp("probe"), flags=request.param)


@pytest.fixture
def emulated(probe: Path) -> Iterator[SimavrBoard]:
    with SimavrBoard(probe, f_cpu_hz=F_CPU_HZ, baud=BAUD) as board:
        yield board


def ask(board: SimavrBoard, data: bytes) -> bytes:
    board.write(data)
    return board.read(board.now_us() + PATIENCE_US)


def cycles(time_us: float) -> int:
    return round(time_us * F_CPU_HZ / 1e6)


def test_an_echo_takes_its_time_on_the_wire(emulated: SimavrBoard) -> None:
    assert ask(emulated, b"\x81\x00") == b"\x81\x00"
    timing = emulated.timing()
    request = cycles(timing.request_end_us) - cycles(timing.write_start_us)
    assert 2 * REQUEST_BYTE_CYCLES <= request <= 2 * REQUEST_BYTE_CYCLES + 2
    first_received = cycles(timing.write_start_us) + REQUEST_BYTE_CYCLES
    turnaround = cycles(timing.reply_start_us) - first_received
    assert 10 <= turnaround <= 200, "interrupt, wake-up and main loop take some cycles, but not many"
    second_starts = cycles(timing.request_end_us) + turnaround
    assert abs(cycles(timing.reply_end_us) - (second_starts + REPLY_BYTE_CYCLES)) <= 40


def test_replies_never_beat_ten_bits_a_byte(emulated: SimavrBoard) -> None:
    data = bytes(range(0x80, 0x94)) + b"\x00"
    received = b""
    emulated.write(data)
    while not received.endswith(b"\0"):
        received += emulated.read(emulated.now_us() + PATIENCE_US)
    assert received == data
    timing = emulated.timing()
    span = cycles(timing.reply_end_us) - cycles(timing.reply_start_us)
    # The echo waits for each request byte, and those come at the slower rate of the two.
    assert 20 * REQUEST_BYTE_CYCLES + REPLY_BYTE_CYCLES - 60 <= span <= 21 * REQUEST_BYTE_CYCLES + 60


def test_the_clock_counts_the_firmwares_cycles(emulated: SimavrBoard) -> None:
    reply = ask(emulated, b"T")
    assert reply[2] == 0
    measured = int.from_bytes(reply[:2], "little")
    assert 1000 <= measured <= 1010, "250 turns of 4 cycles between two readings of Timer1"


def test_an_interrupt_costs_what_it_costs_on_silicon(emulated: SimavrBoard) -> None:
    """4 cycles of entry (which simavr alone leaves out), 3 of the vector's jump, 4 of reti; four times."""
    without, with_four = (int.from_bytes(ask(emulated, command)[:2], "little") for command in (b"E", b"F"))
    assert with_four - without == 4 * (4 + 3 + 4)


def test_runs_repeat_to_the_cycle(probe: Path) -> None:
    def run() -> list[tuple[int, bytes]]:
        with SimavrBoard(probe, f_cpu_hz=F_CPU_HZ, baud=BAUD) as board:
            return [(board.cycle, ask(board, command)) for command in (b"\x81\x00", b"T", b"S", b"\x82\x83\x00", b"M")]

    first = run()
    assert first == run()
    assert len({cycle for cycle, _ in first}) == 5, "the clock moves"


def test_several_boards_side_by_side(probe: Path) -> None:
    def script(*boards: SimavrBoard) -> list[int]:
        for command in (b"\x81\x00", b"T", b"\x82\x83\x84\x00"):
            for board in boards:
                assert ask(board, command).endswith(b"\x00")
        return [board.cycle for board in boards]

    def opened() -> SimavrBoard:
        return SimavrBoard(probe, f_cpu_hz=F_CPU_HZ, baud=BAUD)

    with opened() as alone:
        (expected,) = script(alone)
    with opened() as one, opened() as two, opened() as three:
        assert script(one, two, three) == [expected] * 3


def test_a_deadline_passes_on_the_boards_clock(emulated: SimavrBoard) -> None:
    begin = emulated.cycle
    assert emulated.read(emulated.now_us() + 2_000_000) == b""
    assert 0 <= emulated.cycle - begin - 2 * F_CPU_HZ < 20, "not a cycle early, a few instructions late"


@pytest.mark.parametrize(("f_cpu_hz", "baud"), [(16_000_000, 500_000), (8_000_000, 115_200), (8_000_000, 500_000)])
def test_other_clocks_and_rates(tmp_path: Path, f_cpu_hz: int, baud: int) -> None:
    elf = build_probe(tmp_path, f_cpu_hz=f_cpu_hz, baud=baud)
    with SimavrBoard(elf, f_cpu_hz=f_cpu_hz, baud=baud) as board:
        assert ask(board, b"\x81\x82\x83\x00") == b"\x81\x82\x83\x00"
        timing = board.timing()
        wire_us = timing.request_end_us - timing.write_start_us
        assert wire_us == pytest.approx(40e6 / baud, abs=1)
        assert timing.reply_end_us - timing.write_start_us > wire_us + 10e6 / baud * 0.96
        assert board.diagnosis() == ""


def test_a_line_rate_too_far_off_gives_garbage_and_says_why(tmp_path: Path) -> None:
    elf = build_probe(tmp_path, baud=57_600)
    with SimavrBoard(elf, f_cpu_hz=F_CPU_HZ, baud=BAUD) as board:
        assert ask(board, b"\x81\x82\x00") != b"\x81\x82\x00"
        assert "57143 baud, this end at 115200" in board.diagnosis()
        with pytest.raises(Exception, match="57143 baud"):
            Link(board).hello()


def test_bytes_that_the_firmware_does_not_read_in_time_are_lost(emulated: SimavrBoard) -> None:
    sent = bytes(range(0x81, 0x91))
    reply = ask(emulated, b"B" + sent)
    # Silicon keeps two bytes in the buffer and one in the shift register; the first may have been taken by the interrupt.
    assert reply[:3] == sent[:3]
    assert reply[3] & 0x08, "DOR0 reports the loss to the firmware"
    assert emulated.bytes_overrun == len(sent) - 3
    assert "13 bytes lost by overrun" in emulated.diagnosis()


def test_the_watchdog_restarts_the_firmware(emulated: SimavrBoard) -> None:
    assert ask(emulated, b"M") == bytes((0b0001 + 1, 0)), "power-on"
    assert ask(emulated, b"W") == b"", "it hangs until the watchdog resets it"
    assert emulated.watchdog_resets == 1
    assert ask(emulated, b"M") == bytes((0b1000 + 1, 0)), "WDRF"
    assert "1 watchdog resets" in emulated.diagnosis()


def test_the_reset_pin(emulated: SimavrBoard) -> None:
    ask(emulated, b"S")
    before = emulated.cycle
    emulated.reset()
    assert emulated.cycle > before, "the clock goes on"
    assert ask(emulated, b"M") == bytes((0b0010 + 1, 0)), "EXTRF"
    assert ask(emulated, b"\x81\x00") == b"\x81\x00"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (b"D", "went to sleep with interrupts off"),
        (b"I", "ran into an invalid instruction"),
        (b"J", "ran off its program"),
        (b"O", "wrote outside of RAM"),
    ],
)
def test_a_dead_board_is_never_a_success(emulated: SimavrBoard, command: bytes, reason: str) -> None:
    emulated.write(command)
    with pytest.raises(BoardDied, match=reason):
        emulated.read(emulated.now_us() + PATIENCE_US)
    with pytest.raises(BoardDied, match=reason):
        emulated.read(emulated.now_us() + PATIENCE_US)
    emulated.reset()
    assert ask(emulated, b"\x81\x00") == b"\x81\x00"


def test_the_high_water_mark_of_the_stack(emulated: SimavrBoard) -> None:
    ask(emulated, b"\x00")
    shallow = emulated.stack_high_water_bytes()
    ask(emulated, b"S")
    deep = emulated.stack_high_water_bytes()
    assert shallow is not None and deep is not None
    assert 2 <= shallow <= 40
    assert 200 <= deep <= 240


def test_drain_drops_what_has_arrived(emulated: SimavrBoard) -> None:
    emulated.write(b"\x81\x82\x00\x83\x00")
    assert emulated.read(emulated.now_us() + PATIENCE_US) == b"\x81\x82\x00"
    emulated.read(emulated.now_us() + 1)
    emulated.write(b"")
    assert emulated.read(emulated.now_us() + PATIENCE_US) in (b"\x83\x00", b"\x00")
    emulated.write(b"\x84\x85\x00")
    assert emulated.read(emulated.now_us() + 250) == b"\x84"
    emulated.read(emulated.now_us() + 1)
    assert emulated.drain() == 0
    assert emulated.read(emulated.now_us() + PATIENCE_US) == b"\x85\x00"


def test_a_firmware_that_knows_no_frames_does_not_answer_hello(emulated: SimavrBoard) -> None:
    emulated.write(b"W")
    with pytest.raises(NoAnswer):
        Link(emulated).hello(patience_s=0.01)


def test_nothing_is_printed(emulated: SimavrBoard, capfd: pytest.CaptureFixture[str]) -> None:
    ask(emulated, b"\x81\x00")
    emulated.write(b"I")
    with pytest.raises(BoardDied):
        emulated.read(emulated.now_us() + PATIENCE_US)
    assert capfd.readouterr() == ("", "")


def test_a_closed_board_says_so(probe: Path) -> None:
    board = SimavrBoard(probe, f_cpu_hz=F_CPU_HZ, baud=BAUD)
    for act in (lambda: board.write(b"x"), lambda: board.read(0), board.drain, board.reset):
        with pytest.raises(RuntimeError, match="not open"):
            act()
    board.close()


def test_files_that_are_no_avr_program(tmp_path: Path) -> None:
    missing, text = tmp_path / "missing.elf", tmp_path / "text.elf"
    text.write_text("no program")
    native = tmp_path / "native"
    subprocess.run(["cc", "-x", "c", "-", "-o", str(native)], input=b"int main(void) { return 0; }", check=True)
    for file, fault in ((missing, "can't be read"), (text, "not an ELF file"), (native, "not for an AVR")):
        with pytest.raises(InputError, match=fault):
            SimavrBoard(file, f_cpu_hz=F_CPU_HZ, baud=BAUD)


def test_a_program_larger_than_the_flash(tmp_path: Path) -> None:
    source = tmp_path / "large.c"
    source.write_text(
        '__attribute__((used, section(".progmem.data"))) const char large[32700] = {1}; int main(void) { return 0; }'
    )
    elf = tmp_path / "large.elf"
    subprocess.run(["avr-gcc", "-mmcu=atmega1284p", str(source), "-o", str(elf)], check=True)
    with pytest.raises(InputError, match="beyond the end of the atmega328p's flash"):
        SimavrBoard(elf, f_cpu_hz=F_CPU_HZ, baud=BAUD).open()


def test_simavr_needs_a_firmware() -> None:
    with pytest.raises(InputError, match="none was given"):
        open_board("simavr", None, f_cpu_hz=F_CPU_HZ, baud=BAUD)


class TestBuildingTheGlue:
    def test_it_is_built_once(self, tmp_path: Path) -> None:
        first = simavr_library.build_library(tmp_path)
        stamp = first.stat().st_mtime_ns
        assert simavr_library.build_library(tmp_path) == first
        assert first.stat().st_mtime_ns == stamp
        assert [file.name for file in tmp_path.iterdir()] == [first.name], "nothing temporary is left"

    def test_where_nothing_can_be_kept(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(InputError, match=r"file.*: can't be written: .*; XDG_CACHE_HOME can name another folder"):
            simavr_library.build_library(tmp_path / "file" / "simavr")

    def test_without_a_compiler(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(InputError, match="sudo apt install gcc"):
            simavr_library.build_library(tmp_path)

    def test_without_simavrs_headers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "stdint.h").write_text("typedef unsigned uint32_t;")
        monkeypatch.setenv("CC", f"cc -nostdinc -I{tmp_path}")
        for header in ("stdio.h", "stdlib.h", "string.h"):
            (tmp_path / header).touch()
        with pytest.raises(InputError, match="sudo apt install libsimavr-dev"):
            simavr_library.build_library(tmp_path)
