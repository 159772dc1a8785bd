"""Faults between the controller and its lamps and monitor, as one line of text, `--lamp-faults on@60:green2,dark@90:red0:0.5`.

From SECOND of the traffic on, for LENGTH seconds or for good, at every crossing:
  on@SECOND:LAMP[:LENGTH]            the lamp is lit whatever the controller says
  dark@SECOND:LAMP[:LENGTH]          it is dark
  short@SECOND:LAMP+LAMP[:LENGTH]    both are lit when one is
  heartbeat@SECOND[:LENGTH]          the monitor sees no heartbeat
LAMP is red, yellow or green and the number of a signal group, from 0, as in green2.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from hil.boards.bench import Given, Into
from streetflow.errors import FieldError
from streetflow.near import did_you_mean

FIELD = "lamp_faults"  # of a Job
LAMPS = ("red", "yellow", "green")
KINDS = {"on": Into.STUCK_ON, "dark": Into.DARK, "short": Into.SHORTED, "heartbeat": Into.HEARTBEAT_CUT}
GROUPS_MAX = 16


@dataclass(frozen=True)
class LampFault:
    """One fault; `lines` are those of the lamps, `length_s` infinite where it stays."""

    kind: str
    begin_s: float
    lines: tuple[int, ...]
    length_s: float = math.inf

    def inputs(self, start_us: float) -> list[Given]:
        """For a bench whose traffic begins at `start_us`."""
        begin_us = start_us + self.begin_s * 1e6
        line, other = (*self.lines, 0, 0)[:2]
        given = Given(begin_us, KINDS[self.kind], line, 1, other)
        end = [] if math.isinf(self.length_s) else [given._replace(time_us=begin_us + self.length_s * 1e6, level=0)]
        return [given, *end]


def parse_lamp_faults(text: str) -> tuple[LampFault, ...]:
    """FieldError naming the invalid part."""
    return tuple(_fault(part.strip()) for part in text.split(","))


def check_groups(faults: tuple[LampFault, ...], groups: int, crossing: str) -> None:
    """FieldError for a lamp that the crossing doesn't have."""
    for fault in faults:
        for line in fault.lines:
            if line // 3 >= groups:
                raise FieldError(FIELD, f"{LAMPS[line % 3]}{line // 3}: {crossing} has the groups 0 to {groups - 1}")


def _fault(part: str) -> LampFault:
    kind, at, rest = part.partition("@")
    if kind not in KINDS or not at:
        known = "on@SECOND:LAMP, dark@SECOND:LAMP, short@SECOND:LAMP+LAMP, heartbeat@SECOND"
        raise FieldError(FIELD, f"{part!r} is not a fault{did_you_mean(kind, KINDS)}; there are {known}")
    begin, *more = rest.split(":")
    lines = tuple(_line(part, name) for name in more.pop(0).split("+")) if kind != "heartbeat" and more else ()
    if len(lines) != {"short": 2, "heartbeat": 0}.get(kind, 1) or len(set(lines)) != len(lines) or len(more) > 1:
        raise FieldError(FIELD, f"{part!r} needs {'two lamps, such as red0+green0' if kind == 'short' else 'one lamp'}")
    return LampFault(kind, _seconds(part, begin), lines, _seconds(part, more[0]) if more else math.inf)


def _line(part: str, name: str) -> int:
    found = re.fullmatch(r"(red|yellow|green)(\d{1,2})", name)
    if found is None or int(found[2]) >= GROUPS_MAX:
        raise FieldError(FIELD, f"{part!r}: {name!r} is no lamp; red0, yellow0, green0 are those of group 0")
    return 3 * int(found[2]) + LAMPS.index(found[1])


def _seconds(part: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise FieldError(FIELD, f"{part!r}: {text!r} is no time in seconds")
    return value
