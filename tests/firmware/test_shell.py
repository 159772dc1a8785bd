"""The safety shell's behaviour, tick by tick, on the built-in crossing.

Phase 0 opens both straights of the main road (groups 1 and 6), phase 1 those of the side road (4 and 8), phase 2 the main
road's lefts (0 and 5), phase 4 all of the eastern approach (0 and 1). Group 2 is all right turns, never red.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware.generator.light.plan import ShellPlan
from firmware.generator.light.tables import fields, header_of, tables_header
from streetflow.control.signal_groups import signal_plans
from streetflow.networks.catalogue import find_network
from streetflow.roadnet.network_tables import load_network
from tests.firmware.shell.build import shell_plan
from tests.helpers.host_shell import (
    CHANGE,
    FLASH,
    FORCED,
    GREEN,
    MAXED_OUT,
    NO_PHASE,
    PHASE_BEGAN,
    PHASE_ENDED,
    STOPPED,
    WALK_BEGAN,
    HostShell,
)  # fmt: skip

ALL = 0b111111111
RIGHTS = 1 << 2


@pytest.fixture(scope="module")
def plan() -> ShellPlan:
    return shell_plan(signal_plans(load_network(find_network("crossing").roadnet_file))[0])


@pytest.fixture
def shell(plan: ShellPlan, tmp_path: Path) -> HostShell:
    return HostShell(tables_header(plan), tmp_path)


@pytest.fixture
def green(shell: HostShell) -> HostShell:
    """Phase 0 has just begun; nobody waits."""
    shell.until(PHASE_BEGAN)
    shell.state.called = 0
    return shell


def test_the_start_flashes_for_5_s_is_red_for_6_s_and_begins_with_phase_0(shell: HostShell) -> None:
    lit = [shell.tick(wish=1, calls=[0]) for _ in range(500)]
    assert [each.red for each in lit] == [*[ALL] * 50, *[0] * 50] * 5
    red = [shell.tick(wish=1) for _ in range(600)]
    assert {(each.red, each.yellow, each.green, each.shown) for each in (*lit[:50], *red)} == {(ALL, 0, 0, NO_PHASE)}
    first = shell.tick(wish=1)
    assert (first.green, first.red, first.shown, first.events) == (0b1000110, ALL & ~0b1000110, 0, PHASE_BEGAN)
    assert shell.state.called == ALL & ~RIGHTS & ~first.green, "all others count as called: nobody knows who waited"


def test_a_wish_comes_true_after_minimum_green_yellow_and_red(green: HostShell, plan: ShellPlan) -> None:
    least = plan.phase_least[0]
    assert green.until(PHASE_ENDED, wish=1) == least, "phase 0 was shown for one tick before, and this one is yellow already"
    change = [green.tick(wish=5) for _ in range(plan.yellow[1] + plan.red[1] - 1)]
    assert [each.yellow for each in change] == [0b1000010] * 299 + [0] * plan.red[1], "both straights"
    assert {each.green for each in change} == {RIGHTS} and {each.shown for each in change} == {NO_PHASE}
    begun = green.tick(wish=5)
    assert (begun.green, begun.shown, begun.events) == (0b100010100, 1, PHASE_BEGAN), (
        "the wish of the moment does not matter now"
    )


def test_what_both_phases_open_stays_green(green: HostShell) -> None:
    green.until(PHASE_ENDED, wish=4)
    while not (output := green.tick(wish=4)).events & PHASE_BEGAN:
        assert output.green == 0b110, "the eastern straight, and the right turns"
    assert (output.green, output.shown) == (0b111, 4)


@pytest.mark.parametrize("wish", [0, 8, 9, 100, 254, 255])
def test_a_wish_for_no_other_phase_changes_nothing(green: HostShell, wish: int) -> None:
    assert {green.tick(wish=wish).shown for _ in range(20_000)} == {0}
    assert green.state.mode == GREEN


def test_a_green_ends_at_its_longest_while_somebody_waits(green: HostShell, plan: ShellPlan) -> None:
    for _ in range(1_000):
        green.tick(wish=0)
    green.tick(wish=0, calls=[3])
    output = green.tick(wish=0)
    count = 2
    while not output.events:
        output, count = green.tick(wish=0), count + 1
    assert output.events == PHASE_ENDED | MAXED_OUT
    assert count == plan.max_green[1] + 1, "counted from the call, not from the start of the green"
    assert green.state.next == 3, "the next phase that opens group 3"


def test_who_has_waited_longest_red_is_served_next_whatever_the_wish(green: HostShell, plan: ShellPlan) -> None:
    """Wishes that go to and fro between the main road's phases, which never open group 4."""
    green.tick(calls=[4])
    count = 1
    while not green.tick(wish=2 if green.state.phase == 0 else 0).events & FORCED:
        assert green.state.called >> 4 & 1 and count < 20_000
        count += 1
    assert plan.longest_red <= count <= plan.longest_red + plan.phase_least[2] + 1_000
    assert green.state.mode == CHANGE and plan.phase_groups[green.state.next] >> 4 & 1
    green.until(PHASE_BEGAN)
    assert not green.state.called >> 4 & 1 and not green.state.due


