"""A board that notes all that passes between it and the harness, and one that plays such notes back.

Noted is each call with its answer, so that whatever runs above a board, being deterministic itself, runs from the notes to the
same result: bytes written and read with their times, the four moments of an exchange, resets, and the clock, where it isn't
the emulator's, at each look. A call is a list: its name, then its figures (docs/report.md says which).
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from hil.boards.base import Activity, Board, ExchangeTiming
from hil.boards.faults import BoardDied
from streetflow.errors import InputError

Call = list[Any]
# What some boards can do beside what all can; it returns nothing.
ABILITIES = ("brown_out", "hang", "swap", "set_line_rate", "damage_flash", "mend_flash")
FACTS = ("name", "description", "clock", "boot_us", "hello_interval_us", "byte_us", "settle_us", "first_turnaround_us")


class RecordingBoard(Board):
    """`board`, with each call handed to `note`."""

    def __init__(self, board: Board, note: Callable[[Call], None]) -> None:
        self.board = board
        self.facts: dict[str, Any] = {name: _finite(getattr(board, name)) for name in FACTS}
        self.facts["abilities"] = [name for name in ABILITIES if hasattr(board, name)]
        _take_facts(self, self.facts, self._do)
        self._note = note
        self._now_us = math.nan  # as last noted

    def open(self) -> None:
        self.board.open()

    @property
    def is_open(self) -> bool:
        return self.board.is_open

    def close(self) -> None:
        self.board.close()

    def write(self, data: bytes) -> None:
        begin_us = self.board.now_us()
        self._or_death("write", lambda: self.board.write(data))
        self._note(["write", begin_us, data.hex()])

    def read(self, deadline_us: float) -> bytes:
        data = self._or_death("read", lambda: self.board.read(deadline_us))
        self._now_us = self.board.now_us()
        self._note(["read", self._now_us, data.hex()])
        return data

    def now_us(self) -> float:
        now_us = self.board.now_us()
        if self.clock == "wall" or now_us != self._now_us:
            self._now_us = now_us
            self._note(["now", now_us])
        return now_us

    def drain(self) -> int:
        dropped = self._or_death("drain", self.board.drain)
        self._note(["drain", dropped])
        return dropped

    def reset(self) -> None:
        self._or_death("reset", self.board.reset)
        self._note(["reset"])

    def timing(self) -> ExchangeTiming:
        timing = self.board.timing()
        self._note(["timing", *(_finite(moment) for moment in vars(timing).values())])
        return timing

    def stack_high_water_bytes(self) -> int | None:
        mark = self.board.stack_high_water_bytes()
        self._note(["stack", mark])
        return mark

    def activity(self) -> Activity | None:
        activity = self.board.activity()
        self._note(["activity", *(activity or ())])
        return activity

    def led(self) -> bool | None:
        lit = self.board.led()
        self._note(["led", lit])
        return lit

    def diagnosis(self) -> str:
        text = self.board.diagnosis()
        self._note(["diagnosis", text])
        return text

    def _do(self, name: str, *arguments: Any) -> None:
        self._or_death(name, lambda: getattr(self.board, name)(*arguments))
        self._note([name, *(str(each) if isinstance(each, Path) else each for each in arguments)])

    def _or_death(self, name: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except BoardDied as death:
            self._note([f"{name} died", str(death)])
            raise


class ReplayedBoard(Board):
    """The calls of a `RecordingBoard`, answered as they were. A call that isn't the next of the record is an InputError that
    names its line: the run asks for something else than the recorded one did."""

    clock: ClassVar[Literal["cycles", "wall"]] = "wall"
    boot_us: ClassVar[float] = 0.0

    def __init__(self, facts: Mapping[str, Any], calls: Iterable[tuple[int, Call]], file: str | Path) -> None:
        """`calls` with the line of each in `file`."""
        self.facts = facts
        _take_facts(self, facts, self._do)
        self._calls = deque(calls)
        self._file = file
        self._line = 0
        self._now_us = 0.0

    def open(self) -> None:
        """There is nothing to open."""

    @property
    def is_open(self) -> bool:
        return True

    def close(self) -> None:
        """There is nothing to close."""

    def finish(self) -> None:
        """InputError unless the whole record was played."""
        if self._calls:
            line, call = self._calls[0]
            raise self._departed(line, f"the run ends here; the record goes on with {_shown(call)}")

    def write(self, data: bytes) -> None:
        self._next("write", 2, lambda call: call[2:] == [data.hex()], f"write {data.hex()}")

    def read(self, deadline_us: float) -> bytes:
        self._now_us, data = self._next("read", 2)
        try:
            return bytes.fromhex(data)
        except ValueError:
            raise InputError(self._file, f"line {self._line}", f"{data} are no bytes") from None

    def now_us(self) -> float:
        if self._calls and self._calls[0][1][0] == "now":
            (self._now_us,) = self._next("now", 1)
        return self._now_us

    def drain(self) -> int:
        (dropped,) = self._next("drain", 1)
        return int(dropped)

    def reset(self) -> None:
        self._next("reset", 0)

    def timing(self) -> ExchangeTiming:
        return ExchangeTiming(*(math.nan if moment is None else moment for moment in self._next("timing", 4)))

    def stack_high_water_bytes(self) -> int | None:
        (mark,) = self._next("stack", 1)
        return None if mark is None else int(mark)

    def activity(self) -> Activity | None:
        counts = self._next("activity", None)
        return Activity(*counts) if counts else None

    def led(self) -> bool | None:
        (lit,) = self._next("led", 1)
        return None if lit is None else bool(lit)

    def diagnosis(self) -> str:
        (text,) = self._next("diagnosis", 1)
        return str(text)

    def _do(self, name: str, *arguments: Any) -> None:
        told = [str(each) if isinstance(each, Path) else each for each in arguments]
        self._next(name, len(told), lambda call: call[1:] == told, f"{name} {told}")

    def _next(
        self, name: str, figures: int | None, fits: Callable[[Call], bool] = lambda call: True, asked: str = ""
    ) -> list[Any]:
        """The figures of the next call, which must be of this name."""
        asked = asked or name
        if not self._calls:
            raise self._departed(self._line + 1, f"the record ends here; the run goes on with {asked}")
        self._line, call = self._calls.popleft()
        if call[0] == f"{name} died":
            raise BoardDied(str(call[1]))
        if call[0] != name or not fits(call):
            raise self._departed(self._line, f"the record has {_shown(call)}, the run asks for {asked}")
        if figures is not None and len(call) != figures + 1:
            raise InputError(self._file, f"line {self._line}", f"{name} has {len(call) - 1} figures, not {figures}")
        return call[1:]

    def _departed(self, line: int, fault: str) -> InputError:
        return InputError(self._file, f"line {line}", f"the replay departs from the record: {fault}")


def _take_facts(board: Board, facts: Mapping[str, Any], do: Callable[..., None]) -> None:
    """The board's facts, and its abilities: `do` is called with each one's name and arguments."""
    for name in FACTS:
        value = facts[name]
        setattr(board, name, math.inf if value is None else value)
    for name in facts["abilities"]:
        setattr(board, name, partial(do, name))


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: None stands for either."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _shown(call: Call) -> str:
    return " ".join(str(each) for each in call)
