"""The engine by numbers: construction, steps, lights, and measures as arrays by lane or intersection."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streetflow.engine.demand import Demand
from streetflow.engine.flow_faults import find_flow_faults, warn_of_flow_faults, warn_of_oddities
from streetflow.engine.start import add_free_slots, clear_run, initial_sizes, number_flows, seed_generator, step_kernel
from streetflow.engine.team import checked_threads
from streetflow.engine.tidy import tidy
from streetflow.engine.trips import Trips, average_travel_time_s, read_trips
from streetflow.engine.vehicles import vehicle_id
from streetflow.errors import StepError, whole_number
from streetflow.kernels import measure as kernel_measure
from streetflow.kernels import step as kernel_step
from streetflow.kernels import tables as t
from streetflow.roadnet.config import Config, check_interval, load_config
from streetflow.roadnet.flow import Flow, read_flows
from streetflow.roadnet.network_tables import NetworkTables, lane_segments, load_network
from streetflow.roadnet.reader import Point, check_phase_times

_STEPS_A_CALL = 256  # of the compiled code, which can't be interrupted: 0.3 s with 20,000 vehicles
_LAST_STEP = 2**31 - 1


class EngineCore:
    """A running simulation, equal step by step to CityFlow's.

    Lanes and intersections are numbered in file order. Units: m, s, m/s.

    Attributes:
        network: the road network and its tables, shared by all engines on it.
        flows, demand: the demand as read; its routes, lane paths and vehicle kinds, as numbers.
        memory: the four blocks of the tables and their offsets, as every kernel takes them (they move when they grow).
        state: views of all tables in their present memory (they move when they grow), for reading.
        lane_ids, intersection_ids: names by number; lane_index, intersection_index: numbers by name.
        phase_counts: int32[intersections], 0 for virtual ones.
        lane_length_m, lane_max_speed_mps: float64[lanes].
        lane_vehicle_count_view, lane_waiting_count_view: int32[lanes], read-only: what `lane_vehicle_counts` and
            `lane_waiting_counts` copy. They follow every step, for as long as the engine lives.
        invalid_flows: numbers of the flows whose route can't be planned (dropped when they first fire).
        missed_flows: numbers of the flows that never fire because no step falls into their window.
        dead_ends: (flow, lane number) pairs: the flow's vehicles that come to that lane get stuck, which raises StepError.
    """

    def __init__(self, config_file: str | Path, thread_num: int = 1) -> None:
        """Load the files that a config file names.

        Args:
            config_file: as CityFlow's, or its content as a JSON text; docs/cityflow-semantics.md has its fields.
            thread_num: threads that step a large network together; no result depends on it.

        Raises:
            InputError: something is wrong with the input; it names file, place and fault.
        """
        checked_threads(thread_num)
        config = load_config(config_file)
        network = load_network(config.roadnet_file)
        self._construct(config, network, read_flows(config.flow_file, network.roadnet.road_index))
        self.use_threads(thread_num)

    @classmethod
    def from_files(
        cls,
        roadnet: str | Path | NetworkTables,
        flow_file: str | Path,
        *,
        demand: Sequence[Flow] | None = None,
        interval_s: float = 1.0,
        seed: int = 0,
        rl_traffic_light: bool = True,
        lane_change: bool = False,
        accept_integral_floats: bool = False,
    ) -> Self:
        """An engine without a config file.

        Args:
            roadnet: the road network's file, or the result of `load_network` for it.
            flow_file: the demand's file.
            demand: what to run in place of the file's content; warnings still name the file.
            interval_s: the step, s.
            seed: of the engine's random generator; docs/engine.md lists what is random.
            rl_traffic_light: the lights are set from outside; otherwise they run by their own plan.
            lane_change: vehicles change lanes.
            accept_integral_floats: read a startTime such as 5.0 as 5.

        Raises:
            InputError: something is wrong with the input; it names file, place and fault.
        """
        check_interval(interval_s, "Engine.from_files", "interval_s")
        network = roadnet if isinstance(roadnet, NetworkTables) else load_network(roadnet)
        config = Config(
            float(interval_s),
            whole_number(seed, "seed"),
            "",
            str(network.file) if roadnet is network else str(roadnet),
            str(flow_file),
            rl_traffic_light,
            lane_change=lane_change,
        )
        engine = cls.__new__(cls)
        if demand is None:
            demand = read_flows(config.flow_file, network.roadnet.road_index, accept_integral_floats)
        engine._construct(config, network, demand)
        return engine

    def _construct(self, config: Config, network: NetworkTables, flows: Sequence[Flow]) -> None:
        self.config = config
        self.network = network
        roadnet = network.roadnet
        if not config.rl_traffic_light:
            check_phase_times(roadnet)
        self.flows = tuple(flows)
        self.demand = Demand(self.network, config.interval_s, config.lane_change)
        self._step_kernel = step_kernel(config.lane_change)

        self.lane_ids = roadnet.lane_ids
        self.lane_index = {name: i for i, name in enumerate(self.lane_ids)}
        self.intersection_ids = tuple(intersection.id for intersection in roadnet.intersections)
        self.intersection_index = roadnet.intersection_index
        self._n_lanes = len(self.lane_ids)
        self.phase_counts = np.array([len(i.phases) for i in roadnet.intersections], np.int32)
        self._n_pushed = 0

        segments = lane_segments(roadnet, config.roadnet_file) if config.lane_change else np.zeros(1, np.int32)
        sizes = network.sizes | initial_sizes(len(self.flows), segments, config.lane_change)
        self._tables = t.Tables(sizes)
        state = self._tables.state
        self.network.fill(state)
        state.segment_first[:] = segments
        state.reals[t.DELTA] = config.interval_s
        state.counters[t.OWN_LIGHTS] = not config.rl_traffic_light
        state.counters[t.LANE_CHANGE] = config.lane_change
        self.lane_length_m: NDArray[np.float64] = state.length[: self._n_lanes].copy()
        self.lane_max_speed_mps: NDArray[np.float64] = state.speed_limit[: self._n_lanes].copy()
        self.lane_vehicle_count_view = _read_only(state.n_vehicles[: self._n_lanes])
        self.lane_waiting_count_view = _read_only(state.n_waiting[: self._n_lanes])
        self._phase_view = _read_only(state.phase_index)
        number_flows(state, self.flows, self.demand)
        self.demand.write(self._tables)
        self._refresh()
        faults = find_flow_faults(self.flows, state.flow_route.tolist(), self.demand)
        self.invalid_flows, self.missed_flows, self.dead_ends = faults
        warn_of_oddities(network.oddities, config.roadnet_file)
        warn_of_flow_faults(faults, config.flow_file, self.flows, network)
        self.reset(seed=True)

    @cached_property
    def inputs_sha256(self) -> str:
        """Fingerprint of road network, flows and step length, whatever the layout of the files."""
        roadnet = self.network.roadnet
        content = repr((roadnet.roads, roadnet.intersections, self.flows, self.config.interval_s))
        return hashlib.sha256(content.encode()).hexdigest()

    def _refresh(self) -> None:
        """To be called when the tables' memory has moved."""
        self.memory = self._tables.arguments
        self.state: t.State = self._tables.state

    # ------------------------------------------------------------------ steps

    def use_threads(self, thread_num: int) -> None:
        """From now on, let so many threads step a large network together, but no more than there are cores.

        Args:
            thread_num: 1 or more; no result depends on it. Where vehicles change lanes, one thread steps.
        """
        self._step_kernel = step_kernel(self.config.lane_change, checked_threads(thread_num))

    def next_step(self) -> None:
        """Simulate one step of `interval` seconds. StepError if a vehicle comes to a dead end of its route."""
        while self._step_kernel(*self.memory, 1):
            self._after_fault()

    def step_many(self, n: int) -> None:
        """Simulate several steps in compiled code, with a return to Python now and then so that Ctrl-C works.

        Args:
            n: how many.

        Raises:
            StepError: a vehicle comes to a dead end of its route.
            ValueError: n is negative, or leads beyond the last step that can be counted.
        """
        last = int(self.state.counters[t.STEP]) + self._step_count(n)
        while (left := last - int(self.state.counters[t.STEP])) > 0:
            if self._step_kernel(*self.memory, min(left, _STEPS_A_CALL)):
                self._after_fault()

    def _step_count(self, n: int) -> int:
        count = whole_number(n, "the number of steps")
        most = _LAST_STEP - int(self.state.counters[t.STEP])
        if not 0 <= count <= most:
            raise ValueError(f"the number of steps must be 0 to {most}, is {count}")
        return count

    def _after_fault(self) -> None:
        """Make room for the vehicles of the next step, where that was the fault, or raise StepError."""
        counters = self.state.counters
        if counters[t.BROKEN]:
            self._stop_at_dead_end()
        if counters[t.STEP] >= counters[t.TIDY_STEP]:
            tidy(self._tables)
        self.make_room(int(counters[t.N_NEEDED]))

    def _stop_at_dead_end(self) -> None:
        state = self.state
        v = int(state.counters[t.FAULT_SLOT])
        lane = (self.lane_ids + self.network.link_ids)[state.path[state.path_index[v]]]
        raise StepError(
            f"step {int(state.counters[t.STEP])}: vehicle {self._vehicle_id(v)!r} leaves lane {lane!r} or the one "
            f"after it, where its route has no lane link; reset or load a snapshot to continue"
        )

    def make_room(self, n: int) -> None:
        """Make sure that at least n vehicle slots are free, and that all those vehicles' trips can be recorded.

        Args:
            n: vehicles that may come.
        """
        counters = self.state.counters
        if self._tables.grow("trips", int(counters[t.N_TRIPS] + counters[t.N_PRESENT]) + n):
            self._refresh()
        n_free = int(counters[t.N_FREE])
        if n_free >= n:
            return
        first_new = self._tables.sizes["slots"]
        self._tables.grow("slots", first_new + n - n_free)
        if self.config.lane_change:
            self._tables.grow("changers", self._tables.sizes["slots"])
        self._refresh()
        add_free_slots(self.state, first_new)

    def reset(self, seed: bool = False) -> None:
        """Back to step 0 without vehicles, lights at phase 0.

        Not reset, as in CityFlow: dropped flows and the numbering of pushed vehicles.

        Args:
            seed: whether the random generator restarts, too, from the config's seed.
        """
        clear_run(self.state)
        self._show_first_phases()
        if seed:
            self.set_random_seed(self.config.seed)

    def _show_first_phases(self) -> None:
        state = self.state
        state.phase_index[:] = -1
        kernel_step.set_phases(*self.memory, np.where(self.phase_counts > 0, 0, -1).astype(np.int32))
        state.phase_index[self.phase_counts == 0] = 0
        has_phases = self.phase_counts > 0
        state.phase_remaining[has_phases] = state.phase_time[state.phase_first[:-1][has_phases]]

    def set_random_seed(self, seed: int) -> None:
        """Restart the random generator.

        Args:
            seed: a whole number, taken modulo 2**32.
        """
        seed_generator(self.state, whole_number(seed, "seed"))

    # ------------------------------------------------------------------ lights

    @property
    def phase_indices(self) -> NDArray[np.int32]:
        """int32[intersections]: the phases shown now (a read-only view; 0 for virtual intersections)."""
        return self._phase_view

    def set_phase_by_index(self, intersection: int, phase: int) -> None:
        """Show a phase from the next step on.

        Args:
            intersection, phase: their numbers, from 0.

        Raises:
            IndexError: there is no such intersection or phase.
            StepError: the lights run by their own plan.
        """
        intersection, phase = whole_number(intersection, "intersection"), whole_number(phase, "phase")
        if not 0 <= intersection < self.phase_counts.size:
            raise IndexError(f"there is no intersection number {intersection}")
        self._check_phase(intersection, phase)
        phases = np.full(self.phase_counts.size, -1, np.int32)
        phases[intersection] = phase
        self._show(phases)

    def set_phases(self, phases: ArrayLike) -> None:
        """Set all lights, from the next step on.

        Args:
            phases: int[intersections], the phase to show at each; -1 leaves it as it is.

        Raises:
            IndexError: an intersection has no such phase.
            StepError: the lights run by their own plan.
        """
        wanted = np.asarray(phases)
        if wanted.shape != self.phase_counts.shape:
            raise ValueError(f"needs {self.phase_counts.size} phases, one per intersection, got {wanted.shape}")
        if wanted.dtype.kind not in "iu":
            raise TypeError(f"phases are whole numbers, not {wanted.dtype}")
        bad = (wanted >= self.phase_counts) | (wanted < -1)
        if bad.any():
            self._check_phase(int(bad.argmax()), int(wanted[bad.argmax()]))
        self._show(np.ascontiguousarray(wanted, np.int32))

    def _check_phase(self, intersection: int, phase: int) -> None:
        n = int(self.phase_counts[intersection])
        if not 0 <= phase < n:
            name = self.intersection_ids[intersection]
            fault = f"has the phases 0 to {n - 1}, not {phase}" if n else "is virtual: it has no phases"
            raise IndexError(f"intersection {name!r} {fault}")

    def _show(self, phases: NDArray[np.int32]) -> None:
        if not self.config.rl_traffic_light:
            raise StepError("rlTrafficLight is false: the lights run by their own plan and can't be set")
        kernel_step.set_phases(*self.memory, phases)

    # ------------------------------------------------------------------ measures

    def lane_vehicle_counts(self) -> NDArray[np.int32]:
        """int32[lanes]: vehicles on each lane (not in its entry queue)."""
        return self.lane_vehicle_count_view.copy()

    def lane_waiting_counts(self) -> NDArray[np.int32]:
        """int32[lanes]: vehicles on each lane slower than 0.1 m/s."""
        return self.lane_waiting_count_view.copy()

    def lane_speed_sums_mps(self) -> NDArray[np.float64]:
        """float64[lanes]: sum of the speeds of the vehicles on each lane."""
        return self._measure(kernel_measure.lane_speed_sums)

    def lane_waiting_time_sums_s(self) -> NDArray[np.float64]:
        """float64[lanes]: sum over the vehicles on each lane of how long each has been slower than 0.1 m/s, s.

        The time is carried with a vehicle from lane to lane and is 0 for one that moves.
        """
        return self._measure(kernel_measure.lane_waiting_times)

    @property
    def drivable_shapes(self) -> list[list[Point]]:
        """The centre line of each drivable, m: all lanes, then all lane links."""
        return list(self.network.lane_shapes + self.network.link_shapes)

    def _measure(self, kernel: Any) -> NDArray[np.float64]:
        kernel(*self.memory, result := np.zeros(self._n_lanes))
        return result

    @property
    def finished_vehicle_count(self) -> int:
        """Vehicles that have ended their trip since the start or the last reset."""
        return int(self.state.counters[t.N_FINISHED])

    @property
    def queued_vehicle_count(self) -> int:
        """Vehicles that wait to enter."""
        return int(self.state.counters[t.N_PRESENT] - self.state.counters[t.N_RUNNING])

    def trips(self) -> Trips:
        """Every vehicle's trip since the start or the last reset, for `streetflow.control.measures`."""
        return read_trips(self.state)

    def get_vehicle_count(self) -> int:
        """Running vehicles, not those that wait to enter."""
        return int(self.state.counters[t.N_RUNNING])

    def get_current_time(self) -> float:
        """Simulated time, s: steps times interval."""
        return int(self.state.counters[t.STEP]) * self.config.interval_s

    def get_average_travel_time(self) -> float:
        """Mean over finished and present vehicles of the time since their creation, s; 0.0 without any."""
        return average_travel_time_s(self.state, self.get_current_time(), self.config.interval_s)

    def _vehicle_id(self, v: int) -> str:
        state = self.state
        return vehicle_id(int(state.flow[v]), int(state.ordinal[v]), bool(state.role[v] == t.SHADOW))


def _read_only(values: NDArray[np.int32]) -> NDArray[np.int32]:
    view = values.view()
    view.flags.writeable = False
    return view
