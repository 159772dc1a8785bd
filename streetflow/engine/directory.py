"""The names of an engine's present vehicles: each is made once, and they are kept in the order in which results list them.

A program reads names step after step, and few vehicles come or go in a step. So what is kept is brought up to date when it is
read: the compiled part (`streetflow.kernels.directory`) finds which vehicles have come and gone, and only those are named here.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streetflow.engine.vehicles import vehicle_id
from streetflow.kernels import directory as kernel
from streetflow.kernels import tables as t


class Readings:
    """What single vehicles' methods look up, of one state of the engine. memory, state: see `EngineCore`."""

    def __init__(self, memory: tuple[Any, ...], state: t.State, names: NDArray[np.object_], by_name: NDArray[np.int32]) -> None:
        self._memory = memory
        self._state = state
        self._by_name = by_name
        self.names = names  # by slot

    @cached_property
    def drivers(self) -> NDArray[np.int32]:
        """The slots of the running vehicles without shadows, by name."""
        return drivers_of(self._memory, self._by_name, t.RUNNING)

    @cached_property
    def driver_names(self) -> list[str]:
        names: list[str] = self.names[self.drivers].tolist()
        return names

    @cached_property
    def ahead(self) -> NDArray[np.int32]:
        """int32[slots], of running vehicles: the slot of the one that each follows, or -1."""
        ahead = np.empty(self.names.size, np.int32)
        kernel.find_vehicles_ahead(*self._memory, ahead)
        return ahead

    @cached_property
    def speed_mps(self) -> NDArray[np.float64]:
        """float64[slots]"""
        return current(self._state, "speed")

    @cached_property
    def distance_m(self) -> NDArray[np.float64]:
        """float64[slots]: along its lane or lane link."""
        return current(self._state, "distance")


def drivers_of(memory: tuple[Any, ...], slots: NDArray[np.int32], least_status: int) -> NDArray[np.int32]:
    """Those of some slots whose vehicle has at least a status and isn't a shadow, in their order."""
    drivers = np.empty(slots.size, np.int32)
    return drivers[: kernel.list_drivers(*memory, slots, slots.size, least_status, drivers)]


def current(state: t.State, name: str) -> NDArray[np.float64]:
    """Of the two buffers of a value, "speed" or "distance", the one that holds the present values; by slot."""
    values: NDArray[np.float64] = getattr(state, f"{name}_{int(state.counters[t.FLIP])}")
    return values


class Directory:
    """Names and order of one engine's present vehicles."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """To be called where vehicles are replaced other than by steps: by a reset, or by a snapshot that is loaded."""
        self._known = np.zeros(0, np.int64)
        self._names = np.zeros(0, object)
        self._by_name = self._by_priority = self._gone = self._new = np.zeros(0, np.int32)
        self._n_known = 0
        self._seen: tuple[int, int] | None = None
        self._slot_of: dict[str, int] = {}

    def look_again(self) -> None:
        """To be called where the tables' memory has moved."""
        self._seen = None

    def read(self, memory: tuple[Any, ...], state: t.State) -> Readings:
        """What there is to read of the engine's present state."""
        self._update(memory, state)
        return self._readings

    def slots(self, memory: tuple[Any, ...], state: t.State) -> dict[str, int]:
        """The slot of each present vehicle, shadows too, by name."""
        self._update(memory, state)
        return self._slot_of

    def by_priority(self, memory: tuple[Any, ...], state: t.State) -> NDArray[np.int32]:
        """The slots of all present vehicles, by ascending priority."""
        self._update(memory, state)
        return self._by_priority[: self._n_known]

    def _update(self, memory: tuple[Any, ...], state: t.State) -> None:
        seen = state.counters.item(t.STEP), state.counters.item(t.N_CREATED)
        if seen == self._seen:
            return
        if self._known.size < state.status.size:
            self._make_room(state.status.size)
        n_gone, n_new = kernel.update_directory(
            *memory, self._known, self._by_name, self._by_priority, self._n_known, self._gone, self._new
        )
        names, slot_of = self._names, self._slot_of
        for v in self._gone[:n_gone].tolist():
            del slot_of[names[v]]
        new = self._new[:n_new]
        for v, flow, ordinal, role in zip(
            new.tolist(), state.flow[new].tolist(), state.ordinal[new].tolist(), state.role[new].tolist(), strict=True
        ):
            names[v] = name = vehicle_id(flow, ordinal, role == t.SHADOW)
            slot_of[name] = v
        self._n_known = len(slot_of)
        self._seen = seen
        self._readings = Readings(memory, state, names, self._by_name[: self._n_known])

    def _make_room(self, n_slots: int) -> None:
        old = self._known.size
        self._known = np.concatenate((self._known, np.full(n_slots - old, kernel.NOBODY, np.int64)))
        self._names = np.concatenate((self._names, np.zeros(n_slots - old, object)))
        more = np.zeros(n_slots - old, np.int32)
        self._by_name, self._by_priority = np.append(self._by_name, more), np.append(self._by_priority, more)
        self._gone, self._new = np.zeros(n_slots, np.int32), np.zeros(n_slots, np.int32)
