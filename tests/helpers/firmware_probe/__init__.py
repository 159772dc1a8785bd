"""Compiles the probe firmware that the emulated board's tests run."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("probe.c")


def build_probe(folder: Path, *, f_cpu_hz: int = 16_000_000, baud: int = 115_200, flags: tuple[str, ...] = ()) -> Path:
    """The probe as an ELF file in `folder`; see probe.c for what it does."""
    elf = folder / "probe.elf"
    subprocess.run(
        [
            "avr-gcc",
            "-mmcu=atmega328p",
            "-Os",
            "-Wall",
            "-Werror",
            f"-DF_CPU={f_cpu_hz}UL",
            f"-DBAUD={baud}UL",
            *flags,
            str(SOURCE),
            "-o",
            str(elf),
        ],
        check=True,
    )
    return elf
