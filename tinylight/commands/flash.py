"""`tinylight flash`: uploads a policy to a real board."""

from pathlib import Path
from typing import Annotated

import typer

from streetflow.errors import InputError
from tinylight.commands.options import IntersectionOption, KernelOption, NetworkOption, WatchdogOption
from tinylight.commands.which_board import port_of
from tinylight.console import console, say

EMULATED = ("simavr", "host")


def flash(
    board: Annotated[
        str,
        typer.Option(metavar="auto|PORT", help="Serial port of the board, such as /dev/ttyUSB0; auto finds it."),
    ] = "auto",
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Policy file. Default: the trained policy of the network."),
    ] = None,
    network: NetworkOption = "crossing",
    f_cpu: Annotated[int, typer.Option("--f-cpu", metavar="HZ", help="Clock of the chip.")] = 16_000_000,
    baud: Annotated[int, typer.Option(metavar="N", help="Speed of the serial line, once the firmware runs.")] = 115_200,
    kernel: KernelOption = "auto",
    intersection: IntersectionOption = None,
    watchdog: WatchdogOption = True,
    min_green: Annotated[
        int,
        typer.Option("--min-green", metavar="S", min=0, max=255, help="Seconds that a light stays green at least."),
    ] = 0,
    upload_baud: Annotated[
        int,
        typer.Option("--upload-baud", metavar="N", min=1, help="Speed of the bootloader: 57600 for many Nanos."),
    ] = 115_200,
) -> None:
    """Build the firmware for a policy, upload it to an Arduino with avrdude, and see that the board answers with that policy.

    For an Arduino Uno, Nano or another board with an ATmega328P and a bootloader; without a board, `tinylight board` is one.
    """
    from hil.boards.avrdude import require_upload, upload
    from hil.boards.find_port import AUTO
    from hil.boards.port_trouble import require_port
    from hil.build.firmware import NO_WATCHDOG, build_firmware, require_kernel
    from hil.build.footprint import measure
    from hil.build.one_intersection import policy_for, require_intersection
    from hil.loop.job_spec import trained_policy
    from hil.loop.verdict import FLASH_LIMIT_BYTES, SRAM_LIMIT_BYTES, ram_bytes
    from hil.wire.expected_firmware import require_possible

    if board in EMULATED:
        raise InputError("--board", "", f"{board} needs no upload: tinylight hil --board {board} builds its firmware itself")
    require_possible(f_cpu, baud)
    require_kernel(kernel, native=False)
    if board != AUTO:
        require_port(board)
    file = policy or trained_policy(network)
    require_intersection(file, intersection)
    port = port_of(board)
    require_upload(port, upload_baud)
    flags = () if watchdog else (NO_WATCHDOG,)
    with console.status("building the firmware"), policy_for(file, intersection) as built:
        firmware = build_firmware(built, f_cpu_hz=f_cpu, baud=baud, kernel=kernel, min_green_s=min_green, extra_flags=flags)
        footprint = measure(firmware)
    flash_bytes, ram = footprint.flash_bytes, ram_bytes(footprint, None)
    if flash_bytes > FLASH_LIMIT_BYTES or ram > SRAM_LIMIT_BYTES:
        taken = f"takes {flash_bytes} B of flash and {ram} B of RAM, an Uno has {FLASH_LIMIT_BYTES} and {SRAM_LIMIT_BYTES}"
        raise InputError(file, "", f"{taken}; see tinylight size")
    assert firmware.hex is not None
    with console.status(f"uploading {flash_bytes} B to {port}"):
        upload(firmware.hex, port, bootloader_baud=upload_baud)
    held = f"{file}, {intersection}," if intersection is not None else str(file)
    say(f"{port} holds {held} now ({flash_bytes} B, kernel {firmware.kernel}), read back and equal")
    with console.status("waiting for the firmware's answer"):
        _greet(port, baud, firmware.policy_sha256)
    say(f"the board answers at {baud} baud with policy {firmware.policy_sha256[:12]}")


def _greet(port: str, baud: int, policy_sha256: str) -> None:
    """InputError with the usual causes if the board doesn't answer with this policy."""
    from hil.boards import SerialBoard
    from hil.wire.link import Link, LinkError

    try:
        with SerialBoard(port, baud=baud) as board:
            Link(board).hello(policy_sha256)
    except LinkError as fault:
        raise InputError(port, "", f"the firmware is on the board, but {fault}") from None
