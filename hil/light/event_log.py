"""The chip's own event log as traffic engineers' tools read it, and what can be measured from it alone.

A CSV file with the columns TimeStamp, EventCode, EventParam; codes are those of the "Indiana Traffic Signal Hi Resolution Data
Logger Enumerations" (hil/wire/events.py). Times count from the chip's start, on a day that is none: 2000-01-01.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from hil.light.light_run import LightRun
from hil.wire.events import Event, Kind
from streetflow.control.signal_groups import SignalPlan
from streetflow.errors import InputError
from streetflow.files import write_whole

COLUMNS = ("TimeStamp", "EventCode", "EventParam")
DAY = datetime(2000, 1, 1)
TICK = timedelta(milliseconds=10)


@dataclass(frozen=True)
class LogMeasures:
    """Of one crossing, from its log alone. By group: how often it became green, how long each green and each red that has ended
    lasted, s. By lane: vehicles that came and that left; of those that came, how many while a group of theirs was green."""

    greens: tuple[int, ...]
    splits_s: tuple[tuple[float, ...], ...]
    reds_s: tuple[tuple[float, ...], ...]
    arrivals: tuple[int, ...]
    departures: tuple[int, ...]
    arrivals_on_green: tuple[int, ...]


def event_file(file: Path, intersection: str, crossings: int) -> Path:
    """Where a crossing's log goes: `file`, or one beside it for each crossing of several."""
    return file if crossings == 1 else file.with_name(f"{file.stem}.{intersection}{file.suffix}")


def write_events(run: LightRun, file: Path) -> list[Path]:
    """One file a crossing; which ones."""
    written = []
    for crossing in run.crossings:
        place = event_file(file, crossing.plan.intersection, len(run.crossings))
        write_whole(place, log_text(crossing.told.events))
        written.append(place)
    return written


def log_text(events: Sequence[Event]) -> str:
    """The log of these events."""
    rows = (f"{DAY + event.tick * TICK:%Y-%m-%d %H:%M:%S.%f}"[:-4] + f",{event.kind},{event.channel}" for event in events)
    return "\n".join((",".join(COLUMNS), *rows, ""))


def read_log(file: Path) -> list[Event]:
    """The events of a log. InputError with the line of what is none."""
    events = []
    with file.open(newline="", encoding="utf-8") as stream:
        rows = csv.reader(stream)
        if tuple(next(rows, ())) != COLUMNS:
            raise InputError(file, "line 1", f"the columns must be {', '.join(COLUMNS)}")
        for number, row in enumerate(rows, start=2):
            try:
                stamp, kind, channel = row
                events.append(Event((datetime.fromisoformat(stamp) - DAY) // TICK, int(kind), int(channel)))
            except ValueError:
                raise InputError(file, f"line {number}", f"{','.join(row)!r} is no event") from None
    return events


def measure_log(events: Sequence[Event], plan: SignalPlan, lanes: int) -> LogMeasures:
    """What the log tells of a crossing with so many lanes with loops.

    Args:
        events: in the order of time.
        plan: says which groups there are, and which a lane can be left by.
        lanes: those that lead in first, in the plan's order.
    """
    groups = len(plan.groups)
    greens, splits, reds = [0] * groups, [list[float]() for _ in range(groups)], [list[float]() for _ in range(groups)]
    since: dict[int, float] = {}  # of each group: its green, or the end of its green
    green: set[int] = set()
    came, left, on_green = [0] * lanes, [0] * lanes, [0] * lanes
    for event in events:
        number = event.channel - 1
        if event.kind == Kind.PHASE_BEGIN_GREEN:
            greens[number] += 1
            if number in since:
                reds[number].append(event.time_s - since[number])
            since[number] = event.time_s
            green.add(number)
        elif event.kind == Kind.PHASE_BEGIN_YELLOW_CLEARANCE and number in green:
            splits[number].append(event.time_s - since[number])
            since[number] = event.time_s
            green.discard(number)
        elif event.kind == Kind.DETECTOR_ON and number < 2 * lanes:
            lane, leaves = divmod(number, 2)
            (left if leaves else came)[lane] += 1
            if not leaves and lane < len(plan.lane_groups) and green & set(plan.lane_groups[lane]):
                on_green[lane] += 1
    return LogMeasures(
        tuple(greens), tuple(map(tuple, splits)), tuple(map(tuple, reds)), tuple(came), tuple(left), tuple(on_green)
    )
