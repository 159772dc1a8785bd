"""The monitor judged by what the lamps showed: which faults there were, how long each lasted, and whether it tripped in time.

It knows the signal plan and the limits below alone, nothing of the monitor's firmware. A fault that lasts for less than its
least must not trip, one that lasts for its most must have. Times are µs of the chips' one clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from hil.boards.bench import Change, Seen
from hil.light.lamps import DARK, GREEN, RED, SEVERAL, YELLOW, is_flashing, lamps_of
from streetflow.control.signal_groups import SignalPlan

REASONS = ("fine", "conflict", "dark", "two lamps at once", "short yellow", "no yellow", "heartbeat", "its table")
"""By their numbers in the monitor's EEPROM."""
FINE, CONFLICT, DARKNESS, TWO_LAMPS, SHORT_YELLOW, NO_YELLOW, HEARTBEAT, TABLE = REASONS


class Limits(NamedTuple):
    """From when a fault first shows: what lasts less doesn't trip, and at `most_ms` it has."""

    least_ms: float
    most_ms: float


LIMITS = {
    CONFLICT: Limits(200, 500),
    TWO_LAMPS: Limits(200, 500),
    DARKNESS: Limits(700, 1_000),
    SHORT_YELLOW: Limits(1_200, 1_300),  # the yellow's fault shows with the red; a controller that restarts may flash by then
    NO_YELLOW: Limits(1_200, 1_300),
    HEARTBEAT: Limits(950, 1_050),
}
"""The first three as NEMA TS 2 has them; the others are this project's own (docs/controller.md)."""
LEAST_YELLOW_MS, STEADY_MS, RESTART_MS, DARK_OF_FLASH_MS = 2_700.0, 60.0, 1_200.0, 300.0
UNSURE_MS = 2.0  # the monitor looks once a millisecond, and its relay takes a moment


@dataclass(frozen=True)
class Shown:
    """A fault as the lamps, or the heartbeat, showed it. Infinite `end_us`: to the end, or it can't be undone."""

    kind: str
    group: int
    begin_us: float
    end_us: float = math.inf

    def lasted_ms(self, until_us: float) -> float:
        return (min(self.end_us, until_us) - self.begin_us) / 1000


@dataclass(frozen=True)
class TripFinding:
    """What a monitor did with what was shown. `after_ms`: from the fault's first showing to its trip; None: silent. `fault`:
    what is wrong with that, "" for nothing. `asked`: whether something showed that had to trip it."""

    after_ms: float | None
    asked: bool
    fault: str
    longest: Shown | None = None


_Span = tuple[float, float, list[str]]  # from when to when all lamps showed what


def shown_faults(changes: Iterable[Change], plan: SignalPlan, until_us: float, *, surely: bool) -> list[Shown]:
    """All that a monitor could trip on.

    Args:
        changes: of the bench, from power-on; heartbeats are judged where it has told them.
        plan: the crossing's.
        until_us: where the run ended.
        surely: of what lies so close to a limit that the monitor's looks decide: left out, or else taken in.
    """
    changes = list(changes)
    states = [(change.time_us, lamps_of(change.value, len(plan.groups))) for change in changes if change.what == Seen.SHOWN]
    spans = [(begin, end, lamps) for (begin, lamps), (end, _) in pairwise([*states, (math.inf, [])])]
    found = _lasting(spans, plan)
    dark = [(begin, end) for begin, end, lamps in spans if is_flashing(lamps) and end - begin >= 1e3 * DARK_OF_FLASH_MS]
    for group in range(len(plan.groups)):
        found += _yellows(group, spans, dark, surely)
    beats = [change.time_us for change in changes if change.what == Seen.HEARTBEAT]
    gaps = pairwise([*beats, math.inf] if beats else [])
    found += [Shown(HEARTBEAT, 0, a, b) for a, b in gaps if min(b, until_us) - a > LIMITS[HEARTBEAT].least_ms * 1e3]
    return sorted(found, key=lambda each: each.begin_us)


