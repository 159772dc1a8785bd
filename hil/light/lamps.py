"""The lamps of one crossing judged at every change: what the plan of the crossing allows, and how close it came.

It knows the signal plan alone, nothing of the firmware. Times are what the pins showed, in µs of the chip's clock; a tick of
the shell is 10 ms, and the lamps of a tick may be late by one tick.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

from streetflow.control.signal_groups import SignalPlan

DARK, RED, YELLOW, GREEN, SEVERAL = "dark", "red", "yellow", "green", "several"
TICK_US = 10_000.0
START_US = 11e6  # flashing and all red, after a reset
ALLOWED = {(RED, GREEN), (GREEN, YELLOW), (YELLOW, RED)}
_LAMP = {0: DARK, 1: RED, 2: YELLOW, 4: GREEN}


def lamps_of(value: int, groups: int) -> list[str]:
    """Each group's lamp from the bits of all lines."""
    return [_LAMP.get(value >> 3 * group & 7, SEVERAL) for group in range(groups)]


def is_flashing(lamps: list[str]) -> bool:
    """All dark: no vehicle may take the lamps for an order to go."""
    return all(lamp == DARK for lamp in lamps)


@dataclass
class LampFigures:
    """What was seen at one crossing. Margins: how much longer than computed, in ms, at the least."""

    changes: int = 0
    greens: int = 0
    yellow_margin_ms: float = float("inf")
    red_margin_ms: float = float("inf")
    green_margin_ms: float = float("inf")
    longest_green_s: float = 0.0
    longest_wait_s: float = 0.0
    faults: list[str] = field(default_factory=list)


