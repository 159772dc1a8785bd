"""SUMO with the array interface of our engine.

The simulation is SUMO's own: stepping and reading change nothing in it, and a light of which no phase is set runs by the
network's own program. Lanes and lights of ours are found in it through the data set's ``sumo.json``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streetflow.engine.trips import Trips
from streetflow.engine.vehicles import Places, Vehicles
from streetflow.errors import InputError, whole_number
from streetflow.roadnet.network_tables import NetworkTables
from streetflow.roadnet.reader import Point
from streetflow.sumo.binding import FILE, Binding, read_binding
from streetflow.sumo.lamps import Lamps, legs
from streetflow.sumo.process import SumoFault, SumoProcess

WAITING_SPEED_MPS = 0.1
MOST_STEPS_A_SECOND = 1000


class _Look(NamedTuple):
    """The vehicles on lanes and ways of ours, see `worker.Simulation.look`."""

    drivable: NDArray[np.int32]
    number: NDArray[np.int64]
    distance_m: NDArray[np.float64]
    created_s: NDArray[np.float64]
    speed_mps: NDArray[np.float64]
    waiting_s: NDArray[np.float64]


class SumoEngine:
    """A simulation of the data set in ``folder``, which `tinylight import-sumo` made.

    Args:
        network: its road network, perhaps with phases for clearances behind its own.
        folder: that of the data set.
        seed: SUMO's.
        options: further options of SUMO's, such as ``--tripinfo-output FILE``.

    Attributes:
        version: SUMO's.
        drivable_lengths_m: float64[lanes + lane links], SUMO's own; `lane_length_m` has what is counted as part of a lane, too.
        step_s: SUMO's step, a second or a part of it.
        whole_lane: int64[lanes], the lane that each is counted as a part of, itself mostly (`approaches.py`).
        options: those further options; what is set here counts from the next `reset` on.

    Raises:
        InputError: the folder holds no such data set, it doesn't fit the road network, SUMO refuses its files, or SUMO isn't
            installed.
    """

    def __init__(self, network: NetworkTables, folder: Path, *, seed: int = 0, options: Sequence[str] = ()) -> None:
        roadnet = network.roadnet
        self._binding = read_binding(folder)
        self._config = folder / self._binding.config
        self.options = tuple(options)
        self._seed = seed
        self.step_s = self._binding.step_s
        self._steps_a_second = round(1 / self.step_s)
        self.lane_ids = roadnet.lane_ids
        self.intersection_ids = tuple(each.id for each in roadnet.intersections)
        self.intersection_index = roadnet.intersection_index
        limits = [limit for road in roadnet.roads for limit in road.lane_max_speeds_mps]
        self.lane_max_speed_mps = np.array(limits, np.float64)
        self.lane_length_m = np.array(self._binding.lane_lengths_m, np.float64)
        names = {name: number for number, name in enumerate(self._binding.lanes)}
        self.whole_lane = np.arange(len(self.lane_ids))
        for part in self._binding.approaches:
            self.whole_lane[names.get(part.lane, part.number)] = part.number
        self.drivable_shapes: list[list[Point]] = list(network.lane_shapes + network.link_shapes)
        self._phase_counts = np.array([len(each.phases) for each in roadnet.intersections], np.int32)
        _require_fit(self._binding, network, folder)
        self._lamps = {
            roadnet.intersection_index[light.intersection]: Lamps(
                light, roadnet.intersections[roadnet.intersection_index[light.intersection]].phases
            )
            for light in self._binding.lights
        }
        self._due: dict[str, str] = {}
        self._seen: _Look | None = None
        self.version = ""
        self._process = SumoProcess()
        self._load()

    def close(self) -> None:
        """End SUMO, so that its output files are complete. The engine can't be used any more."""
        self._process.close()

    # --- stepping and lights ---

    def next_step(self) -> None:
        self.step_many(1)

    def step_many(self, n: int) -> None:
        """n seconds."""
        for seconds, following in legs(list(self._lamps.values()), whole_number(n, "the number of steps")):
            states, self._due = self._due, following
            found = self._process.call("step", seconds * self._steps_a_second, states)
            self._now_s, self.finished_vehicle_count, self.queued_vehicle_count = found
            self._seen = None

    def set_phase_by_index(self, intersection_number: int, phase: int) -> None:
        """Set the light of one intersection, from the next step on.

        Raises:
            IndexError: it doesn't have the phase.
            ValueError: a signal would go from green to red without yellow.
        """
        count, name = int(self._phase_counts[intersection_number]), self.intersection_ids[intersection_number]
        if not 0 <= phase < count:
            raise IndexError(f"intersection {name!r} has {count} phases, there is no phase {phase}")
        lamps = self._lamps.get(intersection_number)
        if lamps is not None:
            self._due[lamps.light.light] = lamps.show(int(phase))
        self.phase_indices[intersection_number] = phase

    def set_phases(self, phases: NDArray[np.int32]) -> None:
        """Set the lights of all intersections; -1 leaves one as it is."""
        for number in np.flatnonzero(phases >= 0):
            self.set_phase_by_index(int(number), int(phases[number]))

    def show_lamps(self, intersection_number: int, green: frozenset[int], yellow: frozenset[int]) -> None:
        """What a controller's lamps show at one intersection from the next step on, whatever phases have been set.

        Args:
            intersection_number: which.
            green: the road links that are green.
            yellow: those that are yellow; the rest is red.
        """
        lamps = self._lamps.get(intersection_number)
        if lamps is not None:
            self._due[lamps.light.light] = lamps.lit(green, yellow)

    def follow_own_programs(self) -> None:
        """Before the first step: leave all lights to the network's own programs, whatever phases have been set."""
        for lamps in self._lamps.values():
            lamps.forget()
        self._due = {}

    def set_random_seed(self, seed: int) -> None:
        """SUMO's seed from the next `reset` on."""
        self._seed = seed

    def reset(self, seed: bool = False) -> None:
        """Back to the beginning, with the seed set last, whatever ``seed`` says: SUMO draws all from one."""
        self._load()

    # --- what there is to see ---

    def light_states(self) -> dict[str, str]:
        """What each of SUMO's lights showed in the last step, by its id."""
        found: dict[str, str] = self._process.call("states")
        return found

    def sumo_vehicle_ids(self) -> list[str]:
        """SUMO's ids of the vehicles that have entered, by the numbers that they have in `trips` and `running_vehicles`."""
        found: list[str] = self._process.call("vehicle_ids")
        return found

    def places(self) -> Places:
        """The vehicles on lanes and ways of ours, as SUMO itself has them, no lane counted as part of another; numbers as in
        `trips`."""
        return Places(*self._process.call("places"))

    def lane_vehicle_counts(self) -> NDArray[np.int32]:
        return self._count(np.ones(len(self._look().drivable), np.bool_))

    def lane_waiting_counts(self) -> NDArray[np.int32]:
        return self._count(self._look().speed_mps < WAITING_SPEED_MPS)

    def lane_speed_sums_mps(self) -> NDArray[np.float64]:
        return self._sum(self._look().speed_mps)

    def lane_waiting_time_sums_s(self) -> NDArray[np.float64]:
        """As SUMO counts: since the vehicle's last stop."""
        return self._sum(self._look().waiting_s)

    def running_vehicles(self) -> Vehicles:
        """The vehicles on lanes and ways of ours. A serial is the vehicle's place in the order of their entries."""
        seen = self._look()
        return Vehicles(seen.drivable, seen.number, seen.distance_m, seen.created_s - self._binding.begin_s)

    def trips(self) -> Trips:
        """Every vehicle's trip since the last reset; flow: its place in the order of their entries.

        It is created when it should have entered by the demand. free_flow_s isn't known.
        """
        number, *times = self._process.call("trips")
        created_s, entered_s, ended_s = (each - self._binding.begin_s for each in times)
        ordinal, unknown = np.zeros(len(number), np.int32), np.full(len(number), np.nan)
        return Trips(self.get_current_time(), number.astype(np.int32), ordinal, created_s, entered_s, ended_s, unknown)

    def get_average_travel_time(self) -> float:
        travel_time_s = self.trips().travel_time_s
        return float(np.mean(travel_time_s)) if len(travel_time_s) else 0.0

    def get_current_time(self) -> float:
        """Seconds since the beginning."""
        return self._now_s - self._binding.begin_s

    # --- inside ---

    def _load(self) -> None:
        options = ["-c", str(self._config), "--seed", str(self._seed), *_QUIET, *self.options]
        try:
            ways = [list(way) for way in self._binding.ways]
            approaches = [astuple(each) for each in self._binding.approaches]
            found = self._process.call("load", options, list(self._binding.lanes), ways, approaches)
        except SumoFault as fault:
            raise InputError(self._config, "", f"SUMO can't run it: {fault}") from None
        self.version = found["version"]
        self.drivable_lengths_m = np.array(found["lengths_m"], np.float64)
        if found["unknown_lanes"]:
            raise InputError(self._config, "", f"its network has no lane {found['unknown_lanes'][0]!r}, which {FILE} names")
        for light in self._binding.lights:
            if found["lights"].get(light.light) != len(light.states[0]):
                raise InputError(self._config, "", f"its light {light.light!r} isn't the one that {FILE} describes")
        self._now_s = self._binding.begin_s
        self.finished_vehicle_count = self.queued_vehicle_count = 0
        self.phase_indices = np.zeros(len(self.intersection_ids), np.int32)
        self._due = {}
        self._seen = None
        for lamps in self._lamps.values():
            lamps.forget()

    def _look(self) -> _Look:
        if self._seen is None:
            self._seen = _Look(*self._process.call("look"))
        return self._seen

    def _lane_rows(self) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
        drivable = self._look().drivable
        on_lane = drivable < len(self.lane_ids)
        return on_lane, drivable[on_lane]

    def _count(self, chosen: NDArray[np.bool_]) -> NDArray[np.int32]:
        on_lane, lanes = self._lane_rows()
        return np.bincount(lanes[chosen[on_lane]], minlength=len(self.lane_ids)).astype(np.int32)

    def _sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        on_lane, lanes = self._lane_rows()
        return np.bincount(lanes, values[on_lane], len(self.lane_ids)).astype(np.float64)