def judge_monitor(
    changes: Sequence[Change], plan: SignalPlan, trip: tuple[float, str, int] | None, until_us: float, since_us: float = 0.0
) -> TripFinding:
    """`trip`: when the relay opened first, and reason and group that the EEPROM holds; None: it stayed held. What began before
    `since_us` is judged, but never reported as the longest."""
    possible = shown_faults(changes, plan, until_us, surely=False)
    certain = shown_faults(changes, plan, until_us, surely=True)
    end_us = until_us if trip is None else trip[0]
    needed = [each for each in certain if each.lasted_ms(end_us) > LIMITS[each.kind].most_ms]
    told = [each for each in possible if each.begin_us >= since_us]
    longest = max(told, key=lambda each: each.lasted_ms(end_us) / LIMITS[each.kind].least_ms, default=None)
    late = next((f"{_words(each)} lasted for {each.lasted_ms(end_us):.0f} ms" for each in needed), "")
    if trip is None:
        return TripFinding(None, bool(needed), f"silent, though {late}" if late else "", longest)
    at_us, reason, group = trip
    asked = bool(needed) or any(each.lasted_ms(math.inf) > LIMITS[each.kind].most_ms for each in certain)
    causes = [each for each in possible if (each.kind, each.group) == (reason, group) and _explains(each, at_us)]
    if not causes:
        why = f"{_words(longest)} had lasted for {longest.lasted_ms(at_us):.0f} ms" if longest else "nothing was wrong"
        return TripFinding(None, asked, f"tripped by {reason}, group {group}, but {late or why}", longest)
    after_ms = (at_us - min(each.begin_us for each in causes)) / 1000
    return TripFinding(after_ms, asked, f"late: {late}" if late else "", longest)


def _explains(each: Shown, at_us: float) -> bool:
    """Whether a trip then comes from this, within its limits."""
    after_ms, limits = (at_us - each.begin_us) / 1000, LIMITS[each.kind]
    return limits.least_ms <= after_ms <= limits.most_ms and at_us <= each.end_us + 1e3 * UNSURE_MS


def _words(each: Shown) -> str:
    return f"{each.kind} of group {each.group}" if each.kind != HEARTBEAT else "a lost heartbeat"


def _lasting(spans: Sequence[_Span], plan: SignalPlan) -> list[Shown]:
    """Conflicts, darkness, two lamps at once: from when to when."""
    found: list[Shown] = []
    since: dict[tuple[str, int], float] = {}
    for begin_us, _, lamps in spans:
        now = _wrong(lamps, plan)
        found += [Shown(*key, since.pop(key), begin_us) for key in set(since) - now]
        since |= dict.fromkeys(now - set(since), begin_us)
    return found + [Shown(*key, begin_us) for key, begin_us in since.items()]


def _wrong(lamps: Sequence[str], plan: SignalPlan) -> set[tuple[str, int]]:
    moving = {group for group, lamp in enumerate(lamps) if lamp in (GREEN, YELLOW, SEVERAL)}
    found = {(CONFLICT, group) for pair in plan.conflicts if set(pair) <= moving for group in pair}
    found |= {(DARKNESS, group) for group, lamp in enumerate(lamps) if lamp == DARK}
    return found | {(TWO_LAMPS, group) for group, lamp in enumerate(lamps) if lamp == SEVERAL}


def _yellows(group: int, spans: Sequence[_Span], dark: Sequence[tuple[float, float]], surely: bool) -> list[Shown]:
    """Reds of this group that came after no yellow, or after one that was too short, and that no restart excuses. What shows
    for a moment only is no lamp. `dark`: when all lamps were dark, for as long as in flashing."""
    unsure_ms = UNSURE_MS if surely else -UNSURE_MS
    found, steady, since_us = [], "", 0.0
    for lamp, begin_us, end_us in _runs(group, spans):
        if lamp in (DARK, SEVERAL) or lamp == steady or end_us - begin_us < 1e3 * (STEADY_MS + unsure_ms):
            continue
        yellow_ms = (begin_us - since_us) / 1000
        if lamp == RED and not _is_excused(begin_us, dark, unsure_ms):
            if steady == GREEN:
                found.append(Shown(NO_YELLOW, group, begin_us))
            elif steady == YELLOW and yellow_ms < LEAST_YELLOW_MS - unsure_ms:
                found.append(Shown(SHORT_YELLOW, group, begin_us))
        steady, since_us = lamp, begin_us
    return found


def _runs(group: int, spans: Sequence[_Span]) -> list[tuple[str, float, float]]:
    """What this group showed, from when to when, without a change."""
    found: list[tuple[str, float, float]] = []
    for begin_us, end_us, lamps in spans:
        if found and found[-1][0] == lamps[group]:
            found[-1] = (lamps[group], found[-1][1], end_us)
        else:
            found.append((lamps[group], begin_us, end_us))
    return found


def _is_excused(red_us: float, dark: Sequence[tuple[float, float]], slack_ms: float) -> bool:
    """Whether all lamps are dark soon after, as in the flashing of a controller that has restarted. `slack_ms`: of the time
    for that."""
    latest_us = red_us + 1e3 * (STEADY_MS + RESTART_MS + slack_ms)
    return any(end_us > red_us and begin_us + 1e3 * DARK_OF_FLASH_MS <= latest_us for begin_us, end_us in dark)
