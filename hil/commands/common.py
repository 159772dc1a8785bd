"""What the commands share: consoles, options, progress, and checks of input that all of them make."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from hil.entry import STOPPED
from streetflow import writable
from streetflow.errors import InputError

console = Console()
errors = Console(stderr=True, soft_wrap=True)
MAX_COLUMNS = 10_000  # of any table

JsonOption = Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Also write the result as JSON to this file.")]
NetworkOption = Annotated[
    str,
    typer.Option("--network", metavar="NAME", help="Road network, by a name that `tinylight networks` lists."),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="builtin|cityflow",
        help="Traffic simulator: our own, or the real CityFlow where it is installed (same results).",
    ),
]
KernelOption = Annotated[
    str,
    typer.Option(
        "--kernel",
        metavar="auto|unrolled|table|c",
        help="How the chip computes the network, all with the same results: straight-line code (fastest), weights as data "
        "(smallest), portable C. Default: unrolled where it fits the flash, else table.",
    ),
]
ClearanceOption = Annotated[
    str | None,
    typer.Option(
        "--clearance",
        metavar="hold|yellow|all_red",
        help="What the light shows in the 3 s between two phases: the old green (as the paper's tables), yellow, or all red. "
        "Default: what the policy was trained with.",
    ),
]


def require_writable(*files: Path | None) -> None:
    """Finds out before the work, not after it, that a result can't be written. InputError; files that aren't asked for are
    None."""
    asked = [file for file in files if file is not None]
    for number, file in enumerate(asked):
        if file in asked[:number]:
            raise InputError(file, "", "two results can't be written to one file")
        writable.require_writable(file)


def run_until_stopped(begun: str, run: Callable[[], None], stop: Callable[[], None]) -> None:
    """Says `begun`, and runs what Ctrl-C (exit code STOPPED) or SIGTERM (0) ends in good order, by `stop`."""
    received: list[int] = []

    def end(number: int, _: object) -> None:
        received.append(number)
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    say(begun)
    run()
    if signal.SIGINT in received:
        raise typer.Exit(STOPPED)


def progress_bar(*columns: ProgressColumn) -> Progress:
    """With these columns, or the usual ones. Where no terminal is there to draw on, it would leave an empty line at its end, so
    there is none."""
    usual = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*(columns or usual), console=errors, transient=True, disable=not errors.is_interactive)


def show(table: Table) -> None:
    """A table whose words and figures are all whole: texts wrap as the console's width asks, and where that isn't enough the
    table is wider. rich by itself would cut."""
    endless = console.options.update(max_width=MAX_COLUMNS)
    for column in table.columns:
        sizes = [Measurement.get(console, endless, cell) for cell in (column.header, *column.cells)]
        column.min_width = max(size.maximum if column.no_wrap else size.minimum for size in sizes)
    least = Measurement.get(console, endless, table).minimum
    if least > console.width:
        table.width = least
    console.print(table, crop=False)


def say(text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
