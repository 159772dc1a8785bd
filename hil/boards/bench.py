"""A crossing on the bench: the controller's emulated chip, with lamps and detectors at its pins, and the monitor's chip.

Pins and order of lines: docs/controller.md. Both chips count the cycles of one clock; `simavr_bench.h` says how they
keep in step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hil.boards.elf_image import read_elf
from hil.boards.simavr import PART, SimavrBoard

EEPROM_BYTES = 1024
CHANGE = np.dtype({"names": ["cycle", "value", "what"], "formats": ["<u8", "<u8", "u1"], "offsets": [0, 8, 16], "itemsize": 24})
INPUT = np.dtype([("cycle", "<u8"), ("what", "u1"), ("line", "u1"), ("level", "u1"), ("other", "u1"), ("", "V4")])


class Into(IntEnum):
    """What is done to a bench, as in simavr_bench.h."""

    DETECTOR = 0
    STUCK_ON = 1
    DARK = 2
    SHORTED = 3
    BUTTON = 4
    HEARTBEAT_CUT = 5


class Seen(IntEnum):
    """What a bench does, as in simavr_bench.h."""

    LAMPS = 0
    SHOWN = 1
    WALKS = 2
    HEARTBEAT = 3
    RELAY = 4
    BUTTON = 5


class Given(NamedTuple):
    """One input: from `time_us` on, `line` has `level`. `other`: the line that a shorted one touches."""

    time_us: float
    what: Into
    line: int = 0
    level: int = 1
    other: int = 0


class Change(NamedTuple):
    """What has changed: `value` has one bit a line."""

    time_us: float
    what: Seen
    value: int


class CrossingBench(SimavrBoard):
    """The controller's chip as a board, with all that stands at a crossing around it."""

    def __init__(
        self,
        elf: Path,
        *,
        groups: int,
        detectors: int,
        crosswalks: bool = False,
        monitor: Path | None = None,
        f_cpu_hz: int = 16_000_000,
        baud: int = 115_200,
    ) -> None:
        """`groups` of lamps, with walk and clearing lines behind them where there are `crosswalks`, and lines of `detectors`,
        as its plan has them; `monitor`: its firmware's ELF file, None for none."""
        super().__init__(elf, f_cpu_hz=f_cpu_hz, baud=baud)
        self.groups, self.crosswalks, self.detectors, self._monitor_elf = groups, crosswalks, detectors, monitor
        self._monitor: Any = None
        self._bench: Any = None
        self._unread = bytearray()
        self.tells_heartbeats = False
        self.line_is_cut = False
        """Whether nothing passes the serial line, in either direction."""

    def _wire_up(self) -> None:
        library = self._library
        if self._monitor_elf is not None:
            self._monitor = library.tl_create(PART.encode(), self.f_cpu_hz, self.baud)
            for address, content in read_elf(self._monitor_elf).chunks:
                library.tl_load(self._monitor, content, len(content), address)
        monitor = self._monitor or self._ffi.NULL
        self._bench = library.tl_bench_create(self._sim, monitor, self.groups, self.crosswalks, self.detectors)
        if self._bench == self._ffi.NULL:
            raise ValueError(f"no bench has {self.groups} groups and {self.detectors} detectors")
        if self._monitor is not None:
            library.tl_reset(self._monitor, library.TL_POWER_ON)

    def close(self) -> None:
        super().close()
        if self._bench is not None:
            self._library.tl_bench_destroy(self._bench)
            self._bench = None
        if self._monitor is not None:
            self._library.tl_destroy(self._monitor)
            self._monitor = None

    def feed(self, inputs: Sequence[Given]) -> None:
        """More inputs; those that are past take effect at once. They must not be earlier than inputs fed before."""
        array = np.zeros(len(inputs), INPUT)
        for row, given in zip(array, sorted(inputs), strict=True):
            row["cycle"], row["what"], row["line"] = self._cycles(given.time_us), given.what, given.line
            row["level"], row["other"] = given.level, given.other
        if self._library.tl_bench_feed(self._bench, self._ffi.from_buffer("tl_input[]", array), len(array)) != 0:
            raise MemoryError("no memory for the bench's inputs")

    def run(self, until_us: float) -> list[Change]:
        """Both chips run until then. What has changed since the last call; each kind in the order of its times. The monitor may
        be a millisecond behind: what it does in it is told by the next call."""
        if self._library.tl_bench_run(self._bench, self._cycles(until_us)) != 0:
            raise MemoryError("no memory for the bench's changes")
        self._refresh()
        self._check_alive()
        count = self._ffi.new("uint32_t *")
        changes = self._library.tl_bench_changes(self._bench, count)
        found = (
            np.frombuffer(self._ffi.buffer(changes, count[0] * CHANGE.itemsize), CHANGE) if count[0] else np.zeros(0, CHANGE)
        )
        if not self.tells_heartbeats:
            found = found[found["what"] != Seen.HEARTBEAT]
        told = list(map(Change, (found["cycle"] * (1e6 / self.f_cpu_hz)).tolist(), map(Seen, found["what"].tolist()),
                        found["value"].tolist()))  # fmt: skip
        self._library.tl_bench_forget(self._bench)
        return told

    @property
    def has_monitor(self) -> bool:
        return self._monitor_elf is not None

    def write(self, data: bytes) -> None:
        super().write(b"" if self.line_is_cut else data)

    def read(self, deadline_us: float) -> bytes:
        data = super().read(deadline_us)
        while self.line_is_cut and data:
            data = super().read(deadline_us)
        self._unread += data
        return data

    def received(self) -> bytes:
        """All bytes that have come from the chip since the last call, those that `read` has taken included."""
        data, sim = self._unread, self._open()
        self._unread = bytearray()
        while count := self._library.tl_read(sim, 0, self._buffer, len(self._buffer)):
            data += self._ffi.buffer(self._buffer, count)[:]
        return b"" if self.line_is_cut else bytes(data)

    def execute_all(self) -> None:
        """From now on all that the monitor does is executed, also what it has done before from the same state."""
        self._library.tl_bench_execute_all(self._bench)

    def trace_line(self) -> None:
        """From now on the bytes on the serial line are noted, for `traced`."""
        self._traced = []
        self._library.tl_trace_line(self._open())

    def power_cycle(self, seed: int = 1) -> None:
        """The controller's power goes and comes: RAM holds noise, the EEPROM keeps what it had."""
        self._library.tl_scramble_ram(self._open(), seed)
        self._start(self._library.TL_POWER_ON)

    def power_cycle_monitor(self, seed: int = 1) -> None:
        """The monitor's power goes and comes."""
        self._library.tl_scramble_ram(self._monitor, seed)
        self._library.tl_reset(self._monitor, self._library.TL_POWER_ON)

    @property
    def symbols(self) -> Mapping[str, int]:
        """The controller's firmware: names, and their addresses."""
        return self._image.symbols

    def change_flash(self, flips: Mapping[int, int]) -> None:
        """Flips bits of the controller's flash as it runs: of which byte, and which of them; for good."""
        content = {begin + n: byte for begin, chunk in self._image.chunks for n, byte in enumerate(chunk)}
        self._load([(place, bytes([content[place] ^ bits])) for place, bits in flips.items()])

    def eeprom(self) -> bytes:
        """What the controller's EEPROM holds."""
        return self._eeprom_of(self._open())

    def monitor_eeprom(self) -> bytes:
        return self._eeprom_of(self._monitor)

    def _eeprom_of(self, sim: Any) -> bytes:
        content = self._ffi.new("uint8_t[]", EEPROM_BYTES)
        self._library.tl_eeprom(sim, content, EEPROM_BYTES)
        data: bytes = self._ffi.buffer(content)[:]
        return data
