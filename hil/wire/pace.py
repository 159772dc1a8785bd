"""How long to wait for a reply before asking again: estimated from earlier replies, as RFC 6298 does for TCP.

Waiting too short costs a needless retry (harmless: it is answered from memory), waiting too long costs tries of the budget. A
decision is waited for as long as the chip has been seen to compute one, and half as long again.
"""

from dataclasses import dataclass, field

from hil.boards.base import Board
from hil.wire.protocol import MessageType

SMOOTHING, DEVIATION_SMOOTHING, DEVIATIONS = 1 / 8, 1 / 4, 4  # RFC 6298, section 2

BACK_OFF_MAX = 2
COMPUTE_MARGIN = 1.5  # the table kernel's time depends on the inputs


@dataclass
class _Estimate:
    mean_us: float
    deviation_us: float
    back_off: int = 1


@dataclass
class Pace:
    """Turnaround (a reply's time less its bytes' on the line) on one board: of decisions, and of all other requests."""

    board: Board
    most_decision_us: float = 0.0  # the chip's bound for a decision, its frames' bytes included; 0: not known
    _seen_compute_us: float = 0.0
    _estimates: dict[bool, _Estimate] = field(default_factory=dict)

    def note_compute(self, compute_us: float) -> None:
        """Takes the compute time that the chip reports for a decision; it is valid whichever try was answered."""
        self._seen_compute_us = max(self._seen_compute_us, compute_us)

    def chip_us(self, kind: int) -> float:
        """The most time the chip may need for such a request, as far as known: no try should get less."""
        if kind != MessageType.DECIDE:
            return 0.0
        return max(self.most_decision_us, COMPUTE_MARGIN * self._seen_compute_us)

    def note(self, kind: int, exchange_us: float | None, bytes_on_line: int) -> None:
        """A request was answered, and it is clear which of its tries; None where its time says nothing about the next."""
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
        """A try has ended in silence, perhaps too short. The next ones get longer, until an answer is certain again."""
        known = self._estimates.get(kind == MessageType.DECIDE)
        if known is not None:
            known.back_off = min(2 * known.back_off, BACK_OFF_MAX)

    def patience_us(self, kind: int, bytes_on_line: int) -> float:
        """For a try with that many bytes in both directions; by the board's first guess until such a request is answered."""
        known = self._estimates.get(kind == MessageType.DECIDE)
        if known is None:
            turnaround_us = max(self.board.first_turnaround_us, self.chip_us(kind))
        else:
            turnaround_us = (known.mean_us + DEVIATIONS * known.deviation_us) * known.back_off
        if kind == MessageType.DECIDE:
            turnaround_us = max(turnaround_us, COMPUTE_MARGIN * self._seen_compute_us)
        return bytes_on_line * self.board.byte_us + turnaround_us + self.board.settle_us
