"""What the commands share: consoles, options, progress, and checks of input that all of them make."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from streetflow.errors import InputError

console = Console()
errors = Console(stderr=True, soft_wrap=True)

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


def parse_flows(text: str, count: int) -> list[int]:
    """Flow numbers of `0-4,7` in order, each once. InputError if it isn't such a list or names a flow >= count."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InputError("--flows", "", f"{part!r} is not a number or a range such as 0-9")
        end = int(last) if dash else int(first)
        if end < int(first):
            raise InputError("--flows", "", f"{part!r} runs backwards")
        if end >= count:
            raise InputError("--flows", "", f"there is no flow {end}: the network has flows 0 to {count - 1}")
        numbers += [number for number in range(int(first), end + 1) if number not in numbers]
    return numbers


def require_writable(file: Path | None) -> None:
    """Finds out before the work, not after it, that the result can't be written."""
    if file is None:
        return
    if not file.parent.is_dir():
        raise InputError(file, "", f"can't be written: there is no folder {file.parent}")
    if file.is_dir():
        raise InputError(file, "", "can't be written: it is a folder")


def progress_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
    )


def say(text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
