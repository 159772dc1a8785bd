"""The host board with stand-in programs: what it does when the program answers, hangs, dies or trips a sanitizer."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hil.boards import HostBoard, open_board
from hil.boards.faults import BoardDied
from hil.wire.link import Link, NoAnswer
from hil.wire.protocol import Frame, MessageType
from streetflow.errors import InputError
from tests.helpers.fake_board import HELLO, SHA256, reply_to

LONG_US = 60e6  # a deadline that is reached only if the board is faulty
HELLO_ONE = reply_to(Frame(MessageType.HELLO, 1, 0))


def script(folder: Path, body: str) -> Path:
    """A Python program as an executable file; `put` writes bytes to stdout at once."""
    file = folder / "program"
    head = """
        import os, sys, time
        def put(data): os.write(1, data)
        def get(): return os.read(0, 4096)
    """
    text = textwrap.dedent(head) + textwrap.dedent(body)
    file.write_text(f"#!{sys.executable}\n{text}")
    file.chmod(0o755)
    return file


def native(folder: Path, body: str) -> Path:
    """A C program with the sanitizers that the firmware's native build uses."""
    file = folder / "program"
    source = "#include <stdio.h>\n#include <unistd.h>\n" + body
    subprocess.run(
        ["cc", "-x", "c", "-", "-g", "-fsanitize=address,undefined", "-o", str(file)], input=source.encode(), check=True
    )
    return file


def read_all(board: HostBoard, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = board.read(board.now_us() + LONG_US)
        assert part, "nothing came"
        data += part
    return data


def test_bytes_go_both_ways_and_frames_come_one_by_one(tmp_path: Path) -> None:
    with HostBoard(script(tmp_path, "while data := get(): put(data)")) as board:
        board.write(b"\x01\x02\x00\x03\x00\x00")
        assert board.read(board.now_us() + LONG_US) == b"\x01\x02\x00"
        timing = board.timing()
        assert timing.write_start_us <= timing.request_end_us
        assert timing.write_start_us <= timing.reply_start_us <= timing.reply_end_us <= board.now_us()
        assert board.read(board.now_us() + LONG_US) == b"\x03\x00"
        assert board.read(board.now_us() + LONG_US) == b"\x00"
        assert board.timing().reply_end_us < board.now_us()
        assert board.clock == "wall"
        assert board.stack_high_water_bytes() is None


def test_silence_lasts_to_the_deadline(tmp_path: Path) -> None:
    with HostBoard(script(tmp_path, "while get(): pass")) as board:
        deadline = board.now_us() + 20_000
        assert board.read(deadline) == b""
        assert board.now_us() >= deadline
        with pytest.raises(NoAnswer):
            Link(board).hello(patience_s=0.02)


def test_hello_waits_for_a_slow_start(tmp_path: Path) -> None:
    program = script(tmp_path, f"time.sleep(0.4); get(); put({HELLO_ONE!r}); get()")
    with HostBoard(program) as board:
        assert Link(board).hello(SHA256) == HELLO


def test_drain(tmp_path: Path) -> None:
    with HostBoard(script(tmp_path, "while data := get(): put(data)")) as board:
        board.write(b"\x01\x00\x02\x00")
        assert board.read(board.now_us() + LONG_US) == b"\x01\x00"
        read_all(board, 2)
        assert board.drain() == 0
        board.write(b"\x05" * 10 + b"\x00\x06")
        read_all(board, 11)
        read_all(board, 1)
        assert board.read(board.now_us()) == b""


def test_a_program_that_ends_is_a_dead_board(tmp_path: Path) -> None:
    with HostBoard(script(tmp_path, "get(); print('out of luck', file=sys.stderr); sys.exit(3)")) as board:
        board.write(b"\x00")
        with pytest.raises(BoardDied, match=r"(?s)(status 3|fault).*out of luck"):
            board.read(board.now_us() + LONG_US)
        with pytest.raises(BoardDied, match="status 3"):
            board.write(b"\x00")
        board.reset()
        board.write(b"\x00")
        with pytest.raises(BoardDied, match=r"(?s)(status 3|fault).*out of luck"):
            board.read(board.now_us() + LONG_US)
        board.program = script(tmp_path, "while data := get(): put(data)")
        board.reset()


@pytest.mark.parametrize(
    ("fault", "report"),
    [
        ('int big = 0x7fffffff; big += (int)count; printf("%d", big);', "signed integer overflow"),
        ('char small[4]; small[count + 3] = 1; printf("%d", small[count + 3]);', "stack-buffer-overflow|out of bounds"),
    ],
    ids=["undefined behaviour", "address"],
)
def test_a_sanitizers_report_is_a_dead_board_even_if_the_program_answers(tmp_path: Path, fault: str, report: str) -> None:
    body = f"int main(void) {{ char c; long count = read(0, &c, 1); {fault} fflush(stdout); while (read(0, &c, 1) > 0); }}"
    board = HostBoard(native(tmp_path, body))
    board.open()
    board.write(b"\x01")

    def listen() -> None:
        while True:
            board.read(board.now_us() + 100_000)

    with pytest.raises(BoardDied, match=report):
        listen()
    board.close()
    assert not board.is_open


def test_a_report_that_nobody_has_read_comes_out_at_the_end(tmp_path: Path) -> None:
    board = HostBoard(script(tmp_path, "while get(): pass\nprint('runtime error: too late', file=sys.stderr)"))
    board.open()
    with pytest.raises(BoardDied, match="too late"):
        board.close()
    assert not board.is_open


def test_a_program_that_hangs_is_killed_at_the_end(tmp_path: Path) -> None:
    board = HostBoard(script(tmp_path, "put(b'up\\0'); time.sleep(3600)"))
    board.open()
    assert board.read(board.now_us() + LONG_US) == b"up\0"
    board.close()
    assert not board.is_open


def test_programs_that_cannot_be_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be run: No such file"):
        HostBoard(tmp_path / "missing").open()
    text = tmp_path / "text"
    text.write_text("no program")
    with pytest.raises(InputError, match="can't be run: Permission denied"):
        HostBoard(text).open()
    with pytest.raises(InputError, match="none was given"):
        open_board("host", None, f_cpu_hz=16_000_000, baud=115_200)


def test_a_closed_board_says_so(tmp_path: Path) -> None:
    board = HostBoard(tmp_path / "program")
    with pytest.raises(RuntimeError, match="not open"):
        board.write(b"x")
    board.close()
