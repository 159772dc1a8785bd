"""The signal plan as the shell needs it: read from JSON, checked for what fits, times in ticks.

`hil/build/signal_plan.py` writes the JSON from a road network (`streetflow/control/signal_groups.py` says what it means). Times
are rounded up to whole ticks, so that none is shorter than computed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firmware.generator.policy import PolicyError

FORMAT = 1
TICKS_PER_S = 100
GROUPS_MAX = 16  # lamps: 48 lines, six 74HC595
PHASES_MAX = 16
LANES_MAX = 32  # detectors: two loops a lane, 64 lines, eight 74HC165
TICKS_MAX = 30_000  # yellow and red together stay within 16 bits


@dataclass(frozen=True)
class ShellPlan:
    """The shell's tables. Times in ticks of 10 ms; a set of groups is a bit map."""

    groups: int
    phase_groups: tuple[int, ...]
    conflicts: tuple[int, ...]
    yellow: tuple[int, ...]
    red: tuple[int, ...]
    min_green: tuple[int, ...]
    max_green: tuple[int, ...]
    walk_clear: tuple[int, ...]
    longest_red: int
    walk: int

    @property
    def opened(self) -> int:
        """Groups that some phase opens."""
        return _union(self.phase_groups)

    @property
    def served(self) -> int:
        """Groups that some phases open and others don't."""
        return self.opened & ~_common(self.phase_groups)

    @property
    def phase_least(self) -> tuple[int, ...]:
        """How long each phase stays at least: the minimum greens of its groups, and no less than the red clearances of all
        others, which a change into it may not have waited for."""
        return tuple(
            max((self.min_green if groups >> g & 1 else self.red)[g] for g in range(self.groups) if self.opened >> g & 1)
            for groups in self.phase_groups
        )


def read_plan(path: Path) -> ShellPlan:
    """The plan in a JSON file. PolicyError if it can't be read, isn't one, or doesn't fit the chip's wires."""
    try:
        return plan_of(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise PolicyError(f"can't be read: {error.strerror or error}") from None
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise PolicyError(f"not a signal plan ({type(error).__name__}: {error})") from None
    except json.JSONDecodeError as error:
        raise PolicyError(f"not JSON: {error}") from None


def plan_of(document: dict[str, Any]) -> ShellPlan:
    """The plan in a document. PolicyError if it doesn't fit, or contradicts itself."""
    if document["format"] != FORMAT:
        raise PolicyError(f"format: {document['format']!r}, this firmware reads {FORMAT}")
    groups, phases = document["groups"], document["phases"]
    _fits("groups", len(groups), GROUPS_MAX, "signal groups, the lamps' wires carry")
    _fits("phases", len(phases), PHASES_MAX, "phases, the shell holds")
    _fits("lanes", len(document["lanes"]), LANES_MAX, "lanes, the detectors' wires carry")
    conflicts = [0] * len(groups)
    for number, (a, b) in enumerate(document["conflicts"]):
        if not (0 <= a < len(groups) and 0 <= b < len(groups) and a != b):
            raise PolicyError(f"conflicts[{number}]: {[a, b]} aren't two groups of {len(groups)}")
        conflicts[a] |= 1 << b
        conflicts[b] |= 1 << a
    plan = ShellPlan(
        groups=len(groups),
        phase_groups=tuple(_set(phase, len(groups), f"phases[{number}]") for number, phase in enumerate(phases)),
        conflicts=tuple(conflicts),
        yellow=_times(groups, "yellow_s", least=1),
        red=_times(groups, "red_clearance_s"),
        min_green=_times(groups, "min_green_s", least=1),
        max_green=_times(groups, "max_green_s", least=1),
        walk_clear=_times(groups, "walk_and_clearance_s"),
        longest_red=_ticks(document["longest_red_s"], "longest_red_s", 1),
        walk=_ticks(document["walk_s"], "walk_s", 1),
    )
    _check(plan)
    return plan


def _check(plan: ShellPlan) -> None:
    for phase, opened in enumerate(plan.phase_groups):
        for group in range(plan.groups):
            if opened >> group & 1 and plan.conflicts[group] & opened:
                raise PolicyError(f"phases[{phase}]: opens group {group} and one in conflict with it")
    for group, ticks in enumerate(plan.walk_clear):
        if 0 < ticks < plan.walk:
            raise PolicyError(f"groups[{group}].walk_and_clearance_s: shorter than the walk")
        if ticks and not plan.served >> group & 1:
            raise PolicyError(f"groups[{group}].walk_and_clearance_s: a crosswalk beside a group that is never called")


def _fits(place: str, count: int, most: int, what: str) -> None:
    if not 1 <= count <= most:
        raise PolicyError(f"{place}: {count} {what} 1 to {most}")


def _set(members: Sequence[int], count: int, place: str) -> int:
    if not members or any(not 0 <= member < count for member in members):
        raise PolicyError(f"{place}: {list(members)} aren't some of {count} groups")
    return _union(1 << member for member in members)


def _times(groups: Sequence[dict[str, Any]], name: str, least: int = 0) -> tuple[int, ...]:
    return tuple(_ticks(group[name], f"groups[{number}].{name}", least) for number, group in enumerate(groups))


def _ticks(seconds: float, place: str, least: int) -> int:
    """Whole ticks, rounded up; a millionth of a tick too much is the arithmetic's."""
    if not math.isfinite(seconds):
        raise PolicyError(f"{place}: {seconds} s isn't a time")
    ticks = math.ceil(seconds * TICKS_PER_S - 1e-6)
    if not least <= ticks <= TICKS_MAX:
        raise PolicyError(f"{place}: {seconds:g} s, must be {least / TICKS_PER_S:g} to {TICKS_MAX / TICKS_PER_S:g} s")
    return ticks


def _union(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found


def _common(sets: Sequence[int]) -> int:
    found = sets[0]
    for each in sets:
        found &= each
    return found
