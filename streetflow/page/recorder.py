"""Records where every vehicle is and what every light shows, second by second, for the replay page.

A `Recorder` is used in place of an engine: it runs it one step at a time and records its state. Positions are computed at the
end, for all records at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streetflow.engine.cityflow_names import Engine
from streetflow.engine.vehicles import vehicle_id
from streetflow.kernels import tables as t
from streetflow.kernels.polyline_places import find_places
from streetflow.roadnet.polylines import Polylines


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


class Recorder:
    """An engine that records. Everything except stepping is passed on to the engine behind it."""

    def __init__(self, engine: Engine, first_step: int = 0, last_step: int = 1 << 30) -> None:
        """Keep the states after the steps first_step + 1 ... last_step (counted from the engine's reset)."""
        self._engine = engine
        self._window = first_step, last_step
        self._seen: list[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]] = []
        self._phases: list[NDArray[np.int32]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def next_step(self) -> None:
        self._engine.next_step()
        step = int(self._engine.state.counters[t.STEP])
        if self._window[0] < step <= self._window[1]:
            self._look()

    def step_many(self, n: int) -> None:
        for _ in range(n):
            self.next_step()

    def reset(self, seed: bool = False) -> None:
        """Restarts the recording as well."""
        self._engine.reset(seed)
        self._seen.clear()
        self._phases.clear()

    def _look(self) -> None:
        state = self._engine.state
        slots = self._engine.drivers()
        distance = state.distance_1 if state.counters[t.FLIP] else state.distance_0
        key = state.flow[slots].astype(np.int64) << 32 | state.ordinal[slots]
        self._seen.append((key, state.path[state.path_index[slots]], distance[slots].copy(), state.kind[slots]))
        has_lights = np.diff(state.phase_first) > 0
        self._phases.append(np.where(has_lights, state.phase_index, -1))

    def recording(self) -> Recording:
        """The recording so far."""
        frames = np.repeat(np.arange(len(self._seen), dtype=np.int32), [len(keys) for keys, *_ in self._seen])
        empty = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int32))
        key, drivable, distance, kind = (np.concatenate(parts) for parts in zip(*self._seen, empty, strict=True))
        order = np.lexsort((frames, key))
        key, drivable, distance, kind = key[order], drivable[order], distance[order], kind[order]
        first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1]))) if key.size else np.zeros(0, np.int64)
        position, angle = self._places(drivable, distance)
        kinds = self._engine.state.kinds.reshape(-1, t.KIND_SIZE)
        return Recording(
            first_step=self._window[0] + 1,
            interval_s=self._engine.config.interval_s,
            vehicle_ids=[vehicle_id(int(each) >> 32, int(each) & 0xFFFFFFFF) for each in key[first]],
            vehicle_size_m=kinds[kind[first]][:, [t.LENGTH, t.WIDTH]],
            vehicle_first=np.append(first, key.size),
            frame=frames[order],
            position_m=position,
            angle_rad=angle,
            phases=np.array(self._phases, np.int32).reshape(len(self._phases), -1),
        )

    def _places(
        self, drivable: NDArray[np.int32], distance: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Point [n, 2] and direction [n] at each distance on its drivable's polyline."""
        shapes = Polylines.of(self._engine.drivable_shapes)
        place, segment = np.zeros((drivable.size, 2)), np.zeros(drivable.size, np.int64)
        of_shapes = shapes.first, shapes.x, shapes.y, shapes.segment_m
        find_places(*of_shapes, self._engine.state.length, drivable, distance, place, segment)
        return place, shapes.angle_rad[segment]
