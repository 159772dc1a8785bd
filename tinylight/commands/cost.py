"""`tinylight cost`: parameters and floating-point operations of every model, and what the chip really takes."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from streetflow.errors import InputError
from streetflow.near import or_else
from tinylight.commands.options import JsonOption
from tinylight.console import progress_bar, require_writable, say, show

if TYPE_CHECKING:
    from hil.loop.chip_cost import ChipCost
    from model.report.cost import Cost, Geometry


def cost(
    network: Annotated[
        str | None,
        typer.Option(
            "--network", metavar="NAME", help="Count for an intersection of this network. Default: the paper's of Jinan."
        ),
    ] = None,
    intersection: Annotated[
        str | None, typer.Option(metavar="ID", help="Which intersection of the network. Default: the first.")
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Show the rows that each total is made of.")] = False,
    policy: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Measure this policy on the emulated chip (may be given more than once)."),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="SVG", help="Draw the figure into this file (needs matplotlib).")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(metavar="JSON", help="Travel times for the figure, from `tinylight table`. Default: the paper's."),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Count parameters and FLOPs of every model by the paper's formulas (Appendix C); measure policies on the chip.

    On the paper's Jinan intersection the totals are the paper's.
    """
    from model.policy.file import load_policy
    from model.report.cost import costs
    from model.report.cost_figure import MeasuredPoint, draw, paper_travel_times, table_travel_times
    from tinylight.json_file import write_json

    if intersection is not None and network is None:
        raise InputError("--intersection", "", "needs --network, which it is an intersection of")
    require_writable(figure, json_file)
    if figure is not None:
        _require_matplotlib()
    for file in policy or []:
        load_policy(file)
    times = paper_travel_times() if table is None else table_travel_times(table)
    geometry, where = _geometry(network, intersection)
    counted = costs(geometry)
    _show_costs(counted, geometry, where)
    if rows:
        _show_rows(counted)
    measured = [_measured(file) for file in policy or []]
    if measured:
        _show_measured(measured)
    if figure is not None:
        points = [MeasuredPoint(m.name, round(m.flops), m.cycles_p50, m.flash_bytes, m.ram_bytes) for m in measured]
        draw(figure, counted, times, points)
        say(f"written: {figure}")
    if json_file is not None:
        models = [asdict(each) | {"parameters": each.parameters, "flops": each.flops} for each in counted]
        write_json({"geometry": asdict(geometry), "models": models, "measured": [m.as_dict() for m in measured]}, json_file)


def _measured(file: Path) -> "ChipCost":
    from hil.loop.chip_cost import measure_policy

    with progress_bar() as bar:
        task = bar.add_task(file.name, total=None)

        def on_progress(what: str, made: int, total: int) -> None:
            bar.update(task, description=what, completed=made, total=total)

        return measure_policy(file, progress=on_progress)


def _geometry(network: str | None, intersection: str | None) -> tuple["Geometry", str]:
    """The intersection's figures and a label for it."""
    from model.report.cost import PAPER_GEOMETRY, geometry_of
    from streetflow.control.intersection import signalled_intersections
    from streetflow.networks.catalogue import find_network
    from streetflow.roadnet.reader import read_roadnet

    if network is None:
        return PAPER_GEOMETRY, "the paper's intersection of Jinan"
    found = signalled_intersections(read_roadnet(find_network(network).roadnet_file))
    names = [each.id for each in found]
    if intersection is not None and intersection not in names:
        raise InputError("--intersection", "", f"{network} has no signalled {intersection!r}{or_else(intersection, names)}")
    index = 0 if intersection is None else names.index(intersection)
    return geometry_of(found, index), f"{names[index]} of {network}"


def _require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError("--figure", "", "needs matplotlib: pip install 'tinylight-hil[plot]'") from None


def _show_costs(counted: list["Cost"], geometry: "Geometry", where: str) -> None:
    title = (
        f"{where}: {geometry.in_lanes} in-lanes, {geometry.out_lanes} out-lanes, {geometry.phases} phases, "
        f"{geometry.lane_links} lane links, {geometry.relevant_intersections} relevant intersections"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("model")
    for heading in ("parameters", "FLOPs"):
        table.add_column(heading, justify="right")
    table.add_column("remark")
    for each in counted:
        table.add_row(each.model, f"{each.parameters:,}", f"{each.flops:,}", each.note)
    show(table)


def _show_rows(counted: list["Cost"]) -> None:
    table = Table(box=SIMPLE_HEAD)
    for heading in ("model", "row"):
        table.add_column(heading)
    for heading in ("parameters", "FLOPs"):
        table.add_column(heading, justify="right")
    for each in counted:
        for k, row in enumerate(each.rows):
            table.add_row(each.model if k == 0 else "", row.description, f"{row.parameters:,}", f"{row.flops:,}")
        table.add_section()
    show(table)


def _show_measured(measured: list["ChipCost"]) -> None:
    table = Table(
        title="measured on the emulated chip; FLOPs and cycles of one decision", title_justify="left", box=SIMPLE_HEAD
    )
    table.add_column("policy", no_wrap=True)
    for heading in ("lights", "parameters", "FLOPs", "cycles", "per FLOP", "ms, 8 MHz", "flash B", "RAM B"):
        table.add_column(heading, justify="right")
    for m in measured:
        table.add_row(
            m.name,
            str(m.intersections),
            f"{m.parameters:,}",
            f"{m.flops:,.0f}",
            f"{m.cycles_p50:,.0f}",
            f"{m.cycles_p50 / m.flops:.2f}",
            f"{m.cycles_max / 8000:.2f}",
            f"{m.flash_bytes:,}",
            f"{m.ram_bytes:,}",
        )
    show(table)
