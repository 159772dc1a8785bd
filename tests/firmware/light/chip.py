"""A light's firmware on an emulated chip, driven by a script (`emulated.c`), and what its pins and its serial line did."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hil.build.firmware import Firmware
from hil.build.project import project_root
from hil.wire.events import Decision, Event, decode_unasked
from hil.wire.protocol import Frame, FrameSplitter, decode_frame

SOURCE = project_root() / "tests/firmware/light/emulated.c"
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]


@functools.cache
def program() -> Path:
    """The emulator's program, compiled once a session."""
    built = Path(tempfile.mkdtemp(prefix="tinylight-light-")) / "emulated"
    subprocess.run(["gcc", *FLAGS, str(SOURCE), "-o", str(built), "-lsimavr"], check=True)
    return built


@dataclass
class Seen:
    """What a script has shown. Cycles are counted from the start, power cycles included."""

    lamps: list[tuple[int, int]] = field(default_factory=list)
    """(cycle, lines) of each change, line 0 the lowest bit."""
    beats: list[tuple[int, bool]] = field(default_factory=list)
    """Of each `run`: edges of the heartbeat, and whether none was late."""
    frames: list[tuple[int, Frame]] = field(default_factory=list)
    watchdog: list[int] = field(default_factory=list)
    kept: list[bytes] = field(default_factory=list)
    cycles: list[tuple[int, int]] = field(default_factory=list)
    """(awake, all) at each `cycles`."""

    @property
    def events(self) -> list[Event]:
        found = [decode_unasked(frame) for _, frame in self.frames if frame.type == 0xA0]
        return [event for each in found if isinstance(each, list) for event in each]

    @property
    def decisions(self) -> list[Decision]:
        found = [decode_unasked(frame) for _, frame in self.frames if frame.type == 0xA1]
        return [each for each in found if isinstance(each, Decision)]

    def kinds(self, kind: int) -> list[tuple[int, int]]:
        """(tick, channel) of all events of a kind."""
        return [(event.tick, event.channel) for event in self.events if event.kind == kind]


def play(firmware: Firmware, lamp_lines: int, *script: str) -> Seen:
    """Runs the script's lines."""
    command = [str(program()), str(firmware.elf), str(firmware.f_cpu_hz), str(lamp_lines)]
    done = subprocess.run(command, input="\n".join((*script, "")), capture_output=True, text=True, check=True, timeout=300)
    seen, splitter = Seen(), FrameSplitter()
    for line in done.stdout.splitlines():
        what, cycle, *rest = line.split()
        if what == "lamps":
            seen.lamps.append((int(cycle), int(rest[0], 16)))
        elif what == "uart":
            seen.frames += [(int(cycle), decode_frame(encoded)) for encoded in splitter.feed(bytes.fromhex(rest[0]))]
        elif what == "beat":
            seen.beats.append((int(rest[0]), rest[1] == "even"))
        elif what == "watchdog":
            seen.watchdog.append(int(cycle))
            splitter.clear()
        elif what == "kept":
            seen.kept.append(bytes.fromhex(rest[0]))
        elif what == "cycles":
            seen.cycles.append((int(cycle), int(rest[0])))
        else:
            raise AssertionError(line)
    return seen
