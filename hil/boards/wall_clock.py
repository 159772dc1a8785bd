"""Timestamps of an exchange on boards that live in real time."""

import time

from hil.boards.base import ExchangeTiming

NEVER = float("nan")


def wall_clock_us() -> float:
    """The machine's steady clock, in microseconds."""
    return time.perf_counter_ns() / 1000


class WallClockTiming:
    """Notes when the last request went out and when the frame that answers it came in.

    `byte_us` is the time of one byte on the line: a request's end and a reply's start lie inside drivers and bridges, so they
    are computed from what the program sees and the line rate. 0 where there is no line.
    """

    def __init__(self, byte_us: float = 0.0) -> None:
        self.byte_us = byte_us
        self._write_start_us = NEVER
        self._request_end_us = NEVER
        self._frame_start_us = NEVER
        self._reply_start_us = NEVER
        self._reply_end_us = NEVER
        self._at_frame_start = True

    def write_starts(self) -> None:
        self._write_start_us = wall_clock_us()

    def request_ended(self, size: int = 0) -> None:
        """The write call has returned; the line needs at least `size` byte times."""
        self._request_end_us = max(wall_clock_us(), self._write_start_us + size * self.byte_us)

    def received(self, data: bytes) -> None:
        """`data` has just been read: at most one frame, whose end is its last byte."""
        now = wall_clock_us()
        if self._at_frame_start and data.strip(b"\0"):
            self._frame_start_us = now - self.byte_us
            self._at_frame_start = False
        if data.endswith(b"\0") and not self._at_frame_start:
            self._reply_start_us, self._reply_end_us = self._frame_start_us, now
            self._at_frame_start = True

    def forget_frame(self) -> None:
        """What was received of an unfinished frame has been thrown away."""
        self._at_frame_start = True

    def exchange(self) -> ExchangeTiming:
        return ExchangeTiming(self._write_start_us, self._request_end_us, self._reply_start_us, self._reply_end_us)
