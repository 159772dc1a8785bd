"""The link: one request, one reply, stop and wait, all within one time budget on the board's clock.

A request that gets no valid reply is sent again with the same sequence number, which the firmware answers from memory if it
had already done the work, so a retry is safe. Every frame that is not the reply to the request in hand (stale, duplicated,
damaged, of another sequence) is counted and passed over. The budget is shared evenly by the tries that are left.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from hil.boards.base import Board, ExchangeTiming
from hil.deadline import Deadline
from hil.faults import BoardDied, BoardError, GarbageAnswer, LinkError, NoAnswer, WrongPolicy
from hil.protocol import (
    DELIMITER,
    WIRE_ERRORS,
    DecideReply,
    DecideRequest,
    ErrorReply,
    Frame,
    FrameError,
    FrameSplitter,
    HelloReply,
    Light,
    MalformedFrame,
    MessageType,
    StatsReply,
    decode_decide_reply,
    decode_error_reply,
    decode_frame,
    decode_hello_reply,
    decode_stats_reply,
    encode_decide,
    encode_frame,
)

__all__ = [
    "BoardDied",
    "BoardError",
    "Counters",
    "Decision",
    "GarbageAnswer",
    "Link",
    "LinkError",
    "NoAnswer",
    "WrongPolicy",
]

BUDGET_S = 0.1  # of a decision, round trip (paper, section 4.5)
TRIES = 3  # of a request, all within the budget
HELLO_INTERVAL_US = 250_000  # how often HELLO is sent until a booting board answers

Reply = TypeVar("Reply")


@dataclass(frozen=True)
class Decision:
    """A decision in hand. Times are microseconds on the board's clock.

    `response_us`: last request bit to first reply bit, of the try that was answered. `round_trip_us`: first byte of the first
    try to the last byte of the reply, retries included.
    """

    action: int
    phase: int
    compute_cycles: int
    logits: tuple[int, ...]
    response_us: float
    round_trip_us: float
    tries: int


@dataclass
class Counters:
    """What happened on the line since the link was made."""

    requests: int = 0
    retries: int = 0
    garbage_bytes: int = 0  # drained, or in frames that could not be read
    bad_frames: int = 0  # replies with a wrong CRC, length or version
    stale_frames: int = 0  # valid, but not the reply to the request in hand
    error_replies: int = 0
    unanswered: int = 0  # requests given up

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass
class _Exchange:
    """One request on its way: what was sent when, and what came back instead of its reply."""

    frame: Frame
    reply_type: int
    first_write_us: float = float("nan")
    request_ends_us: tuple[float, ...] = ()
    last_error: ErrorReply | None = None
    saw_garbage: bool = False


class Link:
    """Talks to one board. `hello` first: it refuses a board that holds another policy."""

    def __init__(self, board: Board, *, budget_s: float = BUDGET_S, tries: int = TRIES) -> None:
        """`budget_s` is what a decision may take on the board's clock, all `tries` together."""
        if tries < 1 or budget_s <= 0:
            raise ValueError(f"a link needs at least one try and some time, not {tries} and {budget_s} s")
        self.board = board
        self.budget_s = budget_s
        self.tries = tries
        self.counters = Counters()
        self.greeting: HelloReply | None = None
        self._sequence = 0
        self._splitter = FrameSplitter()

    def hello(self, policy_sha256: str | None = None, *, patience_s: float | None = None) -> HelloReply:
        """Shake hands, sending HELLO until the board answers or its boot time (or `patience_s`) is over.

        With `policy_sha256`, raises WrongPolicy unless the board holds that policy.
        """
        patience_us = self.board.boot_us if patience_s is None else patience_s * 1e6
        tries = max(self.tries, round(patience_us / HELLO_INTERVAL_US))
        exchange = self._begin(MessageType.HELLO, 0, b"")
        reply, _ = self._converse(exchange, decode_hello_reply, patience_us, tries, flush_first=True)
        if policy_sha256 is not None and reply.policy_sha256 != policy_sha256:
            raise WrongPolicy(policy_sha256, reply.policy_sha256)
        self.greeting = reply
        return reply

    def decide(self, intersection: int, values: Sequence[int], logits: bool = True, light: Light | None = None) -> Decision:
        """Have the chip decide from the policy's kept features (int16 each), keeping its minimum green if it is told the
        light's state. LinkError if it isn't in hand in time."""
        if self.greeting is None:
            raise RuntimeError("no handshake yet: call hello() first")
        exchange = self._begin(MessageType.DECIDE, intersection, encode_decide(DecideRequest(values, logits, light)))
        reply, tries = self._converse(exchange, _decide_decoder(logits), self.budget_s * 1e6, self.tries)
        timing = self.board.timing()
        return Decision(
            action=reply.action,
            phase=reply.phase,
            compute_cycles=reply.compute_cycles,
            logits=reply.logits,
            response_us=_response_us(timing, exchange.request_ends_us),
            round_trip_us=timing.reply_end_us - exchange.first_write_us,
            tries=tries,
        )

    def stats(self) -> StatsReply:
        """The chip's counters."""
        exchange = self._begin(MessageType.STATS, 0, b"")
        return self._converse(exchange, decode_stats_reply, self.budget_s * 1e6, self.tries)[0]

    def _begin(self, kind: MessageType, intersection: int, payload: bytes) -> _Exchange:
        self._sequence = (self._sequence + 1) % 256
        self.counters.requests += 1
        self._drop_stale()
        return _Exchange(Frame(kind, self._sequence, intersection, payload), kind | 0x80)

    def _converse(
        self,
        exchange: _Exchange,
        decode: Callable[[bytes], Reply],
        budget_us: float,
        tries: int,
        flush_first: bool = False,
    ) -> tuple[Reply, int]:
        """Send until answered or out of tries; returns the reply and the number of tries. Raises LinkError."""
        encoded = encode_frame(exchange.frame)
        whole = Deadline.after(self.board, budget_us)
        for attempt in range(1, tries + 1):
            # A delimiter in front closes whatever an earlier try or a boot left half-sent.
            self.board.write(encoded if attempt == 1 and not flush_first else DELIMITER + encoded)
            self._note_write(exchange)
            self.counters.retries += attempt > 1
            reply = self._await(exchange, decode, whole.share(tries - attempt + 1), attempt, tries)
            if reply is not None:
                return reply, attempt
            if whole.expired:
                break
        self.counters.unanswered += 1
        raise self._given_up(exchange, budget_us, attempt)

    def _await(
        self, exchange: _Exchange, decode: Callable[[bytes], Reply], deadline: Deadline, attempt: int, tries: int
    ) -> Reply | None:
        """The reply, or None when it is time to try again."""
        while data := self.board.read(deadline.end_us):
            dropped = self._splitter.dropped_bytes
            for encoded in self._splitter.feed(data):
                try:
                    frame = decode_frame(encoded)
                    if frame.type == MessageType.ERROR:
                        if self._refused(exchange, frame, attempt, tries):
                            return None
                    elif self._is_reply(exchange, frame):
                        return decode(frame.payload)
                    else:
                        self.counters.stale_frames += 1
                except FrameError:
                    self.counters.bad_frames += 1
                    self.counters.garbage_bytes += len(encoded)
                    exchange.saw_garbage = True
            if self._splitter.dropped_bytes > dropped:
                self.counters.garbage_bytes += self._splitter.dropped_bytes - dropped
                exchange.saw_garbage = True
            if deadline.expired:
                break
        return None

    def _refused(self, exchange: _Exchange, frame: Frame, attempt: int, tries: int) -> bool:
        """True if this typed error calls for another try; raises BoardError if another try is pointless.

        On the last try the rest is still listened to: the error may be about what the delimiter in front flushed.
        """
        error = decode_error_reply(frame.payload)
        damaged = error.code in WIRE_ERRORS
        if not damaged and (frame.sequence, frame.intersection) != (exchange.frame.sequence, exchange.frame.intersection):
            self.counters.stale_frames += 1
            return False
        self.counters.error_replies += 1
        exchange.last_error = error
        if not damaged:
            raise BoardError(error.code, error.detail, error.meaning, tries=attempt)
        return attempt < tries

    def _is_reply(self, exchange: _Exchange, frame: Frame) -> bool:
        asked = exchange.frame
        return (frame.type, frame.sequence, frame.intersection) == (
            exchange.reply_type,
            asked.sequence,
            asked.intersection,
        )

    def _note_write(self, exchange: _Exchange) -> None:
        timing = self.board.timing()
        if not exchange.request_ends_us:
            exchange.first_write_us = timing.write_start_us
        exchange.request_ends_us += (timing.request_end_us,)

    def _given_up(self, exchange: _Exchange, budget_us: float, tries: int) -> LinkError:
        hint = self.board.diagnosis()
        where = f"{self.board.name}, {tries} tries in {budget_us / 1000:g} ms" + (f": {hint}" if hint else "")
        if exchange.last_error is not None:
            error = exchange.last_error
            return BoardError(error.code, error.detail, f"{error.meaning} ({where})", tries=tries)
        if exchange.saw_garbage or self._splitter.pending_bytes():
            return GarbageAnswer(f"only garbage came back ({where})", tries=tries)
        return NoAnswer(f"no answer ({where})", tries=tries)

    def _drop_stale(self) -> None:
        self.counters.garbage_bytes += self.board.drain() + self._splitter.pending_bytes()
        self._splitter.clear()


def _decide_decoder(logits: bool) -> Callable[[bytes], DecideReply]:
    def decode(payload: bytes) -> DecideReply:
        reply = decode_decide_reply(payload)
        if bool(reply.logits) != logits:
            raise MalformedFrame(f"{len(reply.logits)} logits, though they were {'' if logits else 'not '}asked for")
        return reply

    return decode


def _response_us(timing: ExchangeTiming, request_ends_us: Sequence[float]) -> float:
    """From the end of the latest try that the reply can be an answer to, until the reply starts.

    0 where the reply starts before any request's end: a real port's end is reckoned from the line rate, and a network that
    only stands for a line is faster.
    """
    ended = [end for end in request_ends_us if end <= timing.reply_start_us]
    return timing.reply_start_us - ended[-1] if ended else 0.0
