"""Records where every vehicle is and what every light shows, second by second, for the replay page.

A `Recorder` is used in place of an engine: it runs it one step at a time and records its state. Positions are computed at the
end, for all records at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streetflow.engine.cityflow_names import Engine
from streetflow.engine.vehicles import vehicle_id
from streetflow.kernels import tables as t
from streetflow.kernels.polyline_places import find_places
from streetflow.roadnet.polylines import Polylines
from streetflow.sumo.engine import SumoEngine

WIDTH_M = 1.8


@dataclass(frozen=True)
class Recording:
    """Arrays over all records (one vehicle at one step), sorted by vehicle and then by step; and the lights.

    A vehicle's records are one contiguous run of steps. Frame k is the state after step `first_step` + k.
    """

    first_step: int
    interval_s: float
    vehicle_ids: list[str]  # [vehicles]
    vehicle_size_m: NDArray[np.float64]  # [vehicles, 2]: length, width
    vehicle_first: NDArray[np.int64]  # [vehicles + 1]: into the records
    frame: NDArray[np.int32]  # [records]
    position_m: NDArray[np.float64]  # [records, 2]: the vehicle's front, x and y
    angle_rad: NDArray[np.float64]  # [records]: direction of travel
    phases: NDArray[np.int32]  # [frames, intersections]: the phase shown, -1 for virtual ones

    @property
    def n_frames(self) -> int:
        return len(self.phases)


class Film(Protocol):
    """What a recorder asks of an engine. A kind is a row of `sizes_m`."""

    @property
    def interval_s(self) -> float: ...
    @property
    def lengths_m(self) -> NDArray[np.float64]:
        """Of the drivables, as distances on them count."""

    def step(self) -> int:
        """Steps made since the engine's reset."""

    def vehicles(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]:
        """Of each running vehicle: key, drivable, distance_m, kind."""

    def phases(self) -> NDArray[np.int32]:
        """What each intersection shows, -1 for those without a light."""

    def sizes_m(self) -> NDArray[np.float64]:
        """[kinds, 2]: length, width."""

    def ids(self, keys: NDArray[np.int64]) -> list[str]: ...


class BuiltInFilm:
    """Of the built-in engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.interval_s = engine.config.interval_s

    @property
    def lengths_m(self) -> NDArray[np.float64]:
        return self._engine.state.length

    def step(self) -> int:
        return int(self._engine.state.counters[t.STEP])

    def vehicles(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]:
        state = self._engine.state
        slots = self._engine.drivers()
        distance = state.distance_1 if state.counters[t.FLIP] else state.distance_0
        key = state.flow[slots].astype(np.int64) << 32 | state.ordinal[slots]
        return key, state.path[state.path_index[slots]], distance[slots].copy(), state.kind[slots]

    def phases(self) -> NDArray[np.int32]:
        has_lights = np.diff(self._engine.state.phase_first) > 0
        return np.where(has_lights, self._engine.state.phase_index, -1)

    def sizes_m(self) -> NDArray[np.float64]:
        return self._engine.state.kinds.reshape(-1, t.KIND_SIZE)[:, [t.LENGTH, t.WIDTH]]

    def ids(self, keys: NDArray[np.int64]) -> list[str]:
        return [vehicle_id(int(each) >> 32, int(each) & 0xFFFFFFFF) for each in keys]


class SumoFilm:
    """Of SUMO. Vehicles are drawn WIDTH_M wide."""

    interval_s = 1.0

    def __init__(self, engine: SumoEngine) -> None:
        self._engine = engine
        self._kinds: dict[float, int] = {}

    @property
    def lengths_m(self) -> NDArray[np.float64]:
        return self._engine.drivable_lengths_m

    def step(self) -> int:
        return round(self._engine.get_current_time())

    def vehicles(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]:
        places = self._engine.places()
        kinds = [self._kinds.setdefault(length_m, len(self._kinds)) for length_m in places.length_m.tolist()]
        return places.number, places.drivable, places.distance_m, np.array(kinds, np.int32)

    def phases(self) -> NDArray[np.int32]:
        return self._engine.phase_indices.copy()

    def sizes_m(self) -> NDArray[np.float64]:
        return np.array([(length_m, WIDTH_M) for length_m in self._kinds], np.float64).reshape(-1, 2)

    def ids(self, keys: NDArray[np.int64]) -> list[str]:
        known = self._engine.sumo_vehicle_ids()
        return [known[key] for key in keys.tolist()]


def film_of(engine: Engine | SumoEngine) -> Film:
    return SumoFilm(engine) if isinstance(engine, SumoEngine) else BuiltInFilm(engine)


class Recorder:
    """An engine that records. Everything except stepping is passed on to the engine behind it."""

    def __init__(self, engine: Engine | SumoEngine, first_step: int = 0, last_step: int = 1 << 30) -> None:
        """Keep the states after the steps first_step + 1 ... last_step (counted from the engine's reset)."""
        self.engine, self._film = engine, film_of(engine)
        self._window = first_step, last_step
        self._seen: list[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]] = []
        self._phases: list[NDArray[np.int32]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def next_step(self) -> None:
        self.engine.next_step()
        if self._window[0] < self._film.step() <= self._window[1]:
            self._seen.append(self._film.vehicles())
            self._phases.append(self._film.phases())

    def step_many(self, n: int) -> None:
        for _ in range(n):
            self.next_step()

    def reset(self, seed: bool = False) -> None:
        """Restarts the recording as well."""
        self.engine.reset(seed)
        self._seen.clear()
        self._phases.clear()

    def recording(self) -> Recording:
        """The recording so far."""
        frames = np.repeat(np.arange(len(self._seen), dtype=np.int32), [len(keys) for keys, *_ in self._seen])
        empty = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int32))
        key, drivable, distance, kind = (np.concatenate(parts) for parts in zip(*self._seen, empty, strict=True))
        order = np.lexsort((frames, key))
        key, drivable, distance, kind = key[order], drivable[order], distance[order], kind[order]
        first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1]))) if key.size else np.zeros(0, np.int64)
        position, angle = self._places(drivable, distance)
        return Recording(
            first_step=self._window[0] + 1,
            interval_s=self._film.interval_s,
            vehicle_ids=self._film.ids(key[first]),
            vehicle_size_m=self._film.sizes_m()[kind[first]],
            vehicle_first=np.append(first, key.size),
            frame=frames[order],
            position_m=position,
            angle_rad=angle,
            phases=np.array(self._phases, np.int32).reshape(len(self._phases), -1),
        )

    def _places(
        self, drivable: NDArray[np.int32], distance: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Point [n, 2] and direction [n] at each distance on its drivable's polyline, which may be drawn longer or shorter."""
        shapes = Polylines.of(self.engine.drivable_shapes)
        drawn_m, lengths_m = shapes.length_m, self._film.lengths_m
        scale = np.where(np.isclose(lengths_m, drawn_m), 1.0, drawn_m / np.maximum(lengths_m, 1e-9))
        distance = scale[drivable] * distance
        place, segment = np.zeros((drivable.size, 2)), np.zeros(drivable.size, np.int64)
        of_shapes = shapes.first, shapes.x, shapes.y, shapes.segment_m
        find_places(*of_shapes, drawn_m, drivable, distance, place, segment)
        return place, shapes.angle_rad[segment]


def unrecorded(engine: Any) -> Any:
    """The engine itself, behind a recorder if there is one."""
    return engine.engine if isinstance(engine, Recorder) else engine
