"""The real CityFlow module with the array interface of our engine, built from its name-keyed dictionaries.

CityFlow continues after most faults of its input, aborts the process on others, and hangs when an engine is
destroyed before its first step. So files are checked by our own readers first, numbers are checked before each call,
and an engine that hasn't stepped is never destroyed.
"""

from __future__ import annotations

import ctypes
import json
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streetflow.engine.trips import Trips
from streetflow.engine.vehicles import Vehicles, vehicle_numbers
from streetflow.errors import InputError, whole_number
from streetflow.roadnet.flow import read_flows
from streetflow.roadnet.network_tables import NetworkTables
from streetflow.roadnet.reader import Point

WAITING_SPEED_MPS = 0.1


class CityFlowEngine:
    """One ``cityflow.Engine`` of ``module`` on the given files, lights set from outside.

    Waiting times, times of creation and finished vehicles, which CityFlow doesn't report, are derived step by step from
    the vehicles' speeds and ids; that makes this engine much slower than the built-in one.
    """

    def __init__(
        self, module: ModuleType, network: NetworkTables, flow_file: Path, *, seed: int, interval_s: float = 1.0
    ) -> None:
        roadnet = network.roadnet
        read_flows(flow_file, roadnet.road_index)
        self._interval_s = interval_s
        self.lane_ids = roadnet.lane_ids
        self.intersection_ids = tuple(each.id for each in roadnet.intersections)
        self.lane_index = {name: i for i, name in enumerate(self.lane_ids)}
        self.intersection_index = {name: i for i, name in enumerate(self.intersection_ids)}
        limits = [limit for road in roadnet.roads for limit in road.lane_max_speeds_mps]
        self.lane_max_speed_mps = np.array(limits, np.float64)
        self.lane_length_m = network.lane_shapes.length_m
        self.drivable_shapes: list[list[Point]] = list(network.lane_shapes + network.link_shapes)
        self._drivable_index = {name: i for i, name in enumerate((*self.lane_ids, *network.link_ids))}
        self._phase_counts = np.array([len(each.phases) for each in roadnet.intersections], np.int32)

        self._engine = _construct(module, network.file, flow_file, seed, interval_s)
        _keep_alive(self._engine)
        self._stepped = False
        if set(self._engine.get_lane_vehicle_count()) != set(self.lane_ids):
            raise InputError(network.file, "", "CityFlow loaded other lanes than the file holds (see its messages)")
        self._forget()

    # --- stepping and lights ---

    def next_step(self) -> None:
        self.step_many(1)

    def step_many(self, n: int) -> None:
        """n steps."""
        for _ in range(whole_number(n, "the number of steps")):
            self._engine.next_step()
            if not self._stepped:
                self._stepped = True
                _let_go(self._engine)
            self._follow()

    def set_phase_by_index(self, intersection_number: int, phase: int) -> None:
        """Set the light of one intersection; IndexError for a phase that it doesn't have."""
        count = int(self._phase_counts[intersection_number])
        name = self.intersection_ids[intersection_number]
        if not 0 <= phase < count:
            raise IndexError(f"intersection {name!r} has {count} phases, there is no phase {phase}")
        self._engine.set_tl_phase(name, int(phase))
        self.phase_indices[intersection_number] = phase

    def set_phases(self, phases: NDArray[np.int32]) -> None:
        """Set the lights of all intersections; -1 leaves one as it is."""
        for number in np.flatnonzero(phases >= 0):
            self.set_phase_by_index(int(number), int(phases[number]))

    def reset(self, seed: bool = False) -> None:
        self._engine.reset(seed)
        self._forget()

    def set_random_seed(self, seed: int) -> None:
        self._engine.set_random_seed(seed)

    # --- what there is to see ---

    def lane_vehicle_counts(self) -> NDArray[np.int32]:
        return self._by_lane(self._engine.get_lane_vehicle_count())

    def lane_waiting_counts(self) -> NDArray[np.int32]:
        return self._by_lane(self._engine.get_lane_waiting_vehicle_count())

    def lane_speed_sums_mps(self) -> NDArray[np.float64]:
        return self._lane_sums(self._engine.get_vehicle_speed())

    def lane_waiting_time_sums_s(self) -> NDArray[np.float64]:
        return self._lane_sums(self._waiting_time_s)

    def running_vehicles(self) -> Vehicles:
        """Every single running vehicle, as fresh arrays: those on lanes first, lane by lane, front first."""
        distance_m = self._engine.get_vehicle_distance()
        places = [(self.lane_index[lane], name) for lane, names in self._engine.get_lane_vehicles().items() for name in names]
        for name in set(distance_m).difference(name for _, name in places):
            places.append((self._drivable_index[self._engine.get_vehicle_info(name)["drivable"]], name))
        vehicles = Vehicles.empty(len(places))
        for i, (drivable, name) in enumerate(sorted(places, key=lambda place: place[0])):
            number, created_s = self._born[name]
            vehicles.drivable[i], vehicles.serial[i] = drivable, number
            vehicles.distance_m[i], vehicles.created_s[i] = distance_m[name], created_s
        return vehicles

    def trips(self) -> Trips:
        """Every vehicle's trip since the last reset, as `EngineCore.trips` except free_flow_s, which isn't known."""
        names = [*self._ended, *(name for name in self._born if name not in self._ended)]
        numbers = [vehicle_numbers(name) or (-1, -1) for name in names]
        return Trips(
            now_s=self.get_current_time(),
            flow=np.array([flow for flow, _ in numbers], np.int32),
            ordinal=np.array([ordinal for _, ordinal in numbers], np.int32),
            created_s=np.array([self._born[name][1] for name in names], np.float64),
            entered_s=np.array([self._entered.get(name, np.nan) for name in names], np.float64),
            ended_s=np.array([self._ended.get(name, np.nan) for name in names], np.float64),
            free_flow_s=np.full(len(names), np.nan),
        )

    def get_average_travel_time(self) -> float:
        return float(self._engine.get_average_travel_time())

    def get_current_time(self) -> float:
        return float(self._engine.get_current_time())

    # --- inside ---

    def _forget(self) -> None:
        self.finished_vehicle_count = 0
        self.queued_vehicle_count = 0
        self.phase_indices = np.zeros(len(self.intersection_ids), np.int32)
        self._waiting_time_s: dict[str, float] = {}
        self._present: set[str] = set()
        self._born: dict[str, tuple[int, float]] = {}  # running number and time of creation of each vehicle ever seen
        self._entered: dict[str, float] = {}
        self._ended: dict[str, float] = {}

    def _follow(self) -> None:
        present = set(self._engine.get_vehicles(True))
        speeds_mps = self._engine.get_vehicle_speed()
        began_s = self.get_current_time() - self._interval_s  # when this step began
        for name in present - self._present:
            self._born[name] = len(self._born), began_s
        for name in speeds_mps.keys() - self._entered.keys():
            self._entered[name] = began_s
        for name in self._present - present:
            self._ended[name] = began_s
        self.finished_vehicle_count = len(self._ended)
        self.queued_vehicle_count = len(present) - len(speeds_mps)
        self._present = present
        before = self._waiting_time_s
        self._waiting_time_s = {
            name: before.get(name, 0.0) + self._interval_s
            for name, speed_mps in speeds_mps.items()
            if speed_mps < WAITING_SPEED_MPS
        }

    def _by_lane(self, counts: dict[str, int]) -> NDArray[np.int32]:
        return np.array([counts[lane] for lane in self.lane_ids], np.int32)

    def _lane_sums(self, of_vehicle: dict[str, float]) -> NDArray[np.float64]:
        sums = np.zeros(len(self.lane_ids), np.float64)
        for lane, vehicles in self._engine.get_lane_vehicles().items():
            total = 0.0
            for vehicle in vehicles:
                total += of_vehicle.get(vehicle, 0.0)
            sums[self.lane_index[lane]] = total
        return sums


def _construct(module: ModuleType, roadnet_file: Path, flow_file: Path, seed: int, interval_s: float) -> Any:
    config = {
        "interval": interval_s,
        "seed": seed,
        "dir": "",
        "roadnetFile": str(roadnet_file.absolute()),
        "flowFile": str(flow_file.absolute()),
        "rlTrafficLight": True,
        "laneChange": False,
        "saveReplay": False,
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        return module.Engine(str(file), 1)


def _keep_alive(engine: object) -> None:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))


def _let_go(engine: object) -> None:
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(engine))