class LampJudge:
    """Takes one crossing's lamps, change by change, from phase 0 on."""

    def __init__(self, plan: SignalPlan, *, late_us: float = TICK_US) -> None:
        """`late_us`: how much two changes may come closer together, since each may be late."""
        self.plan, self.figures = plan, LampFigures()
        self._late_us = late_us
        self._rivals = [plan.conflicts_of(group) for group in range(len(plan.groups))]
        self._lamps: list[str] = []
        self._since_us = [float("-inf")] * len(plan.groups)
        self._green_ended_us = [float("-inf")] * len(plan.groups)  # its yellow began
        self._waiting_us = [float("nan")] * len(plan.groups)
        self._rivals_since_us = [float("nan")] * len(plan.groups)  # a green's: somebody in conflict waits
        self._restarted_us: float | None = None  # until the first green

    def change(self, time_us: float, value: int) -> None:
        """The lines have changed."""
        lamps = lamps_of(value, len(self.plan.groups))
        self.figures.changes += 1
        self._check_conflicts(time_us, lamps)
        if self._restarted_us is not None:
            if set(lamps) in ({RED}, {DARK}):
                self._lamps = lamps
                return
            self._check_start(time_us, lamps, self._restarted_us)
        before = self._lamps or [RED] * len(lamps)
        if not self._lamps:
            self._since_us = [time_us - 1e9 if lamp == RED else time_us for lamp in lamps]
        for group, (old, new) in enumerate(zip(before, lamps, strict=True)):
            if old != new:
                self._check_change(time_us, group, old, new)
                self._since_us[group] = time_us
        self._lamps = lamps

    def restart(self, time_us: float) -> None:
        """The controller is made to start anew: from now on it may show all red, and then flash, until the first green of a
        start. What the register showed stays until then."""
        self._restarted_us = time_us

    def calls(self, time_us: float, called: set[int]) -> None:
        """Who waits at this moment: groups that a vehicle could leave by and that aren't green. Nobody is served while it
        starts."""
        if self._restarted_us is not None:
            called = set()
        for group, each in enumerate(self.plan.groups):
            green = bool(self._lamps) and self._lamps[group] == GREEN
            if not each.is_served or each.is_always_open or group not in called or green:
                self._waiting_us[group] = float("nan")
            elif self._waiting_us[group] != self._waiting_us[group]:
                self._waiting_us[group] = time_us
            else:
                self.figures.longest_wait_s = max(self.figures.longest_wait_s, (time_us - self._waiting_us[group]) / 1e6)
        for group in range(len(self.plan.groups)):
            rivals = any(self._waiting_us[other] == self._waiting_us[other] for other in self._rivals[group])
            if not rivals or not self._lamps or self._lamps[group] != GREEN:
                self._rivals_since_us[group] = float("nan")
            elif self._rivals_since_us[group] != self._rivals_since_us[group]:
                self._rivals_since_us[group] = time_us
            else:
                green_s = (time_us - self._rivals_since_us[group]) / 1e6
                self.figures.longest_green_s = max(self.figures.longest_green_s, green_s)

    def _fault(self, time_us: float, text: str) -> None:
        self.figures.faults.append(f"{time_us / 1e6:.3f} s: {text}")

    def _check_conflicts(self, time_us: float, lamps: list[str]) -> None:
        moving = [group for group, lamp in enumerate(lamps) if lamp in (YELLOW, GREEN, SEVERAL)]
        for a, b in combinations(moving, 2):
            if (a, b) in self.plan.conflicts:
                self._fault(time_us, f"groups {a} and {b} in conflict: {lamps[a]} and {lamps[b]}")

    def _check_start(self, time_us: float, lamps: list[str], restarted_us: float) -> None:
        """The first green after a restart: phase 0, once it has flashed and been all red."""
        green = tuple(group for group, lamp in enumerate(lamps) if lamp == GREEN)
        if set(lamps) != {RED, GREEN} or green != self.plan.phases[0]:
            self._fault(time_us, f"after a restart the first to show {', '.join(sorted(set(lamps)))} are the groups {green}")
        if time_us - restarted_us < START_US - self._late_us:
            self._fault(time_us, f"the first green comes {(time_us - restarted_us) / 1e6:.3f} s after a restart")
        self._restarted_us, self._lamps = None, []

    def _check_change(self, time_us: float, group: int, old: str, new: str) -> None:
        each, lasted_us = self.plan.groups[group], time_us - self._since_us[group]
        if (old, new) not in ALLOWED:
            self._fault(time_us, f"group {group} goes from {old} to {new}")
        elif new == YELLOW:
            self._green_ended_us[group] = time_us
            self._margin("green", time_us, group, lasted_us - each.min_green_s * 1e6)
        elif new == RED:
            self._margin("yellow", time_us, group, lasted_us - each.yellow_s * 1e6)
        else:
            self.figures.greens += 1
            for other in self._rivals[group]:
                waited_us = time_us - self._green_ended_us[other]
                needed_us = (self.plan.groups[other].yellow_s + self.plan.groups[other].red_clearance_s) * 1e6
                self._margin("red", time_us, other, waited_us - needed_us)

    def _margin(self, what: str, time_us: float, group: int, margin_us: float) -> None:
        name = f"{what}_margin_ms"
        setattr(self.figures, name, min(getattr(self.figures, name), margin_us / 1000))
        if margin_us < -self._late_us:
            kind = {"green": "minimum green", "yellow": "yellow", "red": "red clearance"}[what]
            self._fault(time_us, f"group {group}'s {kind} is {-margin_us / 1000:.1f} ms too short")


def longest_wait_bound_s(plan: SignalPlan) -> float:
    """How long a call may wait: its longest red, and then a round of all phases."""
    return plan.longest_red_s + _round_s(plan)


def longest_green_bound_s(plan: SignalPlan) -> float:
    """How long a green may last while somebody in conflict waits: its maximum, and then a round of all phases, which may have
    to be served before."""
    return max(group.max_green_s for group in plan.groups) + _round_s(plan)


def _round_s(plan: SignalPlan) -> float:
    """Each phase once: its minimum green, or the walk that goes with it, and the longest change from it."""
    actions = range(len(plan.phases))
    changes_s = [max(plan.change_s(a, b) for b in actions if b != a) for a in actions] if len(plan.phases) > 1 else [0.0]
    walks_s = [max(plan.groups[group].walk_and_clearance_s for group in groups) for groups in plan.phases]
    return sum(
        max(plan.least_green_s(a), walk_s) + change_s for a, walk_s, change_s in zip(actions, walks_s, changes_s, strict=True)
    )
