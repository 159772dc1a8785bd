"""The monitor's judge: what it finds at the lamps, and that it sees a monitor that is late, hasty, or trips for nothing."""

from __future__ import annotations

import pytest

from hil.boards.bench import Change, Seen
from hil.light.monitor_judge import (
    CONFLICT,
    DARKNESS,
    HEARTBEAT,
    NO_YELLOW,
    SHORT_YELLOW,
    TWO_LAMPS,
    judge_monitor,
    shown_faults,
)
from tests.helpers.bench_controller import crossing_plan

PLAN = crossing_plan()
GROUPS = len(PLAN.groups)
MS = 1_000.0
OPEN = {1: 4, 2: 4, 6: 4}  # phase 0: green


def lines(lamps: dict[int, int] | None = None) -> int:
    """All red but these."""
    shown = dict.fromkeys(range(GROUPS), 1) | (OPEN if lamps is None else OPEN | lamps)
    return sum(bits << 3 * group for group, bits in shown.items())


def shown(*states: tuple[float, int]) -> list[Change]:
    """(from so many ms on, lines); before, phase 0."""
    return [Change(at_ms * MS, Seen.SHOWN, value) for at_ms, value in ((0.0, lines()), *states)]


def kinds(changes: list[Change], until_ms: float = 10_000.0, surely: bool = True) -> set[tuple[str, int, float]]:
    found = shown_faults(changes, PLAN, until_ms * MS, surely=surely)
    return {(each.kind, each.group, each.lasted_ms(until_ms * MS)) for each in found}


def test_each_fault_is_found_with_its_group_and_how_long_it_lasts() -> None:
    assert kinds(shown((100, lines({4: 5})), (400, lines()))) == {
        (CONFLICT, 1, 300), (CONFLICT, 4, 300), (CONFLICT, 6, 300), (TWO_LAMPS, 4, 300),
    }  # fmt: skip
    assert kinds(shown((100, lines({0: 0})), (800, lines()))) == {(DARKNESS, 0, 700)}
    assert kinds(shown((100, lines({1: 1})))) == {(NO_YELLOW, 1, 9_900)}
    assert kinds(shown((100, lines({1: 2})), (2_790, lines({1: 1})))) == {(SHORT_YELLOW, 1, 7_210)}
    beats = [Change(at_ms * MS, Seen.HEARTBEAT, 1) for at_ms in (0, 10, 1_100, 1_110)]
    assert kinds(beats, 1_200) == {(HEARTBEAT, 0, 1_090)}


def test_what_is_no_fault_is_not_found() -> None:
    assert kinds(shown((100, lines({1: 2})), (2_810, lines({1: 1})))) == set(), "a yellow of 2.71 s"
    assert kinds(shown((100, lines({1: 1})), (150, lines()))) == set(), "a flicker"
    flashing = [(100.0 + 500 * n, sum(1 << 3 * g for g in range(GROUPS)) * (n % 2 == 0)) for n in range(5)]
    restart = kinds(shown(*flashing, (2_600, lines())), 2_700)
    assert {kind for kind, _, lasted_ms in restart if kind != DARKNESS or lasted_ms > 500} == set(), "a restart"


def test_near_its_limits_it_is_not_sure() -> None:
    near = shown((100, lines({1: 2})), (2_799, lines({1: 1})))
    assert not kinds(near) and kinds(near, surely=False)


@pytest.mark.parametrize(
    ("trip", "fault"),
    [
        ((450.0, CONFLICT, 4), ""),
        ((299.0, CONFLICT, 4), "tripped by conflict, group 4, but"),
        ((601.0, CONFLICT, 4), "tripped by conflict, group 4, but"),
        ((450.0, CONFLICT, 3), "tripped by conflict, group 3, but"),
        ((450.0, DARKNESS, 4), "tripped by dark, group 4, but"),
        (None, "silent, though"),
    ],
)
def test_a_monitor_must_trip_in_time_and_for_the_right_reason(trip: tuple[float, str, int] | None, fault: str) -> None:
    changes = shown((100, lines({4: 5})))
    found = judge_monitor(changes, PLAN, (trip[0] * MS, *trip[1:]) if trip else None, 5_000 * MS)
    assert found.fault.startswith(fault) and bool(found.fault) == bool(fault)
    assert found.asked
    assert found.after_ms == (350 if not fault else None)


def test_silence_is_right_where_nothing_lasts() -> None:
    found = judge_monitor(shown((100, lines({4: 5})), (290, lines())), PLAN, None, 5_000 * MS)
    assert (found.fault, found.after_ms, found.asked) == ("", None, False)
    assert found.longest is not None and found.longest.lasted_ms(5e6) == 190
