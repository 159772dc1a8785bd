"""`tinylight evaluate`: an agent over the flows of a network, without a chip."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isnan
from pathlib import Path
from statistics import mean, pstdev
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tinylight.commands.options import ClearanceOption, EngineOption, JsonOption, NetworkOption
from tinylight.console import progress_bar, require_writable, say, show

if TYPE_CHECKING:
    from model.evaluate import EvaluationRow
    from streetflow.engine.trips import Trips


def evaluate(
    network: NetworkOption,
    agent: Annotated[
        str,
        typer.Option(
            metavar="MaxQueue|MaxPressure|...|FILE|module:Class",
            help="What sets the lights: a rule, a policy file, a trained baseline's weights (npz), or an agent of your own.",
        ),
    ],
    integer: Annotated[
        bool,
        typer.Option("--integer", help="Decide with the 8-bit network that runs on the chip instead of the float one."),
    ] = False,
    flows: Annotated[
        str, typer.Option("--flows", "--flow", metavar="0-9", help="Flows to run: numbers and ranges, such as 0-4,7.")
    ] = "0-9",
    engine: EngineOption = "builtin",
    clearance: ClearanceOption = None,
    measures: Annotated[
        bool,
        typer.Option(
            "--measures",
            help="Also print (and put into --json) all other measures: queues, stops, delays and more.",
        ),
    ] = False,
    trips_file: Annotated[
        Path | None, typer.Option("--trips", metavar="OUT", help="Also write every vehicle's trip to this CSV file.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Run an agent over a network's flows without a chip, and print travel time and throughput."""
    from model.evaluate import RunSettings, require_agent
    from model.evaluate import evaluate as run
    from streetflow.control.clearance import require_clearance
    from streetflow.control.engines import require_engine
    from streetflow.control.environment import Environment
    from streetflow.networks.catalogue import find_network, parse_flows, require_flow_list
    from tinylight.json_file import write_json

    require_engine(engine)
    if clearance is not None:
        require_clearance(clearance)
    require_agent(agent, integer=integer)
    require_flow_list(flows)
    require_writable(json_file, trips_file)
    measured: list[Mapping[str, float | None]] = []
    trips: list[tuple[int, Trips]] = []

    def at_end(environment: Environment) -> None:
        if measures:
            measured.append(environment.measures())
        if trips_file is not None:
            trips.append((environment.flow, environment.engine.trips()))

    found = find_network(network)
    numbers = parse_flows(flows, len(found.flow_files))
    with progress_bar() as bar:
        task = bar.add_task(f"{agent} on {network}", total=len(numbers))
        rows = run(
            found,
            agent,
            numbers,
            integer=integer,
            settings=RunSettings(engine, clearance=clearance, measure_queues=measures),
            progress=lambda _row: bar.advance(task),
            at_end=at_end,
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
    _add_means(table, rows)
    show(table)
    _say_range(rows)
    if measures:
        _print_measures(measured)
    if trips_file is not None:
        _write_trips(trips, trips_file)
    if json_file is not None:
        found_measures: list[dict[str, object]] = [{"measures": dict(each)} for each in measured] or [{} for _ in rows]
        write_json([asdict(row) | extra for row, extra in zip(rows, found_measures, strict=True)], json_file)


def _add_means(table: Table, rows: "Sequence[EvaluationRow]") -> None:
    """95 % intervals of the means, and of a policy's own flows and those that it never saw apart."""
    from model.report.bootstrap import mean_interval

    kinds = {"": list(rows)}
    if {True, False} <= {row.trained_on for row in rows}:
        kinds |= {name: [row for row in rows if row.trained_on is own] for name, own in (("own", True), ("unseen", False))}
    for kind, some in kinds.items():
        if kind:
            table.add_section()
        figures = [[row.average_travel_time_s for row in some], [row.throughput_veh_per_min for row in some]]
        if kind:
            noun = "flow" if len(some) == 1 else "flows"
            table.add_row(f"{kind} {noun}", "", *(f"{mean(values):.3f}" for values in figures))
        if len(some) > 1:
            intervals = map(mean_interval, figures)
            table.add_row("95 %", "", *(f"{each.low:.3f} to {each.high:.3f}" for each in intervals))


def _say_range(rows: "Sequence[EvaluationRow]") -> None:
    """In how many decisions the integers left their range; nothing where none was made in integers."""
    decisions, beyond, at_limit = (
        sum(getattr(row, name) or 0 for row in rows) for name in ("decisions", "decisions_beyond_range", "decisions_at_limit")
    )
    if decisions:
        shares = f"({beyond / decisions:.2%}), units at their limit in {at_limit:,} ({at_limit / decisions:.2%})"
        say(f"of {decisions:,} decisions, inputs beyond their range in {beyond:,} {shares}")


def _print_measures(measured: Sequence[Mapping[str, float | None]]) -> None:
    from streetflow.control.measures import MEASURES

    table = Table(title="measures, over the flows", title_justify="left")
    for heading in ("measure", "unit", "mean", "deviation"):
        table.add_column(heading, justify="right" if heading in ("mean", "deviation") else "left")
    for spec in MEASURES:
        values = [value for each in measured if (value := each[spec.name]) is not None]
        cells = (f"{mean(values):.3f}", f"{pstdev(values):.3f}") if values else ("-", "-")
        table.add_row(spec.name, spec.unit, *cells)
    show(table)


def _write_trips(trips: "Sequence[tuple[int, Trips]]", file: Path) -> None:
    """One line a vehicle; an empty cell is a time that hasn't come (or, for free_flow_s, isn't known)."""
    from streetflow.files import written_aside

    names = ("created_s", "entered_s", "ended_s", "travel_time_s", "network_time_s", "free_flow_s", "delay_s")
    with written_aside(file) as aside, aside.open("w", encoding="utf-8", newline="") as out:
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(("flow", "vehicle", *names))
        for flow, each in trips:
            columns = [getattr(each, name).tolist() for name in names]
            for vehicle, *values in zip(each.ids, *columns, strict=True):
                lines.writerow((flow, vehicle, *("" if isnan(value) else repr(value) for value in values)))
