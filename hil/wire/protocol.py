"""The wire, as a pure codec: bytes to frames, frames to typed messages, and back. docs/protocol.md specifies every byte.

Nothing here waits, retries or knows a port. The firmware's C codec is tested against the same vectors
(tests/firmware/vectors/frames.json).
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from cobs import cobs
from fastcrc import crc16

from hil.wire.light_fields import LIGHT_HELLO, LIGHT_STATS, MODES, LightCounters, LightIdentity
from hil.wire.packing import pack, unpack
from hil.wire.splitter import CRC_BYTES as CRC_BYTES
from hil.wire.splitter import DELIMITER as DELIMITER
from hil.wire.splitter import HEADER_BYTES as HEADER_BYTES
from hil.wire.splitter import MAX_FRAME_BYTES as MAX_FRAME_BYTES
from hil.wire.splitter import MAX_PAYLOAD_BYTES as MAX_PAYLOAD_BYTES
from hil.wire.splitter import FrameSplitter as FrameSplitter

VERSION = 3
FRAME_OVERHEAD_BYTES = HEADER_BYTES + CRC_BYTES + 2  # one COBS byte and the delimiter

WITH_LIGHT = 0x02  # DECIDE flags
VALUES_WERE_PUT = 0x04
VALUES_ARE_PACKED = 0x08

HELLO_REPLY_BYTES, DECIDE_REPLY_BYTES, STATS_REPLY_BYTES = 55, 8, 28  # payload
DECIDE_BYTES = 4  # of a DECIDE request beside its values: flags, count, the light's state
PARTS_SINCE = (1, 2)  # firmware version that knows PUT and GET
RANGE_SINCE = (2, 1)  # that counts what leaves the integers' range
PACKED_SINCE = (2, 2)  # that takes packed values, and says which build it is
WATCHDOG_ON, FLASH_SOUND = 0x08, 0x02  # a HELLO reply's conditions
COUNTER_MAX = 65_535  # STATS: where counters of 16 bits stop
GREEN_S_MAX = 255  # of a light's state: this long, or longer


class MessageType(IntEnum):
    HELLO = 0x01
    DECIDE = 0x02
    STATS = 0x03
    PUT = 0x04
    GET = 0x05
    HELLO_REPLY = 0x81
    DECIDE_REPLY = 0x82
    STATS_REPLY = 0x83
    PUT_REPLY = 0x84
    GET_REPLY = 0x85
    ERROR = 0xFF


class ErrorCode(IntEnum):
    """Why the firmware refused a frame; the comment beside each code gives the meaning of `detail`."""

    BAD_CRC = 1  # 0
    BAD_VERSION = 2  # the version this firmware speaks
    UNKNOWN_TYPE = 3  # the type received
    BAD_LENGTH = 4  # payload length expected (low byte)
    BAD_INTERSECTION = 5  # intersections held
    TOO_LONG = 6  # max_payload
    MALFORMED = 7  # 0
    FLASH_CORRUPT = 8  # 0
    BAD_PHASE = 9  # actions of the intersection
    NO_SESSION = 10  # reset cause: MCUSR as found at boot
    BAD_PARTS = 11  # 0


# Errors that damage on the wire can cause: sending again may help. The others are answers to an intact request.
WIRE_ERRORS = frozenset({ErrorCode.BAD_CRC, ErrorCode.TOO_LONG, ErrorCode.MALFORMED})


class FrameError(ValueError):
    """These bytes are not a valid frame or message."""


class MalformedFrame(FrameError):
    """COBS error, or too short for header and CRC, or a payload that does not fit its type."""


class BadCrc(FrameError):
    """The CRC is not that of the content."""


class BadVersion(FrameError):
    """A frame of another protocol version."""


@dataclass(frozen=True)
class Frame:
    """One frame's content; `type` is a MessageType where known."""

    type: int
    sequence: int
    intersection: int
    payload: bytes = b""
    version: int = VERSION


