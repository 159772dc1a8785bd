"""Builds the firmware with the compilers on PATH, as `pio run` builds it and to the same bytes, without PlatformIO.

PlatformIO takes 2 s of a processor to start, and what it starts takes a quarter of that. platformio.ini says which flags the
compilers get here, too; what firmware/extra_script.py and firmware/platform_system/ add is said again below, and
tests/firmware/test_pio.py holds the programs of both ways together, byte for byte.
"""

import configparser
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firmware.generator.light.control import MODES

SOURCES = Path("firmware/src")
VECTORS = 26  # of the ATmega328P, reset included
CHIP = "-mmcu=atmega328p"
AVR_LINK_FLAGS = (
    "-nostartfiles",
    *(f"-Wl,-u,__vector_{number}" for number in (*range(1, VECTORS), "default")),
    CHIP,
    "-Wl,--defsym=__TEXT_REGION_LENGTH__=128K",
    "-Wl,--defsym=__DATA_REGION_LENGTH__=0xffa0",
)
ASSEMBLY_FLAGS = ("-x", "assembler-with-cpp", CHIP)
FOR_THE_LINKER = ("-Wl,", "-fsanitize=")

Completed = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Settings:
    """What a build is of, as `build_firmware` takes it, beside the signal plan."""

    target: Literal["uno_system", "native"]
    policy_file: Path
    kernel: str
    f_cpu_hz: int
    baud: int
    min_green_s: int
    mode: Literal["answer", "light", "alone"]
    extra_flags: Sequence[str]


def compile_firmware(settings: Settings, plan_file: Path, project: Path, build: Path) -> Completed:
    """Writes firmware.elf, firmware.hex and firmware.map (target "native": firmware) into `build`, and what they are made of
    beside them. Modes "light" and "alone" read `plan_file`. Returns what was printed by the first command that failed, or, with
    code 0, by the last one."""
    is_avr = settings.target != "native"
    compiler = "avr-gcc" if is_avr else "gcc"
    flags = [*ini_flags(project / "platformio.ini", "avr" if is_avr else "env:native"), *settings.extra_flags]
    includes = [f"-I{SOURCES}", f"-I{build / 'generated'}", "-Ifirmware/include"]
    shared = [*_defines(settings), *(flag for flag in flags if flag.startswith("-D")), *includes]
    plain = [flag for flag in flags if not flag.startswith(("-D", "-Wl,"))]
    objects: list[str] = []
    commands: list[list[str]] = []
    for source in _sources(settings, project):
        compiled = build / "src" / source.relative_to(SOURCES).with_suffix(".o")
        compiled.parent.mkdir(parents=True, exist_ok=True)
        objects.append(str(compiled))
        if source.suffix == ".S":
            commands.append([compiler, *ASSEMBLY_FLAGS, *shared, "-c", "-o", str(compiled), str(source)])
        else:
            chip = [CHIP] if is_avr else []
            commands.append([compiler, "-o", str(compiled), "-c", *chip, *plain, *shared, str(source)])
    program = build / ("firmware.elf" if is_avr else "firmware")
    linked = [compiler, "-o", str(program), *(flag for flag in flags if flag.startswith(FOR_THE_LINKER)), *objects]
    if is_avr:
        linked[3:3] = [*AVR_LINK_FLAGS, f"-Wl,-Map,{build / 'firmware.map'}"]
    steps = [[_generate(settings, plan_file, build)], commands, [linked]]
    if is_avr:
        hex_file = str(program.with_suffix(".hex"))
        steps.append([[sys.executable, "-m", "firmware.generator.flash_crc", str(program)]])
        steps.append([["avr-objcopy", "-O", "ihex", "-R", ".eeprom", str(program), hex_file]])
    return _run_all(steps, project)


def ini_flags(file: Path, section: str) -> list[str]:
    """`build_flags` of a section of platformio.ini, with those that it takes from another as `${other.build_flags}`."""
    ini = configparser.ConfigParser(interpolation=None)
    ini.read_string(file.read_text(encoding="utf-8"), str(file))

    def flags_of(name: str) -> str:
        return re.sub(r"\$\{(\w+)\.build_flags\}", lambda match: flags_of(match[1]), ini[name]["build_flags"])

    return flags_of(section).split()


def _sources(settings: Settings, project: Path) -> list[Path]:
    """C and assembly of the target and the mode in the linker's order, by their names in the project: the ELF has them, too."""
    without = {"host", *(["light"] if settings.mode == MODES[0] else ["main.c"])}
    if settings.target == "native":
        without = {"avr", "light"}
    files = sorted(file.relative_to(project) for file in (project / SOURCES).rglob("*.[cS]"))
    return [file for file in files if file.relative_to(SOURCES).parts[0] not in without]


def _defines(settings: Settings) -> list[str]:
    values: dict[str, object] = {"MODE": MODES.index(settings.mode)} if settings.mode != MODES[0] else {}
    values["MIN_GREEN_S"] = settings.min_green_s
    if settings.target != "native":
        values |= {"BAUD": f"{settings.baud}L", "F_CPU": f"{settings.f_cpu_hz}L"}
    return [f"-D{name}={value}" for name, value in values.items()]


def _generate(settings: Settings, plan_file: Path, build: Path) -> list[str]:
    command = [sys.executable, "-m", "firmware.generator", str(settings.policy_file), str(build / "generated")]
    command += ["c" if settings.target == "native" else settings.kernel, "--checked"]
    for flag in settings.extra_flags:
        if flip := re.fullmatch(r"-DTL_FLIP_WEIGHT=(\d+)", flag):
            command += ["--flip-weight", flip[1]]
    if settings.mode != MODES[0]:
        command += ["--mode", settings.mode, "--plan", str(plan_file)]
    return command


def _run_all(steps: Iterable[Sequence[list[str]]], project: Path) -> Completed:
    """One step after the other, the commands of each at the same time."""

    def run(command: list[str]) -> Completed:
        return subprocess.run(command, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for step in steps:
            done = list(pool.map(run, step))
            failed = next((one for one in done if one.returncode), None)
            if failed is not None:
                return failed
    return done[-1]
