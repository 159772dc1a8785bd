"""The host board: the firmware's C built for this machine with sanitizers, as a child process on two pipes.

It has no cycles and no chip; what it proves is that the C is free of undefined behaviour and equal to the reference.
"""

import contextlib
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, ClassVar, Literal

from hil.boards.base import Board, ExchangeTiming
from hil.boards.faults import BoardDied
from hil.boards.wall_clock import WallClockTiming, wall_clock_us
from streetflow.errors import InputError

CHUNK_BYTES = 4096
QUIT_PATIENCE_S = 2.0
REPORT_LINES = 12  # of a sanitizer report, in the error message
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:color=never",  # no heap in the firmware; the leak check fails under ptrace
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:color=never",
}


class HostBoard(Board):
    """Runs `program`, which reads requests from its stdin and writes replies to its stdout."""

    clock: ClassVar[Literal["cycles", "wall"]] = "wall"
    settle_us: float = 30_000  # a busy machine may leave a process waiting so long
    boot_us: ClassVar[float] = 10_000_000  # for a sanitized program on a busy machine

    def __init__(self, program: Path) -> None:
        self.name = "host"
        self.description = "the firmware's C on this machine, with sanitizers"
        self.program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._timing = WallClockTiming()
        self._held = b""
        self._reported = False  # whether a fault has been raised already

    def open(self) -> None:
        self.close()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the board; a pipe could fill up and block
        self._held = b""
        self._reported = False
        self._timing = WallClockTiming()
        try:
            self._process = subprocess.Popen(
                [self.program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                env=os.environ | SANITIZER_OPTIONS,
            )
        except OSError as fault:
            self.close()
            raise InputError(self.program, "", f"can't be run: {fault.strerror}") from fault

    @property
    def is_open(self) -> bool:
        return self._process is not None

    def close(self) -> None:
        """Ends the program; BoardDied if it has reported a fault that no read or write has raised."""
        process, self._process = self._process, None
        try:
            if process is not None:
                _end(process)
                if not self._reported:
                    self._check_report()
        finally:
            if self._stderr is not None:
                self._stderr.close()
                self._stderr = None

    def write(self, data: bytes) -> None:
        process = self._running()
        assert process.stdin is not None
        self._timing.write_starts()
        try:
            process.stdin.write(data)
        except BrokenPipeError:
            raise self._death(process) from None
        self._timing.request_ended()

    def read(self, deadline_us: float) -> bytes:
        process = self._running()
        assert process.stdout is not None
        self._check_report()
        if not self._held:
            left_s = max(0.0, deadline_us - self.now_us()) / 1e6
            if not select.select([process.stdout], [], [], left_s)[0]:
                self._check_report()
                return b""
            self._held = os.read(process.stdout.fileno(), CHUNK_BYTES)
            if not self._held:
                raise self._death(process)
        data, self._held = _up_to_frame_end(self._held)
        self._timing.received(data)
        return data

    def now_us(self) -> float:
        return wall_clock_us()

    def drain(self) -> int:
        process = self._running()
        assert process.stdout is not None
        dropped = len(self._held)
        self._held = b""
        while select.select([process.stdout], [], [], 0)[0]:
            data = os.read(process.stdout.fileno(), CHUNK_BYTES)
            if not data:
                break
            dropped += len(data)
        self._timing.forget_frame()
        return dropped

    def reset(self) -> None:
        """A fresh process, as a chip starts afresh."""
        self.open()

    def timing(self) -> ExchangeTiming:
        return self._timing.exchange()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the board is not open")
        return self._process

    def _check_report(self) -> None:
        """Raises BoardDied for a sanitizer that reports and lets the program run on: neither silence nor success."""
        assert self._stderr is not None
        if os.fstat(self._stderr.fileno()).st_size:
            self._reported = True
            raise BoardDied(f"host: the firmware reported a fault\n{_report(self._stderr)}")

    def _death(self, process: subprocess.Popen[bytes]) -> BoardDied:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(QUIT_PATIENCE_S)
        assert self._stderr is not None
        self._reported = True
        report = _report(self._stderr) or "(nothing on stderr)"
        return BoardDied(f"host: the firmware's program ended with status {process.returncode}\n{report}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Closing its stdin ends the program; one that hangs is killed."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
    deadline = time.monotonic() + QUIT_PATIENCE_S
    try:
        process.wait(deadline - time.monotonic())
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _report(stderr: IO[bytes]) -> str:
    """The first lines of what the program wrote to stderr."""
    stderr.seek(0)
    lines = stderr.read().decode(errors="replace").strip().splitlines()
    return "\n".join(lines[:REPORT_LINES])


def _up_to_frame_end(data: bytes) -> tuple[bytes, bytes]:
    cut = data.find(b"\0") + 1 or len(data)
    return data[:cut], data[cut:]
