"""The engine by numbers: construction, steps, lights, and measures as arrays by lane or intersection."""

from __future__ import annotations

import hashlib
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streetflow.engine.demand import Demand
from streetflow.engine.tidy import TIDY_STEPS, tidy
from streetflow.engine.trips import Trips, read_trips
from streetflow.engine.vehicles import Vehicles
from streetflow.errors import InputWarning, StepError, whole_number
from streetflow.kernels import measure as kernel_measure
from streetflow.kernels import step as kernel_step
from streetflow.kernels import tables as t
from streetflow.kernels import vehicles as kernel_vehicles
from streetflow.roadnet.config import Config, check_interval, load_config
from streetflow.roadnet.flow import Flow, read_flows
from streetflow.roadnet.network_tables import NetworkTables, lane_segments, load_network
from streetflow.roadnet.reader import Point, check_phase_times

_INITIAL_SLOTS = 64
_STEPS_A_CALL = 256  # of the compiled code, which can't be interrupted: 0.3 s with 20,000 vehicles
_LAST_STEP = 2**31 - 1
_MAX_CLOCKS = 4_000_000
SHADOW_SUFFIX = "_shadow"


class EngineCore:
    """A running simulation, equal step by step to CityFlow's.

    Lanes and intersections are numbered in file order. Units: m, s, m/s.

    Attributes:
        lane_ids, intersection_ids: names by number; lane_index, intersection_index: numbers by name.
        phase_counts: int32[intersections], 0 for virtual ones.
        lane_length_m, lane_max_speed_mps: float64[lanes].
        lane_vehicle_count_view, lane_waiting_count_view: int32[lanes], read-only: what `lane_vehicle_counts` and
            `lane_waiting_counts` copy. They follow every step, for as long as the engine lives.
        invalid_flows: numbers of the flows whose route can't be planned (dropped when they first fire).
        missed_flows: numbers of the flows that never fire because no step falls into their window.
        dead_ends: (flow, lane number) pairs: who enters so gets stuck, which raises StepError.
    """

    def __init__(self, config_file: str | Path, thread_num: int = 1) -> None:
        """Load the files that a config file names. thread_num is accepted and has no effect.

        Raises InputError, naming file, place and fault, for everything that is wrong with the input.
        """
        if whole_number(thread_num, "thread_num") < 1:
            raise ValueError(f"thread_num must be at least 1, is {thread_num}")
        self._construct(load_config(config_file), accept_integral_floats=False)

    @classmethod
    def from_files(
        cls,
        roadnet_file: str | Path,
        flow_file: str | Path,
        *,
        interval_s: float = 1.0,
        seed: int = 0,
        rl_traffic_light: bool = True,
        lane_change: bool = False,
        accept_integral_floats: bool = False,
    ) -> Self:
        """An engine without a config file. accept_integral_floats: read a startTime such as 5.0 as 5."""
        check_interval(interval_s, "Engine.from_files", "interval_s")
        config = Config(
            float(interval_s),
            whole_number(seed, "seed"),
            "",
            str(roadnet_file),
            str(flow_file),
            rl_traffic_light,
            lane_change=lane_change,
        )
        engine = cls.__new__(cls)
        engine._construct(config, accept_integral_floats)
        return engine

    def _construct(self, config: Config, accept_integral_floats: bool) -> None:
        self.config = config
        self._network: NetworkTables = load_network(config.roadnet_file)
        roadnet = self._network.roadnet
        if not config.rl_traffic_light:
            check_phase_times(roadnet)
        self._flows = read_flows(config.flow_file, roadnet.road_index, accept_integral_floats)
        self._demand = Demand(self._network, config.interval_s, config.lane_change)
        self._step_kernel = _step_kernel(config.lane_change)

        self.lane_ids = roadnet.lane_ids
        self.lane_index = {name: i for i, name in enumerate(self.lane_ids)}
        self.intersection_ids = tuple(intersection.id for intersection in roadnet.intersections)
        self.intersection_index = roadnet.intersection_index
        self._n_lanes = len(self.lane_ids)
        self.phase_counts = np.array([len(i.phases) for i in roadnet.intersections], np.int32)
        self._n_pushed = 0

        segments = lane_segments(roadnet, config.roadnet_file) if config.lane_change else np.zeros(1, np.int32)
        sizes = {
            **self._network.sizes,
            "counters": t.N_COUNTERS,
            "reals": t.N_REALS,
            "rng": t.RNG_WORDS,
            "priority_buckets": t.PRIORITY_BUCKETS,
            "flows": len(self._flows),
            "slots": _INITIAL_SLOTS,
            "segments": int(segments[-1]),
            "segments_1": segments.size,
            "changers": _INITIAL_SLOTS if config.lane_change else 0,
            "trips": _INITIAL_SLOTS,
            "path": 1,
            "sideways": 1,
            "routes": 1,
            "candidates": 1,
            "kinds": t.KIND_SIZE,
        }
        self._tables = t.Tables(sizes)
        state = self._tables.state
        self._network.fill(state)
        state.segment_first[:] = segments
        state.reals[t.DELTA] = config.interval_s
        state.counters[t.OWN_LIGHTS] = not config.rl_traffic_light
        state.counters[t.LANE_CHANGE] = config.lane_change
        self.lane_length_m: NDArray[np.float64] = state.length[: self._n_lanes].copy()
        self.lane_max_speed_mps: NDArray[np.float64] = state.speed_limit[: self._n_lanes].copy()
        self.lane_vehicle_count_view = _read_only(state.n_vehicles[: self._n_lanes])
        self.lane_waiting_count_view = _read_only(state.n_waiting[: self._n_lanes])
        self._phase_view = _read_only(state.phase_index)
        self._number_flows(state)
        self._demand.write(self._tables)
        self._refresh()
        self._check_demand()
        self.reset(seed=True)

    @cached_property
    def inputs_sha256(self) -> str:
        """Fingerprint of road network, flows and step length, however the files are laid out."""
        roadnet = self._network.roadnet
        content = repr((roadnet.roads, roadnet.intersections, self._flows, self.config.interval_s))
        return hashlib.sha256(content.encode()).hexdigest()

    def _number_flows(self, state: t.State) -> None:
        for i, flow in enumerate(self._flows):
            state.flow_start[i] = flow.start_s
            state.flow_end[i] = flow.end_s
            state.flow_interval[i] = flow.interval_s
            state.flow_kind[i] = self._demand.kind(flow.kind)
            state.flow_route[i] = self._demand.route(flow.anchors)
        state.flow_order[:] = np.argsort(state.flow_start, kind="stable")

    def _refresh(self) -> None:
        """To be called when the tables' memory has moved."""
        self._arguments = self._tables.arguments

    # ------------------------------------------------------------------ warnings about the demand

    def _check_demand(self) -> None:
        flows = self._flows
        routes = self._tables.state.flow_route
        self.invalid_flows = tuple(i for i in range(len(flows)) if not self._demand.valid[routes[i]])
        self.missed_flows = _missed_flows(flows, self.config.interval_s)
        stuck: dict[int, tuple[int, ...]] = {}
        for route in range(len(self._demand.routes)):
            lanes = (way.drivables[-2] for way in self._demand.ways(route) if way.is_dead_end)
            stuck[route] = tuple(dict.fromkeys(lanes))
        self.dead_ends = tuple((i, lane) for i in range(len(flows)) for lane in stuck[int(routes[i])])
        self._warn(
            "invalid routes, dropped when they first fire",
            [(f"[{i}].route", self._network.router.fault(flows[i].anchors)) for i in self.invalid_flows],
        )
        self._warn(
            "flows that never fire: no step falls between startTime and endTime",
            [(f"[{i}]", f"{flows[i].start_s} to {flows[i].end_s} s") for i in self.missed_flows],
        )
        self._warn(
            "routes with a dead end",
            [(f"[{i}].route", f"no way on from lane {self.lane_ids[lane]!r}") for i, lane in self.dead_ends],
        )

    def _warn(self, what: str, found: list[tuple[str, str]]) -> None:
        if found:
            shown = "; ".join(f"{place}: {fault}" for place, fault in found[:5])
            more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
            warnings.warn(f"{self.config.flow_file}: {len(found)} {what}: {shown}{more}", InputWarning, stacklevel=6)

    # ------------------------------------------------------------------ steps

    def next_step(self) -> None:
        """Simulate one step of `interval` seconds. StepError if a vehicle comes to a dead end of its route."""
        while self._step_kernel(*self._arguments, 1):
            self._after_fault()

    def step_many(self, n: int) -> None:
        """Simulate n steps in compiled code, which is left now and then so that Ctrl-C works."""
        last = int(self._tables.state.counters[t.STEP]) + self._step_count(n)
        while (left := last - int(self._tables.state.counters[t.STEP])) > 0:
            if self._step_kernel(*self._arguments, min(left, _STEPS_A_CALL)):
                self._after_fault()

    def _step_count(self, n: int) -> int:
        count = whole_number(n, "the number of steps")
        most = _LAST_STEP - int(self._tables.state.counters[t.STEP])
        if not 0 <= count <= most:
            raise ValueError(f"the number of steps must be 0 to {most}, is {count}")
        return count

    def _after_fault(self) -> None:
        """Make room for the vehicles of the next step, where that was the fault, or raise StepError."""
        counters = self._tables.state.counters
        if counters[t.BROKEN]:
            self._stop_at_dead_end()
        if counters[t.STEP] >= counters[t.TIDY_STEP]:
            tidy(self._tables)
        self._make_room(int(counters[t.N_NEEDED]))

    def _stop_at_dead_end(self) -> None:
        state = self._tables.state
        v = int(state.counters[t.FAULT_SLOT])
        lane = self.lane_ids[state.path[state.way[v]]]
        raise StepError(
            f"step {int(state.counters[t.STEP])}: vehicle {self._vehicle_id(v)!r} leaves lane {lane!r} or the one "
            f"after it, from where its route has no lane link; reset or load a snapshot to go on"
        )

    def _make_room(self, n: int) -> None:
        """See that at least n vehicle slots are free, and that all those vehicles' trips can be recorded."""
        counters = self._tables.state.counters
        if self._tables.grow("trips", int(counters[t.N_TRIPS] + counters[t.N_PRESENT]) + n):
            self._refresh()
        n_free = int(counters[t.N_FREE])
        if n_free >= n:
            return
        first_new = self._tables.sizes["slots"]
        self._tables.grow("slots", first_new + n - n_free)
        self._grow_changers()
        self._add_free_slots(first_new)

    def _grow_changers(self) -> None:
        if self.config.lane_change:
            self._tables.grow("changers", self._tables.sizes["slots"])
        self._refresh()

    def _add_free_slots(self, first: int) -> None:
        """Make the slots from ``first`` on free; lower numbers are used first."""
        state = self._tables.state
        n_free = int(state.counters[t.N_FREE])
        new = np.arange(state.status.size - 1, first - 1, -1, dtype=np.int32)
        state.free_slots[: new.size + n_free] = np.concatenate((new, state.free_slots[:n_free]))
        state.counters[t.N_FREE] = n_free + new.size

    def reset(self, seed: bool = False) -> None:
        """Back to step 0 without vehicles, lights at phase 0. The generator starts anew only with ``seed``.

        Not reset, as in CityFlow: dropped flows and the numbering of pushed vehicles.
        """
        state = self._tables.state
        for to_clear in (
            state.priority_uses, state.n_vehicles, state.n_waiting, state.out_count, state.status, state.occupied,
            state.queued,
        ):  # fmt: skip
            to_clear[:] = 0
        for to_empty in (state.head, state.tail, state.arrival_step, state.queue_head, state.queue_tail):
            to_empty[:] = -1
        for counter in (
            t.STEP, t.FLIP, t.N_RUNNING, t.N_PRESENT, t.N_FINISHED, t.N_FREE, t.N_FREED, t.N_PENDING,
            t.NEXT_EVENT, t.N_ACTIVE_FLOWS, t.BROKEN, t.N_CREATED, t.N_TRIPS,
        ):  # fmt: skip
            state.counters[counter] = 0
        state.counters[t.TIDY_STEP] = TIDY_STEPS
        state.reals[t.FLOW_CLOCK] = 0.0
        state.reals[t.FINISHED_TIME] = 0.0
        state.flow_counter[:] = 0
        state.flow_credit[:] = state.flow_interval
        self._add_free_slots(0)
        self._show_first_phases()
        if seed:
            self.set_random_seed(self.config.seed)

    def _show_first_phases(self) -> None:
        state = self._tables.state
        state.phase_index[:] = -1
        kernel_step.set_phases(*self._arguments, np.where(self.phase_counts > 0, 0, -1).astype(np.int32))
        state.phase_index[self.phase_counts == 0] = 0
        has_phases = self.phase_counts > 0
        state.phase_remaining[has_phases] = state.phase_time[state.phase_first[:-1][has_phases]]

    def set_random_seed(self, seed: int) -> None:
        """Start the generator anew from a seed, taken modulo 2**32."""
        generator: Any = np.random.RandomState(whole_number(seed, "seed") % 2**32).get_state(legacy=False)
        self._tables.state.rng[:] = np.asarray(generator["state"]["key"], np.uint32).view(np.int32)
        self._tables.state.counters[t.RNG_POSITION] = t.RNG_WORDS

    # ------------------------------------------------------------------ lights

    @property
    def phase_indices(self) -> NDArray[np.int32]:
        """int32[intersections]: the phases shown now (a read-only view; 0 for virtual intersections)."""
        return self._phase_view

    def set_phase_by_index(self, intersection: int, phase: int) -> None:
        """Show a phase from the next step on. IndexError if there is no such intersection or phase."""
        intersection, phase = whole_number(intersection, "intersection"), whole_number(phase, "phase")
        if not 0 <= intersection < self.phase_counts.size:
            raise IndexError(f"there is no intersection number {intersection}")
        self._check_phase(intersection, phase)
        phases = np.full(self.phase_counts.size, -1, np.int32)
        phases[intersection] = phase
        self._show(phases)

    def set_phases(self, phases: ArrayLike) -> None:
        """Show phases[i] at intersection i from the next step on; -1 leaves it. IndexError for a bad index."""
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
        kernel_step.set_phases(*self._arguments, phases)

    # ------------------------------------------------------------------ measures

    def lane_vehicle_counts(self) -> NDArray[np.int32]:
        """int32[lanes]: vehicles on each lane (not in its entry queue)."""
        return self.lane_vehicle_count_view.copy()

    def lane_waiting_counts(self) -> NDArray[np.int32]:
        """int32[lanes]: vehicles on each lane slower than 0.1 m/s."""
        return self.lane_waiting_count_view.copy()

    def lane_speed_sums_mps(self) -> NDArray[np.float64]:
        """float64[lanes]: sum of the speeds of the vehicles on each lane."""
        return self._measure(kernel_measure.lane_speed_sums, np.float64)

    def lane_waiting_time_sums_s(self) -> NDArray[np.float64]:
        """float64[lanes]: sum over the vehicles on each lane of how long each has been slower than 0.1 m/s, s.

        The time goes along with a vehicle from lane to lane and is 0 for one that moves.
        """
        return self._measure(kernel_measure.lane_waiting_times, np.float64)

    @property
    def drivable_shapes(self) -> list[list[Point]]:
        """The centre line of each drivable, m: all lanes, then all lane links."""
        return self._network.lane_shapes + self._network.link_shapes

    def running_vehicles(self) -> Vehicles:
        """Every running vehicle by itself, as fresh arrays: drivable by drivable, front first."""
        vehicles = Vehicles.empty(int(self._tables.state.counters[t.N_RUNNING]))
        kernel_vehicles.running_vehicles(*self._arguments, *vehicles)
        return vehicles

    def _measure(self, kernel: Any, dtype: Any) -> NDArray[Any]:
        result = np.zeros(self._n_lanes, dtype)
        kernel(*self._arguments, result)
        return result

    @property
    def finished_vehicle_count(self) -> int:
        """Vehicles that have ended their trip since the start or the last reset."""
        return int(self._tables.state.counters[t.N_FINISHED])

    @property
    def queued_vehicle_count(self) -> int:
        """Vehicles that wait to enter."""
        return int(self._tables.state.counters[t.N_PRESENT] - self._tables.state.counters[t.N_RUNNING])

    def trips(self) -> Trips:
        """Every vehicle's trip since the start or the last reset, for `streetflow.control.measures`."""
        return read_trips(self._tables.state)

    def get_vehicle_count(self) -> int:
        """Running vehicles, not those that wait to enter."""
        return int(self._tables.state.counters[t.N_RUNNING])

    def get_current_time(self) -> float:
        """Simulated time, s: steps times interval."""
        return int(self._tables.state.counters[t.STEP]) * self.config.interval_s

    def get_average_travel_time(self) -> float:
        """Mean over finished and present vehicles of the time since their creation, s; 0.0 without any."""
        state = self._tables.state
        present = np.flatnonzero(state.status >= t.PENDING)
        n = int(state.counters[t.N_FINISHED]) + present.size
        if n == 0:
            return 0.0
        present = present[np.argsort(state.priority[present])]
        travelled = self.get_current_time() - state.enter_step[present] * self.config.interval_s
        sums = np.add.accumulate(np.concatenate(([state.reals[t.FINISHED_TIME]], travelled)))
        return float(sums[-1] / n)

    def _vehicle_id(self, v: int) -> str:
        state = self._tables.state
        name = vehicle_name(int(state.flow[v]), int(state.ordinal[v]))
        return name + SHADOW_SUFFIX if state.role[v] == t.SHADOW else name


