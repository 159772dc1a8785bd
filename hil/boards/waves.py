"""The emulated chip's pins as a wave form: a VCD file (IEEE 1364-2005, section 18), as GTKWave and PulseView open it.

Times are nanoseconds of the board's clock; a cycle at 16 MHz is 62.5 ns, and is rounded. The signals: ``rx`` and ``tx``, the
serial line to the chip and from it, bit by bit at each end's own rate; ``awake``, whether the CPU runs; ``reset``, an event;
and each pin that has changed, PB5 with what it shows in this firmware.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

BITS = 10  # of a byte on the line: start bit, eight of data, stop bit
PORTS = "BCD"
NAMES = {"PB5": "PB5_computing"}  # the Uno's LED (firmware/include/hardware.h)
NEVER = 1 << 63
Levels = list[tuple[int, int]]  # from when on, and which


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
    signals = {
        name: [(round(cycle * 1e9 / f_cpu_hz), level) for cycle, level in levels] for name, levels in _signals(events).items()
    }
    return vcd_text({"atmega328p": signals}, comment)


def serial_line(events: Sequence[Event], f_cpu_hz: int) -> dict[str, Levels]:
    """``rx`` and ``tx`` of the events, in ns."""
    signals = {"rx": _line(events, Happening.REQUEST_BYTE), "tx": _line(events, Happening.REPLY_BYTE)}
    return {name: [(round(cycle * 1e9 / f_cpu_hz), bit) for cycle, bit in levels] for name, levels in signals.items()}


def vcd_text(modules: Mapping[str, Mapping[str, Levels]], comment: str) -> str:
    """The text of a VCD file.

    Args:
        modules: by its name each module's signals, by name, with the times in ns at which their levels begin. What is called
            ``reset`` is an event; ``rx``, ``tx`` and ``awake`` are high at first, all others low.
        comment: one line of text for the file's head.
    """
    codes = (_code(number) for number in range(sum(map(len, modules.values()))))
    lines = ["$version tinylight-hil $end", f"$comment {comment.replace('$', ' ')} $end", "$timescale 1 ns $end"]
    at_rest, changes = [], []
    for module, signals in modules.items():
        lines.append(f"$scope module {module} $end")
        for name, levels in signals.items():
            code = next(codes)
            lines.append(f"$var {'event' if name == 'reset' else 'wire'} 1 {code} {name} $end")
            if name != "reset":
                at_rest.append(f"{int(name in ('rx', 'tx', 'awake'))}{code}")
            changes += [(time_ns, len(code), code, level) for time_ns, level in levels]
        lines.append("$upscope $end")
    changes.sort()
    now = changes[0][0] if changes else 0
    lines += ["$enddefinitions $end", f"#{now}", "$dumpvars", *at_rest, "$end"]
    for time_ns, _, code, level in changes:
        if time_ns != now:
            lines.append(f"#{time_ns}")
            now = time_ns
        lines.append(f"{level}{code}")
    return "\n".join(lines) + "\n"


def _code(number: int) -> str:
    """A short name for a signal, of printable characters."""
    digits = chr(ord("!") + number % 90)
    return digits if number < 90 else _code(number // 90 - 1) + digits


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
