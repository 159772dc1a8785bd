"""A small controller of the tests' own for the bench: the shell's very file, wishing one phase after the other."""

from __future__ import annotations

import subprocess
from pathlib import Path

from firmware.generator.light.tables import tables_header
from hil.build.monitor import build_monitor
from hil.build.project import project_root
from streetflow.control.signal_groups import SignalPlan, signal_plans
from streetflow.networks.catalogue import find_network
from streetflow.roadnet.network_tables import load_network
from tests.firmware.shell.build import shell_plan

DETECTORS = 8
SOURCE = "tests/firmware/light/controller.c"


def crossing_plan() -> SignalPlan:
    """Of the built-in crossing."""
    return signal_plans(load_network(find_network("crossing").roadnet_file))[0]


def monitor_elf() -> Path:
    return build_monitor(find_network("crossing").roadnet_file, "intersection_1_1").elf


def build_controller(folder: Path) -> Path:
    """Its ELF file."""
    (folder / "shell_tables.h").write_text(tables_header(shell_plan(crossing_plan())), encoding="ascii")
    root, elf = project_root(), folder / "controller.elf"
    sources = [root / SOURCE, root / "firmware/src/light/shell.c", root / "firmware/src/light/tables.c"]
    flags = ["-mmcu=atmega328p", "-DF_CPU=16000000UL", f"-DDETECTORS={DETECTORS}", "-std=gnu11", "-Os", "-Wall", "-Wextra"]
    command = ["avr-gcc", *flags, f"-I{folder}", f"-I{root / 'firmware/include'}", *map(str, sources), "-o", str(elf)]
    subprocess.run(command, check=True)
    return elf