@dataclass(frozen=True)
class HelloReply:
    """The firmware's identity and settings (55 bytes). Clock and baud are 0 on the host build, as are build and conditions."""

    firmware_version: tuple[int, int]
    kernel: int  # 0 portable C, 1 table, 2 unrolled
    min_green_s: int  # that the firmware keeps, where requests carry the light's state
    f_cpu_hz: int
    baud: int
    intersections: int
    max_payload_bytes: int
    policy_sha256: str  # hex
    reset_cause: int  # MCUSR at boot
    boot_count: int  # boots since power-on, this one included; stops at 255
    build_id: int | None = None  # a hash of the program; None: firmware before 2.2 (48 bytes), as the next two
    program_bytes: int | None = None
    conditions: int | None = None  # WATCHDOG_ON | FLASH_SOUND
    light: LightIdentity | None = None  # of firmware that drives lamps (64 bytes)


@dataclass(frozen=True)
class Light:
    """What a light shows: the action in force, and the seconds since then."""

    action: int
    green_s: int


@dataclass(frozen=True)
class DecideRequest:
    """The kept features' integers (int16 each), one feature after the other in the policy's order."""

    values: Sequence[int]
    light: Light | None = None  # None: the chip keeps no minimum green
    packed: bool = False  # each value half a byte where it can be, above a base


@dataclass(frozen=True)
class DecideReply:
    """The chip's decision; the CRC of its logits (`logits_checksum`) stands for them."""

    action: int
    phase: int
    compute_cycles: int
    logits: int  # how many
    logits_crc: int


@dataclass(frozen=True)
class StatsReply:
    """The chip's counters (28 bytes); 16-bit ones stop at 65535."""

    decisions: int
    largest_compute_cycles: int
    good_frames: int
    crc_errors: int
    malformed_frames: int
    ring_overruns: int
    uart_errors: int
    repeats_served: int
    untouched_ram_bytes: int
    static_ram_bytes: int
    beyond_range: int | None = None  # decisions with an input beyond its range; None: firmware before 2.1 (24 bytes)
    at_limit: int | None = None  # decisions with a hidden unit at its limit
    light: LightCounters | None = None  # of firmware that drives lamps (34 bytes)


@dataclass(frozen=True)
class ErrorReply:
    """The firmware refused a frame."""

    code: int
    detail: int

    @property
    def meaning(self) -> str:
        name = ErrorCode(self.code).name if self.code in set(ErrorCode) else "(unknown)"
        return f"{name}, detail {self.detail}"


_HELLO = struct.Struct("<BBBBIIBB32sIHBBB")
_HELLO_BEFORE_2_2 = struct.Struct("<BBBBIIBB32sBB")
_DECIDE = struct.Struct("<BBB3sH")
_LOGIT_BYTES = 3
_STATS = struct.Struct("<IIHHHHHHHHHH")
_STATS_BEFORE_2_1 = struct.Struct("<IIHHHHHHHH")


def checksum(content: bytes) -> int:
    """CRC-16/MCRF4XX: reflected 0x1021, initial 0xFFFF, no final xor; 0x6F91 for b"123456789"."""
    return int(crc16.mcrf4xx(content))


def encode_frame(frame: Frame) -> bytes:
    """The frame as it goes on the wire, closing delimiter included. ValueError for a payload above 200 bytes."""
    if len(frame.payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"a payload has at most {MAX_PAYLOAD_BYTES} bytes, not {len(frame.payload)}")
    content = bytes((frame.version, frame.type, frame.sequence, frame.intersection)) + frame.payload
    return cobs.encode(content + checksum(content).to_bytes(CRC_BYTES, "little")) + DELIMITER


def decode_frame(encoded: bytes) -> Frame:
    """The frame in `encoded` (without the delimiter). Raises MalformedFrame, BadCrc or BadVersion."""
    try:
        raw = cobs.decode(encoded)
    except cobs.DecodeError as fault:
        raise MalformedFrame(f"COBS: {fault}") from None
    if len(raw) < HEADER_BYTES + CRC_BYTES:
        raise MalformedFrame(f"{len(raw)} bytes are shorter than header and CRC")
    content, stored = raw[:-CRC_BYTES], int.from_bytes(raw[-CRC_BYTES:], "little")
    if checksum(content) != stored:
        raise BadCrc(f"CRC 0x{stored:04X} for content of 0x{checksum(content):04X}")
    if content[0] != VERSION:
        raise BadVersion(f"version {content[0]}, not {VERSION}")
    return Frame(content[1], content[2], content[3], content[HEADER_BYTES:], content[0])


