"""Writes frames.json: good and malformed frames, made with the libraries `cobs` and `fastcrc`, not with our own codecs.

    python -m tests.firmware.vectors.make_frames

Each entry: `encoded_hex` as on the wire without the delimiter; for good frames what is inside; for bad ones the error
(a name of docs/protocol.md) and the sequence and intersection that the error reply repeats (0 if they never came).
"""

import json
import struct
from pathlib import Path
from typing import Any

from cobs import cobs
from fastcrc import crc16

FILE = Path(__file__).with_name("frames.json")
HELLO, DECIDE, STATS, ERROR = 0x01, 0x02, 0x03, 0xFF
EVENT, DECISION = 0xA0, 0xA1  # unasked, of a chip that drives lamps
REPLY = 0x80


def content(kind: int, sequence: int, intersection: int, payload: bytes = b"", version: int = 3) -> bytes:
    return bytes([version, kind, sequence, intersection]) + payload


def closed(data: bytes, crc_xor: int = 0) -> bytes:
    """Content and CRC, low byte first."""
    return data + struct.pack("<H", crc16.mcrf4xx(data) ^ crc_xor)


def good(name: str, kind: int, sequence: int, intersection: int, payload: bytes = b"") -> dict[str, Any]:
    return {
        "name": name,
        "kind": "good",
        "encoded_hex": cobs.encode(closed(content(kind, sequence, intersection, payload))).hex(),
        "version": 3,
        "type": kind,
        "sequence": sequence,
        "intersection": intersection,
        "payload_hex": payload.hex(),
        "error": None,
    }


def bad(name: str, error: str, encoded: bytes, sequence: int = 0, intersection: int = 0) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "bad",
        "encoded_hex": encoded.hex(),
        "version": None,
        "type": None,
        "sequence": sequence,
        "intersection": intersection,
        "payload_hex": None,
        "error": error,
    }


def payload_with_crc_byte_zero(high: bool) -> bytes:
    """A payload that makes one byte of the CRC zero, so that COBS has to carry it."""
    for number in range(65536):
        payload = struct.pack("<H", number)
        if crc16.mcrf4xx(content(0x40, 5, 6, payload)) >> (8 if high else 0) & 0xFF == 0:
            return payload
    raise AssertionError("CRC-16 takes every value")


def decide(values: list[int], flags: int = 0) -> bytes:
    return struct.pack(f"<BB{len(values)}h", flags, len(values), *values)


def decision(values: tuple[int, ...], number: int = 513, flags: int = 0) -> bytes:
    """tick, number, action 3, flags, 24 bits of cycles, CRC of the logits, values"""
    head = struct.pack("<IHBB3sHB", 0x12345678, number, 3, flags, (0x030405).to_bytes(3, "little"), 0x9876, len(values))
    return head + struct.pack(f"<{len(values)}h", *values)


def good_frames() -> list[dict[str, Any]]:
    return [
        good("hello", HELLO, 0, 0),
        good("hello with the last sequence number", HELLO, 255, 0),
        good("stats", STATS, 17, 0),
        good("stats of another intersection", STATS, 18, 200),
        good("decide, three values", DECIDE, 1, 0, decide([1, -1, 300])),
        good("decide, all zero", DECIDE, 2, 0, decide([0] * 21)),
        good("decide, extreme values", DECIDE, 3, 2, decide([32767, -32768] * 10 + [256])),
        good("decide, values put before", DECIDE, 4, 1, bytes([4, 3, 0x12, 0x34])),
        good("put", 0x04, 5, 1, bytes([12, 1, 0, 255])),
        good("get", 0x05, 6, 1, bytes([4, 0, 27])),
        good("decide, with the light's state", DECIDE, 5, 0, decide([1, -1, 300], flags=2) + bytes([2, 255])),
        good("error reply", ERROR, 9, 3, bytes([4, 44])),
        good("decide reply", DECIDE | REPLY, 8, 0, struct.pack("<BBB3sH", 2, 7, 9, (26_513).to_bytes(3, "little"), 0x1234)),
        good("event, two of one tick", EVENT, 11, 0, struct.pack("<I4B", 1_101, 1, 3, 82, 24)),
        good("decision alone, three values", DECISION, 12, 0, decision((1, -2, 300))),
        good("decision alone, by the plan, an input replaced", DECISION, 255, 0, decision((), number=65_535, flags=3)),
        good("unknown type", 0x55, 7, 0),
        good("header all zero but the version", 0, 0, 0),
        good("payload of one zero", 0x40, 1, 1, b"\0"),
        good("payload of 46 zeros", 0x40, 2, 1, bytes(46)),
        good("payload without a zero", 0x40, 3, 1, bytes(range(1, 47))),
        good("payload of 0xFF", 0x40, 4, 1, b"\xff" * 46),
        good("payload of alternating zeros", 0x40, 5, 1, b"\x00\x01" * 20),
        good("payload that ends in zeros", 0x40, 6, 1, b"\x01\x02\x00\x00"),
        good("low byte of the CRC is zero", 0x40, 5, 6, payload_with_crc_byte_zero(high=False)),
        good("high byte of the CRC is zero", 0x40, 5, 6, payload_with_crc_byte_zero(high=True)),
    ]


