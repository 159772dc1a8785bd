"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

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