def test_calls_of_green_and_unserved_groups_are_not_kept(green: HostShell) -> None:
    green.tick(calls=[1, 2, 6, 9, 15])
    assert green.state.called == 0
    green.until(PHASE_ENDED, wish=1, calls=[1])
    green.tick(calls=[1])
    assert green.state.called == 0b10, "yellow: too late for this green"


def test_a_pressed_button_stretches_the_green(green: HostShell, plan: ShellPlan) -> None:
    green.tick(presses=[4])
    green.until(PHASE_ENDED, wish=1)
    assert green.until(PHASE_BEGAN | WALK_BEGAN) == plan.yellow[1] + plan.red[1]
    walk = [green.tick(wish=0) for _ in range(plan.walk_clear[4] - 1)]
    assert [each.walk for each in walk] == [0b10000] * (plan.walk - 1) + [0] * (plan.walk_clear[4] - plan.walk)
    assert [each.clearing for each in walk] == [0] * (plan.walk - 1) + [0b10000] * (plan.walk_clear[4] - plan.walk)
    assert {each.events for each in walk} == {0} and plan.walk_clear[4] > plan.phase_least[1]
    ended = green.tick(wish=0)
    assert (ended.events, ended.clearing) == (PHASE_ENDED, 0)


def test_a_button_pressed_in_the_green_gets_a_walk_at_once_if_nobody_else_waits(green: HostShell, plan: ShellPlan) -> None:
    for _ in range(plan.phase_least[0]):
        green.tick()
    assert green.tick(presses=[1, 6]).events == WALK_BEGAN
    assert green.tick().walk == 0b1000010
    green.tick(calls=[3], presses=[0])
    assert green.state.pressed == 0, "no crosswalk goes with a left turn; who may walk need not press"


@pytest.mark.parametrize("ticks", [3, 300, 800, 1_500, 2_500])
def test_a_fault_makes_it_flash_until_a_reset(shell: HostShell, ticks: int) -> None:
    for _ in range(ticks):
        shell.tick(wish=1)
    output = shell.tick(wish=1, faults=4)
    assert (output.events, output.red, output.shown, shell.state.mode) == (STOPPED, ALL, NO_PHASE, FLASH)
    after = [shell.tick(wish=n % 9, calls=range(9), presses=range(9)) for n in range(1_000)]
    assert [each.red for each in after[:99]] == [*[ALL] * 49, *[0] * 50]
    assert not any(each.green | each.yellow | each.walk for each in after)


@pytest.mark.parametrize(
    ("field", "value"), [("mode", 6), ("mode", 255), ("phase", 8), ("next", 8), ("next", 0), ("walking", 1)]
)
def test_a_state_that_no_step_leads_to_stops_it(green: HostShell, field: str, value: int) -> None:
    green.until(PHASE_ENDED, wish=1)
    setattr(green.state, field, value)
    assert green.tick().events == STOPPED


def test_tables_that_open_a_conflict_stop_it(plan: ShellPlan, tmp_path: Path) -> None:
    """Their CRC may be right: lamps are checked at every tick."""
    values = fields(plan)
    opened = values["phase_groups"]
    assert isinstance(opened, list)
    opened[1] |= 1 << 1
    shell = HostShell(header_of(values), tmp_path)
    shell.until(PHASE_BEGAN)
    assert shell.until(STOPPED, wish=1) > plan.phase_least[0]
    assert shell.tick().green == 0
