"""How many decisions a fault on purpose may cost: as many as fall into the time until the chip is back."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from hil.boards.base import Board
from hil.loop.closed_loop import LoopResult
from hil.loop.fault_spec import Event

WATCHDOG_S = 1.1  # the chip's second, by an oscillator that is off by up to a tenth
RESTART_S = 0.1  # without bootloader: the check of a full flash takes 65 ms at 16 MHz


class Recovery(NamedTuple):
    """Decisions lost in a run, and how many its faults may cost."""

    lost: int
    allowed: int

    @property
    def is_enough(self) -> bool:
        return self.lost <= self.allowed


def recovery_of(result: LoopResult, outages_s: Iterable[float], budget_s: float) -> Recovery | None:
    """`outages_s`: how long each fault may keep the chip from answering. None where there was none, or one that lasts.

    A decision without an answer takes the whole budget; one more may be on its way when the fault begins.
    """
    outages = list(outages_s)
    if not outages or math.inf in outages:
        return None
    return Recovery(len(result.unanswered), sum(math.ceil(round(outage / budget_s, 6)) + 1 for outage in outages))


def outage_s(event: Event, board: Board) -> float:
    """How long a fault may keep the chip from answering; infinite for another firmware."""
    restart_s = RESTART_S if board.clock == "cycles" else board.boot_us / 1e6
    if event.kind == "silence":
        return float(event.argument)
    return {"hang": WATCHDOG_S + restart_s, "swap": math.inf}.get(event.kind, restart_s)
