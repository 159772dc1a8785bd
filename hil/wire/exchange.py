"""One request and its reply: stop and wait, sent again until the reply has come or the time is over.

A request that gets no valid reply is sent again with the same sequence number, which the firmware answers from memory if it
had already done the work, so a retry is safe. Every frame that is not the reply to the request in hand (stale, duplicated,
damaged, of another sequence) is counted and ignored. A try is given up as soon as it is clear that its reply is lost: after
a typed error or a damaged reply once the line is quiet, after silence when `Pace` says so. The last try gets all the remaining
time.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Generic, TypeVar

from hil.boards.base import Board
from hil.boards.faults import BoardError, GarbageAnswer, LinkError, NoAnswer
from hil.wire.deadline import Deadline
from hil.wire.pace import Pace
from hil.wire.protocol import (
    DELIMITER,
    FRAME_OVERHEAD_BYTES,
    WIRE_ERRORS,
    ErrorCode,
    ErrorReply,
    Frame,
    FrameError,
    FrameSplitter,
    MessageType,
    decode_error_reply,
    decode_frame,
    encode_frame,
)
from hil.words import counted

Reply = TypeVar("Reply")
START_AGAIN = (ErrorCode.NO_SESSION, ErrorCode.BAD_PARTS)  # refusals believed even on a damaged line: starting again is safe
OVERTIME = 2  # a try that still receives something may last this many times its patience


@dataclass
class Counters:
    """What happened on the line since the link was made."""

    requests: int = 0  # distinct ones, retries not counted
    retries: int = 0
    greetings: int = 0  # HELLOs sent again while a board started up: no retries, since nothing was lost
    garbage_bytes: int = 0  # drained, or in frames that could not be read
    bad_frames: int = 0  # replies with a wrong CRC, length or version
    stale_frames: int = 0  # valid, but not the reply to the request in hand
    error_replies: int = 0
    unanswered: int = 0  # requests given up
    in_parts: int = 0  # decisions that went over the line in parts
    sessions_lost: int = 0  # times that the chip had started afresh

    @property
    def sent(self) -> int:
        """Frames sent."""
        return self.requests + self.retries + self.greetings

    @classmethod
    def sum(cls, counters: Iterable["Counters"]) -> "Counters":
        total: Counter[str] = Counter()
        for each in counters:
            total.update(each.as_dict())
        return cls(**total)

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True)
class Answer(Generic[Reply]):
    """A reply, and how it was obtained. Times are microseconds on the board's clock."""

    reply: Reply
    tries: int
    response_us: float  # last request bit to first reply bit, of the try that was answered


@dataclass(frozen=True)
class Request(Generic[Reply]):
    """A question to the chip."""

    kind: MessageType
    intersection: int
    payload: bytes
    decode: Callable[[bytes], Reply]  # of the reply's payload
    reply_bytes: int  # length of the reply's payload


@dataclass
class _Pending:
    """One request in progress: what was sent when, and what came back instead of its reply."""

    frame: Frame
    first_write_us: float = float("nan")
    request_ends_us: tuple[float, ...] = ()
    last_error: ErrorReply | None = None
    saw_garbage: bool = False
    reply_bytes: int = 0
    silent: bool = False  # the last try ended in silence: what was sent may still lie half received
    answer_is_certain: bool = True  # no try ended in silence: a reply is to the last one

    def is_answered_by(self, frame: Frame) -> bool:
        asked = self.frame
        return (frame.type, frame.sequence, frame.intersection) == (asked.type | 0x80, asked.sequence, asked.intersection)

    def response_us(self, reply_start_us: float) -> float:
        """From the end of the latest try that the reply can answer, until the reply starts.

        0 where the reply starts before any request's end: a real port's end is computed from the line rate, and a network in
        place of a line is faster.
        """
        ended = [end for end in self.request_ends_us if end <= reply_start_us]
        return reply_start_us - ended[-1] if ended else 0.0


