"""Intersections and networks of the baselines' tests. Needs torch."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

from model.baselines.registry import BASELINES, build_graph
from model.dqn.value_graph import ValueGraph
from streetflow.control.environment import Environment
from streetflow.control.intersection import Intersection

Array = np.ndarray


def different_pair() -> list[Intersection]:
    """Two intersections that differ in everything: 3 phases, 4 in-lanes, 3 out-lanes, 5 links; and 2, 2, 2, 3."""
    first = Intersection(
        id="a", number=0, phase_count=3, phases=(0, 1, 2), in_roads=("r0", "r1"), out_roads=("r2",),
        in_lanes=(10, 11, 12, 13), out_lanes=(20, 21, 22), lane_links=((10, 20), (11, 21), (12, 22), (13, 20), (13, 21)),
        phase_lane_links=((0, 1, 4), (1, 2, 4), (3, 4)), **_more(3, 5),
    )  # fmt: skip
    second = Intersection(
        id="b", number=1, phase_count=2, phases=(0, 1), in_roads=("r2",), out_roads=("r3",),
        in_lanes=(20, 21), out_lanes=(30, 31), lane_links=((20, 30), (21, 31), (20, 31)), phase_lane_links=((0, 1), (1, 2)),
        **_more(2, 3),
    )  # fmt: skip
    return [first, second]


def _more(phases: int, links: int) -> dict[str, Any]:
    """Fields that baselines don't read."""
    known = {"id", "number", "phase_count", "phases", "in_roads", "out_roads", "in_lanes", "out_lanes", "lane_links",
             "phase_lane_links"}  # fmt: skip
    return {field.name: () for field in dataclasses.fields(Intersection) if field.name not in known}


def graph_of(name: str, intersections: list[Intersection], seeds: list[int]) -> tuple[ValueGraph, Array]:
    """The baseline's graph and its features' widths [N, F]."""
    widths = {
        "inlane_2_num_vehicle": [len(each.in_lanes) for each in intersections],
        "outlane_2_num_vehicle": [len(each.out_lanes) for each in intersections],
    }
    phases = [each.action_count for each in intersections]
    table = np.array([widths.get(feature, phases) for feature in BASELINES[name].features]).T
    return build_graph(BASELINES[name], intersections, table, int(table.max()), seeds), table


def inputs(intersections: list[Intersection], widths: Array, replicas: int, batch: int = 3) -> Any:
    """float32[G, B, F, W]: random features, zero padded; the current phase one-hot."""
    rng = np.random.default_rng(7)
    x = np.zeros((len(intersections) * replicas, batch, widths.shape[1], widths.max()), np.float32)
    for g in range(len(x)):
        n = g % len(intersections)
        for f, width in enumerate(widths[n]):
            x[g, :, f, :width] = rng.integers(0, 9, (batch, width))
        for b in range(batch):
            x[g, b, -1] = 0.0
            x[g, b, -1, rng.integers(intersections[n].action_count)] = 1.0
    return torch.from_numpy(x)


def arterial(name: str, **options: Any) -> Environment:
    return Environment("arterial", 1, features=BASELINES[name].features, **options)
