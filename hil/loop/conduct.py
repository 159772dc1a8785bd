"""How a board behaves beyond its decisions: what a street needs of it when frames are repeated, damaged or misplaced.

Each point is tried with frames of its own before the traffic: a right decision says nothing about any of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hil.loop.asking import Asker, NoReplyError, not_refused
from hil.loop.closed_loop import Seat
from hil.loop.sweep_inputs import sweep_of
from hil.loop.upsets import upsets
from hil.wire.link import LinkError
from hil.wire.parts import PART_BYTES
from hil.wire.protocol import (
    COUNTER_MAX,
    DELIMITER,
    MAX_PAYLOAD_BYTES,
    PACKED_SINCE,
    PARTS_SINCE,
    RANGE_SINCE,
    VERSION,
    DecideReply,
    DecideRequest,
    ErrorCode,
    Frame,
    FrameError,
    Light,
    MessageType,
    StatsReply,
    decode_decide_reply,
    decode_error_reply,
    encode_decide,
    encode_decide_put,
    encode_frame,
    encode_get,
    encode_logits,
    encode_put,
    logits_checksum,
)
from hil.words import counted
from model.policy.file import INPUT_MAX, IntersectionPolicy, Policy
from model.policy.integer import IntegerPolicy

UNTIMED_CYCLES = 4_000  # of a response, at most, outside of what the chip's stopwatch times
UNKNOWN_TYPE = 0x55
INT16_MAX = 32_767
RAM_BYTES = 2_048  # of the ATmega328P

Point = Callable[[], list[str]]  # tries it; what was wrong


class Conduct(NamedTuple):
    """``faults`` say what was wrong; ``tried`` names the points; ``not_tried`` those that this board doesn't allow."""

    faults: tuple[str, ...]
    tried: tuple[str, ...]
    not_tried: tuple[str, ...]


def run_conduct(policy: Policy, seats: Sequence[Seat], *, watchdog: bool = True) -> Conduct:
    """Tries each board of the seats, at its first seat; each is greeted again afterwards.

    Args:
        policy: what the boards hold.
        seats: of its intersections.
        watchdog: whether the firmware is built with its watchdog on.
    """
    faults: list[str] = []
    tried: dict[str, None] = {}
    skipped: dict[str, None] = {}
    for number, seat in enumerate(seats):
        if all(seat.link is not other.link for other in seats[:number]):
            trial = _Trial(Asker(seat.link, seat.number), policy, number)
            for name, point in (*trial.points(), *upsets(trial.asker, trial.decide(0).payload, watchdog=watchdog)):
                if point is None:
                    skipped[name] = None
                    continue
                tried[name] = None
                try:
                    faults += [f"{name}: {fault}" for fault in point()]
                except (LinkError, NoReplyError, FrameError) as fault:
                    faults.append(f"{name}: {fault}")
            try:  # so that the link's next request can't be taken for one of these
                seat.link.greet_again()
            except LinkError as fault:
                faults.append(f"greeted again: {fault}")
    return Conduct(tuple(faults), tuple(tried), tuple(skipped))


