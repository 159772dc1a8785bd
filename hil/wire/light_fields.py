"""What firmware that drives lamps adds to the replies of one that answers: to HELLO and to STATS."""

import struct
from dataclasses import dataclass

MODES = ("answer", "light", "alone")  # by their number in HELLO
LIGHT_HELLO = struct.Struct("<BHHHH")
LIGHT_STATS = struct.Struct("<HHH")


@dataclass(frozen=True)
class LightIdentity:
    """What a light tells of itself beside: one of MODES, and the resets that its EEPROM has counted, each up to 65535."""

    mode: str
    power_on_resets: int
    external_resets: int
    watchdog_resets: int
    brown_out_resets: int


@dataclass(frozen=True)
class LightCounters:
    """A light's own counters; each stops at 65535."""

    events_lost: int  # not told, since nobody took them off the line in time
    lamps_late_us: int  # the most, from a tick's beginning until its lamps were shown
    ticks_late: int  # ticks that began before the one before was over
