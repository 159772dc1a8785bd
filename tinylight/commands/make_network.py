"""`tinylight make-network`: road networks and demand by rule, or shifted copies of a demand."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from streetflow.errors import InputError
from tinylight.commands.options import two_shares
from tinylight.console import say

# What a network made of an existing demand takes; the other options describe a new one.
_WITH_SOURCE = ("folder", "source", "noise", "flows", "seed", "horizon")


def make_network(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="New folder to write; its name is the network's.")],
    rows: Annotated[int, typer.Option(help="Main roads, which run east and west.")] = 1,
    columns: Annotated[int, typer.Option(help="Side roads, which run north and south.")] = 1,
    lanes: Annotated[int, typer.Option(help="Lanes of a main road, per direction.")] = 3,
    side_lanes: Annotated[int | None, typer.Option(help="Lanes of a side road.", show_default="as --lanes")] = None,
    block: Annotated[float, typer.Option(metavar="M", help="Distance between side roads, m.")] = 400,
    side_block: Annotated[
        float | None, typer.Option(metavar="M", help="Distance between main roads, m.", show_default="as --block")
    ] = None,
    entry: Annotated[float, typer.Option(metavar="M", help="Length of the roads at the rim, m.")] = 300,
    speed: Annotated[float, typer.Option(metavar="M/S", help="Speed limit of main roads, m/s.")] = 11.111,
    side_speed: Annotated[
        float | None, typer.Option(metavar="M/S", help="Speed limit of side roads, m/s.", show_default="as --speed")
    ] = None,
    vehicle_speed: Annotated[
        float | None, typer.Option(metavar="M/S", help="Top speed of the vehicles, m/s.", show_default="as --speed")
    ] = None,
    phases: Annotated[
        int,
        typer.Option(
            metavar="4|8|9",
            help="4: opposite straights, opposite lefts; 8: also each approach alone; 9: also right turns only. "
            "Right turns are always open.",
        ),
    ] = 8,
    vehicles: Annotated[
        float | None,
        typer.Option(metavar="N", help="Vehicles an hour, on average.", show_default="400 a road that leads in"),
    ] = None,
    main_share: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Vehicles that start on a main road.", show_default="the same for every road"),
    ] = None,
    westward_share: Annotated[float, typer.Option(metavar="SHARE", help="Of those, the ones that start in the east.")] = 0.5,
    turns: Annotated[str, typer.Option(metavar="LEFT,RIGHT", help="Turning shares at each crossing.")] = "0.2,0.15",
    side_turns: Annotated[
        str | None, typer.Option(metavar="LEFT,RIGHT", help="The same for traffic on side roads.", show_default="as --turns")
    ] = None,
    routes: Annotated[
        str,
        typer.Option(metavar="turns|ends", help="Draw a turn at every crossing, or draw the exit and take the shortest path."),
    ] = "turns",
    profile: Annotated[str, typer.Option(metavar="flat|peak", help="Demand over time.")] = "flat",
    horizon: Annotated[
        int | None, typer.Option(metavar="S", help="Simulated time, s.", show_default="3600, or that of --from")
    ] = None,
    flows: Annotated[int, typer.Option(metavar="N", help="Demand files to write.")] = 10,
    seed: Annotated[int, typer.Option(help="Same seed and options, same bytes.")] = 0,
    noise: Annotated[
        int | None,
        typer.Option(
            metavar="S",
            help="All demand files are copies of one demand, each vehicle's start shifted by up to this much earlier or later, "
            "uniformly, as the paper does with 60.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="NETWORK|FLOWFILE", help="With --noise: the demand to copy (a network's flow 0)."),
    ] = None,
) -> None:
    """Write a road network with demand: a crossing, an arterial or a grid; or shifted copies of a demand.

    FOLDER gets roadnet.json, flow_0.json ... and network.json, as CityFlow and this program read them."""
    from streetflow.networks.generate_flow import Traffic
    from streetflow.networks.generate_roadnet import Grid
    from streetflow.networks.write import generated_network, require_new_folder, require_shifts, write_network

    if source is not None:
        unused = [
            parameter.opts[0]
            for parameter in context.command.params
            if parameter.name not in _WITH_SOURCE
            and getattr(context.get_parameter_source(str(parameter.name)), "name", "") == "COMMANDLINE"
        ]
        if unused:
            raise InputError(unused[0], "", "describes a new network; with --from there is one already")
        if noise is None:
            raise InputError("--from", "", "makes shifted copies: say by how much with --noise (the paper: 60)")
        require_shifts(noise, flows, horizon)
        require_new_folder(folder)
        files = _shifted(source, noise, flows, seed, horizon)
    else:
        grid = Grid(
            rows=rows,
            columns=columns,
            lanes=lanes,
            side_lanes=lanes if side_lanes is None else side_lanes,
            block_m=_whole(block),
            side_block_m=_whole(block if side_block is None else side_block),
            entry_m=_whole(entry),
            speed_mps=speed,
            side_speed_mps=speed if side_speed is None else side_speed,
            phases=phases,
        )
        traffic = Traffic(
            vehicles_per_hour=800 * (rows + columns) if vehicles is None else vehicles,
            main_share=rows / (rows + columns) if main_share is None else main_share,
            westward_share=westward_share,
            side_turns=two_shares("turns", turns) if side_turns is None else two_shares("side_turns", side_turns),
            main_turns=two_shares("turns", turns),
            profile=profile,
            routes=routes,
            horizon_s=3600 if horizon is None else horizon,
            max_speed_mps=speed if vehicle_speed is None else vehicle_speed,
        )
        files = generated_network(grid, traffic, flows, seed, noise)
    write_network(folder, files)
    say(f"{folder}: {len(files)} files. TINYLIGHT_DATA={folder.absolute().parent} makes it the network {folder.name!r}.")


def _shifted(source: str, noise_s: int, flows: int, seed: int, horizon_s: int | None) -> dict[str, bytes]:
    from streetflow.networks.catalogue import network_of
    from streetflow.networks.write import shifted_network
    from streetflow.roadnet.flow import read_flows
    from streetflow.roadnet.reader import read_roadnet

    network = network_of(source)
    flow_file = network.flow_files[0]
    read_flows(flow_file, read_roadnet(network.roadnet_file).road_index)  # raises for a demand that can't be run
    demand: list[dict[str, Any]] = json.loads(flow_file.read_bytes())
    roadnet = network.roadnet_file.read_bytes()
    return shifted_network(
        roadnet,
        demand,
        noise_s,
        flows,
        seed,
        network.horizon_s if horizon_s is None else horizon_s,
        f"{network.name}: {flow_file.name}",
    )


def _whole(length_m: float) -> float:
    """400.0 as 400, so that files are the same whichever was typed."""
    return int(length_m) if length_m.is_integer() else length_m
