"""Which engine simulates: our own, or the real CityFlow or SUMO behind the same array interface."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streetflow.control.cityflow_engine import CityFlowEngine
from streetflow.engine.cityflow_names import Engine
from streetflow.engine.trips import Trips
from streetflow.engine.vehicles import Vehicles
from streetflow.errors import FieldError
from streetflow.near import or_else
from streetflow.roadnet.flow import Flow
from streetflow.roadnet.network_tables import NetworkTables
from streetflow.roadnet.reader import Point
from streetflow.sumo.engine import SumoEngine

ENGINES = ("builtin", "cityflow", "sumo")

HOW_TO_GET_CITYFLOW = (
    "the Python module 'cityflow' can't be imported ({}). It is on no package registry: clone "
    "https://github.com/cityflow-project/CityFlow with its submodules and 'pip install' the clone (it needs CMake and "
    "a C++ compiler). The built-in engine gives the same results: engine 'builtin'"
)


class TrafficEngine(Protocol):
    """The array interface, which all code above the engine uses. Arrays are indexed by number in file order."""

    @property
    def lane_ids(self) -> tuple[str, ...]: ...
    @property
    def intersection_ids(self) -> tuple[str, ...]: ...
    @property
    def lane_max_speed_mps(self) -> NDArray[np.float64]: ...
    @property
    def lane_length_m(self) -> NDArray[np.float64]: ...
    @property
    def drivable_shapes(self) -> Sequence[Sequence[Point]]: ...
    @property
    def phase_indices(self) -> NDArray[np.int32]: ...
    @property
    def finished_vehicle_count(self) -> int: ...
    @property
    def queued_vehicle_count(self) -> int: ...
    def step_many(self, n: int) -> None: ...
    def set_phases(self, phases: NDArray[np.int32]) -> None: ...
    def lane_vehicle_counts(self) -> NDArray[np.int32]: ...
    def lane_waiting_counts(self) -> NDArray[np.int32]: ...
    def lane_speed_sums_mps(self) -> NDArray[np.float64]: ...
    def lane_waiting_time_sums_s(self) -> NDArray[np.float64]: ...
    def running_vehicles(self) -> Vehicles: ...
    def trips(self) -> Trips: ...
    def get_average_travel_time(self) -> float: ...
    def get_current_time(self) -> float: ...
    def set_random_seed(self, seed: int) -> None: ...
    def reset(self, seed: bool = False) -> None: ...


def make_engine(
    kind: str, network: NetworkTables, flow_file: Path, seed: int, demand: Sequence[Flow] | None = None
) -> TrafficEngine:
    """An engine of ``kind`` (see ENGINES), lights set from outside. InputError for bad files or a missing CityFlow or SUMO.

    demand: in place of the file's content, for the built-in engine.
    """
    require_engine(kind)
    if kind == "builtin":
        return Engine.from_files(network, flow_file, demand=demand, seed=seed)
    if demand is not None:
        raise FieldError("engine", "takes its demand from files alone", kind)
    if kind == "sumo":
        return SumoEngine(network, flow_file.parent, seed=seed)
    try:
        module = importlib.import_module("cityflow")
    except ImportError as error:
        raise FieldError("engine", HOW_TO_GET_CITYFLOW.format(error), kind) from error
    return CityFlowEngine(module, network, flow_file, seed=seed, interval_s=1.0)


def require_engine(kind: str) -> None:
    """FieldError for an unknown engine."""
    if kind not in ENGINES:
        raise FieldError("engine", f"unknown engine{or_else(kind, ENGINES)}", kind)


def require_shown(engine: str, clearance: str) -> None:
    """FieldError for a clearance that SUMO's lights can't show: green would turn red without yellow."""
    if engine == "sumo" and clearance == "hold":
        raise FieldError("clearance", "the engine 'sumo' shows yellow before red: any clearance but this one", clearance)
