"""Builds the monitor's firmware for one crossing: avr-gcc alone, and a table from the road network's file by its own path."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import firmware.monitor
from firmware.monitor.derive import DeriveError, derive, header
from hil.build.firmware import BuildError, default_build_dir
from hil.build.stack_bound import StackBound, stack_bound
from streetflow.errors import InputError

SOURCES = Path(firmware.monitor.__file__).parent
F_CPU_HZ = 16_000_000
FLAGS = (
    "-mmcu=atmega328p", f"-DF_CPU={F_CPU_HZ}UL", "-std=gnu11", "-Os", "-Wall", "-Wextra", "-Wshadow", "-Wundef", "-Werror",
    "-fshort-enums", "-fno-common", "-ffunction-sections", "-fdata-sections", "-mrelax", "-Wl,--gc-sections",
)  # fmt: skip


@dataclass(frozen=True)
class MonitorFirmware:
    """A built monitor. Flash and static RAM in bytes."""

    elf: Path
    flash_bytes: int
    static_ram_bytes: int

    def stack(self) -> StackBound:
        """The deepest that its stack can be."""
        return stack_bound(self.elf)


def monitor_header(roadnet_file: Path, intersection: str) -> str:
    """monitor_table.h of a crossing. InputError naming the file for what can't be watched."""
    try:
        return header(derive(json.loads(Path(roadnet_file).read_text(encoding="utf-8")), intersection))
    except DeriveError as error:
        raise InputError(roadnet_file, "", str(error)) from None
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise InputError(roadnet_file, "", f"not a road network ({error!r})") from None


def build_monitor(roadnet_file: Path, intersection: str, build_dir: Path | None = None) -> MonitorFirmware:
    """The monitor of one crossing, built unless it has been. InputError for a crossing that it can't watch, or where the
    compiler is missing; BuildError if compiling fails."""
    table = monitor_header(roadnet_file, intersection)
    if shutil.which("avr-gcc") is None:
        raise InputError("avr-gcc", "", "not on PATH; install it: apt install gcc-avr binutils-avr avr-libc")
    sources = sorted(SOURCES.glob("*.[ch]"))
    version = subprocess.run(["avr-gcc", "--version"], capture_output=True, text=True, check=True).stdout
    content = [table.encode(), version.encode(), " ".join(FLAGS).encode(), *(file.read_bytes() for file in sources)]
    key = hashlib.sha256(b"\0".join(content)).hexdigest()[:16]
    folder = (build_dir or default_build_dir()) / f"monitor-{key}"
    if not folder.is_dir():
        _compile(folder, table, [file for file in sources if file.suffix == ".c"])
    sizes = subprocess.run(["avr-size", "-B", str(folder / "monitor.elf")], capture_output=True, text=True, check=True).stdout
    text, data, bss = map(int, sizes.splitlines()[1].split()[:3])
    return MonitorFirmware(folder / "monitor.elf", text + data, data + bss)


def _compile(folder: Path, table: str, sources: list[Path]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as draft:
        built = Path(draft) / "built"
        built.mkdir()
        (built / "monitor_table.h").write_text(table, encoding="ascii")
        command = ["avr-gcc", *FLAGS, f"-I{built}", f"-I{SOURCES}", *map(str, sources), "-o", str(built / "monitor.elf")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise BuildError(f"building the monitor failed:\n{done.stderr.strip()}")
        try:
            built.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process has just built the same
                raise