class _Trial:
    """One board, at one of its intersections."""

    def __init__(self, asker: Asker, policy: Policy, number: int) -> None:
        part = policy.intersections[number]
        self.asker, self._link, self._board = asker, asker.link, asker.board
        inputs, decider = sweep_of(part).inputs, IntegerPolicy(part)
        logits = decider.logits(inputs)
        self._leaving = _leaving(part, decider, inputs)
        first = int((logits != logits[0]).any(axis=1).argmax())  # an input with other logits than input 0, where there is one
        self._values = [inputs[0].tolist(), inputs[first].tolist()]
        self._logits = [tuple(logits[0].tolist()), tuple(logits[first].tolist())]
        self._phases = part.phases

    def points(self) -> list[tuple[str, Point | None]]:
        """Each point with its trial; None where the board doesn't allow it."""
        greeting = self._link.greeting
        version = greeting.firmware_version if greeting is not None else (0, 0)
        return [
            ("one reply", self._one_reply),
            ("a repeat is answered from memory", self._repeat),
            ("another with its number is not", self._other_of_that_number),
            ("damage is refused", self._damage),
            ("misfits are refused", self._misfits),
            ("frames that aren't requests are refused", self._no_requests),
            ("packed values decide alike", self._packed if version >= PACKED_SINCE else None),
            ("a decision comes in parts", self._parts if version >= PARTS_SINCE else None),
            ("the light's state is heeded", self._light),
            ("STATS counts what happened", self._counts),
            ("what leaves the range is counted", self._range if version >= RANGE_SINCE else None),
            ("the stopwatch tells the time", self._stopwatch if self._board.clock == "cycles" else None),
        ]

    def decide(self, which: int, *, again: bool = False, light: Light | None = None, packed: bool = False) -> Frame:
        """A request for a decision on one of the two inputs."""
        request = DecideRequest(self._values[which], light, packed)
        return self.asker.frame(MessageType.DECIDE, encode_decide(request), again=again)

    def _one_reply(self) -> list[str]:
        request = self.decide(0)
        frames = self.asker.ask_all(encode_frame(request))
        if len(frames) != 1:
            return [f"{counted(len(frames), 'reply', 'replies')} to one request"]
        return self._wrong_decision(self.asker.ask(self.decide(1)), 1) + self._wrong_decision(frames[0], 0)

    def _repeat(self) -> list[str]:
        request = self.decide(0)
        first, before = self.asker.ask(request), self._link.stats()
        again, after = self.asker.ask(request), self._link.stats()
        faults = [] if again.payload == first.payload else ["the second answer is another one"]
        if after.decisions != before.decisions:
            faults.append(f"the chip has computed {counted(after.decisions - before.decisions, 'decision')} for it")
        if after.repeats_served != before.repeats_served + 1:
            faults.append("STATS doesn't count it")
        return faults

    def _other_of_that_number(self) -> list[str]:
        """The same sequence number with another CRC is a request of its own; so is one after a HELLO."""
        request = self.decide(0)
        self.asker.ask(request)
        faults = self._wrong_decision(self.asker.ask(self.decide(1, again=True)), 1)
        request = self.decide(0)
        self.asker.ask(request)
        self.asker.hello()
        before = self._link.stats().decisions
        self.asker.ask(request)
        if self._link.stats().decisions != before + 1:
            faults.append("a session's request is answered from the memory of the session before")
        return faults

    def _damage(self) -> list[str]:
        """A bit flipped, and the CRC left as it was."""
        before = self._link.stats().decisions
        encoded = bytearray(encode_frame(self.decide(0))[: -len(DELIMITER)])
        place = max(place for place, byte in enumerate(encoded[:-3]) if byte ^ 0x10 and place > 4)
        encoded[place] ^= 0x10
        (answer, *_) = self.asker.ask_all(bytes(encoded) + DELIMITER)
        faults = not_refused(answer, (ErrorCode.BAD_CRC, 0), (ErrorCode.MALFORMED, 0))
        if (more := self._link.stats().decisions - before) > 0:
            faults.append(f"the chip has computed {counted(more, 'decision')} from it")
        return faults

    def _misfits(self) -> list[str]:
        """An intersection that the chip doesn't hold, a number of values that it doesn't take, and a phase that it hasn't."""
        held = self._link.greeting.intersections if self._link.greeting is not None else None
        payload, asker = self.decide(0).payload, self.asker
        faults = []
        for beyond in {min(held or 0, 255), 255} - set(range(held or 0)):
            elsewhere = replace(asker.frame(MessageType.DECIDE, payload), intersection=beyond)
            faults += not_refused(asker.ask(elsewhere), (ErrorCode.BAD_INTERSECTION, held))
        right = ErrorCode.BAD_LENGTH, len(payload)
        for values in (self._values[0][:-1], [*self._values[0][:-1]] * 2):
            request = encode_decide(DecideRequest(values[: (MAX_PAYLOAD_BYTES - 4) // 2]))
            if len(request) <= self._max_payload and len(request) != len(payload):
                faults += not_refused(asker.ask(asker.frame(MessageType.DECIDE, request)), right)
        miscounted = bytes((payload[0], payload[1] - 1)) + payload[2:]
        for wrong in (miscounted, b""):
            faults += not_refused(asker.ask(asker.frame(MessageType.DECIDE, wrong)), right)
        light = Light(len(self._phases), 255)
        return faults + not_refused(asker.ask(self.decide(0, light=light)), (ErrorCode.BAD_PHASE, len(self._phases)))

    def _no_requests(self) -> list[str]:
        """An unknown type, another version, too long and too short a frame, and a payload where none belongs."""
        asker = self.asker
        faults = not_refused(asker.ask(asker.frame(UNKNOWN_TYPE)), (ErrorCode.UNKNOWN_TYPE, UNKNOWN_TYPE))
        newer = replace(asker.frame(MessageType.STATS), version=VERSION + 1)
        faults += not_refused(asker.ask(newer), (ErrorCode.BAD_VERSION, VERSION))
        for kind in (MessageType.HELLO, MessageType.STATS):
            faults += not_refused(asker.ask(asker.frame(kind, b"\1")), (ErrorCode.BAD_LENGTH, 0))
        (short, *_) = asker.ask_all(b"\x03\x01\x01" + DELIMITER)
        faults += not_refused(short, (ErrorCode.MALFORMED, 0))
        if self._max_payload < MAX_PAYLOAD_BYTES:
            long = asker.frame(MessageType.STATS, bytes(range(1, self._max_payload + 2)))
            faults += not_refused(asker.ask(long), (ErrorCode.TOO_LONG, self._max_payload))
        return faults

    def _packed(self) -> list[str]:
        """Each input whole and packed, with the light's state and without; and packed values that don't end as they should."""
        faults, asker = [], self.asker
        for which in (0, 1):
            for light in (None, Light(0, 255)):
                faults += self._wrong_decision(asker.ask(self.decide(which, light=light)), which)
                request = self.decide(which, light=light, packed=True)
                if len(request.payload) <= self._max_payload:
                    faults += self._wrong_decision(asker.ask(request), which)
        whole = self.decide(0, packed=True).payload
        right = ErrorCode.BAD_LENGTH, len(encode_decide(DecideRequest(self._values[0])))
        fitting = [wrong for wrong in (whole[:-1], whole + b"\1", whole[:2]) if len(wrong) <= self._max_payload]
        for wrong in fitting:
            faults += not_refused(asker.ask(asker.frame(MessageType.DECIDE, wrong)), right)
        return faults

    def _parts(self) -> list[str]:
        """Values put piece by piece, the decision on them, its logits fetched; and what doesn't fit any of that."""
        faults, asker = [], self.asker
        for which in (0, 1):
            head, content = encode_decide_put(DecideRequest(self._values[which]))
            for begin in range(0, len(content), PART_BYTES):
                self._answered(asker.frame(MessageType.PUT, encode_put(begin, content[begin : begin + PART_BYTES])))
            wrong_crc = head[:-1] + bytes((head[-1] ^ 1,))
            faults += not_refused(asker.ask(asker.frame(MessageType.DECIDE, wrong_crc)), (ErrorCode.BAD_PARTS, 0))
            faults += self._wrong_decision(asker.ask(request := asker.frame(MessageType.DECIDE, head)), which)
            faults += self._wrong_decision(asker.ask(request), which)
            logits = encode_logits(self._logits[which])
            sequence, room = asker.sequence, len(logits)
            fetched = self._answered(asker.frame(MessageType.GET, encode_get(sequence, 0, room)))
            end = self._answered(asker.frame(MessageType.GET, encode_get(sequence, room - 2, 2)))
            if (fetched, end) != (logits, logits[-2:]):
                faults.append("GET brings other logits")
            for payload, right in (
                (encode_get(sequence, room - 1, 2), (ErrorCode.BAD_LENGTH, room)),
                (encode_get(sequence, 0, room + 1), (ErrorCode.BAD_LENGTH, room)),
                (encode_get(sequence, 0, 1) + b"\1", (ErrorCode.BAD_LENGTH, 3)),
                (encode_get((sequence + 1) % 256, 0, 1), (ErrorCode.BAD_PARTS, 0)),
            ):
                faults += not_refused(asker.ask(asker.frame(MessageType.GET, payload)), right)
        again, beyond = encode_decide_put(DecideRequest(self._values[0]))[0], encode_put(255, b"\1\1")
        faults += not_refused(asker.ask(asker.frame(MessageType.DECIDE, again)), (ErrorCode.BAD_PARTS, 0))
        return faults + not_refused(asker.ask(asker.frame(MessageType.PUT, beyond)), (ErrorCode.BAD_LENGTH, None))

    def _light(self) -> list[str]:
        """A light keeps its phase before its minimum green is over, and not any longer."""
        greeting, faults = self._link.greeting, []
        least_s = greeting.min_green_s if greeting is not None else 0
        free = int(max(range(len(self._logits[0])), key=self._logits[0].__getitem__))
        other = (free + 1) % len(self._phases)
        cases = [(other, least_s, free), (other, 255, free), (free, 0, free)]
        if least_s:
            cases += [(other, 0, other), (other, least_s - 1, other)]
        for shown, green_s, right in cases:
            answer = self._decision(self.asker.ask(self.decide(0, light=Light(shown, green_s))))
            if (answer.action, answer.phase) != (right, self._phases[right]):
                faults.append(f"action {answer.action} for {right}, {other} having been green for {green_s} s")
        return faults

    def _counts(self) -> list[str]:
        """What STATS counts, by how much, of one frame of each kind."""
        asker = self.asker
        before = self._link.stats()
        asker.ask(self.decide(0))
        asker.ask(asker.frame(UNKNOWN_TYPE))
        encoded = bytearray(encode_frame(asker.frame(UNKNOWN_TYPE)))
        encoded[-2] ^= 0x40 if encoded[-2] != 0x40 else 0x20
        (damaged, *_) = asker.ask_all(bytes(encoded))  # behind a refusal with another detail
        asker.ask_all(b"\x03\x01\x01" + DELIMITER)
        after = self._link.stats()
        faults = not_refused(damaged, (ErrorCode.BAD_CRC, 0), (ErrorCode.MALFORMED, 0))
        for name, more in (
            ("decisions", 1), ("good_frames", 3), ("crc_errors", 1), ("malformed_frames", 1),
            ("repeats_served", 0), ("ring_overruns", 0), ("uart_errors", 0),
        ):  # fmt: skip
            begun, ended = getattr(before, name), getattr(after, name)
            if ended - begun != more and ended < COUNTER_MAX:
                faults.append(f"{name} grew by {ended - begun}, where {more} is right")
        return faults

    def _range(self) -> list[str]:
        """Inputs that leave the integers' range and one that doesn't, whole and packed; and RAM that no stack has touched."""
        asker, faults = self.asker, []
        for values, leaves in self._leaving:
            for packed in (False, True):
                before = self._link.stats()
                payload = encode_decide(DecideRequest(values, packed=packed))
                if len(payload) <= self._max_payload:
                    self._answered(asker.frame(MessageType.DECIDE, payload))
                    faults += _not_counted(before, self._link.stats(), leaves)
        stats, mark = self._link.stats(), self._board.stack_high_water_bytes()
        if mark is not None and (told := RAM_BYTES - stats.static_ram_bytes - stats.untouched_ram_bytes) != mark:
            faults.append(f"STATS tells a stack of {told} B, the RAM shows {mark}")
        return faults

    def _stopwatch(self) -> list[str]:
        """What the chip times is nearly all of the time until it answers, and the largest of it is kept."""
        answer = self._decision(self.asker.ask(self.decide(1)))
        timing, greeting = self.asker.timing, self._link.greeting
        assert timing is not None
        if greeting is None or not greeting.f_cpu_hz:
            return []
        response = (timing.reply_start_us - timing.request_end_us) * greeting.f_cpu_hz / 1e6
        if not 0 <= response - answer.compute_cycles <= UNTIMED_CYCLES:
            return [f"{answer.compute_cycles} cycles told, and an answer after {response:.0f}"]
        largest = self._link.stats().largest_compute_cycles
        return [] if largest >= answer.compute_cycles else [f"{largest} cycles as the largest, after {answer.compute_cycles}"]

    @property
    def _max_payload(self) -> int:
        return self._link.greeting.max_payload_bytes if self._link.greeting is not None else MAX_PAYLOAD_BYTES

    def _answered(self, request: Frame) -> bytes:
        """The payload of the answer; NoReplyError where the request is refused."""
        reply = self.asker.ask(request)
        if reply.type == MessageType.ERROR:
            name = MessageType(request.type).name
            raise NoReplyError(f"{name} refused: {decode_error_reply(reply.payload).meaning}")
        return reply.payload

    def _decision(self, frame: Frame) -> DecideReply:
        if frame.type == MessageType.ERROR:
            raise NoReplyError(f"refused: {decode_error_reply(frame.payload).meaning}")
        return decode_decide_reply(frame.payload)

    def _wrong_decision(self, frame: Frame, which: int) -> list[str]:
        if frame.type == MessageType.ERROR:
            return [f"refused: {decode_error_reply(frame.payload).meaning}"]
        reply, logits = decode_decide_reply(frame.payload), self._logits[which]
        if reply.logits != len(logits) or reply.logits_crc != logits_checksum(logits):
            return ["answered with other logits than the request's"]
        action = logits.index(max(logits))
        right = reply.action == action and reply.phase == self._phases[action]
        return [] if right else [f"action {reply.action} and phase {reply.phase} for {action} and {self._phases[action]}"]


def _leaving(
    part: IntersectionPolicy, decider: IntegerPolicy, inputs: npt.NDArray[np.int64]
) -> list[tuple[list[int], list[int]]]:
    """Inputs, and whether each is counted: an input beyond its range, a unit at its limit. One that leaves the range in as many
    ways as any; the least and the greatest that don't; the first and the last value beyond; a single unit at its limit."""
    inside = [feature.covered[0] for feature in part.features for _ in range(feature.width)]
    first, last = ([*inside], [*inside])
    first[0], last[-1] = (min(features.covered[1] + 1, INT16_MAX) for features in (part.features[0], part.features[-1]))
    most = [feature.covered[1] for feature in part.features for _ in range(feature.width)]
    x = np.concatenate([inputs, np.array([inside, most, first, last])])
    activations = decider.activations(x)
    saturation = decider.saturation(x, activations)
    leaves = np.stack([saturation.inputs, saturation.units]).astype(int)  # [2, inputs]
    chosen = [int(leaves[:, : len(inputs)].sum(axis=0).argmax()), *range(len(inputs), len(x))]
    limits = [activations.h1 == INPUT_MAX, activations.h2 == INPUT_MAX]
    for units, others in (limits, limits[::-1]):  # a single unit of a layer at its limit: the first of it, the last
        alone = (units.sum(axis=1) == 1) & ~others.any(axis=1)
        for place in (0, -1):
            chosen += np.flatnonzero(alone & units[:, place])[:1].tolist()
    return [(x[number].tolist(), leaves[:, number].tolist()) for number in chosen]


def _not_counted(before: StatsReply, after: StatsReply, leaves: list[int]) -> list[str]:
    grown = []
    for begun, ended in ((before.beyond_range, after.beyond_range), (before.at_limit, after.at_limit)):
        assert begun is not None and ended is not None
        grown.append(ended - begun)
    if grown == leaves or COUNTER_MAX in (after.beyond_range, after.at_limit):
        return []
    return [f"inputs beyond and units at their limit counted {grown}, where {leaves} is right"]
