"""The monitor's own C, compiled for this machine and driven millisecond by millisecond from Python."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from hil.build.monitor import SOURCES

GROUPS_MAX = 16
FINE, CONFLICT, DARK, SEVERAL, SHORT_YELLOW, NO_YELLOW, HEARTBEAT, TABLE = range(8)
RED, YELLOW, GREEN = "R", "Y", "G"


class Lines(ctypes.Structure):
    """struct monitor_lines"""

    _fields_ = (
        *((name, ctypes.c_uint16) for name in ("red", "yellow", "green")),
        *((name, ctypes.c_bool) for name in ("heartbeat", "button")),
    )


@dataclass
class HostMonitor:
    """A monitor with a table, in `folder`. ``lamps``: per group the letters of the lamps that are lit."""

    table: str
    folder: Path
    lamps: list[str]
    beats: bool = True
    ms: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        (self.folder / "monitor_table.h").write_text(self.table, encoding="ascii")
        (self.folder / "table.c").write_text('#include "monitor.h"\n#include "monitor_table.h"\n', encoding="ascii")
        library = self.folder / "monitor.so"
        flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fshort-enums"]
        sources = [str(SOURCES / "monitor.c"), str(self.folder / "table.c")]
        subprocess.run(["gcc", *flags, f"-I{SOURCES}", f"-I{self.folder}", *sources, "-o", str(library)], check=True)
        self._library = ctypes.CDLL(str(library))
        self._state = (ctypes.c_uint8 * 1024)()
        self.power(FINE, 0)

    def power(self, reason: int, group: int) -> None:
        """As after switching on, with what the EEPROM kept."""
        self._library.monitor_start(ctypes.byref(self._state), reason, group)

    @property
    def reason(self) -> int:
        return int(self._state[0])

    @property
    def group(self) -> int:
        return int(self._state[1])

    def run(self, ms: int, button: bool = False) -> int | None:
        """So long, or until it trips or recovers: then after how many ms."""
        for count in range(1, ms + 1):
            self.ms += 1
            beat = self.beats and self.ms // 10 % 2 == 1
            sets = [sum(1 << g for g, lit in enumerate(self.lamps) if lamp in lit) for lamp in (RED, YELLOW, GREEN)]
            if self._tick(Lines(*sets, beat, button)):
                return count
        return None

    def _tick(self, lines: Lines) -> bool:
        return bool(self._library.monitor_tick(ctypes.byref(self._state), ctypes.byref(lines)) & 0xFF)
