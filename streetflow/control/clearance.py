"""Clearances: what the lights show between two phases, and for how long.

``hold``      3 s: the old green stays on (the paper's released experiment; not deployable),
``yellow``    3 s: the movements that end are closed, those that go on stay open,
``all_red``   3 s: everything is closed,
``computed``  as ``yellow``, for the yellow and red clearance that the change needs by speeds and ways (`signal_groups.py`), in
              whole seconds, and at once where nothing ends; each action stays for its own minimum green,
``shell``     as ``computed``, and nobody waits too long: with the longest red and the maximum green of the safety shell
              (`service.py`).

The engines know phases only by number, so a clearance is a phase too: for all but ``hold`` a roadnet with extra phases behind
the file's own is derived and cached, and both engines read that one. Nothing else in it differs, to the last digit of every
number.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from streetflow.cache import cache_folder, cached_folder
from streetflow.control.intersection import is_signalled
from streetflow.control.service import NOBODY, service_of
from streetflow.control.signal_groups import SignalPlan, signal_plans
from streetflow.control.signal_times import LIGHT_RULES, SignalRules
from streetflow.errors import FieldError
from streetflow.kernels.service import Service
from streetflow.near import or_else
from streetflow.roadnet.network_tables import NetworkTables, load_network
from streetflow.roadnet.reader import Intersection

Clearance = Literal["hold", "yellow", "all_red", "computed", "shell"]
CLEARANCES: tuple[str, ...] = get_args(Clearance)
CLEARANCE_S = 3
"""Of every change, but for ``computed``."""

_NUMBER = "\x00number\x00"  # a control character: no JSON text can hold it unescaped
_FORMAT = 1  # raise it when the derivation changes


@dataclass(frozen=True)
class Changes:
    """What N lights show between two of up to A actions, and for how long."""

    phases: NDArray[np.int32]
    """[N, A, A], by the action that ends and the one that begins: the engine's phase; -1: keep the one of what ends."""
    seconds: NDArray[np.int32]
    """[N, A, A]; 0: what begins shows at once."""
    least_green_s: NDArray[np.int32]
    """[N, A]: how long each action stays at least."""
    service: Service = field(default=NOBODY, kw_only=True)


@dataclass(frozen=True)
class ClearanceTable(Changes):
    """The changes of a network's signalled intersections, in file order, and the network to simulate."""

    network: NetworkTables

    def phase_of(self, light: int, road_links: frozenset[int]) -> int | None:
        """The engine's phase with which exactly these road links of the intersection are open; None: there is none."""
        return self._phase_of[light].get(road_links)

    @cached_property
    def _phase_of(self) -> list[dict[frozenset[int], int]]:
        signalled = (each for each in self.network.roadnet.intersections if is_signalled(each))
        opened = ([frozenset(phase.road_links) for phase in each.phases] for each in signalled)
        return [{links: number for number, links in reversed(list(enumerate(phases)))} for phases in opened]


def derive_clearance(network: NetworkTables, clearance: str, rules: SignalRules = LIGHT_RULES) -> ClearanceTable:
    """The network to simulate with ``clearance`` and its table of phases.

    With ``hold`` it is the given one. ``rules``: what the times of ``computed`` and ``shell`` come from. Raises FieldError for
    an unknown clearance.
    """
    require_clearance(clearance)
    signalled = [each for each in network.roadnet.intersections if is_signalled(each)]
    tables, added = zip(*(_between(each, clearance) for each in signalled), strict=True)
    most = max(len(table) for table in tables)
    phases = np.full((len(tables), most, most), -1, np.int32)
    for i, table in enumerate(tables):
        phases[i, : len(table), : len(table)] = table
    seconds, least_green_s = np.full_like(phases, CLEARANCE_S), np.zeros((len(tables), most), np.int32)
    plans = signal_plans(network, rules) if clearance in ("computed", "shell") else ()
    _compute_times(plans, seconds, least_green_s)
    if clearance == "hold":
        return ClearanceTable(phases, seconds, least_green_s, network)
    original = network.file.read_bytes()
    key = hashlib.sha256(original).hexdigest()[:24]
    shown = "computed" if plans else clearance
    folder = cache_folder() / "clearances" / f"{key}-{shown}-{_FORMAT}"
    by_id = {each.id: phases for each, phases in zip(signalled, added, strict=True)}
    cached_folder(folder, lambda: {"roadnet.json": _with_phases(original, by_id)})
    derived, service = load_network(folder / "roadnet.json"), service_of(plans) if clearance == "shell" else NOBODY
    return ClearanceTable(phases, seconds, least_green_s, derived, service=service)


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
                between = frozenset() if clearance == "all_red" else old & new
                table[a, b] = added.setdefault(between, len(intersection.phases) + len(added))
    if clearance in ("computed", "shell"):
        added.setdefault(frozenset(), len(intersection.phases) + len(added))  # dark and flashing lamps
    return table, [sorted(links) for links in added]


def _compute_times(plans: Sequence[SignalPlan], seconds: NDArray[np.int32], least_green_s: NDArray[np.int32]) -> None:
    """Fill in what the signal plans of the crossings say, rounded up to whole seconds."""
    for i, plan in enumerate(plans):
        actions = range(len(plan.phases))
        for a in actions:
            least_green_s[i, a] = math.ceil(plan.least_green_s(a))
            seconds[i, a, : len(actions)] = [math.ceil(plan.change_s(a, b)) for b in actions]


def _with_phases(original: bytes, added: Mapping[str, list[list[int]]]) -> bytes:
    """The file with further phases, by intersection. Numbers are copied as text: CityFlow's reader has its own rounding, so a
    number written again with 17 digits might be read as another one."""
    roadnet = json.loads(original, parse_float=lambda token: f"{_NUMBER}{token}")
    for intersection in roadnet["intersections"]:
        for links in added.get(intersection["id"], ()):
            intersection["trafficLight"]["lightphases"].append({"time": CLEARANCE_S, "availableRoadLinks": links})
    text = re.sub(rf'"{re.escape(json.dumps(_NUMBER)[1:-1])}([^"]*)"', r"\1", json.dumps(roadnet))
    return (text + "\n").encode()
