"""The judge of lamps: silent on the shell's own, and not on one that breaks its promises."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from firmware.generator.light.tables import fields, header_of
from hil.light.lamps import LampJudge, lamps_of, longest_green_bound_s, longest_wait_bound_s
from tests.firmware.shell.build import shell_plan
from tests.helpers.bench_controller import crossing_plan
from tests.helpers.host_shell import PHASE_BEGAN, HostShell, Output

PLAN = crossing_plan()
GROUPS = len(PLAN.groups)
TICK_US = 10_000


def lines(output: Output) -> int:
    return sum(
        (output.red >> g & 1 | (output.yellow >> g & 1) << 1 | (output.green >> g & 1) << 2) << 3 * g for g in range(GROUPS)
    )


def judged(folder: Path, changed: Mapping[str, int | list[int]], seconds: int = 1200) -> LampJudge:
    """The shell's lamps under random wishes and calls, from phase 0 on, with some of its tables changed."""
    shell = HostShell(header_of(fields(shell_plan(PLAN)) | dict(changed)), folder)
    shell.until(PHASE_BEGAN)
    judge, draw, before, wish = LampJudge(PLAN), random.Random(1), -1, 0
    for tick in range(100 * seconds):
        if draw.random() < 0.002:
            wish = draw.randrange(len(PLAN.phases))
        output = shell.tick(wish, [draw.randrange(GROUPS)] if draw.random() < 0.001 else ())
        if lines(output) != before:
            before = lines(output)
            judge.change(TICK_US * tick, before)
    return judge


def test_the_shells_own_lamps_have_no_fault_and_no_time_to_spare_but_a_tick(tmp_path: Path) -> None:
    figures = judged(tmp_path, {}).figures
    assert figures.faults == []
    assert figures.greens > 100
    assert 0 <= figures.yellow_margin_ms < 10
    assert 0 <= figures.red_margin_ms < 20
    assert figures.green_margin_ms >= 0


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ("yellow_ticks", "yellow is"),
        ("red_ticks", "red clearance is"),
        ("phase_least_ticks", "minimum green is"),
    ],
)
def test_a_table_with_times_two_ticks_too_short_is_found(tmp_path: Path, table: str, fault: str) -> None:
    values = fields(shell_plan(PLAN))[table]
    assert isinstance(values, list)
    found = judged(tmp_path, {table: [max(value - 3, 0) for value in values]}).figures.faults
    assert any(fault in each for each in found)


def test_groups_in_conflict_and_ways_that_no_group_may_take_are_found() -> None:
    (a, b), green = min(PLAN.conflicts), 0b100
    judge = LampJudge(PLAN)
    red = sum(1 << 3 * g for g in range(GROUPS))
    judge.change(0, red)
    judge.change(1e7, red & ~(7 << 3 * a) & ~(7 << 3 * b) | green << 3 * a | green << 3 * b)
    assert any(f"groups {a} and {b} in conflict: green and green" in fault for fault in judge.figures.faults)
    judge.change(3e7, red)
    assert any(f"group {a} goes from green to red" in fault for fault in judge.figures.faults)
    judge.change(4e7, 0)
    assert any("goes from red to dark" in fault for fault in judge.figures.faults)
    assert lamps_of(0b111, 1) == ["several"]


def test_the_longest_wait_is_measured_from_the_call_to_the_green() -> None:
    judge, red = LampJudge(PLAN), sum(1 << 3 * g for g in range(GROUPS))
    judge.change(0, red)
    for second in range(100):
        judge.calls(1e6 * second, {0} if second >= 10 else set())
    assert judge.figures.longest_wait_s == 89
    assert longest_wait_bound_s(PLAN) > PLAN.longest_red_s


def all_of(lamp: int) -> int:
    return sum(lamp << 3 * group for group in range(GROUPS))


PHASE_0 = sum((4 if group in PLAN.phases[0] else 1) << 3 * group for group in range(GROUPS))


def restarted(*states: tuple[float, int]) -> list[str]:
    """Faults, where phase 0 was green when the controller restarted at second 100, and then (second, lines)."""
    judge = LampJudge(PLAN)
    judge.change(0, PHASE_0)
    judge.restart(100e6)
    for at_s, value in states:
        judge.change(at_s * 1e6, value)
    return judge.figures.faults


def test_a_restart_may_flash_and_be_all_red_and_then_begins_with_phase_0() -> None:
    flashing = [(100.05 + 0.5 * n, all_of(1 if n % 2 == 0 else 0)) for n in range(11)]
    assert restarted(*flashing, (111.05, PHASE_0)) == []
    assert restarted(*flashing) == [], "it may stay so"
    (early,) = restarted(*flashing, (108.0, PHASE_0))
    assert early.endswith("the first green comes 8.000 s after a restart")
    other = sum((4 if group in PLAN.phases[1] else 1) << 3 * group for group in range(GROUPS))
    (wrong,) = restarted(*flashing, (111.05, other))
    assert "after a restart the first to show green, red are the groups" in wrong
    assert any("goes from green to red" in fault for fault in _not_excused(flashing)), "without a restart that is a fault"


def _not_excused(states: list[tuple[float, int]]) -> list[str]:
    judge = LampJudge(PLAN)
    judge.change(0, PHASE_0)
    for at_s, value in states:
        judge.change(at_s * 1e6, value)
    return judge.figures.faults


def test_the_bound_of_a_green_is_no_less_than_what_was_proven() -> None:
    proven_s = 30.8  # of this crossing without crosswalks: docs/results/shell.md
    plain = replace(PLAN, groups=tuple(replace(group, walk_and_clearance_s=0.0) for group in PLAN.groups))
    assert 60 + proven_s <= longest_green_bound_s(plain) < longest_green_bound_s(PLAN)
