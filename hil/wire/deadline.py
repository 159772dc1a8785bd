"""One deadline, passed through everything that waits, on the clock of the board it waits for."""

from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Anything with a clock in microseconds: every board."""

    def now_us(self) -> float: ...


@dataclass(frozen=True)
class Deadline:
    """A moment on a board's clock. On the emulator that clock counts cycles, so no host load can move it."""

    clock: Clock
    end_us: float

    @classmethod
    def after(cls, clock: Clock, duration_us: float) -> "Deadline":
        """The moment `duration_us` from now."""
        return cls(clock, clock.now_us() + duration_us)

    @property
    def remaining_us(self) -> float:
        """Time left, never negative."""
        return max(0.0, self.end_us - self.clock.now_us())

    @property
    def expired(self) -> bool:
        return self.clock.now_us() >= self.end_us

    def share(self, parts: int) -> "Deadline":
        """An earlier deadline that leaves the rest to `parts` - 1 more attempts; the last attempt gets all that is left."""
        return Deadline(self.clock, self.end_us - self.remaining_us * (parts - 1) / parts)
