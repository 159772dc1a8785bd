"""Frames that a light sends unasked: EVENT, what happened, and DECISION, what it decided. docs/protocol.md has every byte.

Kinds of events are those of the "Indiana Traffic Signal Hi Resolution Data Logger Enumerations" (Purdue University, 2012), the
vocabulary that tools for signal performance measures read. What that leaves to vendors (185) is listed in `Alarm`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from hil.wire.protocol import Frame, MalformedFrame

EVENT, DECISION = 0xA0, 0xA1  # types of frames
TICK_S = 0.01
PLAN_DECIDED, INPUT_REPLACED = 0x01, 0x02  # flags of a decision


class Kind(IntEnum):
    """What happened. Channels: a signal group, a detector's line or a group's button, each counted from 1."""

    PHASE_BEGIN_GREEN = 1
    PHASE_MAX_OUT = 5
    PHASE_FORCE_OFF = 6
    PHASE_GREEN_TERMINATION = 7
    PHASE_BEGIN_YELLOW_CLEARANCE = 8
    PHASE_END_YELLOW_CLEARANCE = 9
    PHASE_BEGIN_RED_CLEARANCE = 10
    PHASE_END_RED_CLEARANCE = 11
    PEDESTRIAN_BEGIN_WALK = 21
    PEDESTRIAN_BEGIN_CLEARANCE = 22
    PEDESTRIAN_BEGIN_SOLID_DONT_WALK = 23
    DETECTOR_OFF = 81
    DETECTOR_ON = 82
    DETECTOR_RESTORED = 83
    DETECTOR_FAULT_OTHER = 84  # more vehicles than fit the lane
    DETECTOR_FAULT_WATCHDOG = 85  # occupied for too long
    DETECTOR_FAULT_OPEN_LOOP = 86  # counts nothing
    DETECTOR_FAULT_EXCESSIVE_CHANGE = 88  # chatters
    PED_DETECTOR_OFF = 89
    PED_DETECTOR_ON = 90
    UNIT_FLASH_STATUS_CHANGE = 173  # channel: a `FlashStatus`
    POWER_RESTORED = 184
    VENDOR_SPECIFIC_ALARM = 185  # channel: an `Alarm`


class FlashStatus(IntEnum):
    """Of a unit, as NTCIP 1202 numbers it."""

    NOT_FLASHING = 2
    FAULT = 5
    STARTUP = 7


class Alarm(IntEnum):
    """What this project's lights mean by kind 185."""

    EXTERNAL_RESET = 1
    WATCHDOG_RESET = 2
    BROWN_OUT_RESET = 3
    FLASH_DAMAGED = 4
    TABLES_DAMAGED = 5
    THREE_RESETS = 6  # none more than a minute after the one before: it flashes until the power goes
    PLAN_UNASKED = 7  # from here to 9: the plan in flash decides, and why
    PLAN_SUSPECT_DETECTORS = 8
    PLAN_OVERRUN = 9  # until a reset
    POLICY_DECIDES = 10  # again
    EVENTS_LOST = 11  # at least one, just before
    TICK_LATE = 12


@dataclass(frozen=True)
class Event:
    """One event of a light, in its ticks since its start."""

    tick: int
    kind: int
    channel: int

    @property
    def time_s(self) -> float:
        return self.tick * TICK_S

    @property
    def name(self) -> str:
        """The kind's name, and with kinds 173 and 185 what the channel means."""
        meanings: dict[int, type[IntEnum]] = {
            Kind.UNIT_FLASH_STATUS_CHANGE: FlashStatus,
            Kind.VENDOR_SPECIFIC_ALARM: Alarm,
        }
        own = _name(Kind, self.kind)
        return f"{own}: {_name(meanings[self.kind], self.channel)}" if self.kind in meanings else own


@dataclass(frozen=True)
class Decision:
    """One decision of a light that decides alone."""

    tick: int
    number: int  # counted from 0, modulo 65536
    action: int  # what is wished for
    by_plan: bool  # by the plan in flash, not by the network
    input_replaced: bool  # a suspect detector's lane was given its neighbours' mean
    compute_cycles: int  # of the network, its inputs included
    logits_crc: int
    values: tuple[int, ...]  # the kept features, in the policy's order


_TICK = struct.Struct("<I")
_DECISION = struct.Struct("<IHBB3sHB")


def encode_events(events: list[Event]) -> bytes:
    """Payload of an EVENT frame. ValueError unless all are of one tick."""
    ticks = {event.tick for event in events}
    if len(ticks) != 1:
        raise ValueError(f"a frame has events of one tick, not of {len(ticks)}")
    return _TICK.pack(*ticks) + bytes(byte for event in events for byte in (event.kind, event.channel))


def decode_events(payload: bytes) -> list[Event]:
    """The events of an EVENT frame's payload, at least one. Raises MalformedFrame."""
    pairs = payload[_TICK.size :]
    if not pairs or len(pairs) % 2:
        raise MalformedFrame(f"EVENT payload of {len(payload)} bytes")
    (tick,) = _TICK.unpack_from(payload)
    return [Event(tick, kind, channel) for kind, channel in zip(pairs[::2], pairs[1::2], strict=True)]


def encode_decision(decision: Decision) -> bytes:
    """Payload of a DECISION frame."""
    flags = PLAN_DECIDED * decision.by_plan | INPUT_REPLACED * decision.input_replaced
    cycles = decision.compute_cycles.to_bytes(3, "little")
    values = decision.values
    head = (decision.tick, decision.number, decision.action, flags, cycles, decision.logits_crc, len(values))
    return _DECISION.pack(*head) + struct.pack(f"<{len(values)}h", *values)


def decode_decision(payload: bytes) -> Decision:
    """The inverse of `encode_decision`. Raises MalformedFrame."""
    if len(payload) < _DECISION.size or len(payload) != _DECISION.size + 2 * payload[_DECISION.size - 1]:
        raise MalformedFrame(f"DECISION payload of {len(payload)} bytes")
    tick, number, action, flags, cycles, crc, count = _DECISION.unpack_from(payload)
    values = struct.unpack_from(f"<{count}h", payload, _DECISION.size)
    by_plan, replaced = bool(flags & PLAN_DECIDED), bool(flags & INPUT_REPLACED)
    return Decision(tick, number, action, by_plan, replaced, int.from_bytes(cycles, "little"), crc, values)


def decode_unasked(frame: Frame) -> list[Event] | Decision:
    """What a frame of type EVENT or DECISION tells. Raises MalformedFrame for any other, or one that is not whole."""
    if frame.type == EVENT:
        return decode_events(frame.payload)
    if frame.type == DECISION:
        return decode_decision(frame.payload)
    raise MalformedFrame(f"type 0x{frame.type:02X} is neither EVENT nor DECISION")


def _name(names: type[IntEnum], number: int) -> str:
    return names(number).name if number in set(names) else str(number)
