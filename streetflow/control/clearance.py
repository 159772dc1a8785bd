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
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from streetflow.cache import cache_folder, cached_folder
from streetflow.errors import FieldError
from streetflow.near import or_else

Clearance = Literal["hold", "yellow", "all_red"]
CLEARANCES: tuple[str, ...] = get_args(Clearance)
CLEARANCE_S = 3

_NUMBER = "\x00number\x00"  # a control character: no JSON text can hold it unescaped
_FORMAT = 1  # raise it when the derivation changes


@dataclass(frozen=True)
class ClearanceTable:
    """``phases[i, a, b]``: the phase that signalled intersection i shows between actions a and b; -1: keep a's."""

    roadnet_file: Path
    phases: NDArray[np.int32]


def derive_clearance(roadnet_file: Path, clearance: str) -> ClearanceTable:
    """The roadnet file to simulate with ``clearance`` and its table of phases, from a **valid** roadnet file.

    With ``hold`` the file is the given one. Raises FieldError for an unknown clearance.
    """
    require_clearance(clearance)
    state = roadnet_file.stat()
    return _derive(roadnet_file.absolute(), clearance, state.st_mtime_ns, state.st_size)


def require_clearance(clearance: str) -> None:
    """FieldError for a clearance that there isn't."""
    if clearance not in CLEARANCES:
        raise FieldError("clearance", f"unknown{or_else(clearance, CLEARANCES)}", clearance)


@lru_cache(maxsize=64)
def _derive(roadnet_file: Path, clearance: str, _mtime_ns: int, _size: int) -> ClearanceTable:
    original = roadnet_file.read_bytes()
    # Numbers pass through as text: CityFlow's reader rounds in its own way, so 17 digits rewritten are not the same.
    roadnet = json.loads(original, parse_float=lambda token: f"{_NUMBER}{token}")
    signalled = [each for each in roadnet["intersections"] if _is_signalled(each)]
    tables = [_add_phases(each["trafficLight"]["lightphases"], clearance) for each in signalled]
    most = max(len(table) for table in tables)
    phases = np.full((len(tables), most, most), -1, np.int32)
    for i, table in enumerate(tables):
        phases[i, : len(table), : len(table)] = table
    phases.flags.writeable = False
    if clearance == "hold":
        return ClearanceTable(roadnet_file, phases)

    key = hashlib.sha256(original).hexdigest()[:24]
    text = re.sub(rf'"{re.escape(json.dumps(_NUMBER)[1:-1])}([^"]*)"', r"\1", json.dumps(roadnet))
    folder = cache_folder() / "clearances" / f"{key}-{clearance}-{_FORMAT}"
    cached_folder(folder, lambda: {"roadnet.json": (text + "\n").encode()})
    return ClearanceTable(folder / "roadnet.json", phases)


def _is_signalled(intersection: dict[str, Any]) -> bool:
    return not intersection["virtual"] and len(intersection["trafficLight"]["lightphases"]) > 1


def _add_phases(lightphases: list[dict[str, Any]], clearance: str) -> NDArray[np.int32]:
    """Append one intersection's clearance phases to ``lightphases``; int32[actions, actions] as in ClearanceTable."""
    opened = (frozenset(phase["availableRoadLinks"]) for phase in lightphases)
    actions = [links for links in opened if links]
    table = np.full((len(actions), len(actions)), -1, np.int32)
    added: dict[frozenset[int], int] = {}
    if clearance == "hold":
        return table
    for a, old in enumerate(actions):
        for b, new in enumerate(actions):
            between = old & new if clearance == "yellow" else frozenset()
            if between not in added:
                added[between] = len(lightphases)
                lightphases.append({"time": CLEARANCE_S, "availableRoadLinks": sorted(between)})
            table[a, b] = added[between]
    return table
