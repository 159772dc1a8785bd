"""Networks as folders of CityFlow JSON: ``roadnet.json``, ``flow_0.json`` ..., and ``network.json`` with the horizon.

The demand files are generated (`generated_network`), or are copies of an existing one with shifted start times
(`shifted_copies`), as the paper's ten flows of a data set are.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from streetflow.cache import publish_folder
from streetflow.errors import FieldError, InputError
from streetflow.files import require_folder
from streetflow.networks import generate_flow, generate_roadnet
from streetflow.networks.generate_flow import Draw, Traffic, one_vehicle
from streetflow.networks.generate_roadnet import Grid

NOISE_S = 60  # the paper's


def json_bytes(content: Any) -> bytes:
    return (json.dumps(content, separators=(",", ":")) + "\n").encode()


def generated_network(grid: Grid, traffic: Traffic, flows: int, seed: int, noise_s: int | None = None) -> dict[str, bytes]:
    """The files of a network by name. Every flow file is a demand of its own.

    With ``noise_s`` they are shifted copies of one demand instead. Same arguments, same bytes.
    """
    made_of = {"seed": seed, "noise_s": noise_s, "grid": asdict(grid), "traffic": asdict(traffic)}
    files = {"roadnet.json": json_bytes(generate_roadnet.roadnet(grid)), **network_json(traffic.horizon_s, made_of)}
    if noise_s is not None:
        base = generate_flow.flow(grid, traffic, _draw(seed, "base"))
        return files | shifted_copies(base, noise_s, flows, seed, traffic.horizon_s)
    demands = (generate_flow.flow(grid, traffic, _draw(seed, str(k))) for k in range(at_least_one(flows)))
    return files | {f"flow_{k}.json": json_bytes(demand) for k, demand in enumerate(demands)}


def shifted_network(roadnet: bytes, flow: Sequence[Mapping[str, Any]], noise_s: int, flows: int, seed: int, horizon_s: int,
                    source: str) -> dict[str, bytes]:  # fmt: skip
    """The files of a network whose flows are shifted copies of an existing one's. source: its name, for the record."""
    made_of = {"seed": seed, "noise_s": noise_s, "of": source}
    copies = shifted_copies(flow, noise_s, flows, seed, horizon_s)
    return {"roadnet.json": roadnet, **network_json(horizon_s, made_of), **copies}


def demand_network(
    roadnet: bytes, demands: Mapping[str, bytes], horizon_s: int, made_of: Mapping[str, Any]
) -> dict[str, bytes]:
    """The files of a network of demand files, by name, that were made for a road network. made_of: for the record."""
    return {"roadnet.json": roadnet, **network_json(horizon_s, made_of), **demands}


def shifted_copies(flow: Sequence[Mapping[str, Any]], noise_s: int, flows: int, seed: int, horizon_s: int) -> dict[str, bytes]:
    """``flow_0.json`` ...: each vehicle of ``flow`` starts a whole number of seconds from -noise_s to noise_s later.

    All shifts are equally likely; starts are clipped at 0. Streams become single vehicles, those that start before
    the horizon. Entries are in order of their start.
    """
    require_shifts(noise_s, flows)
    vehicles = [each for entry in flow for each in single_vehicles(entry, horizon_s)]
    return {
        f"flow_{k}.json": json_bytes(_shifted(vehicles, noise_s, _draw(seed, f"noise/{k}"))) for k in range(at_least_one(flows))
    }


def require_shifts(noise_s: int, flows: int, horizon_s: int | None = None) -> None:
    """InputError for numbers that make no shifted copies. horizon_s: None for the network's own."""
    if noise_s < 0:
        raise FieldError("noise", f"must be 0 s or more, is {noise_s}")
    if horizon_s is not None and horizon_s < 1:
        raise FieldError("horizon", f"must be at least 1 s, is {horizon_s}")
    at_least_one(flows)


def _shifted(vehicles: list[dict[str, Any]], noise_s: int, draw: Draw) -> list[dict[str, Any]]:
    starts = [max(each["startTime"] + int(draw() * (2 * noise_s + 1)) - noise_s, 0) for each in vehicles]
    moved = [{**each, "startTime": start, "endTime": start} for each, start in zip(vehicles, starts, strict=True)]
    return sorted(moved, key=lambda each: each["startTime"])


def single_vehicles(entry: Mapping[str, Any], horizon_s: int) -> list[dict[str, Any]]:
    """The vehicles that a flow creates before the horizon in steps of 1 s, one entry each."""
    start, end, interval = entry.get("startTime", 0), entry.get("endTime", -1), entry["interval"]
    if start == end != -1:
        return [{**entry}] if start >= 0 else []
    last = horizon_s - 1 if end == -1 else min(end, horizon_s - 1)
    first = max(start, 0)
    count = max(math.floor((last - first) / interval) + 1, 0)
    return [one_vehicle(entry["vehicle"], entry["route"], first + math.ceil(n * interval)) for n in range(count)]


def require_new_folder(folder: Path) -> None:
    """InputError unless a folder can be made there."""
    if folder.exists() or folder.is_symlink():
        raise InputError(folder, "", "is there already: name a folder that isn't")
    require_folder(folder)


def write_network(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files to a new folder, all or none. InputError if something is there already or it can't be written."""
    require_new_folder(folder)
    try:
        publish_folder(folder, files)
    except OSError as fault:
        raise InputError(folder, "", f"can't be written: {fault.strerror or fault}") from None


def network_json(horizon_s: int, made_of: Mapping[str, Any], decision_interval_s: int | None = None) -> dict[str, bytes]:
    """``network.json``, with what the network was made of. decision_interval_s: None for the usual."""
    interval = {} if decision_interval_s is None else {"decision_interval_s": decision_interval_s}
    return {"network.json": json_bytes({"horizon_s": horizon_s, **interval, "made_of": made_of})}


def _draw(seed: int, what: str) -> Draw:
    return random.Random(f"tinylight-hil/make-network/{seed}/{what}").random


def at_least_one(flows: int) -> int:
    """The number of demand files to write; InputError below 1."""
    if flows < 1:
        raise FieldError("flows", f"must be at least 1, is {flows}")
    return flows
