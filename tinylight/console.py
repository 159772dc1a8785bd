"""What the commands print to and with: consoles, tables, progress, and the check that a result can be written."""

import signal
from collections.abc import Callable
from pathlib import Path

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

from streetflow import files as checked
from streetflow.errors import InputError
from tinylight.exit_codes import STOPPED

console = Console(emoji=False)  # names such as agent:X: are names
errors = Console(stderr=True, soft_wrap=True, emoji=False)
MAX_COLUMNS = 10_000  # of any table


def require_writable(*files: Path | None) -> None:
    """InputError before the work, not after it, where a result can't be written. Files that aren't asked for are None."""
    asked = [file for file in files if file is not None]
    for number, file in enumerate(asked):
        if file in asked[:number]:
            raise InputError(file, "", "two results can't be written to one file")
        checked.require_writable(file)


def run_until_stopped(begun: str, run: Callable[[], None], stop: Callable[[], None]) -> None:
    """Prints `begun` and calls `run`; Ctrl-C (exit code STOPPED) or SIGTERM (0) ends it cleanly by calling `stop`."""
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
    """With these columns, or the usual ones. Disabled without a terminal, where it would leave an empty line at its end."""
    usual = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*(columns or usual), console=errors, transient=True, disable=not errors.is_interactive)


def show(table: Table) -> None:
    """A table that never cuts words or figures, as rich would: texts wrap to the console's width, and where that isn't enough
    the table is wider."""
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
