"""The crossings that the shell is proven for: those of all networks at hand, and generated ones."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from streetflow.control.signal_groups import SignalPlan, signal_plans
from streetflow.control.signal_times import SignalRules
from streetflow.networks.catalogue import list_networks
from streetflow.networks.generate_roadnet import Grid, roadnet
from streetflow.networks.write import json_bytes
from streetflow.roadnet.network_tables import load_network

PHASES = (4, 4, 8, 8, 9)


def at_hand() -> Iterator[tuple[str, SignalPlan]]:
    """(network/crossing, plan) of the built-in networks and those of TINYLIGHT_DATA."""
    for network in list_networks():
        for plan in signal_plans(load_network(network.roadnet_file)):
            yield f"{network.name}/{plan.intersection}", plan


def generated(count: int) -> Iterator[tuple[str, SignalPlan]]:
    """Crossings of drawn widths, speeds, phases and rules; the same for the same number."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            grid, rules = _drawn(number)
            file = Path(folder) / f"{number}.json"
            file.write_bytes(json_bytes(roadnet(grid)))
            yield f"generated/{number}", signal_plans(load_network(file), rules)[0]


def _drawn(number: int) -> tuple[Grid, SignalRules]:
    draw = random.Random(f"tinylight-hil/shell/{number}").random
    grid = Grid(
        lanes=1 + int(4 * draw()),
        side_lanes=1 + int(4 * draw()),
        speed_mps=round(8 + 14 * draw(), 2),
        side_speed_mps=round(8 + 14 * draw(), 2),
        phases=PHASES[number % len(PHASES)],
        curves=draw() < 0.5,
    )
    rules = SignalRules(max_green_s=round(20 + 60 * draw()), longest_red_s=round(60 + 120 * draw()))
    return grid, replace(rules, vehicle_length_m=round(5 + 7 * draw(), 1))
