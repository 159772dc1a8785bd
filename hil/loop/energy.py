"""What the chip's decisions cost in energy, by a model: no current is measured.

The emulator counts the cycles that the CPU is awake and asleep (idle mode: timer and UART run on); the datasheet gives the
typical current for either. Source: ATmega48A/PA/88A/PA/168A/PA/328/P, DS40002061A, at 25 degrees C: table 29-12 (ATmega328P,
all modules off) and table 31-15 (what each module adds whose clock is on, by the register PRR). The current is taken as
proportional to the clock. Not counted: whatever else is on the board (a regulator, a USB bridge, LEDs), pins that drive
something, the watchdog's few microamperes, and between decisions the timer's wake-ups (each 65,536 cycles).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from hil.boards.base import Activity, Board
from hil.loop.closed_loop import DecisionRecord

MODULES = ("PRADC", "PRUSART0", "PRSPI", "PRTIM1", None, "PRTIM0", "PRTIM2", "PRTWI")  # by their bit in PRR
NOT_MEASURED = "not measured"
DAY_S = 86_400.0
BATTERY_MAH = 2_500.0  # of alkaline AA cells at some milliamperes; cells in series have that of one
BATTERY = "AA alkaline cells in series, 2,500 mAh"


class Supply(NamedTuple):
    """The datasheet's typical currents at one voltage and clock."""

    volts: float
    clock_hz: float
    active_ma: float
    idle_ma: float
    module_ma: dict[str, float]
    highest_clock_hz: float  # used for boards up to this clock

    def nanojoules_per_cycle(self, power_reduction: int) -> tuple[float, float]:
        """Of a cycle awake, and of one asleep, with these modules' clocks off."""
        on = (name for bit, name in enumerate(MODULES) if name and not power_reduction >> bit & 1)
        modules_ma = sum(self.module_ma[name] for name in on)
        active, idle = (self.volts * (own + modules_ma) / self.clock_hz * 1e6 for own in (self.active_ma, self.idle_ma))
        return active, idle


SUPPLIES = (
    Supply(
        3.0,
        4e6,
        1.7,
        0.3,
        {
            "PRUSART0": 0.02217,
            "PRTWI": 0.04655,
            "PRTIM2": 0.05079,
            "PRTIM1": 0.04125,
            "PRTIM0": 0.01428,
            "PRSPI": 0.04384,
            "PRADC": 0.0618,
        },
        10e6,  # section 29.3 allows it from 2.7 V on
    ),
    Supply(
        5.0,
        8e6,
        5.2,
        1.2,
        {
            "PRUSART0": 0.10025,
            "PRTWI": 0.19925,
            "PRTIM2": 0.22425,
            "PRTIM1": 0.17625,
            "PRTIM0": 0.06113,
            "PRSPI": 0.1865,
            "PRADC": 0.29538,
        },
        math.inf,
    ),
)


class Energy(NamedTuple):
    """Of one chip, by the model. ``decision_uj`` is what a decision takes while the CPU is awake for it; the rest of the time
    between decisions it sleeps. The day has a decision of each light every interval."""

    decisions: int  # asked for
    awake_cycles: int  # from before the first decision to after the last, their bytes included
    asleep_cycles: int
    volts: float
    awake_nj_per_cycle: float
    asleep_nj_per_cycle: float
    decision_uj: float
    day_j: float
    mean_ma: float
    battery_days: float
    battery: str = BATTERY
    source: str = "a model: emulated cycles x the datasheet's typical currents"


class EnergyMeter:
    """Counts from where it is made."""

    def __init__(self, boards: Sequence[Board]) -> None:
        self._boards = boards
        self._before = [board.activity() for board in boards]

    def energy(
        self, records: Sequence[Sequence[DecisionRecord]], f_cpu_hz: int, interval_s: float
    ) -> list[dict[str, object]] | str:
        """Of each board, as dictionaries of `Energy`; NOT_MEASURED where one doesn't count cycles, or has decided nothing.

        Args:
            records: the decisions asked of each since.
            f_cpu_hz: the chips' clock.
            interval_s: simulated time from one decision of a light to its next.
        """
        found: list[dict[str, object]] = []
        for board, before, asked in zip(self._boards, self._before, records, strict=True):
            after = board.activity()
            if before is None or after is None or not asked:
                return NOT_MEASURED
            lights = len({record.intersection for record in asked})
            found.append(energy_of(before, after, len(asked), f_cpu_hz, DAY_S / interval_s * lights)._asdict())
        return found


def energy_of(before: Activity, after: Activity, decisions: int, f_cpu_hz: int, decisions_a_day: float) -> Energy:
    """From the counts before and after so many decisions (at least one)."""
    supply = next(each for each in SUPPLIES if f_cpu_hz <= each.highest_clock_hz)
    awake_nj, asleep_nj = supply.nanojoules_per_cycle(after.power_reduction)
    asleep = after.asleep_cycles - before.asleep_cycles
    awake = after.cycles - before.cycles - asleep
    awake_a_day = min(awake / decisions * decisions_a_day, f_cpu_hz * DAY_S)
    day_j = (awake_a_day * awake_nj + (f_cpu_hz * DAY_S - awake_a_day) * asleep_nj) / 1e9
    mean_ma = day_j / DAY_S / supply.volts * 1e3
    return Energy(
        decisions,
        awake,
        asleep,
        supply.volts,
        awake_nj,
        asleep_nj,
        decision_uj=awake / decisions * awake_nj / 1e3,
        day_j=day_j,
        mean_ma=mean_ma,
        battery_days=BATTERY_MAH / mean_ma / 24,
    )


def energy_line(figures: object) -> str:
    """A verdict's figures of energy as one line of text: of the chip that takes most."""
    if not isinstance(figures, list):
        return f"energy: {figures} (this board doesn't count cycles awake and asleep)"
    most = max(figures, key=lambda each: each["day_j"])
    return (
        f"energy, by a model of the chip alone (no current is measured): {most['decision_uj']:,.0f} µJ a decision; "
        f"{most['day_j']:,.0f} J a day at {most['volts']:g} V, {most['mean_ma']:.2f} mA; "
        f"{most['battery_days']:.0f} days from {most['battery']}"
    )