_QUIET = ("--no-step-log", "true", "--no-warnings", "true", "--duration-log.disable", "true")


def _require_fit(binding: Binding, network: NetworkTables, folder: Path) -> None:
    """InputError where the binding is of another road network."""
    roadnet, file = network.roadnet, folder / FILE
    if not 1 <= 1 / binding.step_s <= MOST_STEPS_A_SECOND or abs(round(1 / binding.step_s) * binding.step_s - 1) > 1e-9:
        raise InputError(file, "step_s", f"must divide a second, is {binding.step_s:g}")
    counts = (("lanes", len(binding.lanes), len(roadnet.lane_ids)), ("ways", len(binding.ways), len(network.links)))
    for name, found, wanted in (*counts, ("lane_lengths_m", len(binding.lane_lengths_m), len(roadnet.lane_ids))):
        if found != wanted:
            raise InputError(file, name, f"holds {found} entries for the {wanted} of roadnet.json: import the network again")
    if any(not 0 <= each.number < len(roadnet.lane_ids) for each in binding.approaches):
        raise InputError(file, "approaches", "names a lane that roadnet.json doesn't have: import the network again")
    for i, light in enumerate(binding.lights):
        number = roadnet.intersection_index.get(light.intersection)
        if number is None:
            raise InputError(file, f"lights[{i}].intersection", f"{light.intersection!r} isn't in roadnet.json")
        at = roadnet.intersections[number]
        if len(light.signals) != len(at.road_links) or len(light.states) > len(at.phases):
            raise InputError(file, f"lights[{i}]", f"has other movements or phases than {light.intersection!r} in roadnet.json")
        signals = [signal for of_link in light.signals for signal in of_link]
        if any(not 0 <= signal < len(state) for signal in signals for state in light.states):
            raise InputError(file, f"lights[{i}].signals", "names a signal that its states don't have")
