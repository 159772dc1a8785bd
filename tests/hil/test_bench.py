"""The bench: lamps, detectors and monitor at the emulated chips' pins, bit by bit. The controller is the tests' own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware.generator.light.tables import tables_header
from hil.boards.bench import Change, CrossingBench, Given, Into, Seen
from tests.firmware.shell.build import shell_plan
from tests.helpers.bench_controller import DETECTORS, build_controller, crossing_plan, monitor_elf
from tests.helpers.host_monitor import CONFLICT, DARK, FINE, HEARTBEAT, SEVERAL
from tests.helpers.host_shell import HostShell

pytestmark = pytest.mark.hil
GROUPS = 9
RED, GREEN = 0, 2  # of a group's three lines
TICK_US, START_US = 10_000, 11_000_000
LATENESS_US = 1_000  # of the lamps within a tick
LOOK_US = 1_100  # from one look of the monitor to the next, and until its relay moves


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_controller(tmp_path_factory.mktemp("controller"))


@pytest.fixture
def bench(elf: Path) -> Iterator[CrossingBench]:
    with CrossingBench(elf, groups=GROUPS, detectors=DETECTORS, monitor=monitor_elf()) as board:
        yield board


def run(bench: CrossingBench, seconds: float) -> list[Change]:
    return bench.run(bench.now_us() + 1e6 * seconds)


def of(changes: list[Change], what: Seen) -> list[Change]:
    return [change for change in changes if change.what == what]


def test_the_lamps_are_those_that_the_shell_says_tick_by_tick(elf: Path, tmp_path: Path) -> None:
    shell, plan = HostShell(tables_header(shell_plan(crossing_plan())), tmp_path), crossing_plan()
    with CrossingBench(elf, groups=GROUPS, detectors=DETECTORS) as board:
        shown = of(board.run(40e6), Seen.LAMPS)
    before, expected = 0, []
    for tick in range(1, 4000):
        output = shell.tick((tick - 1) // 1000 % len(plan.phases))
        lines = sum(
            (output.red >> group & 1 | (output.yellow >> group & 1) << 1 | (output.green >> group & 1) << 2) << 3 * group
            for group in range(GROUPS)
        )
        if lines != before:
            expected.append((tick, lines))
            before = lines
    assert [change.value for change in shown] == [lines for _, lines in expected]
    assert all(0 < shown[n].time_us - tick * TICK_US < LATENESS_US for n, (tick, _) in enumerate(expected))


def test_a_detector_that_is_fed_is_read_on_its_line_in_the_next_tick_and_no_longer(bench: CrossingBench) -> None:
    occupations_us = [(3, 1_004_000, 1_506_000), (0, 1_204_000, 1_216_000), (7, 1_221_000, 1_229_000)]
    begins = [Given(begin_us, Into.DETECTOR, line) for line, begin_us, _ in occupations_us]
    bench.feed([*begins, *(Given(end_us, Into.DETECTOR, line, 0) for line, _, end_us in occupations_us)])
    told = []
    for second in range(3):
        bench.run(1e6 * (second + 1))
        told += bench.received().split(b"\n")
    ticks = b"\n".join(told).replace(b"\n\n", b"\n").split(b"\n")
    occupied = {line: [tick + 1 for tick, levels in enumerate(ticks) if levels[line : line + 1] == b"1"] for line in range(8)}
    assert occupied[3] == list(range(101, 151))
    assert occupied[0] == [121]
    assert not any(occupied[line] for line in (1, 2, 4, 5, 6, 7)), "7 was occupied between two ticks only"


def test_the_monitor_is_silent_while_all_is_well(bench: CrossingBench) -> None:
    relay = of([change for _ in range(60) for change in run(bench, 1)], Seen.RELAY)
    assert [change.value for change in relay] == [1]
    assert relay[0].time_us < 1_000


@pytest.mark.parametrize(
    ("fault", "limit_ms", "reason"),
    [
        (Given(0, Into.STUCK_ON, 3 * 4 + GREEN), 350, CONFLICT),  # also red: whichever comes first by group
        (Given(0, Into.STUCK_ON, 3 * 6 + RED), 350, SEVERAL),
        (Given(0, Into.DARK, 3 * 6 + GREEN), 850, DARK),
        (Given(0, Into.SHORTED, 3 * 6 + RED, other=3 * 6 + GREEN), 350, SEVERAL),
        (Given(0, Into.HEARTBEAT_CUT), 1_000, HEARTBEAT),
    ],
)
def test_each_fault_of_the_wires_makes_the_monitor_flash_at_its_limit(
    bench: CrossingBench, fault: Given, limit_ms: int, reason: int
) -> None:
    run(bench, 13)
    begins_us = bench.now_us() + 2_000
    bench.feed([fault._replace(time_us=begins_us)])
    changes = run(bench, 1.5)
    relay = of(changes, Seen.RELAY)
    assert [change.value for change in relay] == [0]
    slack_us = TICK_US if reason == HEARTBEAT else 0  # its last edge was within the last tick
    assert -slack_us - LOOK_US <= relay[0].time_us - begins_us - 1_000 * limit_ms <= LOOK_US
    assert bench.monitor_eeprom()[0] in (reason, SEVERAL if reason == CONFLICT else reason)
    if fault.what != Into.HEARTBEAT_CUT:
        shown = of(changes, Seen.SHOWN)
        assert shown[0].time_us == pytest.approx(begins_us, abs=0.1)
        assert bin(shown[0].value).count("1") == GROUPS + (-1 if fault.what == Into.DARK else 1)


def test_a_disturbance_shorter_than_the_limit_does_not_trip_it(bench: CrossingBench) -> None:
    run(bench, 13)
    now_us = bench.now_us()
    bench.feed([Given(now_us + 1_000, Into.STUCK_ON, 3 * 6 + RED), Given(now_us + 346_000, Into.STUCK_ON, 3 * 6 + RED, 0)])
    changes = run(bench, 2)
    assert not of(changes, Seen.RELAY)
    assert [round(change.time_us - now_us) for change in of(changes, Seen.SHOWN)] == [1_000, 346_000]


def test_the_reason_outlives_the_monitors_power_and_goes_with_its_button(bench: CrossingBench) -> None:
    run(bench, 13)
    bench.feed(
        [Given(bench.now_us(), Into.STUCK_ON, 3 * 6 + RED), Given(bench.now_us() + 400_000, Into.STUCK_ON, 3 * 6 + RED, 0)]
    )
    assert [change.value for change in of(run(bench, 1), Seen.RELAY)] == [0]
    bench.power_cycle_monitor()
    assert not of(run(bench, 1), Seen.RELAY), "it stays open"
    assert bench.monitor_eeprom()[:2] == bytes((SEVERAL, 6))
    bench.feed([Given(bench.now_us(), Into.BUTTON), Given(bench.now_us() + 200_000, Into.BUTTON, level=0)])
    assert [change.value for change in of(run(bench, 1), Seen.RELAY)] == [1]
    assert bench.monitor_eeprom()[0] == FINE


def test_a_controller_that_hangs_keeps_its_lamps_and_loses_its_heartbeat(bench: CrossingBench) -> None:
    run(bench, 13)
    bench.hang()
    assert [change.value for change in of(run(bench, 1.5), Seen.RELAY)] == [0]
    assert bench.monitor_eeprom()[0] == HEARTBEAT


def test_a_reset_starts_the_lamps_anew_with_flashing(bench: CrossingBench) -> None:
    run(bench, 13)
    bench.reset()
    first = of(run(bench, 1), Seen.LAMPS)[0]
    assert first.value == sum(1 << 3 * group for group in range(GROUPS))
    assert not of(run(bench, 5), Seen.RELAY)


def test_what_the_monitor_has_done_before_is_remembered_to_the_cycle(elf: Path) -> None:
    """The same run, once with all of it executed: relay, EEPROM and the cycles asleep are the same."""
    found = []
    for executed in (False, True):
        with CrossingBench(elf, groups=GROUPS, detectors=DETECTORS, monitor=monitor_elf()) as board:
            if executed:
                board.execute_all()
            board.feed([Given(26_000_123, Into.DARK, 3 * 4 + GREEN), Given(26_800_000, Into.DARK, 3 * 4 + GREEN, 0)])
            run(board, 27)
            board.feed([Given(27_100_377, Into.SHORTED, RED, other=GREEN)])
            found.append((of(board.run(28.5e6), Seen.RELAY), board.monitor_eeprom()[:4]))
    assert found[0] == found[1]
    assert len(found[0][0]) == 1
