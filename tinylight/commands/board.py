"""`tinylight board`: an emulated Arduino Uno, for users without a real one."""

from pathlib import Path
from typing import Annotated

import typer

from tinylight.console import run_until_stopped, say

F_CPU_HZ = 16_000_000  # of an Uno


def board(
    link: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Also make this a symbolic link to the port, for scripts that want a fixed name."),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Flash this policy's firmware before power-on. Default: none, as on a new board."),
    ] = None,
    baud: Annotated[int, typer.Option(metavar="N", help="Line rate of that firmware.")] = 115_200,
    bootloader: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Intel HEX file of another bootloader than the Uno's optiboot."),
    ] = None,
) -> None:
    """Put an emulated Arduino Uno on a pseudo-terminal, in real time, until Ctrl-C.

    It has the Uno's bootloader and resets when its port is opened, so everything that talks to an Uno works on it:
    `tinylight flash --board PORT`, avrdude, `tinylight hil --board PORT`, `pytest --hil=PORT`, a serial monitor.
    What is flashed is kept until the end of the command.
    """
    from hil.boards.bootloader import find_bootloader
    from hil.boards.emulated_uno import EmulatedUno
    from hil.boards.pseudo_terminal import PseudoTerminal
    from hil.boards.simavr import SimavrBoard
    from hil.build.firmware import build_firmware
    from hil.wire.expected_firmware import require_possible
    from model.policy.file import load_policy

    require_possible(F_CPU_HZ, baud)
    if policy is not None:
        load_policy(policy)
    loader = bootloader or find_bootloader()
    elf = build_firmware(policy, baud=baud).elf if policy is not None else None
    with SimavrBoard(elf, f_cpu_hz=F_CPU_HZ, baud=baud, bootloader=loader) as chip:
        port = PseudoTerminal(link)
        try:
            uno = EmulatedUno(chip, port, report=lambda text: say(text, style="dim"))
            begun = f"Arduino Uno at {link or port.name} (emulated; bootloader {loader.name}). Ctrl-C ends it."
            run_until_stopped(begun, uno.run, uno.stop)
        finally:
            port.close()
