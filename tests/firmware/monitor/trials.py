"""Trials of the monitor beside the emulated controller, both on one clock: what each fault at the lamps makes it do, and when.

The built-in crossing in its first green: groups 1 and 6, and the right turns, 2. A fault is made at the wires between the
controller and its lamps, where the monitor looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from hil.boards.bench import Change, CrossingBench, Given, Into, Seen
from hil.light.monitor_judge import (
    CONFLICT,
    DARKNESS,
    HEARTBEAT,
    LIMITS,
    NO_YELLOW,
    REASONS,
    SHORT_YELLOW,
    TWO_LAMPS,
    judge_monitor,
)
from streetflow.control.signal_groups import SignalPlan
from tests.helpers.bench_controller import crossing_plan

LAMPS = ("red", "yellow", "green")
RED, YELLOW, GREEN = range(3)
PLAN = crossing_plan()
GROUPS = len(PLAN.groups)
SHOWN = PLAN.phases[0]  # the groups that are green
BEGIN_US = 12_500_000.0  # well within the first green
OWN_MS = {CONFLICT: 350, TWO_LAMPS: 350, DARKNESS: 850, HEARTBEAT: 1_000}
"""The monitor's own limits, in the middle of the usual ranges: docs/controller.md."""
NEAR_MS = 2.0  # less than such a limit, it must not trip yet
BUTTON_US = 200_000.0
Wire = tuple[float, Into, int, int]  # from so many ms on, what, which line, its level


@dataclass(frozen=True)
class Trial:
    """`wires`: the fault. `reasons`: of which one must be kept. `shows_ms`: from the first of the wires until it is a fault.
    `lasts_ms`: then it is gone; None: it stays, and must trip."""

    fault: str
    group_kind: str
    reasons: tuple[str, ...]
    wires: tuple[Wire, ...]
    shows_ms: float = 0.0
    lasts_ms: float | None = None
    is_undone: bool = True
    """Whether nothing is wrong once it is gone: a green that ends in red is another fault."""

    @property
    def kind(self) -> str:
        return self.reasons[0]

    @property
    def trips(self) -> bool:
        return self.lasts_ms is None


@dataclass(frozen=True)
class Outcome:
    """`after_ms`: from the fault's first showing to the relay; None: silent. `fault`: what is wrong with it, "" for nothing."""

    after_ms: float | None
    reason: str
    fault: str


def group_kind(group: int, plan: SignalPlan = PLAN) -> str:
    each = plan.groups[group]
    lamp = "green" if group in plan.phases[0] else "red"
    walks = " with a crosswalk" if each.walk_and_clearance_s else ""
    return "always open" if each.is_always_open else f"{lamp}{walks}"


def trials(groups: tuple[int, ...] = tuple(range(GROUPS))) -> Iterator[Trial]:
    """All of these groups: each fault, what is just too short for the usual ranges, and for the monitor's own limits."""
    for lasting in (*(each for group in groups for each in _lasting_of(group)), *_lasting_of_all()):
        yield lasting
        most_ms = max(OWN_MS[reason] for reason in lasting.reasons)
        for lasts_ms in (LIMITS[lasting.kind].least_ms - (1 if lasting.kind != HEARTBEAT else 20), most_ms - NEAR_MS):
            if lasting.is_undone and (lasting.kind != HEARTBEAT or lasts_ms < LIMITS[HEARTBEAT].least_ms):
                yield replace(lasting, lasts_ms=lasts_ms)
    for group in groups:
        yield from _yellows_of(group) if group in SHOWN else _greens_of(group)


def _lasting_of(group: int) -> Iterator[Trial]:
    """What this group alone may show for too long."""
    kind, shown = group_kind(group), GREEN if group in SHOWN else RED
    rivals = PLAN.conflicts_of(group) & set(SHOWN)
    yield Trial("dark", kind, (DARKNESS,), tuple(_lamps(group)))
    for lamp in (GREEN, YELLOW) if rivals else ():
        yield Trial(f"{LAMPS[lamp]} beside a green in conflict", kind, (CONFLICT,), tuple(_lamps(group, lamp)), is_undone=False)
    for lit in (*combinations(range(3), 2), (RED, YELLOW, GREEN)):
        names = " and ".join(LAMPS[lamp] for lamp in lit)
        reasons = (TWO_LAMPS, CONFLICT) if rivals else (TWO_LAMPS,)
        at_once = f"{names} at once" if shown in lit else f"{names} at once, {LAMPS[shown]} dark"
        yield Trial(at_once, kind, reasons, tuple(_lamps(group, *lit)))


def _lasting_of_all() -> Iterator[Trial]:
    dark = tuple(wire for group in range(GROUPS) for wire in _lamps(group))
    yield Trial("all lamps dark", "all", (DARKNESS,), dark)
    yield Trial(
        "the controller's power gone: all dark, no heartbeat", "all", (DARKNESS,), (*dark, (0.0, Into.HEARTBEAT_CUT, 0, 1))
    )
    yield Trial("no heartbeat", "-", (HEARTBEAT,), ((0.0, Into.HEARTBEAT_CUT, 0, 1),))


def _yellows_of(group: int) -> Iterator[Trial]:
    kind, to_red = group_kind(group), tuple(_lamps(group, RED))
    yield Trial("green, then red", kind, (NO_YELLOW,), to_red)
    yield Trial("red for a moment within green", kind, (NO_YELLOW,), to_red, lasts_ms=57.0)
    for yellow_ms, trips in ((100.0, True), (2_600.0, True), (2_697.0, True), (2_703.0, False)):
        wires = (*_lamps(group, YELLOW), *_then_red(group, yellow_ms))
        lasts_ms = None if trips else 1_500.0
        yield Trial(f"yellow for {yellow_ms / 1000:g} s, then red", kind, (SHORT_YELLOW,), wires, yellow_ms, lasts_ms)


