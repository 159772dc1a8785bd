"""Options that several commands have."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from streetflow.errors import FieldError, InputError, fields_from
from streetflow.networks.catalogue import UnknownNetwork

FIELDS = {
    "f_cpu_hz": "f_cpu",
    "budget_s": "budget",
    "policy_file": "policy",
    "max_green_s": "max_green",
    "longest_red_s": "longest_red",
    "block_m": "block",
    "side_block_m": "side_block",
    "entry_m": "entry",
    "speed_mps": "speed",
    "side_speed_mps": "side_speed",
    "vehicles_per_hour": "vehicles",
    "horizon_s": "horizon",
    "max_speed_mps": "vehicle_speed",
    "main_turns": "turns",
}
"""Fields of domain code (of `hil.loop.job.Job` and others) that have another name as a command's parameter."""

JsonOption = Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Also write the result as JSON to this file.")]
NetworkOption = Annotated[
    str,
    typer.Option("--network", metavar="NAME", help="Road network, by a name that `tinylight networks` lists."),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="builtin|cityflow|sumo",
        help="Traffic simulator: our own, the real CityFlow where it is installed (same results), or SUMO (for networks "
        "of import-sumo).",
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
ProcessesOption = Annotated[
    int | None, typer.Option("--processes", metavar="N", min=1, help="Jobs at once on this machine. Default: one a core.")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="auto|HOST:PORT",
        help="Run the jobs on a Ray cluster that this machine is a node of (extra `cluster`), with the same results. auto: the "
        "one that runs here, or else Ray on this machine alone.",
    ),
]
IntersectionOption = Annotated[
    str | None,
    typer.Option(
        "--intersection",
        metavar="ID",
        help="The policy of this intersection alone, for a network with a board for each (tinylight hil --boards "
        "per-intersection). Default: all of the network's.",
    ),
]
WatchdogOption = Annotated[
    bool,
    typer.Option(
        "--watchdog/--no-watchdog",
        help="Without it a hang lasts until the power goes: only for old bootloaders, which its resets send round in circles.",
    ),
]
ClearanceOption = Annotated[
    str | None,
    typer.Option(
        "--clearance",
        metavar="hold|yellow|all_red|computed|shell",
        help="What the light shows between two phases: for 3 s the old green (as the paper's tables), yellow, or all red; "
        "or yellow and red for as long as the crossing needs. Default: what the policy was trained with.",
    ),
]


def option_names(command: Any) -> Mapping[str, str]:
    """What each field that a command's options set is called on its command line, such as f_cpu_hz: --f-cpu."""
    options = {each.name: each.opts[0] for each in command.params if each.param_type_name == "option"}
    return options | {field: options[name] for field, name in FIELDS.items() if name in options}


@contextmanager
def options_named(context: Any) -> Iterator[None]:
    """Errors of domain code about a field or an unknown network name the command's option that it was given by."""
    options = option_names(context.command)

    def source(field: str) -> tuple[str, str] | None:
        return (options[field], "") if field in options else None

    try:
        with fields_from(source):
            yield
    except UnknownNetwork as fault:
        given = (name for name, value in context.params.items() if fault.file in _names(value) and name in options)
        option = next(given, None)
        if option is None:
            raise
        raise InputError(options[option], fault.file, fault.fault) from None


def require_alone(context: Any, name: str, *besides: str) -> None:
    """InputError where another parameter was given than `name` and those `besides`: it takes the place of the others."""
    options = option_names(context.command)
    for other in context.params:
        given = context.get_parameter_source(other).name == "COMMANDLINE"
        if given and other not in (name, *besides) and other in options:
            raise InputError(options[other], "", f"{options[name]} has this from its file: leave it out")


def two_shares(field: str, text: str) -> tuple[float, float]:
    """LEFT,RIGHT as numbers; FieldError for anything else."""
    try:
        left, right = (float(part) for part in text.split(","))
    except ValueError:
        raise FieldError(field, f"{text!r} is not two shares such as 0.2,0.15") from None
    return left, right


def _names(value: object) -> list[str]:
    """Of an option's value: a name, several separated by commas, or a list of names."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return [name for each in value for name in _names(each)] if isinstance(value, list | tuple) else []
