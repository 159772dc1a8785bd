"""`tinylight evaluate`: an agent over the flows of a network, without a chip."""

from dataclasses import asdict
from statistics import mean, pstdev
from typing import Annotated

import typer
from rich.table import Table

from hil.commands.common import (
    ClearanceOption,
    EngineOption,
    JsonOption,
    NetworkOption,
    console,
    parse_flows,
    progress_bar,
    require_writable,
)


def evaluate(
    network: NetworkOption,
    agent: Annotated[
        str,
        typer.Option(
            metavar="FixedTime|MaxPressure|SOTL|FILE",
            help="Who sets the lights: a rule, a policy file, or the weights (npz) of a trained baseline.",
        ),
    ],
    integer: Annotated[
        bool,
        typer.Option("--integer", help="Decide with the 8-bit network that runs on the chip instead of the float one."),
    ] = False,
    flows: Annotated[str, typer.Option(metavar="0-9", help="Flows to run: numbers and ranges, such as 0-4,7.")] = "0-9",
    engine: EngineOption = "builtin",
    clearance: ClearanceOption = None,
    json_file: JsonOption = None,
) -> None:
    """Run an agent over a network's flows without a chip, and print travel time and throughput."""
    from hil.json_file import write_json
    from model.evaluate import evaluate as run
    from streetflow.network import find_network

    require_writable(json_file)
    found = find_network(network)
    numbers = parse_flows(flows, len(found.flow_files))
    with progress_bar() as bar:
        task = bar.add_task(f"{agent} on {network}", total=len(numbers))
        rows = run(
            found,
            agent,
            numbers,
            integer=integer,
            engine=engine,
            clearance=clearance,
            progress=lambda _row: bar.advance(task),
        )
    table = Table(title=f"{agent} on {network}" + (", integers" if integer else ""), title_justify="left")
    for heading in ("flow", "seed", "average travel time s", "throughput veh/min"):
        table.add_column(heading, justify="right")
    times = [row.average_travel_time_s for row in rows]
    throughputs = [row.throughput_veh_per_min for row in rows]
    for row in rows:
        table.add_row(str(row.flow), str(row.seed), f"{row.average_travel_time_s:.3f}", f"{row.throughput_veh_per_min:.3f}")
    table.add_section()
    table.add_row("mean", "", f"{mean(times):.3f}", f"{mean(throughputs):.3f}")
    table.add_row("deviation", "", f"{pstdev(times):.3f}", f"{pstdev(throughputs):.3f}")
    console.print(table)
    if json_file is not None:
        write_json([asdict(row) for row in rows], json_file)
