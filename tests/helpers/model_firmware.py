"""The firmware's protocol in Python, with a switch for each way in which it could misbehave."""

from collections.abc import Callable
from dataclasses import replace

from hil.wire.protocol import (
    BadCrc,
    DecideReply,
    ErrorCode,
    ErrorReply,
    Frame,
    FrameError,
    MessageType,
    decode_decide,
    decode_frame,
    encode_decide_reply,
    encode_error_reply,
    encode_frame,
    encode_hello_reply,
    encode_stats_reply,
    logits_checksum,
)
from model.policy.file import Policy
from model.policy.integer import IntegerPolicy
from tests.helpers.fake_board import ANSWER_TIME_US, HELLO, STATS, FakeBoard

CYCLES = int(ANSWER_TIME_US * 16) - 800


class ModelBoard(FakeBoard):
    """Holds a policy of one intersection. `wrong` is one of WRONG, or "" for a sound firmware."""

    WRONG = (
        "replies twice", "computes a repeat", "forgets a repeat's count", "takes the number for the request", "ignores the CRC",
        "counts damage", "takes any intersection", "takes any length", "answers without a session", "stopwatch at 1", "mute",
        "silent from the second on",
    )  # fmt: skip

    def __init__(self, policy: Policy, wrong: str = "") -> None:
        super().__init__()
        self._part, self._wrong = policy.intersections[0], wrong
        self._decider = IntegerPolicy(self._part)
        self._hello = replace(HELLO, policy_sha256=policy.sha256, intersections=1, firmware_version=(2, 1))
        self._is_silent = False
        self.reset()

    def reset(self) -> None:
        self._in_session, self._decisions, self._repeats = False, 0, 0
        self._last: tuple[int, bytes, bytes] | None = None  # sequence, payload, reply

    def write(self, data: bytes) -> None:
        self.written.append(data)
        self._write_us = self._time_us
        self._request_end_us = self._time_us + len(data) * self.byte_us
        self._script.clear()
        for encoded in filter(None, data.split(b"\0")):
            self._answer_bytes(encoded)

    def _answer_bytes(self, encoded: bytes) -> None:
        try:
            frame = decode_frame(encoded)
        except BadCrc:
            if self._wrong == "ignores the CRC":
                frame = Frame(MessageType.DECIDE, 0, 0, self._last[1] if self._last else b"")
            else:
                self._decisions += self._wrong == "counts damage"
                self._put(Frame(MessageType.ERROR, 0, 0, encode_error_reply(ErrorReply(ErrorCode.BAD_CRC, 0))))
                return
        except FrameError:
            self._put(Frame(MessageType.ERROR, 0, 0, encode_error_reply(ErrorReply(ErrorCode.MALFORMED, 0))))
            return
        self._put(self._reply(frame))

    def _put(self, frame: Frame) -> None:
        self._is_silent |= self._wrong == "silent from the second on" and self._decisions > 1
        if self._is_silent:
            return
        if self._wrong == "mute" and frame.type == MessageType.DECIDE | 0x80:
            return
        times = 2 if self._wrong == "replies twice" and frame.type == MessageType.DECIDE | 0x80 else 1
        answer: Callable[[Frame], list[bytes]] = lambda _request: [encode_frame(frame)] * times  # noqa: E731
        self._script.append(answer)
        self._answer(frame)

    def _reply(self, frame: Frame) -> Frame:
        def reply(payload: bytes) -> Frame:
            return Frame(frame.type | 0x80, frame.sequence, frame.intersection, payload)

        def refusal(code: ErrorCode) -> Frame:
            return Frame(MessageType.ERROR, frame.sequence, frame.intersection, encode_error_reply(ErrorReply(code, 0)))

        if frame.type == MessageType.HELLO:
            self._in_session, self._last = True, None
            return reply(encode_hello_reply(self._hello))
        if frame.type == MessageType.STATS:
            return reply(encode_stats_reply(replace(STATS, decisions=self._decisions, repeats_served=self._repeats)))
        if not self._in_session and self._wrong != "answers without a session":
            return refusal(ErrorCode.NO_SESSION)
        if frame.intersection and self._wrong != "takes any intersection":
            return refusal(ErrorCode.BAD_INTERSECTION)
        values = list(decode_decide(frame.payload).values)
        if len(values) != self._part.n_inputs:
            if self._wrong != "takes any length":
                return refusal(ErrorCode.BAD_LENGTH)
            values += [0] * (self._part.n_inputs - len(values))
        return reply(self._decision(frame, values))

    def _decision(self, frame: Frame, values: list[int]) -> bytes:
        last = self._last
        same = last is not None and last[0] == frame.sequence
        same = same and (self._wrong == "takes the number for the request" or last[1] == frame.payload)  # type: ignore[index]
        if same and self._wrong != "computes a repeat":
            self._repeats += self._wrong != "forgets a repeat's count"
            return last[2]  # type: ignore[index]
        self._decisions += 1
        logits = [int(each) for each in self._decider.logits(values)]
        action = logits.index(max(logits))
        cycles = 1 if self._wrong == "stopwatch at 1" else CYCLES
        reply = DecideReply(action, self._part.phases[action], cycles, len(logits), logits_checksum(logits))
        payload = encode_decide_reply(reply)
        self._last = frame.sequence, frame.payload, payload
        return payload
