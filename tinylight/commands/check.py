"""`tinylight check`: what is in road networks and demand, and what is wrong or doubtful in them."""

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
    from streetflow.check.check_roadnet import Doubt
    from streetflow.check.report import Report

_SHOWN = 3  # places of a doubt
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
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything is doubtful.")] = False,
    interval: Annotated[float, typer.Option(metavar="S", help="Step of the simulation, s: may jump over short flows.")] = 1.0,
    json_file: JsonOption = None,
) -> None:
    """Check CityFlow files: say what is in them, every fault, and everything doubtful.

    Exit code 0: they can be run, though there may be doubts; 1: doubts, with --strict; 2: faults."""
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
    _say_doubts([(Path(report.file).name, doubt) for report in reports for doubt in report.doubts])
    faults, doubts = sum(len(each.faults) for each in reports), sum(len(each.doubts) for each in reports)
    say(f"{len(reports)} file{'s' * (len(reports) != 1)}: {faults or 'no'} faults, {doubts or 'no'} doubts")
    exit_code = 2 if faults else 1 if doubts and strict else 0
    if json_file is not None:
        rows = [
            {
                "file": each.file,
                "kind": each.kind,
                "content": each.content,
                "faults": [{"place": place, "fault": fault} for place, fault in each.faults],
                "doubts": [doubt._asdict() for doubt in each.doubts],
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


def _say_doubts(doubts: "Iterable[tuple[str, Doubt]]") -> None:
    """One paragraph a topic, with its first places."""

    def topic_of(pair: "tuple[str, Doubt]") -> str:
        return pair[1].topic

    for topic, group in groupby(sorted(doubts, key=topic_of), key=topic_of):
        alike = list(group)
        say(f"doubt: {topic} ({len(alike)}x)" if len(alike) > 1 else f"doubt: {topic}", style="yellow")
        for file, doubt in alike[:_SHOWN]:
            say(f"  {file}: {doubt.place}: {doubt.text}")
        if len(alike) > _SHOWN:
            say(f"  and {len(alike) - _SHOWN} more (--json lists all)")
