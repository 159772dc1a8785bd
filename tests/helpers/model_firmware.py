"""The firmware's protocol in Python, with a switch for each way in which it could misbehave."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hil.wire.protocol import (
    FLASH_SOUND,
    VALUES_WERE_PUT,
    WATCHDOG_ON,
    BadCrc,
    BadVersion,
    DecideReply,
    ErrorCode,
    ErrorReply,
    Frame,
    FrameError,
    MessageType,
    checksum,
    decode_decide,
    decode_frame,
    encode_decide_reply,
    encode_error_reply,
    encode_frame,
    encode_hello_reply,
    encode_logits,
    encode_stats_reply,
    logits_checksum,
)
from model.policy.file import Policy
from model.policy.integer import IntegerPolicy
from tests.helpers.fake_board import ANSWER_TIME_US, HELLO, STATS, FakeBoard

CYCLES = int(ANSWER_TIME_US * 16) - 800
WATCHDOG_US = 1_000_000.0


class RefusalError(Exception):
    """A request is refused."""

    def __init__(self, code: ErrorCode, detail: int = 0) -> None:
        self.reply = encode_error_reply(ErrorReply(code, detail))


class ModelBoard(FakeBoard):
    """Holds a policy of one intersection. `wrong` is one of WRONG, or "" for a sound firmware."""

    WRONG = (
        "replies twice", "computes a repeat", "forgets a repeat's count", "takes the number for the request", "ignores the CRC",
        "counts damage", "takes any intersection", "takes any length", "answers without a session", "stopwatch at 1", "mute",
        "silent from the second on", "another sequence", "no watchdog", "a slow watchdog", "no flash check",
        "tells the wrong cause", "takes any phase", "ignores the minimum green", "keeps the phase for ever",
        "packs from another base", "ignores the CRC of parts", "brings other logits", "knows every type", "tells no detail",
        "remembers across sessions", "counts no good frames", "the wrong phase", "counts no range", "a short reply",
    )  # fmt: skip

    def __init__(self, policy: Policy, wrong: str = "", min_green_s: int = 0) -> None:
        super().__init__()
        self._part, self._wrong = policy.intersections[0], wrong
        self._decider = IntegerPolicy(self._part)
        longest = max(55, 4 + 2 * self._part.n_inputs)
        self._hello = replace(
            HELLO, policy_sha256=policy.sha256, intersections=1, firmware_version=(2, 2), build_id=7, program_bytes=9_000,
            max_payload_bytes=longest, min_green_s=min_green_s, boot_count=0,
        )  # fmt: skip
        self._is_silent = self._is_damaged = False
        self._start(1)

    def _start(self, cause: int) -> None:
        sound = 0 if self._is_damaged and self._wrong != "no flash check" else FLASH_SOUND
        told = sound | (0 if self._wrong == "no watchdog" else WATCHDOG_ON) if sound else 0
        self._hello = replace(self._hello, reset_cause=cause, boot_count=self._hello.boot_count + 1, conditions=told)
        self._in_session, self._hung_until_us = False, 0.0
        self._stats = replace(STATS, decisions=0, repeats_served=0, good_frames=0, crc_errors=0, malformed_frames=0)
        self._last: tuple[int, bytes, bytes] | None = None  # sequence, payload, reply
        self._logits: list[int] = []
        self._parts = bytearray(2 * self._part.n_inputs + 2)

    def reset(self) -> None:
        self._start(1 if self._wrong == "tells the wrong cause" else 2)

    def hang(self) -> None:
        if self._wrong == "no watchdog":
            self._is_silent = True
            return
        self._start(8)
        self._hung_until_us = self.now_us() + WATCHDOG_US * (2 if self._wrong == "a slow watchdog" else 1)

    def damage_flash(self) -> None:
        self._is_damaged = True

    def mend_flash(self) -> None:
        self._is_damaged = False

    def write(self, data: bytes) -> None:
        self.written.append(data)
        self._write_us = self._time_us
        self._request_end_us = self._time_us + len(data) * self.byte_us
        self._script.clear()
        for encoded in filter(None, data.split(b"\0")):
            if self._request_end_us >= self._hung_until_us:
                self._answer_bytes(encoded)

    def _answer_bytes(self, encoded: bytes) -> None:
        try:
            frame = decode_frame(encoded)
        except BadCrc:
            if self._wrong == "ignores the CRC":
                frame = Frame(MessageType.DECIDE, 0, 0, self._last[1] if self._last else b"")
            else:
                self._count("crc_errors", "decisions" if self._wrong == "counts damage" else "")
                self._put(Frame(MessageType.ERROR, 0, 0, encode_error_reply(ErrorReply(ErrorCode.BAD_CRC, 0))))
                return
        except BadVersion:
            sequence, intersection = self._numbers(encoded)
            error = encode_error_reply(ErrorReply(ErrorCode.BAD_VERSION, 3))
            self._put(Frame(MessageType.ERROR, sequence, intersection, error))
            return
        except FrameError:
            self._count("malformed_frames")
            self._put(Frame(MessageType.ERROR, 0, 0, encode_error_reply(ErrorReply(ErrorCode.MALFORMED, 0))))
            return
        if len(frame.payload) > self._hello.max_payload_bytes:
            self._count("malformed_frames")
            error = encode_error_reply(ErrorReply(ErrorCode.TOO_LONG, self._hello.max_payload_bytes))
            self._put(Frame(MessageType.ERROR, frame.sequence, frame.intersection, error))
            return
        self._count("" if self._wrong == "counts no good frames" else "good_frames")
        try:
            payload, kind = self._reply(frame), frame.type | 0x80
        except RefusalError as refusal:
            payload, kind = refusal.reply, MessageType.ERROR
            if self._wrong == "tells no detail":
                payload = payload[:1] + b"\0"
        sequence = frame.sequence + (self._wrong == "another sequence" and frame.type == MessageType.DECIDE)
        self._put(Frame(kind, sequence % 256, frame.intersection, payload))

    @staticmethod
    def _numbers(encoded: bytes) -> tuple[int, int]:
        from cobs import cobs

        content = cobs.decode(encoded)
        return content[2], content[3]

    def _count(self, *names: str) -> None:
        self._stats = replace(self._stats, **{name: getattr(self._stats, name) + 1 for name in names if name})  # type: ignore[arg-type]

    def _put(self, frame: Frame) -> None:
        self._is_silent |= self._wrong == "silent from the second on" and self._stats.decisions > 1
        if self._is_silent:
            return
        if self._wrong == "mute" and frame.type == MessageType.DECIDE | 0x80:
            return
        times = 2 if self._wrong == "replies twice" and frame.type == MessageType.DECIDE | 0x80 else 1
        answer: Callable[[Frame], list[bytes]] = lambda _request: [encode_frame(frame)] * times  # noqa: E731
        self._script.append(answer)
        self._answer(frame)

    def _reply(self, frame: Frame) -> bytes:
        """The payload of the reply; RefusalError where there is none."""
        kind, payload = frame.type, frame.payload
        if kind not in range(1, 6) and self._wrong != "knows every type":
            raise RefusalError(ErrorCode.UNKNOWN_TYPE, kind)
        if kind in (MessageType.HELLO, MessageType.STATS) and payload:
            raise RefusalError(ErrorCode.BAD_LENGTH)
        if kind == MessageType.HELLO:
            self._in_session = True
            if self._wrong != "remembers across sessions":
                self._last = None
            return encode_hello_reply(self._hello)
        if kind == MessageType.STATS:
            return encode_stats_reply(self._stats)
        if not self._hello.conditions:
            raise RefusalError(ErrorCode.FLASH_CORRUPT)
        if not self._in_session and self._wrong != "answers without a session":
            raise RefusalError(ErrorCode.NO_SESSION, self._hello.reset_cause)
        if frame.intersection and self._wrong != "takes any intersection":
            raise RefusalError(ErrorCode.BAD_INTERSECTION, 1)
        if kind == MessageType.PUT:
            return self._take_part(payload)
        return self._fetch(payload) if kind == MessageType.GET else self._decide(frame)

    def _take_part(self, payload: bytes) -> bytes:
        if payload[0] + len(payload) - 1 > len(self._parts):
            raise RefusalError(ErrorCode.BAD_LENGTH, len(self._parts))
        self._last = None
        self._parts[payload[0] : payload[0] + len(payload) - 1] = payload[1:]
        return b""

    def _fetch(self, payload: bytes) -> bytes:
        logits = encode_logits(self._logits)
        if len(payload) != 3:
            raise RefusalError(ErrorCode.BAD_LENGTH, 3)
        sequence, offset, length = payload
        if offset + length > len(logits):
            raise RefusalError(ErrorCode.BAD_LENGTH, len(logits))
        if self._last is None or self._last[0] != sequence:
            raise RefusalError(ErrorCode.BAD_PARTS)
        return logits[offset : offset + length] if self._wrong != "brings other logits" else bytes(length)

    def _decide(self, frame: Frame) -> bytes:
        payload, wide = frame.payload, 2 * self._part.n_inputs
        put = bool(payload[:1] and payload[0] & VALUES_WERE_PUT)
        last = self._last
        same = last is not None and last[0] == frame.sequence
        same = same and (self._wrong == "takes the number for the request" or last[1] == payload)  # type: ignore[index]
        if same and self._wrong != "computes a repeat":
            self._count("" if self._wrong == "forgets a repeat's count" else "repeats_served")
            return last[2]  # type: ignore[index]
        if put:
            other = checksum(bytes(self._parts[:wide])) != int.from_bytes(payload[2:4], "little")
            if last is not None or (other and self._wrong != "ignores the CRC of parts"):
                raise RefusalError(ErrorCode.BAD_PARTS)
            payload = bytes((0, payload[1])) + bytes(self._parts[:wide])
        try:
            request = decode_decide(payload)
        except FrameError:
            raise RefusalError(ErrorCode.BAD_LENGTH, 2 + wide) from None
        values = list(request.values)
        if request.packed and self._wrong == "packs from another base":
            values = [value + 1 if value < 9 else value for value in values]
        if len(values) != self._part.n_inputs:
            if self._wrong != "takes any length":
                raise RefusalError(ErrorCode.BAD_LENGTH, 2 + wide)
            values = (values + [0] * self._part.n_inputs)[: self._part.n_inputs]
        return self._decision(frame, values, self._held(request.light))

    def _held(self, light: object) -> int | None:
        """The action that the minimum green holds."""
        if light is None:
            return None
        action, green_s = light.action, light.green_s  # type: ignore[attr-defined]
        if action >= len(self._part.phases) and self._wrong != "takes any phase":
            raise RefusalError(ErrorCode.BAD_PHASE, len(self._part.phases))
        if self._wrong == "keeps the phase for ever":
            return int(action)
        return action if green_s < self._hello.min_green_s and self._wrong != "ignores the minimum green" else None

    def _decision(self, frame: Frame, values: list[int], held: int | None) -> bytes:
        x = np.array([values])
        saturation = self._decider.saturation(x, self._decider.activations(x))
        left = [
            name for name, leaves in (("beyond_range", saturation.inputs), ("at_limit", saturation.units)) if np.any(leaves)
        ]
        self._count("decisions", *(left if self._wrong != "counts no range" else []))
        self._logits = [int(each) for each in self._decider.logits(values)]
        action = held if held is not None else self._logits.index(max(self._logits))
        phase = self._part.phases[action % len(self._part.phases)] + (self._wrong == "the wrong phase")
        cycles = 1 if self._wrong == "stopwatch at 1" else CYCLES
        reply = DecideReply(action, phase, cycles, len(self._logits), logits_checksum(self._logits))
        payload = encode_decide_reply(reply)[: 2 if self._wrong == "a short reply" else None]
        self._last = frame.sequence, frame.payload, payload
        self._stats = replace(self._stats, largest_compute_cycles=max(self._stats.largest_compute_cycles, cycles))
        return payload
