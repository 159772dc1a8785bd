"""The safety shell's own C, compiled for this machine and driven tick by tick from Python."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterable
from pathlib import Path

from hil.build.project import project_root

GROUPS_MAX = 16
NO_PHASE = 0xFF
OFF, START_FLASH, START_RED, GREEN, CHANGE, FLASH = range(6)
PHASE_ENDED, PHASE_BEGAN, MAXED_OUT, FORCED, WALK_BEGAN, STOPPED = (1 << bit for bit in range(6))


class State(ctypes.Structure):
    """struct shell"""

    _fields_ = (
        *((name, ctypes.c_uint8) for name in ("mode", "phase", "next")),
        *((name, ctypes.c_uint16) for name in ("timer", "called", "pressed", "due", "walking")),
        ("clocks", ctypes.c_uint16 * GROUPS_MAX),
    )


class Input(ctypes.Structure):
    """struct shell_input"""

    _fields_ = (
        *((name, ctypes.c_uint8) for name in ("wish", "faults")),
        ("calls", ctypes.c_uint16),
        ("presses", ctypes.c_uint16),
    )


class Output(ctypes.Structure):
    """struct shell_output"""

    _fields_ = (
        *((name, ctypes.c_uint16) for name in ("red", "yellow", "green", "walk", "clearing")),
        *((name, ctypes.c_uint8) for name in ("shown", "events")),
    )


class HostShell:
    """A shell with the tables of a generated header; `folder` takes what is compiled."""

    def __init__(self, tables: str, folder: Path) -> None:
        (folder / "shell_tables.h").write_text(tables, encoding="ascii")
        firmware = project_root() / "firmware"
        sources = [str(firmware / "src/light" / name) for name in ("shell.c", "tables.c")]
        library = folder / "shell.so"
        flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        includes = [f"-I{folder}", f"-I{firmware / 'include'}"]
        subprocess.run(["gcc", *flags, *includes, *sources, "-o", str(library)], check=True)
        self._tick = ctypes.CDLL(str(library)).shell_tick
        self.state = State()
        self.ticks = 0

    def tick(self, wish: int = NO_PHASE, calls: Iterable[int] = (), presses: Iterable[int] = (), faults: int = 0) -> Output:
        """One tick; calls and presses as numbers of groups."""
        output = Output()
        given = Input(wish, faults, _set(calls), _set(presses))
        self._tick(ctypes.byref(self.state), ctypes.byref(given), ctypes.byref(output))
        self.ticks += 1
        return output

    def until(self, event: int, limit: int = 40_000, wish: int = NO_PHASE, calls: Iterable[int] = ()) -> int:
        """Ticks until one has `event`, that one included."""
        for count in range(1, limit + 1):
            if self.tick(wish, calls).events & event:
                return count
        raise AssertionError(f"no event {event:#x} within {limit} ticks")


def _set(groups: Iterable[int]) -> int:
    return sum(1 << group for group in set(groups))
