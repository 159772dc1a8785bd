"""How long to wait for a reply before asking again: what earlier replies took, as RFC 6298 reckons it for TCP.

Waiting too short costs a needless retry (harmless: it is answered from memory), waiting too long costs tries of the budget.
"""

from dataclasses import dataclass, field

from hil.boards.base import Board
from hil.protocol import MessageType

SMOOTHING, DEVIATION_SMOOTHING, DEVIATIONS = 1 / 8, 1 / 4, 4  # RFC 6298, section 2

BACK_OFF_MAX = 2


@dataclass
class _Estimate:
    mean_us: float
    deviation_us: float
    back_off: int = 1


@dataclass
class Pace:
    """Turnaround (a reply's time less its bytes' on the line) on one board: of decisions, and of all other requests."""

    board: Board
    _estimates: dict[bool, _Estimate] = field(default_factory=dict)

    def note(self, kind: int, exchange_us: float | None, bytes_on_line: int) -> None:
        """A request was answered, and it is clear which of its tries; None where its time tells nothing about the next."""
        known = self._estimates.get(kind == MessageType.DECIDE)
        if exchange_us is None:
            if known is not None:
                known.back_off = 1
            return
        turnaround_us = max(0.0, exchange_us - bytes_on_line * self.board.byte_us)
        if known is None:
            self._estimates[kind == MessageType.DECIDE] = _Estimate(turnaround_us, turnaround_us / 2)
            return
        known.deviation_us += DEVIATION_SMOOTHING * (abs(turnaround_us - known.mean_us) - known.deviation_us)
        known.mean_us += SMOOTHING * (turnaround_us - known.mean_us)
        known.back_off = 1

    def back_off(self, kind: int) -> None:
        """A try has ended in silence: perhaps it was too short. The next ones get longer, until an answer is clear again."""
        known = self._estimates.get(kind == MessageType.DECIDE)
        if known is not None:
            known.back_off = min(2 * known.back_off, BACK_OFF_MAX)

    def patience_us(self, kind: int, bytes_on_line: int) -> float:
        """For a try with that many bytes, both ways; the board's first guess while no such request was answered."""
        known = self._estimates.get(kind == MessageType.DECIDE)
        turnaround_us = known.mean_us + DEVIATIONS * known.deviation_us if known else self.board.first_turnaround_us
        return bytes_on_line * self.board.byte_us + turnaround_us * (known.back_off if known else 1) + self.board.settle_us
