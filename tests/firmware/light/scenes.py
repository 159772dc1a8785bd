"""The built-in crossing's light: its firmware in a mode, its documents, drawn traffic for its loops, and lamps as numbers."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any

from hil.build.firmware import Firmware, Mode, build_firmware
from hil.build.light_plan import light_documents
from hil.wire.protocol import Frame, MessageType, encode_frame
from model import pretrained_policy

GROUPS = 9
LAMP_LINES = 5 * GROUPS
POLICY = pretrained_policy("crossing")
TICK_CYCLES = 160_000
START_TICKS = 1_101  # phase 0 begins


@functools.cache
def documents() -> list[dict[str, Any]]:
    return light_documents("crossing")


def light(mode: Mode, *flags: str, f_cpu_hz: int = 16_000_000) -> Firmware:
    """The firmware of the crossing's light."""
    return build_firmware(POLICY, mode=mode, plans=documents(), f_cpu_hz=f_cpu_hz, extra_flags=["-Werror", *flags])


def request(kind: MessageType, sequence: int, payload: bytes = b"") -> str:
    """A line of the emulator's script."""
    return f"send 00{encode_frame(Frame(kind, sequence, 0, payload)).hex()}"


def chain(red: int, yellow: int, green: int, walk: int = 0, clearing: int = 0) -> int:
    """The lamps' lines, line 0 the lowest bit, as docs/controller.md orders them."""
    found = 0
    for group in range(GROUPS):
        for line, lamps in enumerate((red, yellow, green)):
            found |= (lamps >> group & 1) << (3 * group + line)
        for line, lamps in enumerate((walk, clearing)):
            found |= (lamps >> group & 1) << (3 * GROUPS + 2 * group + line)
    return found


def drawn_lines(seed: int, count: int, buttons: bool = True) -> list[tuple[int, int]]:
    """(levels, ticks) of the detectors' lines: vehicles that enter and leave lanes, now and then a button."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        lane, is_exit = draw.randrange(24), draw.random() < 0.45
        levels = 1 << (2 * lane + is_exit)
        if buttons and draw.random() < 0.1:
            levels |= 1 << (48 + draw.randrange(GROUPS))
        found += [(levels, 17 + draw.randrange(40)), (0, 3 + draw.randrange(30))]
    return found


def ticks_of(lamps: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """(tick, lines) from (cycle, lines): the first change is that of tick 1."""
    first = lamps[0][0]
    return [(1 + round((cycle - first) / TICK_CYCLES), lines) for cycle, lines in lamps]
