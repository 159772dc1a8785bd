"""`tinylight size`: what a policy takes of the chip."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tinylight.commands.options import IntersectionOption, JsonOption, KernelOption, NetworkOption
from tinylight.console import console, require_writable, say, show

if TYPE_CHECKING:
    from model.policy.covered import CoveredRange


def size(
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Policy file. Default: the trained policy of the network."),
    ] = None,
    network: NetworkOption = "crossing",
    f_cpu: Annotated[int, typer.Option("--f-cpu", metavar="HZ", help="Clock of the chip.")] = 16_000_000,
    baud: Annotated[int, typer.Option(metavar="N", help="Speed of the serial line.")] = 115_200,
    kernel: KernelOption = "auto",
    intersection: IntersectionOption = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON of an earlier --json: show what has changed since."),
    ] = None,
    symbols: Annotated[bool, typer.Option("--symbols", help="One line per symbol instead of per object.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Build the firmware for a policy and show what it takes of the chip's flash and RAM, from the linker map.

    The stack is the deepest that it can be, proven from the machine code. Exit code 1 if it doesn't fit. A second table has
    the range of each feature that the policy's integers cover; values beyond it are clipped.
    """
    from dataclasses import asdict

    from hil.build.firmware import build_firmware, require_kernel
    from hil.build.footprint import measure
    from hil.build.one_intersection import policy_for
    from hil.build.size_change import read_sizes, size_table
    from hil.loop.job_spec import trained_policy
    from hil.loop.verdict import FLASH_LIMIT_BYTES, SRAM_LIMIT_BYTES, ram_bytes
    from hil.wire.expected_firmware import require_possible
    from model.policy.covered import covered_ranges
    from model.policy.file import load_policy
    from tinylight.json_file import write_json

    require_possible(f_cpu, baud)
    require_kernel(kernel, native=False)
    require_writable(json_file)
    before = None if against is None else read_sizes(against)
    file = policy or trained_policy(network)
    with console.status("building the firmware"), policy_for(file, intersection) as built:
        content = load_policy(built)
        firmware = build_firmware(built, target="uno_system", f_cpu_hz=f_cpu, baud=baud, kernel=kernel)
        footprint = measure(firmware)
    parameters = sum(part.n_parameters for part in content.intersections)
    sizes = footprint.as_dict()
    named = file.name if intersection is None else f"{file.name}, {intersection}"
    title = f"{named}: {parameters} parameters, kernel {firmware.kernel}"
    show(size_table(sizes, before, title, "per_symbol" if symbols else "per_object"))
    assert footprint.stack is not None
    ram = ram_bytes(footprint, None)
    say(f"flash {footprint.flash_bytes} of {FLASH_LIMIT_BYTES} B; RAM {ram} of {SRAM_LIMIT_BYTES} B, stack included")
    chain = " > ".join(f"{name} {size}" for name, size in footprint.stack.program)
    interrupt = " > ".join(f"{name} {size}" for name, size in footprint.stack.interrupt)
    say(f"deepest stack {footprint.stack.total_bytes} B: {chain}; interrupt: {interrupt}")
    say(f"linker map: {firmware.map}")
    ranges = covered_ranges(content)
    show(_range_table(ranges))
    fits = footprint.flash_bytes <= FLASH_LIMIT_BYTES and ram <= SRAM_LIMIT_BYTES
    if json_file is not None:
        about = {"kernel": firmware.kernel, "fits": fits, "map": str(firmware.map), "ranges": [asdict(each) for each in ranges]}
        write_json(sizes | about, json_file)
    raise typer.Exit(0 if fits else 1)


def _range_table(ranges: "list[CoveredRange]") -> Table:
    table = Table(title="range that the integers cover", title_justify="left")
    table.add_column("feature")
    table.add_column("unit")
    for heading in ("least", "greatest", "lights"):
        table.add_column(heading, justify="right")
    for each in ranges:
        table.add_row(each.feature, each.unit, f"{each.least:g}", f"{each.greatest:g}", str(len(each.intersections)))
    return table
