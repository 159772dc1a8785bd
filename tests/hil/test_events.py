"""Frames that a light sends unasked, and what it adds to HELLO and STATS, byte by byte."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hil.wire.events import (
    DECISION,
    EVENT,
    Alarm,
    Decision,
    Event,
    FlashStatus,
    Kind,
    decode_decision,
    decode_events,
    decode_unasked,
    encode_decision,
    encode_events,
)
from hil.wire.light_fields import LightCounters, LightIdentity
from hil.wire.protocol import (
    Frame,
    MalformedFrame,
    decode_frame,
    decode_hello_reply,
    decode_stats_reply,
    encode_hello_reply,
    encode_stats_reply,
)
from tests.firmware.vectors.make_frames import FILE
from tests.helpers.fake_board import HELLO, STATS

TICK = bytes((0x78, 0x56, 0x34, 0x12))
DECISION_VALUE = Decision(0x12345678, 0x201, 3, True, False, 0x030405, 0x9876, (1, -2, 300))
DECISION_BYTES = TICK + bytes.fromhex("0102 03 01 050403 7698 03 0100 feff 2c01")


def test_events_byte_by_byte() -> None:
    payload = TICK + bytes((1, 3, 82, 24))
    events = [Event(0x12345678, Kind.PHASE_BEGIN_GREEN, 3), Event(0x12345678, Kind.DETECTOR_ON, 24)]
    assert decode_events(payload) == events
    assert encode_events(events) == payload
    assert events[0].time_s == pytest.approx(3_054_198.96)
    with pytest.raises(ValueError, match="of one tick, not of 2"):
        encode_events([events[0], replace(events[0], tick=1)])


@pytest.mark.parametrize("payload", [b"", TICK, TICK + b"\1", TICK + b"\1\2\3", TICK[:3]])
def test_events_that_are_not_whole_are_refused(payload: bytes) -> None:
    with pytest.raises(MalformedFrame):
        decode_events(payload)


def test_a_decision_byte_by_byte() -> None:
    assert decode_decision(DECISION_BYTES) == DECISION_VALUE
    assert encode_decision(DECISION_VALUE) == DECISION_BYTES
    other = replace(DECISION_VALUE, by_plan=False, input_replaced=True, values=())
    assert decode_decision(encode_decision(other)) == other


@pytest.mark.parametrize("payload", [b"", DECISION_BYTES[:13], DECISION_BYTES[:-1], DECISION_BYTES + b"\0"])
def test_a_decision_that_is_not_whole_is_refused(payload: bytes) -> None:
    with pytest.raises(MalformedFrame):
        decode_decision(payload)


def test_a_frame_tells_which_it_is() -> None:
    assert decode_unasked(Frame(0xA1, 7, 0, DECISION_BYTES)) == DECISION_VALUE
    assert decode_unasked(Frame(0xA0, 7, 0, TICK + b"\1\3")) == [Event(0x12345678, 1, 3)]
    with pytest.raises(MalformedFrame, match="0x82"):
        decode_unasked(Frame(0x82, 7, 0, DECISION_BYTES))


@pytest.mark.parametrize(
    ("kind", "channel", "name"),
    [
        (Kind.PHASE_BEGIN_GREEN, 2, "PHASE_BEGIN_GREEN"),
        (Kind.UNIT_FLASH_STATUS_CHANGE, FlashStatus.STARTUP, "UNIT_FLASH_STATUS_CHANGE: STARTUP"),
        (Kind.VENDOR_SPECIFIC_ALARM, Alarm.WATCHDOG_RESET, "VENDOR_SPECIFIC_ALARM: WATCHDOG_RESET"),
        (Kind.VENDOR_SPECIFIC_ALARM, 99, "VENDOR_SPECIFIC_ALARM: 99"),
        (200, 1, "200"),
    ],
)
def test_an_event_has_a_name(kind: int, channel: int, name: str) -> None:
    assert Event(0, kind, channel).name == name


def test_what_a_light_adds_to_hello_and_stats() -> None:
    own = replace(HELLO, build_id=5, program_bytes=6, conditions=10)
    light = replace(own, light=LightIdentity("alone", 1, 2, 3, 0x405))
    payload = encode_hello_reply(light)
    assert payload == encode_hello_reply(own) + bytes((2, 1, 0, 2, 0, 3, 0, 5, 4))
    assert decode_hello_reply(payload) == light
    with pytest.raises(MalformedFrame, match="mode 3"):
        decode_hello_reply(payload[:55] + b"\3" + payload[56:])
    counted = replace(STATS, light=LightCounters(1, 480, 0x203))
    payload = encode_stats_reply(counted)
    assert payload == encode_stats_reply(STATS) + bytes((1, 0, 0xE0, 1, 3, 2))
    assert decode_stats_reply(payload) == counted


def test_the_shared_vectors_of_unasked_frames_are_read() -> None:
    frames = [each for each in json.loads(FILE.read_text(encoding="ascii"))["frames"] if each["type"] in (EVENT, DECISION)]
    read = [decode_unasked(decode_frame(bytes.fromhex(each["encoded_hex"]))) for each in frames]
    assert read == [
        [Event(1_101, Kind.PHASE_BEGIN_GREEN, 3), Event(1_101, Kind.DETECTOR_ON, 24)],
        replace(DECISION_VALUE, by_plan=False),
        replace(DECISION_VALUE, number=65_535, input_replaced=True, values=()),
    ]
    for each, found in zip(frames, read, strict=True):
        encoded = encode_decision(found) if isinstance(found, Decision) else encode_events(found)
        assert encoded.hex() == each["payload_hex"]
