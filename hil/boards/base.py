"""What every board can do. A board moves bytes and records when; of frames it knows only their 0x00 delimiter."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Literal, NamedTuple, Self


@dataclass(frozen=True)
class ExchangeTiming:
    """Four moments of the last exchange on the board's clock, in microseconds; NaN where nothing was seen.

    The reply is the frame that the last `read` ended with; its delimiter counts.
    """

    write_start_us: float  # the first request byte starts
    request_end_us: float  # the last request byte is received in full
    reply_start_us: float  # the first reply byte starts
    reply_end_us: float  # the last reply byte is in hand


class Activity(NamedTuple):
    """What an emulated chip has done since power-on, and which of its modules' clocks are off."""

    cycles: int
    asleep_cycles: int  # of these
    power_reduction: int  # the register PRR


class Board(ABC):
    """A serial line with the firmware at its other end. As a context manager it opens itself, if need be, and closes.

    Reads and writes raise `hil.boards.faults.BoardDied` when the board is gone for good.
    """

    name: str
    description: str
    clock: ClassVar[Literal["cycles", "wall"]]
    # How long after opening (or a reset) the firmware may take until it answers, microseconds.
    boot_us: ClassVar[float]
    # How often a booting board is asked whether it is there.
    hello_interval_us: float = 250_000
    # A byte's time on the line, microseconds; 0 where there is no line.
    byte_us: float = 0.0
    # After a silence of this length, no part of a frame that had begun is still in transit.
    settle_us: float = 0.0
    # How long the firmware may compute before it answers; used until a first answer has been seen.
    first_turnaround_us: float = math.inf

    @abstractmethod
    def open(self) -> None:
        """Open the board and start its firmware. InputError where that isn't possible."""

    @property
    @abstractmethod
    def is_open(self) -> bool: ...

    @abstractmethod
    def close(self) -> None:
        """Release everything; may be called twice."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Start an exchange: put `data` on the wire, behind what is still being sent."""

    @abstractmethod
    def read(self, deadline_us: float) -> bytes:
        """Returns as soon as something has arrived, up to the end of one frame at most; b"" at the deadline."""

    @abstractmethod
    def now_us(self) -> float:
        """The board's clock: cycles / F_CPU on the emulator, the machine's clock elsewhere."""

    @abstractmethod
    def drain(self) -> int:
        """Throw away what has arrived and was not read; returns how many bytes, where that is known."""

    @abstractmethod
    def reset(self) -> None:
        """Reset the chip as its reset pin does."""

    @abstractmethod
    def timing(self) -> ExchangeTiming:
        """When the last exchange happened."""

    def stack_high_water_bytes(self) -> int | None:
        """Deepest stack since the last reset, in bytes, where the board's RAM can be read; else None."""
        return None

    def activity(self) -> Activity | None:
        """Cycles awake and asleep, where the board counts them; else None."""
        return None

    def led(self) -> bool | None:
        """Whether the board's LED is lit, where that can be seen; else None."""
        return None

    def diagnosis(self) -> str:
        """Why the board may be silent, as far as it knows, as a phrase; "" if it knows nothing."""
        return ""

    def __enter__(self) -> Self:
        if not self.is_open:
            self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
