"""How a board behaves beyond its decisions: what a street needs of it when frames are repeated, damaged or misplaced.

Each point is tried with frames of its own before the traffic: a right decision says nothing about any of them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hil.boards.base import ExchangeTiming
from hil.loop.closed_loop import Seat
from hil.loop.sweep_inputs import sweep_of
from hil.wire.link import Link, LinkError
from hil.wire.protocol import (
    DECIDE_REPLY_BYTES,
    DELIMITER,
    FRAME_OVERHEAD_BYTES,
    WIRE_ERRORS,
    DecideRequest,
    ErrorCode,
    Frame,
    FrameError,
    FrameSplitter,
    MessageType,
    decode_decide_reply,
    decode_error_reply,
    decode_frame,
    encode_decide,
    encode_frame,
    logits_checksum,
)
from hil.words import counted
from model.policy.file import Policy
from model.policy.integer import IntegerPolicy

PATIENCE_US = 200_000  # for a first reply, beside the time of the bytes and of the inference
QUIET_US = 20_000  # after a reply nothing more may come for so long
SEQUENCE = 200  # of the first frame; what the link has sent before is far from it
UNTIMED_CYCLES = 4_000  # of a response, at most, outside of what the chip's stopwatch times


class Conduct(NamedTuple):
    """``faults`` say what was wrong; ``tried`` names the points; ``not_tried`` those that this board doesn't allow."""

    faults: tuple[str, ...]
    tried: tuple[str, ...]
    not_tried: tuple[str, ...]


def run_conduct(policy: Policy, seats: Sequence[Seat]) -> Conduct:
    """Tries each board of the seats, at its first seat; each is greeted again afterwards."""
    faults: list[str] = []
    tried: dict[str, None] = {}
    skipped: dict[str, None] = {}
    for number, seat in enumerate(seats):
        if all(seat.link is not other.link for other in seats[:number]):
            trial = _Trial(seat.link, seat.number, policy, number)
            for name, point in trial.points():
                if point is None:
                    skipped[name] = None
                    continue
                tried[name] = None
                try:
                    faults += [f"{name}: {fault}" for fault in point()]
                except (LinkError, _NoReply) as fault:
                    faults.append(f"{name}: {fault}")
            try:  # so that the link's next request can't be taken for one of these
                seat.link.greet_again()
            except LinkError as fault:
                faults.append(f"greeted again: {fault}")
    return Conduct(tuple(faults), tuple(tried), tuple(skipped))


class _NoReply(Exception):
    """Nothing that can be read has come."""


