"""Cells of the table on disk: one small file per network, model and run, so that a stopped table resumes where it was.

WORK/Hangzhou1/FixedTime/flow_0.json
WORK/Hangzhou1/TinyLight.best/flow_0.json and, beside it, flow_0.policy.json
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from model.policy.provenance import file_sha256
from streetflow.errors import InputError
from streetflow.files import write_whole
from streetflow.networks.catalogue import Network

CELL_VERSION = 1


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run."""

    average_travel_time_s: float
    throughput_veh_per_min: float


@dataclass(frozen=True)
class Cell:
    """One run of one model. outcomes: by arithmetic, "rule", "float" or "integer"."""

    network: str
    model: str  # its row in the table: FixedTime, FRAP, TinyLight.best, ...
    flow: int
    seed: int  # engine seed
    identity: dict[str, Any]  # what the figures depend on: settings, hashes of the files
    outcomes: dict[str, Outcome]
    wall_s: float  # this run's share of the task's time


def cell_file(work: Path, network: str, model: str, flow: int) -> Path:
    return work / network / model / f"flow_{flow}.json"


def artefact_file(work: Path, network: str, model: str, flow: int, suffix: str) -> Path:
    """Where the trained weights of a cell lie: beside it, as flow_K.SUFFIX."""
    return work / network / model / f"flow_{flow}.{suffix}"


def save_cell(work: Path, cell: Cell) -> None:
    """Writes whole or not at all: a reader, and the next start after a kill, never sees half a cell."""
    file = cell_file(work, cell.network, cell.model, cell.flow)
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"version": CELL_VERSION} | dataclasses.asdict(cell)
    write_whole(file, json.dumps(content, indent=1) + "\n")


def load_cell(work: Path, network: str, model: str, flow: int, identity: dict[str, Any] | None = None) -> Cell | None:
    """The cell if it exists and, with `identity` given, has that identity; else None. InputError for a foreign file."""
    file = cell_file(work, network, model, flow)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(file, "", f"not a cell of a table: {error}") from None
    if not isinstance(content, dict) or content.pop("version", None) != CELL_VERSION:
        raise InputError(file, "version", f"not a cell of a table of version {CELL_VERSION}")
    try:
        content["outcomes"] = {name: Outcome(**outcome) for name, outcome in content["outcomes"].items()}
        cell = Cell(**content)
    except (TypeError, KeyError, AttributeError) as error:
        raise InputError(file, "", f"not a cell of a table: {error}") from None
    return cell if identity is None or cell.identity == identity else None


def file_hashes(network: Network, flow: int) -> dict[str, str]:
    """SHA-256 of the two files that a run reads."""
    return {"roadnet_sha256": _sha256(network.roadnet_file), "flow_sha256": _sha256(network.flow_file(flow))}


_sha256 = cache(file_sha256)
