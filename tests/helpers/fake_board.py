"""A board without hardware: a script gives its answer to each request, on a clock that the script advances."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from hil.boards import Board, ExchangeTiming
from hil.wire.protocol import (
    DecideReply,
    Frame,
    HelloReply,
    MessageType,
    StatsReply,
    decode_frame,
    encode_decide_reply,
    encode_frame,
    encode_hello_reply,
    encode_logits,
    encode_stats_reply,
    logits_checksum,
)

SHA256 = "ab" * 32
HELLO = HelloReply((1, 1), 0, 0, 16_000_000, 115_200, 2, 48, SHA256, 1, 1)
STATS = StatsReply(3, 21_000, 9, 1, 2, 0, 0, 1, 1500, 300, 4, 2)
LOGITS = (-5, 7, 1 << 20, -(1 << 22))
DECISION = DecideReply(2, 4, 21_313, len(LOGITS), logits_checksum(LOGITS))
ANSWER_TIME_US = 2_000.0  # from a request's end to the reply's start
BYTE_US = 86.8  # on the line, unless a test sets another


@dataclass(frozen=True)
class Late:
    """An answer that comes `delay_us` after the request instead of at once."""

    delay_us: float
    data: bytes


# What a script gives for one request: the bytes that come back, each item on its own.
Answer = Callable[[Frame], Iterable[bytes | Late]]


def reply_to(request: Frame, hello: HelloReply = HELLO) -> bytes:
    """The answers of a working firmware."""
    payload = {
        MessageType.HELLO: encode_hello_reply(hello),
        MessageType.DECIDE: encode_decide_reply(DECISION),
        MessageType.GET: encode_logits(LOGITS),
        MessageType.STATS: encode_stats_reply(STATS),
    }[MessageType(request.type)]
    return encode_frame(Frame(request.type | 0x80, request.sequence, request.intersection, payload))


def sound(request: Frame) -> list[bytes]:
    return [reply_to(request)]


def silent(request: Frame) -> list[bytes]:
    return []


class FakeBoard(Board):
    """Answers request k (counted over the board's life) with `script[k]`, and with `afterwards` when the script has ended."""

    clock: ClassVar[Literal["cycles", "wall"]] = "cycles"
    boot_us: ClassVar[float] = 1_000_000
    byte_us = BYTE_US
    settle_us = 4 * BYTE_US

    def __init__(self, script: Iterable[Answer] = (), *, afterwards: Answer = sound) -> None:
        self.name = self.description = "fake"
        self.requests: list[Frame] = []
        self.written: list[bytes] = []
        self._script = deque(script)
        self._afterwards = afterwards
        self._time_us = 0.0
        self._coming: deque[tuple[float, int]] = deque()  # when a byte has arrived in full, and the byte
        self._write_us = self._request_end_us = self._reply_start_us = self._reply_end_us = float("nan")
        self._frame_start_us: float | None = None

    def open(self) -> None:
        pass

    @property
    def is_open(self) -> bool:
        return True

    def close(self) -> None:
        pass

    def reset(self) -> None:
        pass

    def write(self, data: bytes) -> None:
        self.written.append(data)
        self._write_us = self._time_us
        self._request_end_us = self._time_us + len(data) * self.byte_us
        for encoded in data.split(b"\0"):
            if encoded:
                self._answer(decode_frame(encoded))

    def _answer(self, request: Frame) -> None:
        self.requests.append(request)
        answer = self._script.popleft() if self._script else self._afterwards
        free = self._coming[-1][0] if self._coming else 0.0
        for item in answer(request):
            delay_us, data = (item.delay_us, item.data) if isinstance(item, Late) else (ANSWER_TIME_US, item)
            free = max(free, self._request_end_us + delay_us)
            for byte in data:
                free += self.byte_us
                self._coming.append((free, byte))

    def read(self, deadline_us: float) -> bytes:
        """Up to the end of a frame, or to the deadline, as the emulated board does it."""
        data = bytearray()
        while self._coming and self._coming[0][0] <= deadline_us:
            self._time_us, byte = self._coming.popleft()
            if self._frame_start_us is None and byte:
                self._frame_start_us = self._time_us - self.byte_us
            data.append(byte)
            if byte == 0 and self._frame_start_us is not None:
                self._reply_start_us, self._reply_end_us = self._frame_start_us, self._time_us
                self._frame_start_us = None
                return bytes(data)
        self._time_us = max(self._time_us, deadline_us)
        return bytes(data)

    def now_us(self) -> float:
        return self._time_us

    def drain(self) -> int:
        dropped = 0
        while self._coming and self._coming[0][0] <= self._time_us:
            self._coming.popleft()
            dropped += 1
        self._frame_start_us = None
        return dropped

    def timing(self) -> ExchangeTiming:
        return ExchangeTiming(self._write_us, self._request_end_us, self._reply_start_us, self._reply_end_us)
