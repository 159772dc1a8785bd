"""`tinylight make-flow`: demand for any road network."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from streetflow.errors import InputError
from tinylight.commands.check import say_warnings
from tinylight.commands.options import two_shares
from tinylight.console import progress_bar, require_writable, say

if TYPE_CHECKING:
    from streetflow.check.check_roadnet import CheckWarning
    from streetflow.networks.demand_for import DemandMaker


def make_flow(
    roadnet: Annotated[
        str,
        typer.Argument(metavar="ROADNET", help="The road network: a file, a folder with roadnet.json, or a network's name."),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="A new file (OUT.json), for one demand; or a new folder, which becomes a network: roadnet.json, "
            "flow_0.json ...",
        ),
    ],
    rate: Annotated[float, typer.Option(metavar="N", help="Vehicles an hour on each road that leads in.")] = 400,
    turns: Annotated[
        str, typer.Option(metavar="LEFT,RIGHT", help="Shares of left and right turns at each crossing.")
    ] = "0.2,0.15",
    by_road: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='JSON with what differs from road to road: {"rates": {"R1": 600}, '
            '"turns": {"R2": {"left": 1, "straight": 3}}, "exits": {"R3": 2, "R4": 1}}.',
        ),
    ] = None,
    routes: Annotated[
        str,
        typer.Option(
            metavar="turns|shortest|fastest",
            help="Draw a turn at every crossing; or draw the exit, and take the shortest way there or the fastest.",
        ),
    ] = "turns",
    arrivals: Annotated[str, typer.Option(metavar="poisson|regular", help="Random or even spacing in time.")] = "poisson",
    profile: Annotated[str, typer.Option(metavar="flat|peak", help="Demand over time.")] = "flat",
    vehicle_speed: Annotated[
        float | None,
        typer.Option(metavar="M/S", help="Top speed of the vehicles, m/s.", show_default="lowest limit on each one's route"),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(metavar="S", help="Simulated time, s.", show_default="the network's, or 3600")
    ] = None,
    flows: Annotated[int, typer.Option(metavar="N", help="Demand files to write.")] = 1,
    seed: Annotated[int, typer.Option(help="Same seed and options, same bytes.")] = 0,
) -> None:
    """Write demand for a road network: so many vehicles an hour on each road that leads in, on routes that can be driven.

    The result is checked as `tinylight check` does before it is written."""
    from streetflow.files import write_whole
    from streetflow.networks.by_road import read_by_road
    from streetflow.networks.catalogue import roadnet_of
    from streetflow.networks.demand_for import AskedDemand, DemandMaker
    from streetflow.networks.write import at_least_one, demand_network, json_bytes, write_network
    from streetflow.roadnet.json_reader import read_json
    from streetflow.roadnet.network_tables import load_network

    asked = AskedDemand(
        rate, two_shares("turns", turns), routes, arrivals, profile, 3600 if horizon is None else horizon, vehicle_speed
    )
    one_file = _is_one_file(out, at_least_one(flows))
    if by_road is not None:
        read_json(by_road)  # before the network is looked for
    roadnet_file, horizon_s = roadnet_of(roadnet)
    network = load_network(roadnet_file)
    asked = replace(asked, horizon_s=horizon_s if horizon is None else horizon)
    if by_road is not None:
        asked = replace(asked, by_road=read_by_road(by_road, network))
    maker = DemandMaker(network, asked)
    names = [out.name] if one_file else [f"flow_{number}.json" for number in range(flows)]
    demands: dict[str, bytes] = {}
    counts = []
    warnings = []
    with progress_bar() as bar:
        task = bar.add_task("making demand", total=flows)
        for number, name in enumerate(names):
            demand = maker.flow(seed, number)
            counts.append(len(demand))
            demands[name] = json_bytes(demand)
            warnings += [(name, warning) for warning in _checked(demands[name], name, roadnet_file, asked.horizon_s)]
            bar.advance(task)
    if one_file:
        write_whole(out, demands[out.name])
    else:
        write_network(out, demand_network(roadnet_file.read_bytes(), demands, asked.horizon_s, maker.made_of(seed)))
    _say_made(out, maker, counts)
    say_warnings(warnings)


def _is_one_file(out: Path, flows: int) -> bool:
    """InputError where neither a file nor a folder can be made there."""
    from streetflow.networks.write import require_new_folder

    if out.suffix != ".json":
        require_new_folder(out)
        return False
    if out.exists() or out.is_symlink():
        raise InputError(out, "", "is there already: name a file that isn't")
    require_writable(out)
    if flows != 1:
        raise InputError("--flows", "", f"{flows} demands don't fit one file: name a folder instead of {out}")
    return True


def _checked(content: bytes, name: str, roadnet_file: Path, horizon_s: int) -> "Sequence[CheckWarning]":
    """The warnings of `tinylight check` about a demand file."""
    from streetflow.check.report import FileToCheck, check

    with TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(content)
        report = check(FileToCheck(file, roadnet_file, horizon_s))
    if report.faults:
        raise InputError(name, *report.faults[0])
    return report.warnings


def _say_made(out: Path, maker: "DemandMaker", counts: Sequence[int]) -> None:
    shown = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    files = f"{len(counts)} demand file{'s' * (len(counts) != 1)}"
    say(f"{out}: {files}, {shown} vehicles from {len(maker.rates)} roads to {len(maker.exits)}")
    if maker.without_exit:
        names = ", ".join(repr(each) for each in maker.without_exit[:3])
        rest = f" and {len(maker.without_exit) - 3} more" if len(maker.without_exit) > 3 else ""
        say(f"warning: no exit can be reached from {names}{rest}: no trip begins there", style="yellow")