def encode_decide(request: DecideRequest) -> bytes:
    """Payload of a DECIDE request. ValueError for a value outside int16 or more values than a frame holds."""
    count = len(request.values)
    if DECIDE_BYTES + 2 * count > MAX_PAYLOAD_BYTES:
        raise ValueError(f"a DECIDE holds at most {(MAX_PAYLOAD_BYTES - DECIDE_BYTES) // 2} values, not {count}")
    flags = (WITH_LIGHT if request.light else 0) | (VALUES_ARE_PACKED if request.packed else 0)
    try:
        values = struct.pack(f"<{count}h", *request.values)
    except struct.error as fault:
        raise ValueError(f"feature values are int16: {fault}") from None
    payload = bytes((flags, count)) + (pack(request.values) if request.packed else values)
    if request.light is None:
        return payload
    return payload + bytes((request.light.action, min(request.light.green_s, GREEN_S_MAX)))


def decode_decide(payload: bytes) -> DecideRequest:
    """The inverse of `encode_decide`. Raises MalformedFrame."""
    flags = payload[0] if payload else 0
    light_bytes, packed = 2 if flags & WITH_LIGHT else 0, bool(flags & VALUES_ARE_PACKED)
    content = payload[2 : len(payload) - light_bytes]
    try:
        values = unpack(content, payload[1]) if packed and content else content
    except ValueError as fault:
        raise MalformedFrame(str(fault)) from None
    if len(payload) < 2 + packed + light_bytes or len(values) != 2 * payload[1]:
        raise MalformedFrame(f"DECIDE payload of {len(payload)} bytes")
    light = Light(*payload[-2:]) if light_bytes else None
    return DecideRequest(struct.unpack(f"<{payload[1]}h", values), light, packed)


def encode_decide_put(request: DecideRequest) -> tuple[bytes, bytes]:
    """Payload of a DECIDE request in parts, and the bytes to PUT before it: values and light as they stand in DECIDE."""
    whole = encode_decide(replace(request, packed=False))
    head, content = whole[:2], whole[2:]
    return bytes((head[0] | VALUES_WERE_PUT, head[1])) + checksum(content).to_bytes(CRC_BYTES, "little"), content


def encode_put(offset: int, part: bytes) -> bytes:
    """Payload of a PUT request: `part` of the values, from byte `offset` on."""
    return bytes((offset,)) + part


def encode_get(sequence: int, offset: int, length: int) -> bytes:
    """Payload of a GET request: `length` bytes, from `offset` on, of the logits of the DECIDE with that sequence number."""
    return bytes((sequence, offset, length))


def decode_part(length: int) -> Callable[[bytes], bytes]:
    """For the reply to a PUT (0 bytes) or a GET. The function raises MalformedFrame unless it has that length."""

    def decode(payload: bytes) -> bytes:
        if len(payload) != length:
            raise MalformedFrame(f"{len(payload)} bytes, not {length}")
        return payload

    return decode


def encode_logits(logits: Sequence[int]) -> bytes:
    """As they go over the wire: 24 bits each."""
    return b"".join(int(logit).to_bytes(_LOGIT_BYTES, "little", signed=True) for logit in logits)


def decode_logits(content: bytes) -> tuple[int, ...]:
    """The inverse of `encode_logits`."""
    numbers = (content[begin : begin + _LOGIT_BYTES] for begin in range(0, len(content), _LOGIT_BYTES))
    return tuple(int.from_bytes(number, "little", signed=True) for number in numbers)


def logits_checksum(logits: Sequence[int]) -> int:
    """The CRC that stands for the logits in a DECIDE reply."""
    return checksum(encode_logits(logits))


