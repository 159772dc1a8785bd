"""Snapshots of an engine, in memory and as versioned JSON files."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streetflow.engine.core import EngineCore
from streetflow.engine.demand import Demand
from streetflow.errors import InputError
from streetflow.files import write_whole
from streetflow.kernels import tables as t
from streetflow.roadnet.flow import VehicleKind
from streetflow.roadnet.json_reader import read_json

_FORMAT = "streetflow-archive"
_VERSION = 6
# What a step changes. Not in it, as in CityFlow: which flows were dropped, the numbering of pushed vehicles.
_FIXED_SIZE = (
    "counters", "reals", "rng", "head", "tail", "n_vehicles", "n_waiting", "arrival_step", "arrival_after", "queue_head",
    "queue_tail", "occupied", "queued", "out_count", "is_open", "phase_index", "phase_remaining", "flow_counter", "flow_credit",
    "active_flows",
)  # fmt: skip
_BY_SLOT = tuple(field.name for field in t.FIELDS if field.size == "slots" and not field.name.startswith("mover"))
_BY_TRIP = tuple(field.name for field in t.FIELDS if field.size == "trips")
_OF_THE_ENGINE = (t.OWN_LIGHTS, t.REVISITS)  # counters that say how an engine was set up
_JUMPS = (("jump_from", "jump_to"), ("jump_from_1", "jump_to_1"), ("jump_from_2", "jump_to_2"))
_PLANNED = ("planned_end", *(name for pair in _JUMPS for name in pair))  # indices in ``path``, as path_index
_PlaceInPath = tuple[tuple[int, ...], int, int, int]  # roads, position and lane where a lane path starts, index in that path
_KEYS = {"path_index": "way"}  # by field: its key in a file, where that isn't the field's name


class Archive:
    """A snapshot of an engine: ``Archive(engine)``, `Engine.snapshot` or `Archive.read`. It can be loaded any number of times
    and stays unchanged."""

    def __init__(self, engine: EngineCore) -> None:
        """The snapshot of an engine.

        Args:
            engine: it stays as it is.

        Raises:
            RuntimeError: it stopped in the middle of a step.
        """
        if not isinstance(engine, EngineCore):
            raise TypeError(f"an Archive is made of an Engine, not of {engine!r}; Archive.read reads one from a file")
        state, demand = engine.state, engine.demand
        if state.counters[t.BROKEN]:
            raise RuntimeError("the engine stopped in the middle of a step: there is no whole state to take")
        arrays = {name: getattr(state, name).copy() for name in (*_FIXED_SIZE, *_BY_SLOT)}
        arrays |= {name: getattr(state, name)[: state.counters[t.N_TRIPS]].copy() for name in _BY_TRIP}
        waiting_or_running = np.flatnonzero(state.status >= t.WAITING)
        lane_paths = {int(v): demand.lane_path_at(int(state.path_index[v])) for v in waiting_or_running}
        planned = {}
        for v in waiting_or_running.tolist() if state.counters[t.REVISITS] else ():
            ahead = {name: demand.lane_path_at(int(arrays[name][v])) for name in _planned_of(arrays, v)}
            if ahead:
                planned[v] = ahead
        routes = list(zip(demand.valid, demand.routes, strict=True))
        self._fill_in(arrays, routes, list(demand.kinds), lane_paths, planned, demand, engine.inputs_sha256)

    def _fill_in(
        self,
        arrays: dict[str, NDArray[Any]],
        routes: list[tuple[bool, tuple[int, ...]]],
        kinds: list[VehicleKind],
        lane_paths: dict[int, _PlaceInPath],
        planned: dict[int, dict[str, _PlaceInPath]],
        demand: Demand | None,
        inputs: str,
    ) -> None:
        self._arrays = arrays
        self._routes = routes  # by route number: valid, roads
        self._kinds = kinds
        self._lane_paths = lane_paths  # by slot
        self._planned = planned  # by slot and field, of vehicles that have planned how to pass a road twice
        self._demand = demand  # the engine's own numbering, if the archive was taken in this process
        self._inputs = inputs  # `EngineCore.inputs_sha256` of the engine

    @property
    def n_slots(self) -> int:
        return int(self._arrays["status"].size)

    @property
    def n_trips(self) -> int:
        return int(self._arrays["trip_flow"].size)

    def restore(self, tables: t.Tables, demand: Demand, inputs: str) -> None:
        """Write the snapshot into an engine's tables.

        Args:
            tables, demand: the engine's.
            inputs: its `inputs_sha256`.

        Raises:
            InputError: it was taken with another road network, demand, step length or setting of lane changing.
        """
        if self._arrays["reals"][t.DELTA] != tables.state.reals[t.DELTA]:
            raise InputError("archive", "interval", "is of an engine with another step length")
        if self._inputs != inputs:
            raise InputError("archive", "inputs", "is of another road network or flow file")
        if self._arrays["counters"][t.LANE_CHANGE] != tables.state.counters[t.LANE_CHANGE]:
            raise InputError("archive", "laneChange", "is of an engine with another setting")
        tables.grow("slots", self.n_slots)
        tables.grow("trips", self.n_trips)
        kind, route, path_index = (self._arrays[name] for name in ("kind", "route", "path_index"))
        if self._demand is not demand:
            kind, route, path_index = self._renumber(demand)
            planned = self._renumber_planned(demand)
        demand.write(tables)
        state = tables.state
        kept = [int(state.counters[c]) for c in _OF_THE_ENGINE]
        for name in _FIXED_SIZE:
            getattr(state, name)[:] = self._arrays[name]
        state.counters[list(_OF_THE_ENGINE)] = kept
        state.status[:] = t.FREE
        for name in _BY_SLOT:
            getattr(state, name)[: self.n_slots] = self._arrays[name]
        for name in _BY_TRIP:
            getattr(state, name)[: self.n_trips] = self._arrays[name]
        state.kind[: self.n_slots] = kind
        state.route[: self.n_slots] = route
        state.path_index[: self.n_slots] = path_index
        if self._demand is not demand:
            for name in _PLANNED:
                getattr(state, name)[: self.n_slots] = planned[name]
        present = state.priority[state.status >= t.PENDING] & (t.PRIORITY_BUCKETS - 1)
        state.priority_uses[:] = np.bincount(present, minlength=t.PRIORITY_BUCKETS)

    def _renumber(self, demand: Demand) -> tuple[NDArray[np.int32], ...]:
        """Kind, route and path index of the vehicles in another engine's numbering."""
        present = np.flatnonzero(self._arrays["status"] >= t.PENDING)
        kind, route, path_index = (self._arrays[name].copy() for name in ("kind", "route", "path_index"))
        for v in present:
            kind[v] = demand.kind(self._kinds[kind[v]])
            valid, roads = self._routes[route[v]]
            route[v] = demand.route_of_roads(valid, roads)
            if int(v) in self._lane_paths:
                roads, position, lane, index = self._lane_paths[int(v)]
                path_index[v] = demand.lane_path_start(roads, position, lane) + index
        return kind, route, path_index

    def _renumber_planned(self, demand: Demand) -> dict[str, NDArray[np.int32]]:
        """What the vehicles have planned ahead, by field, in another engine's numbering."""
        planned = {name: np.full(self.n_slots, -1, np.int32) for name in _PLANNED}
        for v, ahead in self._planned.items():
            for name, (roads, position, lane, index) in ahead.items():
                planned[name][v] = demand.lane_path_start(roads, position, lane) + index
        return planned

    def dump(self, path: str | Path) -> None:
        """Write the snapshot as a JSON file, whole or not at all.

        Args:
            path: of the file.

        Raises:
            InputError: the file can't be written.
        """
        content: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "inputs": self._inputs,
            "arrays": {_KEYS.get(name, name): _to_json(values) for name, values in self._arrays.items()},
            "routes": [[valid, list(roads)] for valid, roads in self._routes],
            "kinds": [astuple(kind) for kind in self._kinds],
            "ways": {str(v): [list(roads), *rest] for v, (roads, *rest) in self._lane_paths.items()},
            "planned": {str(v): {name: [list(at[0]), *at[1:]] for name, at in p.items()} for v, p in self._planned.items()},
        }
        content["sha256"] = _sha256(content)
        write_whole(path, json.dumps(content, allow_nan=False))

    @classmethod
    def read(cls, path: str | Path) -> Archive:
        """Read what `dump` wrote.

        Args:
            path: of the file.

        Raises:
            InputError: the file can't be read, isn't a snapshot of this version, or was damaged or edited.
        """
        content = read_json(path, exact=True)
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise InputError(path, "format", f"must be {_FORMAT!r}: this isn't an engine's snapshot")
        if content.get("version") != _VERSION:
            raise InputError(path, "version", f"must be {_VERSION}, is {content.get('version')!r}")
        if content.get("sha256") != _sha256({name: value for name, value in content.items() if name != "sha256"}):
            raise InputError(path, "sha256", "isn't that of the content: the file was damaged or edited")
        try:
            found = content["arrays"]
            arrays = {name: _from_json(name, found[_KEYS.get(name, name)]) for name in (*_FIXED_SIZE, *_BY_SLOT, *_BY_TRIP)}
            n_slots = arrays["status"].size
            if any(arrays[name].shape != (n_slots,) for name in _BY_SLOT):
                raise ValueError("arrays of vehicles differ in size")
            n_trips = int(arrays["counters"][t.N_TRIPS])
            if any(arrays[name].shape != (n_trips,) for name in _BY_TRIP):
                raise ValueError("arrays of trips differ in size")
            archive = cls.__new__(cls)
            archive._fill_in(
                arrays,
                [(bool(valid), tuple(map(int, roads))) for valid, roads in content["routes"]],
                [VehicleKind(*map(float, kind)) for kind in content["kinds"]],
                {int(v): _place(way) for v, way in content["ways"].items()},
                {
                    int(v): {name: _place(ahead[name]) for name in _PLANNED if name in ahead}
                    for v, ahead in content["planned"].items()
                },
                None,
                str(content["inputs"]),
            )
            return archive
        except (KeyError, TypeError, ValueError, OverflowError) as fault:
            raise InputError(path, "", f"not a snapshot: {fault!r}") from None


def _planned_of(arrays: Mapping[str, NDArray[Any]], v: int) -> list[str]:
    """Fields of what vehicle v has planned ahead; a jump from nowhere is none."""
    jumps = [name for pair in _JUMPS if arrays[pair[0]][v] >= 0 for name in pair]
    return [*jumps, *(["planned_end"] if arrays["planned_end"][v] >= 0 else [])]


def _place(way: Any) -> _PlaceInPath:
    return tuple(map(int, way[0])), int(way[1]), int(way[2]), int(way[3])


def _sha256(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


_REAL_FIELDS = frozenset(field.name for field in t.FIELDS if field.block.endswith("f"))


def _to_json(values: NDArray[Any]) -> list[Any]:
    return [x if math.isfinite(x) else str(x) for x in values.tolist()]


def _from_json(name: str, values: list[Any]) -> NDArray[Any]:
    if name in _REAL_FIELDS:
        return np.array([float(x) for x in values], np.float64)
    return np.array(values, np.int32)