@dataclass
class Exchanger:
    """Sends requests over a board and counts what happens."""

    board: Board
    shares: int  # a try takes at most this part of the time that is left, unless the chip can need more
    counters: Counters = field(default_factory=Counters)
    sequence: int = 0
    wire_errors: int = 0  # typed errors that indicate damage

    def __post_init__(self) -> None:
        self.pace = Pace(self.board)
        self._splitter = FrameSplitter()

    def ask(
        self,
        request: Request[Reply],
        whole: Deadline,
        *,
        damaged_tries: int | None = None,
        interval_us: float | None = None,
        flush_first: bool = False,
    ) -> Answer[Reply]:
        """Sends the request until its reply is there.

        Args:
            request: the question.
            whole: the deadline.
            damaged_tries: the most tries that show damage, if there is such a limit beside the deadline. In silence the chip
                may be at work still: its answer to an early try is as good as one to the last.
            interval_us: how long a try waits in silence, where that is known: while a board starts up.
            flush_first: whether a delimiter goes before the first try. After silence one goes before the next try anyway: it
                closes what may lie half received.

        Raises:
            LinkError: no reply in time.
        """
        self.sequence = (self.sequence + 1) % 256
        self.counters.requests += 1
        self._drop_stale()
        kind = request.kind
        pending = _Pending(Frame(kind, self.sequence, request.intersection, request.payload))
        encoded = encode_frame(pending.frame)
        on_line = len(encoded) + FRAME_OVERHEAD_BYTES + request.reply_bytes
        least_us = (len(encoded) + FRAME_OVERHEAD_BYTES) * self.board.byte_us
        needed_us = on_line * self.board.byte_us + self.pace.chip_us(kind)
        begin_us = self.board.now_us()
        if least_us > whole.remaining_us:
            raise NoAnswer(f"the line is too slow: the bytes alone take {least_us / 1000:.4g} ms of the time left", tries=0)
        attempt = damaged = 0
        while attempt == 0 or (whole.remaining_us > least_us and damaged != damaged_tries):
            attempt += 1
            flush = pending.silent or (attempt == 1 and flush_first)
            self.board.write(DELIMITER + encoded if flush else encoded)
            self._note_write(pending)
            self.counters.retries += attempt > 1 and interval_us is None
            self.counters.greetings += attempt > 1 and interval_us is not None
            pace_us = self.pace.patience_us(kind, on_line)
            fair_us = whole.share(max(1, self.shares - attempt + 1)).remaining_us
            patience_us = min(interval_us or pace_us, max(fair_us, needed_us))
            if whole.remaining_us - patience_us <= least_us:
                patience_us = whole.remaining_us
            reply = self._await(pending, request.decode, patience_us, pace_us, whole, flushed=flush)
            if reply is not None:
                timing = self.board.timing()
                if pending.answer_is_certain:
                    exchange_us = timing.reply_end_us - timing.write_start_us
                    computed = attempt == 1 or kind != MessageType.DECIDE  # a repeat takes no inference
                    self.pace.note(kind, exchange_us if computed else None, len(encoded) + flush + pending.reply_bytes)
                return Answer(reply, attempt, pending.response_us(timing.reply_start_us))
            damaged += not pending.silent
        if damaged != damaged_tries:
            self.counters.unanswered += 1
            self._let_pass(whole)
        raise self._given_up(pending, self.board.now_us() - begin_us, attempt)

    def _await(
        self,
        pending: _Pending,
        decode: Callable[[bytes], Reply],
        patience_us: float,
        pace_us: float,
        whole: Deadline,
        *,
        flushed: bool,
    ) -> Reply | None:
        """The reply, or None when it is time to try again: after `patience_us` of silence, or sooner where a frame has come
        that indicates damage, and the line has been quiet since. On a `flushed` try the first such frame may be about what the
        leading delimiter has flushed: then the reply can still come, for `pace_us`.
        """
        begin_us = self.board.now_us()
        heard_us = pending.request_ends_us[-1]  # frames before that answer something else
        end_us = min(begin_us + patience_us, whole.end_us)
        last_us = min(begin_us + OVERTIME * patience_us, whole.end_us)
        spoilt, early = 0, False
        while data := self.board.read(end_us):
            now_us = self.board.now_us()
            dropped = self._splitter.dropped_bytes
            for encoded in self._splitter.feed(data):
                try:
                    frame = decode_frame(encoded)
                    if frame.type == MessageType.ERROR:
                        if self._is_about_damage(pending, frame):
                            spoilt, early = spoilt + (now_us >= heard_us), early or now_us < heard_us
                    elif pending.is_answered_by(frame):
                        pending.reply_bytes = len(encoded) + len(DELIMITER)
                        return decode(frame.payload)
                    else:
                        self.counters.stale_frames += 1
                except FrameError:
                    self.counters.bad_frames += 1
                    self.counters.garbage_bytes += len(encoded)
                    pending.saw_garbage = True
                    spoilt, early = spoilt + (now_us >= heard_us), early or now_us < heard_us
            if self._splitter.dropped_bytes > dropped:
                self.counters.garbage_bytes += self._splitter.dropped_bytes - dropped
                pending.saw_garbage = True
            if now_us >= last_us:
                spoilt = 0
                break
            quiet_us = now_us + self.board.settle_us
            if spoilt > (flushed and not early):
                end_us = min(last_us, quiet_us)
            elif spoilt:
                end_us = min(end_us, max(quiet_us, begin_us + pace_us))
            else:
                end_us = min(last_us, max(end_us, quiet_us))
        pending.silent = spoilt == 0
        if pending.silent:
            self.pace.back_off(pending.frame.type)
        pending.answer_is_certain &= not pending.silent
        return None

    def _is_about_damage(self, pending: _Pending, frame: Frame) -> bool:
        """Whether this typed error calls for another try; raises BoardError if it answers the request.

        Where the line has shown damage, a refusal may be about a damaged request with a CRC that matches by chance.
        """
        error = decode_error_reply(frame.payload)
        damaged = error.code in WIRE_ERRORS
        if not damaged and (frame.sequence, frame.intersection) != (pending.frame.sequence, pending.frame.intersection):
            self.counters.stale_frames += 1
            return False
        self.counters.error_replies += 1
        self.wire_errors += damaged
        pending.last_error = error
        if self.is_refusal(error.code):
            raise BoardError(error.code, error.detail, error.meaning, tries=len(pending.request_ends_us))
        return True

    def is_refusal(self, code: int) -> bool:
        """Whether a typed error is the answer to the request, rather than one more sign of a damaged line."""
        line_is_clean = self.counters.bad_frames == self.counters.garbage_bytes == self.wire_errors == 0
        return code in START_AGAIN or (line_is_clean and code not in WIRE_ERRORS)

    def _let_pass(self, whole: Deadline) -> None:
        """Waits out the rest of the time, too little for another try; what arrives is discarded."""
        while not whole.expired and (data := self.board.read(whole.end_us)):
            self.counters.garbage_bytes += len(data)

    def _note_write(self, pending: _Pending) -> None:
        timing = self.board.timing()
        if not pending.request_ends_us:
            pending.first_write_us = timing.write_start_us
        pending.request_ends_us += (timing.request_end_us,)

    def _given_up(self, pending: _Pending, spent_us: float, tries: int) -> LinkError:
        hint = self.board.diagnosis()
        sent = counted(tries, "try", "tries")
        where = f"{self.board.name}, {sent} in {spent_us / 1000:.4g} ms" + (f": {hint}" if hint else "")
        if pending.last_error is not None:
            error = pending.last_error
            return BoardError(error.code, error.detail, f"{error.meaning} ({where})", tries=tries)
        if pending.saw_garbage or self._splitter.pending_bytes():
            return GarbageAnswer(f"only garbage came back ({where})", tries=tries)
        return NoAnswer(f"no answer ({where})", tries=tries)

    def _drop_stale(self) -> None:
        self.counters.garbage_bytes += self.board.drain() + self._splitter.pending_bytes()
        self._splitter.clear()
