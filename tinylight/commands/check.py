"""`tinylight check`: what road networks and demand contain, with their faults and warnings."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.table import Table

from tinylight.commands.options import JsonOption
from tinylight.console import progress_bar, require_writable, say, show

if TYPE_CHECKING:
    from streetflow.check.check_roadnet import CheckWarning
    from streetflow.check.report import Report

_SHOWN = 3  # places listed under a topic of warnings
_HEADINGS = {
    "flows": "flows",
    "vehicles": "vehicles",
    "vehicles_per_hour": "veh/h",
    "first_start_s": "first s",
    "last_start_s": "last s",
    "horizon_s": "horizon s",
    "routes": "routes",
    "mean_route_m": "route m",
    "vehicle_kinds": "kinds",
}


def check(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Road network and demand files (a demand file's network is the one given before it, or roadnet.json beside "
            "it), or folders or names of networks.",
        ),
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if there are warnings.")] = False,
    interval: Annotated[
        float, typer.Option(metavar="S", help="Step of the simulation, s: a long one may miss short flows.")
    ] = 1.0,
    json_file: JsonOption = None,
) -> None:
    """Check CityFlow files: show what they contain, every fault, and every warning.

    Exit code 0: they can be run, though there may be warnings; 1: warnings, with --strict; 2: faults."""
    from streetflow.check import report as checks
    from streetflow.roadnet.config import check_interval
    from tinylight.json_file import write_json

    check_interval(interval, "check", "interval")
    require_writable(json_file)
    found = checks.files_to_check(places)
    reports = []
    with progress_bar() as bar:
        task = bar.add_task("checking", total=len(found))
        for each in found:
            reports.append(checks.check(each, interval))
            bar.advance(task)
    for report in reports:
        if report.kind == "road network":
            _say_roadnet(report)
            _say_demands([each for each in reports if each.roadnet_file == report.file and each.content])
    for report in reports:
        for place, fault in report.faults:
            say(f"fault: {report.file}: {f'{place}: ' if place else ''}{fault}", style="red")
    say_warnings([(Path(report.file).name, warning) for report in reports for warning in report.warnings])
    faults, warnings = sum(len(each.faults) for each in reports), sum(len(each.warnings) for each in reports)
    say(f"{len(reports)} file{'s' * (len(reports) != 1)}: {faults or 'no'} faults, {warnings or 'no'} warnings")
    exit_code = 2 if faults else 1 if warnings and strict else 0
    if json_file is not None:
        rows = [
            {
                "file": each.file,
                "kind": each.kind,
                "content": each.content,
                "faults": [{"place": place, "fault": fault} for place, fault in each.faults],
                "warnings": [warning._asdict() for warning in each.warnings],
            }
            for each in reports
        ]
        write_json({"exit_code": exit_code, "files": rows}, json_file)
    raise typer.Exit(exit_code)


def _say_roadnet(report: "Report") -> None:
    say(report.file, style="bold")
    if report.content:
        table = Table(show_header=False)
        for name, value in report.content.items():
            table.add_row(name.replace("_", " "), str(value))
        show(table)


def _say_demands(reports: "Sequence[Report]") -> None:
    if not reports:
        return
    table = Table(box=SIMPLE)
    table.add_column("demand", no_wrap=True)
    for heading in _HEADINGS.values():
        table.add_column(heading, justify="right")
    for report in reports:
        table.add_row(Path(report.file).name, *(str(report.content[name]) for name in _HEADINGS))
    show(table)


def say_warnings(warnings: "Iterable[tuple[str, CheckWarning]]") -> None:
    """One paragraph per topic, with its first places."""

    def topic_of(pair: "tuple[str, CheckWarning]") -> str:
        return pair[1].topic

    for topic, group in groupby(sorted(warnings, key=topic_of), key=topic_of):
        alike = list(group)
        say(f"warning: {topic} ({len(alike)}x)" if len(alike) > 1 else f"warning: {topic}", style="yellow")
        for file, warning in alike[:_SHOWN]:
            say(f"  {file}: {warning.place}: {warning.text}")
        if len(alike) > _SHOWN:
            say(f"  and {len(alike) - _SHOWN} more (--json lists all)")
