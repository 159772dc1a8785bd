"""Clearances: what the lights show for three seconds when they change.

``hold``     the old green stays on (the paper's released experiment; not deployable),
``yellow``   the movements that end are closed, those that go on stay open,
``all_red``  everything is closed.

The engines know phases only by number, so a clearance is a phase too: for ``yellow`` and ``all_red`` a roadnet with
extra phases behind the file's own is derived and cached, and both engines read that one. Nothing else in it differs,
to the last digit of every number.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from streetflow.cache import cache_folder, cached_folder
from streetflow.control.intersection import is_signalled
from streetflow.errors import FieldError
from streetflow.near import or_else
from streetflow.roadnet.network_tables import NetworkTables, load_network
from streetflow.roadnet.reader import Intersection

Clearance = Literal["hold", "yellow", "all_red"]
CLEARANCES: tuple[str, ...] = get_args(Clearance)
CLEARANCE_S = 3

_NUMBER = "\x00number\x00"  # a control character: no JSON text can hold it unescaped
_FORMAT = 1  # raise it when the derivation changes


@dataclass(frozen=True)
class ClearanceTable:
    """The network to simulate; ``phases[i, a, b]``: the phase that its signalled intersection i shows between actions a and b;
    -1: keep a's."""

    network: NetworkTables
    phases: NDArray[np.int32]


def derive_clearance(network: NetworkTables, clearance: str) -> ClearanceTable:
    """The network to simulate with ``clearance`` and its table of phases.

    With ``hold`` it is the given one. Raises FieldError for an unknown clearance.
    """
    require_clearance(clearance)
    signalled = [each for each in network.roadnet.intersections if is_signalled(each)]
    tables, added = zip(*(_between(each, clearance) for each in signalled), strict=True)
    most = max(len(table) for table in tables)
    phases = np.full((len(tables), most, most), -1, np.int32)
    for i, table in enumerate(tables):
        phases[i, : len(table), : len(table)] = table
    if clearance == "hold":
        return ClearanceTable(network, phases)
    original = network.file.read_bytes()
    key = hashlib.sha256(original).hexdigest()[:24]
    folder = cache_folder() / "clearances" / f"{key}-{clearance}-{_FORMAT}"
    by_id = {each.id: phases for each, phases in zip(signalled, added, strict=True)}
    cached_folder(folder, lambda: {"roadnet.json": _with_phases(original, by_id)})
    return ClearanceTable(load_network(folder / "roadnet.json"), phases)


def require_clearance(clearance: str) -> None:
    """FieldError for an unknown clearance."""
    if clearance not in CLEARANCES:
        raise FieldError("clearance", f"unknown{or_else(clearance, CLEARANCES)}", clearance)


def _between(intersection: Intersection, clearance: str) -> tuple[NDArray[np.int32], list[list[int]]]:
    """One intersection's table, int32[actions, actions] as in ClearanceTable, and the road links opened by each of the phases
    that are added behind the file's own."""
    opened = (frozenset(phase.road_links) for phase in intersection.phases)
    actions = [links for links in opened if links]
    table = np.full((len(actions), len(actions)), -1, np.int32)
    added: dict[frozenset[int], int] = {}
    if clearance != "hold":
        for a, old in enumerate(actions):
            for b, new in enumerate(actions):
                between = old & new if clearance == "yellow" else frozenset()
                table[a, b] = added.setdefault(between, len(intersection.phases) + len(added))
    return table, [sorted(links) for links in added]


def _with_phases(original: bytes, added: Mapping[str, list[list[int]]]) -> bytes:
    """The file with further phases, by intersection. Numbers are copied as text: CityFlow's reader has its own rounding, so a
    number written again with 17 digits might be read as another one."""
    roadnet = json.loads(original, parse_float=lambda token: f"{_NUMBER}{token}")
    for intersection in roadnet["intersections"]:
        for links in added.get(intersection["id"], ()):
            intersection["trafficLight"]["lightphases"].append({"time": CLEARANCE_S, "availableRoadLinks": links})
    text = re.sub(rf'"{re.escape(json.dumps(_NUMBER)[1:-1])}([^"]*)"', r"\1", json.dumps(roadnet))
    return (text + "\n").encode()
