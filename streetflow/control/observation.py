"""From the engine's arrays to the integers that a controller sees, for all intersections in one compiled loop.

The cells of the chosen features are flattened into two records of arrays, cells and terms, over one vector of all
sources; see ``features.py``. Sources that need single vehicles are in ``vehicle_observation.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streetflow.control.feature_cells import Terms, total_pressure
from streetflow.control.features import FeatureSpec
from streetflow.control.intersection import Intersection
from streetflow.control.traffic_state import TrafficState
from streetflow.control.vehicle_observation import VehicleObserver
from streetflow.kernels.observe import observe_cells
from streetflow.kernels.sources import CHANGED, LANE_BLOCKS, OWN_COUNT, PASSED, Source

_NEEDS_VEHICLES = {Source.LINK_VEHICLES, Source.SEGMENT_VEHICLES, Source.IMAGE}


class ObserverTables(NamedTuple):
    """The tables of an `Observer`, for compiled code that observes by itself (``streetflow/kernels/observe.py``)."""

    sources: frozenset[Source]
    values: int  # entries of the source vector
    first_own: int
    first_by_vehicle: int
    max_speed_mps: NDArray[np.float64]
    first_action: NDArray[np.int32]
    cells: NDArray[np.int32]
    scales: NDArray[np.float64]
    term_indices: NDArray[np.int32]
    term_weights: NDArray[np.float64]
    by_vehicle: VehicleObserver | None


class Observer:
    """Computes F features of N intersections of ``engine``'s network, padded with zeros to the widest.

    ``feature_widths`` is int32[N, F], ``max_width`` W their maximum. Features that compare with the last decision do so
    with the last call of ``observe`` at an earlier time, or find no change before the first.
    """

    def __init__(self, intersections: Sequence[Intersection], features: Sequence[FeatureSpec], engine: TrafficState) -> None:
        widths = [[spec.width(each) for spec in features] for each in intersections]
        self.feature_widths = np.array(widths, np.int32)
        self.max_width = int(self.feature_widths.max())
        self._shape = (len(intersections), len(features), self.max_width)
        self._size = int(np.prod(self._shape))
        self._sources = {spec.source for spec in features}
        self._lane_max_speed_mps = np.ascontiguousarray(engine.lane_max_speed_mps, np.float64)
        lanes = len(self._lane_max_speed_mps)

        # The source vector: four blocks with one entry per lane, the actions and own entries of each intersection, and
        # what is made of single vehicles.
        counts = [each.action_count for each in intersections]
        self._first_action = (LANE_BLOCKS * lanes + np.cumsum([0, *counts])).astype(np.int32)
        self._first_own = int(self._first_action[-1])
        first_vehicle_entry = self._first_by_vehicle = self._first_own + OWN_COUNT * len(intersections)
        resolutions = {(spec.source, spec.resolution) for spec in features if spec.source in _NEEDS_VEHICLES}
        passing = any(
            spec.source is Source.OWN and any(index >= PASSED for cell in spec.cells(intersections[0]) for index, _ in cell)
            for spec in features
        )
        self._by_vehicle: VehicleObserver | None = None
        if resolutions or passing:
            self._by_vehicle = VehicleObserver(
                intersections, resolutions, engine, self._first_own, first_vehicle_entry, passing
            )
            first_vehicle_entry += self._by_vehicle.size
        self._values = np.zeros(first_vehicle_entry, np.float64)

        cells: list[list[int]] = []
        scales: list[float] = []
        terms: Terms = []

        def base(i: int, spec: FeatureSpec) -> int:
            """Index at which the source of a feature of intersection i begins."""
            if spec.source is Source.ACTION:
                return int(self._first_action[i])
            if spec.source is Source.OWN:
                return self._first_own + OWN_COUNT * i
            if self._by_vehicle is not None and spec.source in _NEEDS_VEHICLES:
                return self._by_vehicle.base(i, spec.source, spec.resolution)
            return spec.source * lanes

        def add(position: int, base: int, cell: Terms, scale: float, low: int, high: int) -> None:
            cells.append([len(terms), len(terms) + len(cell), position, low, high])
            scales.append(scale)
            terms.extend((base + index, weight) for index, weight in cell)

        for i, each in enumerate(intersections):
            for f, spec in enumerate(features):
                start = base(i, spec)
                for w, cell in enumerate(spec.cells(each)):
                    position = int(np.ravel_multi_index((i, f, w), self._shape))
                    scale = spec.lsb_per_unit / spec.source_units / (len(cell) if spec.average and cell else 1)
                    add(position, start, cell, scale, spec.minimum, spec.maximum)
            int32 = np.iinfo(np.int32)
            add(self._size + i, 0, total_pressure(each), 1.0, int(int32.min), int(int32.max))
        self._cells = np.array(cells, np.int32)
        self._scales = np.array(scales, np.float64)
        self._term_indices = np.array([index for index, _ in terms], np.int32)
        self._term_weights = np.array([weight for _, weight in terms], np.float64)
        self._no_counts = np.zeros(lanes, np.int32)
        self._no_sums = np.zeros(lanes, np.float64)
        self.reset()

    @property
    def tables(self) -> ObserverTables:
        """What compiled code needs to form the same observation."""
        return ObserverTables(
            frozenset(self._sources),
            self._values.size,
            self._first_own,
            self._first_by_vehicle,
            self._lane_max_speed_mps,
            self._first_action,
            self._cells,
            self._scales,
            self._term_indices,
            self._term_weights,
            self._by_vehicle,
        )

    def reset(self) -> None:
        """Forget the last decision, as at the start of a run."""
        self._time_s = -1.0
        self._last_action: NDArray[np.int32] | None = None
        self._action: NDArray[np.int32] | None = None
        if self._by_vehicle is not None:
            self._by_vehicle.reset()

    def observe(self, engine: TrafficState, current_action: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(features int32[N, F, W], pressure int32[N] = vehicles on in-lanes - on out-lanes), both fresh arrays."""
        need = self._sources
        out = np.zeros(self._size + self._shape[0], np.int32)
        if Source.OWN in need:
            time_s = engine.get_current_time()
            if time_s > self._time_s:
                self._time_s = time_s
                self._last_action, self._action = self._action, current_action.copy()
            last = current_action if self._last_action is None else self._last_action
            self._values[self._first_own + CHANGED : self._first_own + OWN_COUNT * len(last) : OWN_COUNT] = (
                current_action != last
            )
        if self._by_vehicle is not None:
            self._by_vehicle.fill_in(self._values, engine)
        observe_cells(
            engine.lane_vehicle_counts(),
            engine.lane_waiting_counts() if Source.WAITING in need else self._no_counts,
            engine.lane_waiting_time_sums_s() if Source.WAITING_TIME in need else self._no_sums,
            engine.lane_speed_sums_mps() if Source.DELAY in need else self._no_sums,
            self._lane_max_speed_mps,
            current_action,
            self._first_action,
            self._values,
            self._cells,
            self._scales,
            self._term_indices,
            self._term_weights,
            out,
        )
        return out[: self._size].reshape(self._shape), out[self._size :]
