"""What a program reads of vehicles and lanes by name (docs/cityflow-semantics.md, section 9.1), and as arrays.

Dictionaries come sorted by key. The arrays hold the same without names, which takes a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streetflow.engine.core import EngineCore
from streetflow.engine.directory import Directory, Readings, drivers_of
from streetflow.engine.trips import std_travel_time_s
from streetflow.engine.vehicles import Vehicles, VehicleTable, id_of_number
from streetflow.errors import UnknownVehicleError
from streetflow.kernels import directory as kernel_directory
from streetflow.kernels import tables as t
from streetflow.kernels import vehicles as kernel_vehicles
from streetflow.roadnet.config import Config
from streetflow.roadnet.flow import Flow
from streetflow.roadnet.network_tables import NetworkTables


class ReadingEngine(EngineCore):
    """The engine with everything that can be read of it."""

    def _construct(self, config: Config, network: NetworkTables, flows: Sequence[Flow]) -> None:
        self._directory = Directory()
        self._route_texts: dict[tuple[int, int], str] = {}
        self._scratch = np.zeros(0, np.int32)
        super()._construct(config, network, flows)
        in_order = sorted(range(self._n_lanes), key=lambda lane: self.lane_ids[lane])
        self._sorted_lanes = np.array(in_order, np.int32)
        self._sorted_lane_ids = [self.lane_ids[lane] for lane in in_order]

    def _refresh(self) -> None:
        super()._refresh()
        self._directory.look_again()

    def reset(self, seed: bool = False) -> None:
        super().reset(seed)
        self._directory.forget()

    reset.__doc__ = EngineCore.reset.__doc__

    def _read(self) -> Readings:
        return self._directory.read(self.memory, self.state)

    # ------------------------------------------------------------------ by name

    def get_vehicles(self, include_waiting: bool = False) -> list[str]:
        """Ids of the running vehicles, by ascending priority.

        Args:
            include_waiting: also those that wait to enter.
        """
        slots = self._directory.by_priority(self.memory, self.state)
        present = drivers_of(self.memory, slots, t.PENDING if include_waiting else t.RUNNING)
        ids: list[str] = self._read().names[present].tolist()
        return ids

    def get_lane_vehicle_count(self) -> dict[str, int]:
        """Vehicles on each lane, by lane id."""
        return self._by_lane(self.lane_vehicle_count_view)

    def get_lane_waiting_vehicle_count(self) -> dict[str, int]:
        """Vehicles on each lane slower than 0.1 m/s, by lane id."""
        return self._by_lane(self.lane_waiting_count_view)

    def _by_lane(self, counts: NDArray[np.int32]) -> dict[str, int]:
        return dict(zip(self._sorted_lane_ids, counts[self._sorted_lanes].tolist(), strict=True))

    def get_lane_vehicles(self) -> dict[str, list[str]]:
        """Ids of the vehicles on each lane, front first, by lane id."""
        slots, end = np.empty(int(self.state.counters[t.N_RUNNING]), np.int32), np.empty(self._n_lanes, np.int32)
        n = kernel_directory.list_lanes(*self.memory, self._sorted_lanes, end, slots)
        ids = self._read().names[slots[:n]].tolist()
        result, start = {}, 0
        for lane, stop in zip(self._sorted_lane_ids, end.tolist(), strict=True):
            result[lane] = ids[start:stop]
            start = stop
        return result

    def get_vehicle_speed(self) -> dict[str, float]:
        """Speed of each running vehicle, m/s."""
        read = self._read()
        return dict(zip(read.driver_names, read.speed_mps[read.drivers].tolist(), strict=True))

    def get_vehicle_distance(self) -> dict[str, float]:
        """Distance of each running vehicle along its lane or lane link, m."""
        read = self._read()
        return dict(zip(read.driver_names, read.distance_m[read.drivers].tolist(), strict=True))

    def _find(self, vehicle_id: str) -> int:
        """The slot of a present vehicle, or -1."""
        return self._directory.slots(self.memory, self.state).get(vehicle_id, -1)

    def _require(self, vehicle_id: str) -> int:
        v = self._find(vehicle_id)
        if v < 0:
            slots = self._directory.slots(self.memory, self.state)
            raise UnknownVehicleError("vehicle", vehicle_id, lambda: tuple(slots))
        return v

    def get_vehicle_info(self, vehicle_id: str) -> dict[str, str]:
        """The state of a vehicle.

        Args:
            vehicle_id: as `get_vehicles` gives it.

        Returns:
            Strings by name: running ("0" alone, or "1"), distance (m), speed (m/s), drivable, route and, on a lane, road and
            intersection.

        Raises:
            UnknownVehicleError: no vehicle that is present has the id.
        """
        v = self._require(vehicle_id)
        state = self.state
        if state.status.item(v) != t.RUNNING:
            return {"running": "0"}
        read = self._read()
        drivable = state.path.item(state.path_index.item(v))
        distance, speed = f"{read.distance_m.item(v):.6f}", f"{read.speed_mps.item(v):.6f}"
        route = self._route_text(state.route.item(v), state.place.item(v))
        if drivable >= self._n_lanes:
            link = self.network.link_ids[drivable - self._n_lanes]
            return {"distance": distance, "drivable": link, "route": route, "running": "1", "speed": speed}
        roadnet = self.network.roadnet
        road = roadnet.roads[roadnet.lane_road[drivable]]
        return {
            "distance": distance,
            "drivable": self.lane_ids[drivable],
            "intersection": self.intersection_ids[road.end_intersection],
            "road": road.id,
            "route": route,
            "running": "1",
            "speed": speed,
        }

    def _route_text(self, route: int, place: int) -> str:
        text = self._route_texts.get((route, place))
        if text is None:
            text = "".join(f"{name} " for name in self.route_road_ids(route)[place:])
            self._route_texts[route, place] = text
        return text

    def get_leader(self, vehicle_id: str) -> str:
        """The vehicle ahead that a vehicle follows.

        Args:
            vehicle_id: as `get_vehicles` gives it.

        Returns:
            An id, or "" where there is none.

        Raises:
            UnknownVehicleError: no vehicle that is present has the id.
        """
        v = self._require(vehicle_id)
        state = self.state
        if state.status.item(v) != t.RUNNING:
            return ""
        if state.role.item(v) == t.SHADOW:
            v = state.partner.item(v)
        read = self._read()
        leader = read.ahead.item(v)
        name: str = read.names[leader] if leader >= 0 else ""
        return name

    # ------------------------------------------------------------------ by number

    def drivers(self, least_status: int = t.RUNNING) -> NDArray[np.intp]:
        """The slots of the vehicles without shadows: a vehicle that changes lanes counts once.

        Args:
            least_status: RUNNING, or a lower one of `streetflow.kernels.tables` for those that haven't entered, too.
        """
        return np.flatnonzero((self.state.status >= least_status) & (self.state.role != t.SHADOW))

    def running_vehicles(self) -> Vehicles:
        """Every single running vehicle, as fresh arrays: drivable by drivable, front first."""
        vehicles = Vehicles.empty(int(self.state.counters[t.N_RUNNING]))
        kernel_vehicles.running_vehicles(*self.memory, *vehicles)
        return vehicles

    def vehicle_table(self) -> VehicleTable:
        """Every running vehicle and what can be read of it, as fresh arrays: drivable by drivable, front first.

        With lane changing both vehicles of a change are in it, as they are in `get_lane_vehicles`.
        """
        state = self.state
        count = state.counters.item(t.N_RUNNING)
        if self._scratch.size < state.status.size:
            self._scratch = np.empty(state.status.size, np.int32)
        first, number = np.empty(state.head.size + 1, np.int32), np.empty(count, np.int64)
        ints, reals = np.empty((5, count), np.int32), np.empty((4, count), np.float64)
        kernel_vehicles.vehicle_table(*self.memory, self._scratch, first, number, ints, reals)
        rows = ints[0], ints[1], ints[2], ints[3], ints[4], reals[0], reals[1], reals[2], reals[3]  # faster than unpacking
        return VehicleTable(first, number, *rows)

    def vehicle_names(self, numbers: NDArray[np.int64]) -> list[str]:
        """The ids of vehicles, present or not.

        Args:
            numbers: any of a `VehicleTable`'s `number`.
        """
        return [id_of_number(number) for number in np.asarray(numbers).tolist()]

    def route_road_ids(self, route: int) -> tuple[str, ...]:
        """The roads of a route.

        Args:
            route: one of a `VehicleTable`'s `route`.
        """
        roads = self.network.roadnet.roads
        return tuple(roads[road].id for road in self.demand.routes[route])

    # ------------------------------------------------------------------ of the whole run

    def get_finished_vehicle_cnt(self) -> int:
        """Vehicles that have ended their trip: the name that the paper's authors gave it."""
        return self.finished_vehicle_count

    def get_std_travel_time(self) -> float:
        """Standard deviation (of the population) of the times that `get_average_travel_time` averages, s; 0.0 without any.

        A vehicle that changes lanes counts once.
        """
        return std_travel_time_s(self.trips())