def _read_only(values: NDArray[np.int32]) -> NDArray[np.int32]:
    view = values.view()
    view.flags.writeable = False
    return view


def _step_kernel(lane_change: bool) -> Any:
    if not lane_change:
        return kernel_step.step_many
    from streetflow.kernels import lane_step as kernel_lane_step

    return kernel_lane_step.step_many


def vehicle_name(flow: int, ordinal: int) -> str:
    """The id of the n-th vehicle of a flow; those of flow -1 were pushed."""
    return f"flow_{flow}_{ordinal}" if flow >= 0 else f"manually_pushed_{ordinal}"


def _missed_flows(flows: tuple[Flow, ...], delta: float) -> tuple[int, ...]:
    """Flows whose window no step hits. The clock is a running sum, so with most steps it misses whole seconds."""
    last = max((flow.start_s for flow in flows if flow.end_s != -1), default=0)
    n_clocks = min(int(max(last, 0) / delta) + 3, _MAX_CLOCKS)
    clocks = np.add.accumulate(np.concatenate(([0.0], np.full(n_clocks, delta))))
    starts = np.array([flow.start_s for flow in flows], np.float64)
    first = np.searchsorted(clocks, starts)
    return tuple(
        i for i, flow in enumerate(flows) if flow.end_s != -1 and first[i] < clocks.size and clocks[first[i]] > flow.end_s
    )
