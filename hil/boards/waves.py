"""The emulated chip's pins as a wave form: a VCD file (IEEE 1364-2005, section 18), as GTKWave and PulseView open it.

Times are nanoseconds of the board's clock; a cycle at 16 MHz is 62.5 ns, and is rounded. The signals: ``rx`` and ``tx``, the
serial line to the chip and from it, bit by bit at each end's own rate; ``awake``, whether the CPU runs; ``reset``, an event;
and each pin that has changed, PB5 with what it shows in this firmware.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

BITS = 10  # of a byte on the line: start bit, eight of data, stop bit
PORTS = "BCD"
NAMES = {"PB5": "PB5_computing"}  # the Uno's LED (firmware/include/hardware.h)
NEVER = 1 << 63


class Happening(IntEnum):
    """As in simavr_glue.h."""

    REQUEST_BYTE = 0
    REPLY_BYTE = 1
    PIN_LOW = 2
    PIN_HIGH = 3
    ASLEEP = 4
    RESET = 5


class Event(NamedTuple):
    """What happened from `start` to `end`, in cycles. `value` is the byte; the pin: port << 4 | number; of a reset, whether
    what was on the wire is lost."""

    start: int
    end: int
    kind: Happening
    value: int


def vcd(events: Sequence[Event], f_cpu_hz: int, comment: str) -> str:
    """The events as the text of a VCD file.

    Args:
        events: as `SimavrBoard.traced` gives them.
        f_cpu_hz: the chip's clock.
        comment: one line of text for the file's head.
    """
    signals = _signals(events)
    changes = sorted(
        (round(cycle * 1e9 / f_cpu_hz), number, level)
        for number, levels in enumerate(signals.values())
        for cycle, level in levels
    )
    codes = [chr(ord("!") + number) for number in range(len(signals))]
    lines = ["$version tinylight-hil $end", f"$comment {comment.replace('$', ' ')} $end", "$timescale 1 ns $end"]
    lines.append("$scope module atmega328p $end")
    for code, name in zip(codes, signals, strict=True):
        lines.append(f"$var {'event' if name == 'reset' else 'wire'} 1 {code} {name} $end")
    lines += ["$upscope $end", "$enddefinitions $end"]
    begin = changes[0][0] if changes else 0
    at_rest = [
        f"{int(name in ('rx', 'tx', 'awake'))}{code}" for code, name in zip(codes, signals, strict=True) if name != "reset"
    ]
    lines += [f"#{begin}", "$dumpvars", *at_rest, "$end"]
    now = begin
    for time_ns, number, level in changes:
        if time_ns != now:
            lines.append(f"#{time_ns}")
            now = time_ns
        lines.append(f"{level}{codes[number]}")
    return "\n".join(lines) + "\n"


def _signals(events: Sequence[Event]) -> dict[str, list[tuple[int, int]]]:
    """Each signal's levels, by the cycle at which they begin."""
    signals = {
        "rx": _line(events, Happening.REQUEST_BYTE),
        "tx": _line(events, Happening.REPLY_BYTE),
        "awake": _awake(event for event in events if event.kind == Happening.ASLEEP),
        "reset": [(event.start, 1) for event in events if event.kind == Happening.RESET],
    }
    for event in events:
        if event.kind in (Happening.PIN_LOW, Happening.PIN_HIGH):
            name = f"P{PORTS[event.value >> 4]}{event.value & 15}"
            signals.setdefault(NAMES.get(name, name), []).append((event.start, int(event.kind == Happening.PIN_HIGH)))
    return signals


def _line(events: Sequence[Event], kind: Happening) -> list[tuple[int, int]]:
    """A serial line's levels: high at rest, and again from a reset on that ends a byte under way."""
    levels: list[tuple[int, int]] = []
    cuts = iter(event.start for event in events if _cuts(event))
    cut = next(cuts, NEVER)
    for event in events:
        if _cuts(event):
            cut = next(cuts, NEVER)
        if event.kind != kind:
            continue
        bits = (0, *(event.value >> bit & 1 for bit in range(8)), 1)
        length = event.end - event.start
        edges = ((event.start + length * number // BITS, bit) for number, bit in enumerate(bits))
        levels += [(cycle, bit) for cycle, bit in edges if cycle < cut]
        if event.start < cut < event.end:
            levels.append((cut, 1))
    return list(_changes(levels, 1))


def _cuts(event: Event) -> bool:
    return event.kind == Happening.RESET and bool(event.value)


def _awake(sleeps: Iterable[Event]) -> list[tuple[int, int]]:
    """Sleeps that follow each other without a cycle between them are one."""
    levels: list[tuple[int, int]] = []
    for sleep in sleeps:
        if levels and levels[-1][0] == sleep.start:
            levels.pop()
        else:
            levels.append((sleep.start, 0))
        levels.append((sleep.end, 1))
    return levels


def _changes(levels: Iterable[tuple[int, int]], level: int) -> Iterator[tuple[int, int]]:
    for cycle, each in levels:
        if each != level:
            yield cycle, each
            level = each
