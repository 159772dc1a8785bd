"""The built-in networks, made by a seeded generator: no download is needed to run anything.

``crossing`` is one isolated four-way crossing, ``arterial`` three crossings in a row. Every crossing has three
lanes per approach (left, straight, right), 8 phases and right turns that are always open; each movement reaches all
three lanes of the road it enters, as in the grid data sets. Demand is one peak hour: it rises to a maximum in the
middle and falls again, heavier along the main road; every flow of a file is one vehicle.

Policies are trained on these very bytes: they must never change.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path

from streetflow.cache import cache_folder, cached_folder
from streetflow.networks import generate_flow, generate_roadnet
from streetflow.networks.generate_flow import Traffic
from streetflow.networks.generate_roadnet import Grid
from streetflow.networks.write import json_bytes

FLOW_COUNT = 10
HORIZON_S = 3600


@dataclass(frozen=True)
class Scenario:
    grid: Grid
    traffic: Traffic


SCENARIOS = {
    "crossing": Scenario(
        Grid(curves=True),
        Traffic(2000, 0.6, 0.4, (0.25, 0.15), (0.2, 0.12), profile="peak", poisson=False, horizon_s=HORIZON_S),
    ),
    "arterial": Scenario(
        Grid(columns=3, curves=True),
        Traffic(2700, 0.45, 0.4, (0.25, 0.2), (0.12, 0.08), profile="peak", poisson=False, horizon_s=HORIZON_S),
    ),
}


def scenario_folder(name: str) -> Path:
    """Folder with ``roadnet.json`` and ``flow_0.json`` ... of a built-in network, written if it isn't there."""
    sources = (Path(str(module.__file__)).read_bytes() for module in (generate_flow, generate_roadnet))
    version = hashlib.sha256(Path(__file__).read_bytes() + b"".join(sources)).hexdigest()[:16]
    folder = cache_folder() / "networks" / version / name
    flows = {f"flow_{k}.json": k for k in range(FLOW_COUNT)}
    return cached_folder(
        folder, lambda: {"roadnet.json": roadnet_bytes(name)} | {file: flow_bytes(name, k) for file, k in flows.items()}
    )


def roadnet_bytes(name: str) -> bytes:
    """The roadnet file of a built-in network."""
    return json_bytes(generate_roadnet.roadnet(SCENARIOS[name].grid))


def flow_bytes(name: str, flow: int) -> bytes:
    """Demand file ``flow`` of a built-in network: one entry per vehicle, in order of start time."""
    scenario = SCENARIOS[name]
    draw = random.Random(f"tinylight-hil/{name}/{flow}").random
    return json_bytes(generate_flow.flow(scenario.grid, scenario.traffic, draw))
