"""What a crossing's lamps did after each fault of its chip, against what docs/controller.md says they do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

from hil.boards.bench import Seen
from hil.light.chip_faults import LINE_BACK, RESTARTS, Strike
from hil.light.crossing import Crossing
from hil.light.lamps import DARK, GREEN, RED, START_US, lamps_of
from hil.light.light_run import LightRun
from hil.loop.fault_spec import DAMAGE
from hil.loop.verdict import Check, Outcome
from hil.words import counted

FLASHES_WITHIN_US = 1.2e6  # after which the monitor would trip
MINUTE_S, TOO_MANY = 60.0, 3  # restarts, none so long after the one before: it stays in flash
FLASH_PERIOD_US = 1e6
CHANGE_S = 10.0  # from a wish to its green, at most: the longest change here takes 8.2 s
PATIENCE_INTERVALS = 2.5  # without a request, before the plan in flash decides
NAMES = {
    "reset": "reset", "brownout": "brown-out", "hang": "hang", "power": "power gone and back", "silence": "line cut",
    "flash": "a bit of the flash changed", "weight": "one weight changed", "policy": "the network overwritten",
}  # fmt: skip
Lamps = tuple[float, list[str]]


@dataclass(frozen=True)
class FaultFinding:
    """One fault: what should happen, and what did. Times in s of the traffic."""

    intersection: str
    at_s: float
    kind: str
    expected: str
    seen: str
    is_right: bool

    @property
    def name(self) -> str:
        return NAMES[self.kind]


def fault_findings(light: LightRun) -> list[FaultFinding]:
    """One for each fault that has struck, in the order of crossings and time."""
    found = []
    for number, crossing in enumerate(light.crossings):
        groups = len(crossing.plan.groups)
        lamps = [(c.time_us, lamps_of(c.value, groups)) for c in crossing.changes if c.what == Seen.LAMPS]
        view = _View(light, number, crossing, lamps)
        strikes = crossing.chip_faults.done
        for place, strike in enumerate(strikes):
            if strike.kind != LINE_BACK:
                expected, seen, is_right = view.judge(place, strike)
                name = crossing.plan.intersection
                found.append(FaultFinding(name, strike.at_s, strike.kind, expected, seen, is_right))
    return found


def check_faults(light: LightRun, findings: Sequence[FaultFinding]) -> Check:
    """Every fault on purpose has struck, and each did what it should."""
    limit = "as designed"
    assert light.job.faults is not None
    wanted = len(light.job.faults.script) * len(light.crossings)
    right = sum(each.is_right for each in findings)
    wrong = next((each for each in findings if not each.is_right), None)
    detail = "; ".join(f"{each.name} at {each.at_s:g} s: {each.seen}" for each in findings)
    if wrong is not None:
        detail = f"{wrong.intersection}, {wrong.name} at {wrong.at_s:g} s: {wrong.seen}, where it {wrong.expected}"
    elif len(findings) < wanted:
        detail = f"{wanted - len(findings)} come after the end of the run"
    outcome: Outcome = "pass" if right == wanted else "fail"
    return Check("faults", outcome, f"{right} of {counted(wanted, 'fault')} as designed", limit, detail)


class _View:
    """A crossing's lamps over the run."""

    def __init__(self, light: LightRun, number: int, crossing: Crossing, lamps: Sequence[Lamps]) -> None:
        self.light, self.number, self.crossing, self.lamps = light, number, crossing, lamps
        self.strikes = crossing.chip_faults.done
        self.end_us = crossing.bench.now_us()

    def judge(self, place: int, strike: Strike) -> tuple[str, str, bool]:
        """(what should happen, what did, whether it is that)."""
        if strike.kind in RESTARTS:
            return self._restart(place, strike)
        if strike.kind in DAMAGE:
            return self._damage(place, strike)
        return self._silence(strike)

    def _restart(self, place: int, strike: Strike) -> tuple[str, str, bool]:
        why = self._why_it_stays(place)
        following = next((s.at_us for s in self.strikes[place + 1 :] if s.kind in RESTARTS), self.end_us)
        after = [(at_us, lamps) for at_us, lamps in self.lamps if strike.at_us < at_us <= following]
        before = next((lamps for at_us, lamps in reversed(self.lamps) if at_us <= strike.at_us), [])
        expected = f"flashes for good ({why})" if why else "flashes, is all red, and begins with phase 0"
        if not after:
            return expected, "no lamp has changed", False
        first_us, first = after[0]
        flash_us = first_us - strike.at_us - (FLASH_PERIOD_US / 2 if set(first) == {DARK} and set(before) == {RED} else 0)
        green_us = next((at_us - strike.at_us for at_us, lamps in after if GREEN in lamps), None)
        flashes = set(first) in ({RED}, {DARK}) and flash_us <= FLASHES_WITHIN_US
        seen = f"flashes after {flash_us / 1000:.0f} ms" if flashes else f"shows {', '.join(sorted(set(first)))} first"
        if green_us is None:
            still = following - after[-1][0] <= FLASH_PERIOD_US
            seen += f", no green in the {(following - strike.at_us) / 1e6:.0f} s after"
            early = following - strike.at_us <= START_US + FLASHES_WITHIN_US
            return (
                expected,
                seen,
                flashes and ((still and bool(why)) or (early and following != self.end_us) or (early and not why)),
            )
        phase = tuple(n for n, lamp in enumerate(next(lamps for _, lamps in after if GREEN in lamps)) if lamp == GREEN)
        in_time = START_US <= green_us <= START_US + FLASHES_WITHIN_US and phase == self.crossing.plan.phases[0]
        return expected, f"{seen}, phase 0 after {green_us / 1e6:.2f} s", flashes and in_time and not why

    def _why_it_stays(self, place: int) -> str:
        """Why the light stays in flash after this restart; "" if it shouldn't."""
        count, last_s = 0, -math.inf
        for strike in self.strikes[: place + 1]:
            if strike.kind == "power":
                count = 0
            elif strike.kind in RESTARTS:
                kept = count >= TOO_MANY or strike.at_s - last_s <= MINUTE_S
                count, last_s = (count if kept else 0) + 1, strike.at_s
        if any(strike.kind in DAMAGE for strike in self.strikes[:place]):
            return "its flash is damaged"
        return "three restarts, none more than a minute after the one before" if count >= TOO_MANY else ""

    def _damage(self, place: int, strike: Strike) -> tuple[str, str, bool]:
        until = next((s.at_us for s in self.strikes[place + 1 :] if s.kind in RESTARTS), self.end_us)
        begun = sum(strike.at_us < at_us <= until for at_us, _ in self._phases())
        faults = len(self.crossing.judge.figures.faults)
        seen = f"{counted(begun, 'phase')} begun until it restarts, {counted(faults, 'fault')} of lamps"
        return "keeps its lamps safe, and is found at the next start", seen, not faults

    def _silence(self, strike: Strike) -> tuple[str, str, bool]:
        start_us, end_us = strike.at_us, min(strike.at_us + 1e6 * strike.lasts_s, self.end_us)
        if self.light.job.mode == "alone":
            count = sum(start_us < at_us <= end_us for at_us, _ in self._phases())
            return "goes on as if nothing were", f"{counted(count, 'phase')} begun meanwhile", count > 0
        interval_s = self.light.job.environment(self.light.policy).decision_interval_s
        asked_s = math.ceil(strike.at_s / interval_s) * interval_s - interval_s
        again_s = math.ceil((strike.at_s + strike.lasts_s) / interval_s) * interval_s
        begin_s = asked_s + PATIENCE_INTERVALS * interval_s
        end_s = min(again_s, (self.end_us - self.crossing.start_us) / 1e6)
        if begin_s >= end_s:
            return "keeps what was wished last", "asked again in time", True
        plan = self.light.documents[self.number]["plan"]
        phases = [((at_us - self.crossing.start_us) / 1e6, action) for at_us, action in self._phases()]
        shown = next((action for at_s, action in reversed(phases) if at_s <= begin_s), None)
        begun = [action for at_s, action in phases if begin_s < at_s <= end_s]
        most, least = (_planned(plan, end_s - begin_s - late_s, shown) for late_s in (0.0, CHANGE_S))
        seen = f"phases {', '.join(map(str, begun)) or 'none'} begun, the plan's are {', '.join(map(str, most)) or 'none'}"
        right = begun == most[: len(begun)] and len(begun) >= len(least)
        return "is ruled by its plan in flash 2.5 intervals after the last request", seen, right

    def _phases(self) -> list[tuple[float, int]]:
        """(when, which) of each action that the lamps have come to show."""
        actions = {frozenset(groups): action for action, groups in enumerate(self.crossing.plan.phases)}
        found: list[tuple[float, int]] = []
        for at_us, lamps in self.lamps:
            action = actions.get(frozenset(n for n, lamp in enumerate(lamps) if lamp == GREEN))
            if action is not None and (not found or found[-1][1] != action):
                found.append((at_us, action))
        return found


def _planned(plan: Sequence[Sequence[int]], lasts_s: float, shown: int | None) -> list[int]:
    """What a plan of (action, seconds) wishes for one after the other in so long a time, where `shown` is green already."""
    found = [] if shown is None else [shown]
    begin_s = 0.0
    for action, seconds in cycle(plan):
        if begin_s >= lasts_s:
            break
        if not found or found[-1] != action:
            found.append(action)
        begin_s += seconds
    return found if shown is None else found[1:]