def encode_hello_reply(reply: HelloReply) -> bytes:
    """Payload of a HELLO reply, as a fake board of the tests sends it; without its end, as older firmware does."""
    is_old = reply.build_id is None
    build, conditions = ((), ()) if is_old else ((reply.build_id, reply.program_bytes), (reply.conditions,))
    light = b""
    if reply.light is not None:
        mode, *resets = vars(reply.light).values()
        light = LIGHT_HELLO.pack(MODES.index(mode), *resets)
    own = (_HELLO_BEFORE_2_2 if is_old else _HELLO).pack(
        *reply.firmware_version,
        reply.kernel,
        reply.min_green_s,
        reply.f_cpu_hz,
        reply.baud,
        reply.intersections,
        reply.max_payload_bytes,
        bytes.fromhex(reply.policy_sha256),
        *build,
        reply.reset_cause,
        reply.boot_count,
        *conditions,
    )
    return own + light


def decode_hello_reply(payload: bytes) -> HelloReply:
    """Raises MalformedFrame unless it has 55 bytes, the 48 of older firmware, or the 64 of a light."""
    is_old = len(payload) == _HELLO_BEFORE_2_2.size
    payload, light = _parted(payload, _HELLO, LIGHT_HELLO)
    major, minor, *rest = _unpack(_HELLO_BEFORE_2_2 if is_old else _HELLO, payload, "HELLO")
    kernel, green_s, f_cpu_hz, baud, held, longest, digest, *build, cause, boots = rest if is_old else rest[:-1]
    told: tuple[Any, ...] = () if is_old else (*build, rest[-1])
    if light:
        if light[0] >= len(MODES):
            raise MalformedFrame(f"HELLO reply of mode {light[0]}")
        told += (LightIdentity(MODES[light[0]], *light[1:]),)
    return HelloReply((major, minor), kernel, green_s, f_cpu_hz, baud, held, longest, digest.hex(), cause, boots, *told)


def encode_decide_reply(reply: DecideReply) -> bytes:
    """Payload of a DECIDE reply."""
    cycles = reply.compute_cycles.to_bytes(3, "little")
    return _DECIDE.pack(reply.action, reply.phase, reply.logits, cycles, reply.logits_crc)


def decode_decide_reply(payload: bytes) -> DecideReply:
    """Raises MalformedFrame unless it has 8 bytes."""
    action, phase, logits, cycles, crc = _unpack(_DECIDE, payload, "DECIDE")
    return DecideReply(action, phase, int.from_bytes(cycles, "little"), logits, crc)


def encode_stats_reply(reply: StatsReply) -> bytes:
    """Payload of a STATS reply; without the last two counters, as older firmware sends it."""
    *own, light = vars(reply).values()
    counters = [counter for counter in own if counter is not None]
    payload = (_STATS if reply.at_limit is not None else _STATS_BEFORE_2_1).pack(*counters)
    return payload if light is None else payload + LIGHT_STATS.pack(*vars(light).values())


def decode_stats_reply(payload: bytes) -> StatsReply:
    """Raises MalformedFrame unless it has 28 bytes, the 24 of older firmware, or the 34 of a light."""
    payload, light = _parted(payload, _STATS, LIGHT_STATS)
    counters = _unpack(_STATS_BEFORE_2_1 if len(payload) == _STATS_BEFORE_2_1.size else _STATS, payload, "STATS")
    return replace(StatsReply(*counters), light=LightCounters(*light) if light else None)


def encode_error_reply(reply: ErrorReply) -> bytes:
    """Payload of an ERROR reply."""
    return bytes((reply.code, reply.detail))


def decode_error_reply(payload: bytes) -> ErrorReply:
    """Raises MalformedFrame unless it has 2 bytes."""
    if len(payload) != 2:
        raise MalformedFrame(f"ERROR reply of {len(payload)} bytes")
    return ErrorReply(payload[0], payload[1])


def _parted(payload: bytes, own: struct.Struct, light: struct.Struct) -> tuple[bytes, tuple[int, ...]]:
    """What any firmware sends, and what a light adds, where it does."""
    if len(payload) != own.size + light.size:
        return payload, ()
    return payload[: own.size], light.unpack(payload[own.size :])


def _unpack(layout: struct.Struct, payload: bytes, what: str) -> tuple[Any, ...]:
    if len(payload) != layout.size:
        raise MalformedFrame(f"{what} reply of {len(payload)} bytes, not {layout.size}")
    return layout.unpack(payload)
