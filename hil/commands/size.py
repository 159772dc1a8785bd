"""`tinylight size`: what a policy takes of the chip."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from hil.commands.common import JsonOption, KernelOption, NetworkOption, console, require_writable, say, trained_policy


def size(
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Policy file. Default: the trained policy of the network."),
    ] = None,
    network: NetworkOption = "crossing",
    f_cpu: Annotated[int, typer.Option("--f-cpu", metavar="HZ", help="Clock of the chip.")] = 16_000_000,
    baud: Annotated[int, typer.Option(metavar="N", help="Speed of the serial line.")] = 115_200,
    kernel: KernelOption = "auto",
    json_file: JsonOption = None,
) -> None:
    """Build the firmware for a policy and show what it takes of the chip's flash and RAM, from the linker map.

    Exit code 1 if it doesn't fit. The deepest stack is measured by `tinylight hil`.
    """
    from hil.build import build_firmware
    from hil.footprint import measure
    from hil.json_file import write_json
    from hil.verdict import FLASH_LIMIT_BYTES, SRAM_LIMIT_BYTES
    from model.policy import load_policy

    require_writable(json_file)
    file = policy or trained_policy(network)
    parameters = sum(part.n_parameters for part in load_policy(file).intersections)
    with console.status("building the firmware"):
        firmware = build_firmware(file, target="uno_system", f_cpu_hz=f_cpu, baud=baud, kernel=kernel)
        footprint = measure(firmware)
    table = Table(title=f"{file.name}: {parameters} parameters", title_justify="left")
    table.add_column("object")
    table.add_column("flash B", justify="right")
    table.add_column("static RAM B", justify="right")
    for name, part in sorted(footprint.per_object.items(), key=lambda entry: -entry[1].flash_bytes):
        table.add_row(name, str(part.flash_bytes), str(part.static_ram_bytes))
    table.add_section()
    table.add_row("all", str(footprint.flash_bytes), str(footprint.static_ram_bytes))
    table.add_row("limit", str(FLASH_LIMIT_BYTES), f"{SRAM_LIMIT_BYTES} with the stack")
    console.print(table)
    say(f"linker map: {firmware.map}")
    fits = footprint.flash_bytes <= FLASH_LIMIT_BYTES and footprint.static_ram_bytes < SRAM_LIMIT_BYTES
    if json_file is not None:
        write_json(footprint.as_dict() | {"fits": fits, "map": str(firmware.map)}, json_file)
    raise typer.Exit(0 if fits else 1)
