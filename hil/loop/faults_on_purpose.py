"""A bad line and an unreliable chip: a board in front of a board, which does to both what a `FaultSpec` says."""

import random
from collections import Counter, deque
from pathlib import Path
from types import MappingProxyType

from hil.boards.base import Activity, Board, ExchangeTiming
from hil.loop.fault_spec import BYTE_FAULTS, CHIP_FAULTS, FIELD, Event, FaultSpec
from streetflow.errors import FieldError

DELAY_US = 5_000
Pieces = list[tuple[bytes, bool]]  # what passes, and whether it is delayed first


class FaultyBoard(Board):
    """`board` as seen through faults. `injected` counts them by kind.

    Chip faults need a board that can do them: any can `reset`, only the emulated chip can do the others. FieldError otherwise.
    """

    def __init__(self, board: Board, spec: FaultSpec) -> None:
        self.board = board
        self.spec = spec
        self.name = board.name
        self.description = f"{board.description}, with faults {spec.text}"
        self.clock = board.clock  # type: ignore[misc]  # of this instance: that of the board behind it
        self.boot_us = board.boot_us  # type: ignore[misc]
        self.hello_interval_us = board.hello_interval_us
        self.first_turnaround_us = board.first_turnaround_us
        self.byte_us = board.byte_us
        self.settle_us = board.settle_us
        self.injected: Counter[str] = Counter()
        self.struck: list[Event] = []  # faults of the chip, and silences
        self._random = random.Random(spec.seed)
        self._script = deque(spec.script)
        self._requests = 0
        self._received = bytearray()  # after the faults, not read yet
        self._silent_until_us = -1.0
        self._arrival_us = float("nan")  # of what was read last, where it was held up
        wanted = {kind for kind in spec.rates if kind in CHIP_FAULTS} | {event.kind for event in spec.script}
        for kind, method in METHODS.items():
            if kind in wanted and not hasattr(board, method):
                raise FieldError(FIELD, f"{board.name} can't do {kind!r} on demand; the board simavr can")

    def open(self) -> None:
        self.board.open()

    @property
    def is_open(self) -> bool:
        return self.board.is_open

    def close(self) -> None:
        self.board.close()

    def write(self, data: bytes) -> None:
        self._requests += 1
        passed = 0
        for piece, held_up in self._damage(data):
            if held_up:
                self._let_pass(DELAY_US)
            if not self._is_silent():
                self.board.write(piece)
                passed += len(piece)
        if not passed:
            self.board.write(b"")  # the exchange's clock still starts
        self._strike()

    def read(self, deadline_us: float) -> bytes:
        while not self._received:
            data = self.board.read(deadline_us)
            if not data:
                return b""
            self._take(data)
        data = bytes(self._received)
        self._received.clear()
        return data

    def now_us(self) -> float:
        return self.board.now_us()

    def drain(self) -> int:
        dropped = len(self._received)
        self._received.clear()
        return dropped + self.board.drain()

    def reset(self) -> None:
        self.board.reset()

    def timing(self) -> ExchangeTiming:
        seen = self.board.timing()
        if not self._arrival_us > seen.reply_end_us:
            return seen
        return ExchangeTiming(seen.write_start_us, seen.request_end_us, seen.reply_start_us, self._arrival_us)

    def stack_high_water_bytes(self) -> int | None:
        return self.board.stack_high_water_bytes()

    def activity(self) -> Activity | None:
        return self.board.activity()

    def led(self) -> bool | None:
        return self.board.led()

    def diagnosis(self) -> str:
        faults = ", ".join(f"{count} {kind}" for kind, count in self.injected.items())
        return "; ".join(filter(None, (self.board.diagnosis(), f"injected: {faults}" if faults else "")))

    def _take(self, data: bytes) -> None:
        """Passes what the board has sent through the faults."""
        if self._is_silent():
            return
        for piece, held_up in self._damage(data):
            if held_up:
                self._let_pass(DELAY_US)
                self._arrival_us = self.board.now_us()
            self._received += piece

    def _let_pass(self, duration_us: float) -> None:
        """Lets time pass; what arrives meanwhile is kept, undamaged."""
        end_us = self.board.now_us() + duration_us
        while data := self.board.read(end_us):
            self._received += data

    def _is_silent(self) -> bool:
        return self.board.now_us() < self._silent_until_us

    def _damage(self, data: bytes) -> Pieces:
        """`data` after the random byte faults, in pieces of which some are held up."""
        rates = [self.spec.rates.get(kind, 0.0) for kind in BYTE_FAULTS]
        if not any(rates):
            return [(data, False)]
        pieces: list[tuple[bytearray, bool]] = [(bytearray(), False)]
        for byte in data:
            dice = self._random.random()
            kind = next((kind for kind, edge in zip(BYTE_FAULTS, _edges(rates), strict=True) if dice < edge), None)
            if kind is not None:
                self.injected[kind] += 1
            if kind == "cut":
                break
            if kind == "delay":
                pieces.append((bytearray(), True))
            if kind != "drop":
                pieces[-1][0].append(byte ^ (self._random.randrange(1, 256) if kind == "flip" else 0))
            if kind == "double":
                pieces[-1][0].append(byte)
        return [(bytes(piece), held_up) for piece, held_up in pieces]

    def _strike(self) -> None:
        """The chip's faults, while a request is in transit."""
        while self._script and self._script[0].request <= self._requests:
            self._do(self._script.popleft())
        for kind in CHIP_FAULTS:
            if kind in self.spec.rates and self._random.random() < self.spec.rates[kind]:
                self._do(Event(kind, self._requests))

    def _do(self, event: Event) -> None:
        self.injected[event.kind] += 1
        self.struck.append(event)
        if event.kind == "silence":
            self._silent_until_us = self.board.now_us() + float(event.argument) * 1e6
            return
        arguments = {"brownout": (self._random.getrandbits(32),), "swap": (Path(event.argument),)}
        getattr(self.board, METHODS[event.kind])(*arguments.get(event.kind, ()))


METHODS = MappingProxyType({"reset": "reset", "brownout": "brown_out", "hang": "hang", "swap": "swap"})


def _edges(rates: list[float]) -> list[float]:
    """Cumulative probabilities."""
    total, edges = 0.0, []
    for rate in rates:
        total += rate
        edges.append(total)
    return edges
