"""`tinylight import-sumo`: a SUMO scenario as a data set."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from streetflow.errors import FieldError, InputError
from tinylight.commands.options import JsonOption
from tinylight.console import require_writable, say, show


def import_sumo(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="NET.net.xml ROUTES.rou.xml... OUT | SCENARIO.sumocfg OUT",
            help="A network and its demand, or a configuration that names them; and the new folder, which becomes a network.",
        ),
    ],
    begin: Annotated[
        float | None, typer.Option(metavar="S", help="SUMO's time at which the run begins.", show_default="the configuration's")
    ] = None,
    end: Annotated[
        float | None,
        typer.Option(metavar="S", help="And ends.", show_default="the configuration's, or the last departure"),
    ] = None,
    interval: Annotated[
        int | None,
        typer.Option(metavar="S", min=1, help="Seconds from one decision of the lights to the next.", show_default="20"),
    ] = None,
    in_parts: Annotated[
        bool,
        typer.Option(
            "--in-parts",
            help="For training on our own engine: cut the vehicles that it can't drive as a whole, where they would change "
            "lanes, rather than leave them out there.",
        ),
    ] = False,
    approach: Annotated[
        float,
        typer.Option(
            metavar="M",
            min=0,
            help="On SUMO: where a lane at a light is shorter than M metres, what stands on the lanes that lead to it counts "
            "as standing on it.",
        ),
    ] = 0.0,
    json_file: JsonOption = None,
) -> None:
    """Import a SUMO scenario: a folder that is used like any network, on SUMO (--engine sumo) and on our own engine.

    It says what was taken, merged and left out. SUMO itself isn't needed for this."""
    from streetflow.networks.write import require_new_folder, write_network
    from streetflow.sumo.importing import import_scenario
    from streetflow.sumo.scenario import read_scenario
    from tinylight.json_file import write_json

    if len(files) < 2:
        raise InputError(str(files[0]), "", "name what to import and, behind it, the new folder")
    for name, value in (("begin", begin), ("end", end)):
        if value is not None and not 0 <= value < 1e9:
            raise FieldError(name, f"must be 0 s or more, is {value:g}")
    out = files[-1]
    require_new_folder(out)
    require_writable(json_file)
    imported = import_scenario(read_scenario(files[:-1], begin, end), interval, in_parts=in_parts, approach_m=approach)
    write_network(out, imported.files)
    table = Table(title=str(out), title_justify="left", show_header=False)
    for what, count in imported.taken.items():
        table.add_row(what, f"{count:,}")
    show(table)
    for note in imported.notes:
        say(note)
    if json_file is not None:
        write_json({"taken": imported.taken, "notes": imported.notes}, json_file)
