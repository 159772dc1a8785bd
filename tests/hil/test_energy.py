"""The model of energy: cycles awake and asleep as the emulator counts them, times the datasheet's currents."""

from itertools import pairwise
from pathlib import Path

import pytest

from hil.boards import SimavrBoard
from hil.boards.base import Activity
from hil.boards.waves import Happening
from hil.loop.closed_loop import DecisionRecord
from hil.loop.energy import MODULES, NOT_MEASURED, SUPPLIES, EnergyMeter, energy_line, energy_of
from hil.loop.verdict import Verdict
from tests.helpers.fake_board import FakeBoard
from tests.helpers.firmware_probe import build_probe

F_CPU_HZ = 16_000_000
ALL_OFF = 0xEF  # PRR: its bit 4 is no module's
DECISION = DecisionRecord(0, "a", 1, 1, (), (), 1, 1, False, False, 100, 1.0, 1.0, 1)


@pytest.mark.parametrize("flags", [(), ("-DPOLLED",)], ids=["sleeps", "polls"])
def test_awake_and_asleep_add_up_to_the_run(flags: tuple[str, ...], tmp_path: Path) -> None:
    """Exactly; and both are seen on the trace as well, which notes each sleep. A program that polls never sleeps."""
    with SimavrBoard(build_probe(tmp_path, flags=flags), f_cpu_hz=F_CPU_HZ, baud=115_200) as board:
        board.trace()
        before = board.activity()
        board.write(b"\x81\x00")
        board.read(board.now_us() + 50_000)
        board.read(board.now_us() + 100_000)
        after = board.activity()
        sleeps = [event for event in board.traced() if event.kind == Happening.ASLEEP]
    run = after.cycles - before.cycles
    asleep = after.asleep_cycles - before.asleep_cycles
    assert 0.1 * F_CPU_HZ < run < 0.101 * F_CPU_HZ and asleep == sum(each.end - each.start for each in sleeps)
    if flags:
        assert sleeps == []
        return
    gaps = [later.start - earlier.end for earlier, later in pairwise(sleeps)]
    assert 0 in gaps and all(gap == 0 or gap > 12 for gap in gaps), (
        "a sleep that goes on has no gap; an interrupt has its cycles"
    )
    edges = [before.cycles, *(cycle for sleep in sleeps for cycle in (sleep.start, sleep.end)), after.cycles]
    awake = sum(end - start for start, end in zip(edges[::2], edges[1::2], strict=True))
    assert awake + asleep == run and 0 < awake < 1_000, "two bytes take it some hundred cycles"


def test_the_datasheets_currents() -> None:
    """Nanojoules a cycle: volts x mA / MHz, with all modules off, and with those on that PRR leaves on."""
    low, high = SUPPLIES
    assert high.nanojoules_per_cycle(ALL_OFF) == pytest.approx((5 * 5.2 / 8, 5 * 1.2 / 8))
    assert low.nanojoules_per_cycle(ALL_OFF) == pytest.approx((3 * 1.7 / 4, 3 * 0.3 / 4))
    usart = 1 << MODULES.index("PRUSART0")
    assert high.nanojoules_per_cycle(ALL_OFF & ~usart)[1] == pytest.approx(5 * (1.2 + 0.10025) / 8)
    assert MODULES[0] == "PRADC" and MODULES[7] == "PRTWI" and usart == 0b10  # section 10.11.3 of the datasheet


def test_a_decision_a_day_and_a_battery() -> None:
    """By hand: 40,000 cycles awake a decision at 3.25 nJ; 4,320 decisions a day; the rest of the day asleep at 0.75 nJ."""
    found = energy_of(Activity(1_000, 900, 0), Activity(1_000 + 500_000, 900 + 100_000, ALL_OFF), 10, F_CPU_HZ, 4_320)
    assert (found.awake_cycles, found.asleep_cycles) == (400_000, 100_000)
    assert found.decision_uj == pytest.approx(130)
    day = (4_320 * 40_000 * 3.25 + (16e6 * 86_400 - 4_320 * 40_000) * 0.75) / 1e9
    assert found.day_j == pytest.approx(day) and day == pytest.approx(1_037.2, abs=0.1)
    assert found.mean_ma == pytest.approx(day / 86_400 / 5 * 1e3) and found.battery_days == pytest.approx(
        2_500 / found.mean_ma / 24
    )
    assert energy_of(Activity(0, 0, 0), Activity(9, 0, ALL_OFF), 1, 8_000_000, 1).volts == 3.0


def test_a_board_without_counts_is_not_measured() -> None:
    meter = EnergyMeter([FakeBoard()])
    assert meter.energy([[DECISION]], F_CPU_HZ, 20) == NOT_MEASURED
    assert energy_line(NOT_MEASURED).startswith("energy: not measured")


@pytest.mark.hil
def test_a_run_on_the_emulated_chip_has_it_and_calls_it_a_model(closed_loop) -> None:
    verdict: Verdict = closed_loop(board="simavr", sweep=False)
    (found,) = verdict.figures["energy"]  # type: ignore[misc]
    assert found["decisions"] == 180 and "a model" in found["source"]
    latency = verdict.figures["latency"]
    compute, trip = latency["compute_cycles"]["p50"], latency["round_trip_us"]["p50"] * 16  # type: ignore[index]
    assert compute < found["awake_cycles"] / 180 < trip, "awake for the inference and the bytes, asleep between them"
    line = energy_line(verdict.figures["energy"])
    assert "by a model of the chip alone (no current is measured)" in line and "µJ a decision" in line