class _Trial:
    """One board, asked in frames that the link wouldn't send."""

    def __init__(self, link: Link, intersection: int, policy: Policy, number: int) -> None:
        part = policy.intersections[number]
        self._link, self._board, self._intersection = link, link.board, intersection
        inputs = sweep_of(part).inputs
        logits = IntegerPolicy(part).logits(inputs)
        first = int((logits != logits[0]).any(axis=1).argmax())  # an input with other logits than input 0, where there is one
        clock_hz = link.greeting.f_cpu_hz if link.greeting is not None else 0
        self._patience_us = PATIENCE_US + (link.most_decision_cycles / clock_hz * 1e6 if clock_hz else 0.0)
        self._values = [inputs[0].tolist(), inputs[first].tolist()]
        self._crcs = [logits_checksum(logits[0].tolist()), logits_checksum(logits[first].tolist())]
        self._sequence = SEQUENCE
        self._timing: ExchangeTiming | None = None  # of the last request and its first reply

    def points(self) -> list[tuple[str, Callable[[], list[str]] | None]]:
        """Each point with its trial; None where the board doesn't allow it."""
        exact = self._board.clock == "cycles"
        return [
            ("one reply", self._one_reply),
            ("a repeat is answered from memory", self._repeat),
            ("another with its number is not", self._other_of_that_number),
            ("damage is refused", self._damage),
            ("misfits are refused", self._misfits),
            ("the stopwatch tells the time", self._stopwatch if exact else None),
            ("no decision without a session", self._session if exact else None),
        ]

    def _one_reply(self) -> list[str]:
        frames = self._ask(self._decide(0))
        if len(frames) != 1:
            return [f"{counted(len(frames), 'reply', 'replies')} to one request"]
        return self._wrong_decision(frames[0], 0)

    def _repeat(self) -> list[str]:
        request = self._decide(0)
        (first, *_), before = self._ask(request), self._link.stats()
        (again, *_), after = self._ask(request), self._link.stats()
        faults = [] if again.payload == first.payload else ["the second answer is another one"]
        if after.decisions != before.decisions:
            faults.append(f"the chip has computed {counted(after.decisions - before.decisions, 'decision')} for it")
        if after.repeats_served != before.repeats_served + 1:
            faults.append("STATS doesn't count it")
        return faults

    def _other_of_that_number(self) -> list[str]:
        """The same sequence number with another CRC is a request of its own."""
        self._ask(self._decide(0))
        (answer, *_) = self._ask(self._decide(1, sequence=self._sequence))
        return self._wrong_decision(answer, 1)

    def _damage(self) -> list[str]:
        """A bit flipped, and the CRC left as it was."""
        before = self._link.stats().decisions
        encoded = bytearray(encode_frame(self._decide(0))[: -len(DELIMITER)])
        place = max(place for place, byte in enumerate(encoded[:-3]) if byte ^ 0x10 and place > 4)
        encoded[place] ^= 0x10
        (answer, *_) = self._ask_bytes(bytes(encoded) + DELIMITER)
        faults = self._not_refused(answer, (ErrorCode.BAD_CRC, ErrorCode.MALFORMED))
        if (more := self._link.stats().decisions - before) > 0:
            faults.append(f"the chip has computed {counted(more, 'decision')} from it")
        return faults

    def _misfits(self) -> list[str]:
        """An intersection that the chip doesn't hold, and a number of values that the intersection doesn't take."""
        self._sequence += 1
        payload = encode_decide(DecideRequest(self._values[0]))
        faults = []
        beyond = Frame(MessageType.DECIDE, self._sequence, 255, payload)
        (answer, *_) = self._ask(beyond)
        faults += self._not_refused(answer, (ErrorCode.BAD_INTERSECTION,))
        short = encode_decide(DecideRequest(self._values[0][:-1]))
        (answer, *_) = self._ask(Frame(MessageType.DECIDE, self._sequence, self._intersection, short))
        return faults + self._not_refused(answer, (ErrorCode.BAD_LENGTH,))

    def _stopwatch(self) -> list[str]:
        """What the chip times is nearly all of the time until it answers."""
        (answer, *_) = self._ask(self._decide(1))
        timing, greeting = self._timing, self._link.greeting
        assert timing is not None
        reply = decode_decide_reply(answer.payload)
        if greeting is None or not greeting.f_cpu_hz:
            return []
        response = (timing.reply_start_us - timing.request_end_us) * greeting.f_cpu_hz / 1e6
        if not 0 <= response - reply.compute_cycles <= UNTIMED_CYCLES:
            return [f"{reply.compute_cycles} cycles told, and an answer after {response:.0f}"]
        return []

    def _session(self) -> list[str]:
        """After a reset the chip decides nothing until it is greeted. It is asked until it is up."""
        self._board.reset()
        end_us = self._board.now_us() + self._board.boot_us
        while True:
            try:
                (answer, *_) = self._ask_bytes(DELIMITER + encode_frame(self._decide(0)))
                half_heard = answer.type == MessageType.ERROR and decode_error_reply(answer.payload).code in WIRE_ERRORS
                if not half_heard or self._board.now_us() > end_us:
                    return self._not_refused(answer, (ErrorCode.NO_SESSION,))
            except _NoReply:
                if self._board.now_us() > end_us:
                    raise

    def _decide(self, which: int, *, sequence: int | None = None) -> Frame:
        if sequence is None:
            self._sequence = sequence = self._sequence + 1
        return Frame(MessageType.DECIDE, sequence, self._intersection, encode_decide(DecideRequest(self._values[which])))

    def _wrong_decision(self, frame: Frame, which: int) -> list[str]:
        if frame.type == MessageType.ERROR:
            return [f"refused: {decode_error_reply(frame.payload).meaning}"]
        right = decode_decide_reply(frame.payload).logits_crc == self._crcs[which]
        return [] if right else ["answered with other logits than the request's"]

    def _not_refused(self, frame: Frame, codes: tuple[ErrorCode, ...]) -> list[str]:
        names = " or ".join(code.name for code in codes)
        if frame.type != MessageType.ERROR:
            return [f"answered, where {names} is right"]
        code = decode_error_reply(frame.payload).code
        return [] if code in codes else [f"refused with error {code}, where {names} is right"]

    def _ask(self, request: Frame) -> list[Frame]:
        return self._ask_bytes(encode_frame(request))

    def _ask_bytes(self, encoded: bytes) -> list[Frame]:
        """All frames that come, at least one: until the line is quiet."""
        board, splitter = self._board, FrameSplitter()
        board.drain()
        board.write(encoded)
        line_us = (len(encoded) + FRAME_OVERHEAD_BYTES + DECIDE_REPLY_BYTES) * board.byte_us
        frames: list[Frame] = []
        end_us, self._timing = board.now_us() + line_us + self._patience_us, None
        while data := board.read(end_us):
            for each in splitter.feed(data):
                try:
                    frames.append(decode_frame(each))
                except FrameError:
                    raise _NoReply("what comes back can't be read") from None
            if frames and self._timing is None:
                self._timing = board.timing()
            if frames:
                end_us = board.now_us() + QUIET_US + board.settle_us
        if not frames:
            raise _NoReply("no answer")
        return frames