def bad_frames() -> list[dict[str, Any]]:
    whole = closed(content(DECIDE, 30, 1, decide([1, 2, 3])))
    flipped = bytearray(whole)
    flipped[9] ^= 0x10
    header = closed(content(HELLO, 31, 2))
    swapped = header[:-2] + header[:-3:-1]
    encoded = cobs.encode(whole)
    return [
        bad("one bit of the payload flipped", "BAD_CRC", cobs.encode(bytes(flipped)), 30, 1),
        bad("CRC off by one bit", "BAD_CRC", cobs.encode(closed(content(HELLO, 32, 0), crc_xor=0x8000)), 32),
        bad("CRC high byte first", "BAD_CRC", cobs.encode(swapped), 31, 2),
        bad("another CRC-16 (XMODEM)", "BAD_CRC", _with_xmodem(content(STATS, 33, 0)), 33),
        bad("last payload byte lost", "BAD_CRC", cobs.encode(whole[:-3] + whole[-2:]), 30, 1),
        bad("version 0", "BAD_VERSION", cobs.encode(closed(content(HELLO, 34, 1, version=0))), 34, 1),
        bad("version 1", "BAD_VERSION", cobs.encode(closed(content(HELLO, 35, 0, version=1))), 35),
        bad("wrong version and wrong CRC", "BAD_CRC", cobs.encode(closed(content(HELLO, 36, 0, version=9), crc_xor=1)), 36),
        bad("a single COBS code", "MALFORMED", b"\x01"),
        bad("two bytes", "MALFORMED", cobs.encode(b"\x01\x02")),
        bad(
            "five bytes, one too few",
            "MALFORMED",
            cobs.encode(closed(b"\x01\x01\x25")[:5]),
            *_header_of(closed(b"\x01\x01\x25")),
        ),
        bad("only zeros, too few", "MALFORMED", cobs.encode(bytes(5))),
        bad("block longer than what follows", "MALFORMED", b"\x09\x01\x01"),
        bad("cut off in the middle", "MALFORMED", encoded[:6], 30, 1),
        bad("last byte lost", "MALFORMED", encoded[:-1], 30, 1),
        bad("full block announced", "MALFORMED", b"\xff" + encoded[1:], *_decoded_header(b"\xff" + encoded[1:])),
        bad("payload of 201 bytes", "TOO_LONG", cobs.encode(closed(content(DECIDE, 37, 3, b"\x05" * 201))), 37, 3),
        bad("400 bytes without a zero", "TOO_LONG", cobs.encode(b"\x01\x02\x26\x04" + b"\xaa" * 396), 0x26, 4),
        bad("300 zeros", "TOO_LONG", cobs.encode(bytes(300))),
    ]


def _with_xmodem(data: bytes) -> bytes:
    return cobs.encode(data + struct.pack("<H", crc16.xmodem(data)))


def _header_of(raw: bytes) -> tuple[int, int]:
    """Sequence and intersection of a decoded frame."""
    return raw[2], raw[3]


def _decoded_header(encoded: bytes) -> tuple[int, int]:
    """The same where one block holds it all: the bytes follow the code as they are."""
    return _header_of(encoded[1:])


def document() -> str:
    return json.dumps({"frames": good_frames() + bad_frames()}, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(document(), encoding="ascii")