def _greens_of(group: int) -> Iterator[Trial]:
    """Too short to be a conflict, and then red again."""
    for lamp, reason in ((GREEN, NO_YELLOW), (YELLOW, SHORT_YELLOW)) if PLAN.conflicts_of(group) & set(SHOWN) else ():
        wires = (*_lamps(group, lamp), *_then_red(group, 199.0))
        yield Trial(
            f"{LAMPS[lamp]} for 0.199 s beside a green in conflict, then red", group_kind(group), (reason,), wires, 199.0
        )


def _lamps(group: int, *lit: int) -> Iterator[Wire]:
    """The group shows these lamps and no other."""
    for lamp in range(3):
        yield 0.0, Into.STUCK_ON if lamp in lit else Into.DARK, 3 * group + lamp, 1


def _then_red(group: int, at_ms: float) -> Iterator[Wire]:
    """From that on it shows red alone, whatever `_lamps` has made of it."""
    for lamp in range(3):
        yield at_ms, Into.STUCK_ON, 3 * group + lamp, int(lamp == RED)
        yield at_ms, Into.DARK, 3 * group + lamp, int(lamp != RED)


# Doing them


def pair(controller: Path, monitor: Path) -> CrossingBench:
    """The controller that works alone, with its lamps, loops and buttons, and the monitor."""
    bench = CrossingBench(controller, groups=GROUPS, crosswalks=True, detectors=48 + GROUPS, monitor=monitor)
    bench.tells_heartbeats = True
    return bench


def perform(trial: Trial, controller: Path, monitor: Path, *, offset_us: float = 0.0, latch: bool = True) -> Outcome:
    """`offset_us`: within the monitor's millisecond. `latch`: also whether a trip lasts, over a power cycle, to its button."""
    with pair(controller, monitor) as bench:
        begin_us = BEGIN_US + offset_us
        changes = bench.run(begin_us - 1_000)
        given = [Given(begin_us + 1e3 * at_ms, what, line, level) for at_ms, what, line, level in trial.wires]
        gone_us = begin_us + 1e3 * (trial.shows_ms + (trial.lasts_ms or 1_500.0))
        bench.feed(sorted([*given, *(each._replace(time_us=gone_us, level=0) for each in given)]))
        changes += bench.run(gone_us + 1_600_000)
        shown_us = begin_us + 1e3 * trial.shows_ms
        return judged(bench, trial, changes, shown_us, latch)


def judged(bench: CrossingBench, trial: Trial, changes: list[Change], shown_us: float, latch: bool) -> Outcome:
    opened_us = next((each.time_us for each in changes if each.what == Seen.RELAY and not each.value), None)
    reason, group = REASONS[bench.monitor_eeprom()[0] % 255], bench.monitor_eeprom()[1]
    trip = None if opened_us is None else (opened_us, reason, group)
    finding = judge_monitor(changes, PLAN, trip, bench.now_us())
    if opened_us is None:
        return Outcome(None, "", finding.fault or ("silent" if trial.trips else ""))
    after_ms = finding.after_ms or (opened_us - shown_us) / 1000
    limits = LIMITS[reason] if reason in LIMITS else LIMITS[trial.kind]
    fault = finding.fault
    if not trial.trips:
        fault = f"tripped after {after_ms:.1f} ms"
    elif reason not in trial.reasons:
        fault = f"kept {reason}"
    elif not limits.least_ms <= after_ms <= limits.most_ms:
        fault = f"tripped after {after_ms:.1f} ms"
    return Outcome(after_ms, reason, fault or (_latch_fault(bench) if latch else ""))


def _latch_fault(bench: CrossingBench) -> str:
    """The lamps are sound again: it must stay open until its button is pressed, and keep its reason without power."""
    kept = bench.monitor_eeprom()[:4]
    if _relay(bench, 2.0):
        return "closed by itself"
    bench.power_cycle_monitor()
    if _relay(bench, 1.0) or bench.monitor_eeprom()[:4] != kept:
        return "forgotten over a power cycle"
    now_us = bench.now_us()
    bench.feed([Given(now_us, Into.BUTTON), Given(now_us + BUTTON_US, Into.BUTTON, level=0)])
    return "" if _relay(bench, 0.5)[:1] == [1] and bench.monitor_eeprom()[0] == 0 else "its button doesn't close it"


def _relay(bench: CrossingBench, seconds: float) -> list[int]:
    changes = bench.run(bench.now_us() + 1e6 * seconds)
    return [each.value for each in changes if each.what == Seen.RELAY]


def row(trial: Trial, outcomes: list[Outcome]) -> dict[str, Any]:
    """One line of the table, of a trial made at several offsets."""
    tripped = [each.after_ms for each in outcomes if each.after_ms is not None]
    return {
        "fault": trial.fault,
        "group": trial.group_kind,
        "lasts_ms": trial.lasts_ms,
        "reasons": sorted({each.reason for each in outcomes if each.reason}),
        "tripped": len(tripped),
        "of": len(outcomes),
        "after_ms": [round(min(tripped), 3), round(max(tripped), 3)] if tripped else None,
        "limits_ms": list(LIMITS[trial.kind]) if trial.trips else None,
        "faults": [each.fault for each in outcomes if each.fault],
    }
