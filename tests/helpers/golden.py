"""Recorded runs of the real CityFlow, by name: on the built-in networks in `tests/golden`, others in TINYLIGHT_SHARED.

A trace is a dictionary of arrays, see `tests/golden/README.md`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streetflow.networks.catalogue import find_network
from tests.helpers.places import ROOT
from tests.helpers.shared_data import GOLDEN, data_set, needs_data_set, needs_recording

HERE = ROOT / "tests" / "golden"
BUILTIN_TRACES = {
    f"{network}_{run}": network
    for network in ("crossing", "arterial")
    for run in ("flow0_fixed", "flow1_random", "flow2_engine")
}
TRACES = BUILTIN_TRACES | {
    "atlanta_flow0_fixed": "Atlanta",
    "atlanta_flow4_random": "Atlanta",
    "example_engine": "example",
    "example_engine_half": "example",
    "hangzhou1_flow0_fixed": "Hangzhou1",
    "hangzhou1_flow2_random": "Hangzhou1",
    "hangzhou2_flow3_random": "Hangzhou2",
    "hangzhou3_flow1_random": "Hangzhou3",
    "jinan_flow0_random": "Jinan",
    "losangeles_flow0_random": "LosAngeles",
}
# Of a CityFlow build made deterministic, see docs/cityflow-semantics.md, section 10.
LANE_CHANGE_TRACES = {
    "lanechange/atlanta_flow4_random_lanechange": "Atlanta",
    "lanechange/example_engine_lanechange": "example",
    "lanechange/hangzhou1_flow2_random_lanechange": "Hangzhou1",
    "lanechange/jinan_flow0_random_lanechange": "Jinan",
}
NETWORKS = TRACES | LANE_CHANGE_TRACES


def needs_trace(name: str) -> pytest.MarkDecorator:
    """Skips where a trace that isn't in this repository, or its data set, isn't available."""
    if name in BUILTIN_TRACES:
        return pytest.mark.skipif(False, reason="")
    recording, networks = needs_recording(f"{name}.npz"), needs_data_set(NETWORKS[name])
    return networks if networks.args[0] else recording


def traces(names: Iterable[str]) -> list[Any]:
    """Parameters of a test, one per trace, each with its own condition."""
    return [pytest.param(name, marks=needs_trace(name)) for name in names]


def read_trace(name: str) -> dict[str, np.ndarray]:
    """The arrays of a trace."""
    with np.load((HERE if name in BUILTIN_TRACES else GOLDEN) / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def network_folder(name: str) -> Path:
    """The folder with the roadnet and the flows that a trace was recorded on."""
    network = NETWORKS[name]
    return find_network(network).roadnet_file.parent if name in BUILTIN_TRACES else data_set(network) or Path(network)


def trace_config(name: str) -> dict[str, Any]:
    """CityFlow's config of a trace, with the paths of its files on this machine."""
    return json.loads(str(read_trace(name)["config"])) | {"dir": f"{network_folder(name)}/"}
