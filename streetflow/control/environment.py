"""A network's traffic as a decision problem: one step is one decision of every light.

The shape is Gymnasium's (``reset``, ``step``, seeded); times, order of lanes, measures and the rule of the lights are
those of the paper's experiment.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streetflow.control.clearance import derive_clearance, require_clearance
from streetflow.control.conditions import FINE, Conditions, Detectors, ShutLane
from streetflow.control.engines import TrafficEngine, make_engine, require_engine, require_shown
from streetflow.control.features import resolve_features
from streetflow.control.intersection import signalled_intersections
from streetflow.control.measures import QueueMeter, ThroughputMeter, measure
from streetflow.control.observation import Observer
from streetflow.control.signal_times import LIGHT_RULES, SignalRules
from streetflow.control.signals import Signals
from streetflow.control.traffic_state import TrafficState
from streetflow.errors import InputError, InputWarning, whole_number
from streetflow.networks.catalogue import Network, default_seed, find_network
from streetflow.roadnet.flow import Flow, read_flows
from streetflow.roadnet.network_tables import load_network


class Environment:
    """N signalled intersections of ``network`` under its demand ``flow``.

    ``seed`` is the engine's; the default is the one that the paper's runs use with this flow. ``features`` is a preset
    (``all``, ``release``, ``deployable``) or a list of names from ``streetflow.control.features.FEATURES``. ``horizon_s`` and
    ``decision_interval_s`` override the network's. ``conditions``: what goes wrong at the crossings. ``demand``: vehicles in
    place of the flow file's. ``rules``: what the times of the clearances ``computed`` and ``shell`` come from. Bad names,
    numbers and files raise InputError.
    """

    measures_queues: bool
    """Whether to sample the queues every second, for `measures`; to be set before a run."""

    def __init__(
        self,
        network: str | Network,
        flow: int = 0,
        *,
        seed: int | None = None,
        engine: str = "builtin",
        features: str | Sequence[str] = "release",
        clearance: str = "hold",
        min_green_s: int = 0,
        horizon_s: int | None = None,
        decision_interval_s: int | None = None,
        conditions: Conditions = FINE,
        demand: Sequence[Flow] | None = None,
        rules: SignalRules = LIGHT_RULES,
    ) -> None:
        specs = resolve_features(features)
        require_engine(engine)
        require_clearance(clearance)
        require_shown(engine, clearance)
        self.network = find_network(network) if isinstance(network, str) else network
        self.flow = whole_number(flow, "flow")
        self.seed = default_seed(flow) if seed is None else whole_number(seed, "seed")
        self.clearance = clearance
        self.horizon_s = self.network.horizon_s if horizon_s is None else whole_number(horizon_s, "horizon_s")
        if self.horizon_s <= 0:
            raise InputError("environment", "horizon_s", f"must be above 0, is {self.horizon_s}")
        interval_s = self.network.decision_interval_s if decision_interval_s is None else decision_interval_s
        self.decision_interval_s = whole_number(interval_s, "decision_interval_s")
        if self.decision_interval_s <= 0:
            raise InputError("environment", "decision_interval_s", f"must be above 0, is {interval_s}")
        self.n_decisions = -(-self.horizon_s // self.decision_interval_s)

        self.measures_queues = False
        flow_file = self.network.flow_file(flow)
        tables = load_network(self.network.roadnet_file)
        self.intersections = signalled_intersections(tables.roadnet)
        self.changes = derive_clearance(tables, clearance, rules)
        self.engine: TrafficEngine = make_engine(engine, self.changes.network, flow_file, seed=self.seed, demand=demand)
        self._demand = demand
        self.feature_names = tuple(spec.name for spec in specs)
        self.lsb_per_unit = tuple(spec.lsb_per_unit for spec in specs)
        self._observer = Observer(self.intersections, specs, self.engine)
        self.feature_widths = self._observer.feature_widths
        self.max_width = self._observer.max_width
        self._action_counts = np.array([each.action_count for each in self.intersections], np.int32)
        self.signals = Signals(self.intersections, self.changes, len(self.engine.intersection_ids), min_green_s)
        self._detectors = Detectors(self.engine, self.intersections, conditions) if conditions.blurs else None
        self._shut_lane = None
        if conditions.shut_s:
            self._shut_lane = ShutLane(self.engine, self.intersections, conditions, self.horizon_s, self.decision_interval_s)
        self._start()

    @property
    def traffic(self) -> TrafficState:
        """What the crossings' detectors show, faults included."""
        return self._detectors or self.engine

    @property
    def demand(self) -> Sequence[Flow]:
        """The vehicles that come."""
        file, roads = self.network.flow_file(self.flow), load_network(self.network.roadnet_file).roadnet.road_index
        return read_flows(file, roads) if self._demand is None else self._demand

    @property
    def time_s(self) -> int:
        """Simulated seconds since the reset."""
        return min(self.decision * self.decision_interval_s, self.horizon_s)

    @property
    def elapsed_s(self) -> NDArray[np.int32]:
        """int32[N]: the lights' ``elapsed``, see ``signals.py``."""
        return self.signals.elapsed_s

    @property
    def current_action(self) -> NDArray[np.int32]:
        """int32[N]: the action in force at each light (the old one while a change is pending)."""
        return self.signals.current_action

    @property
    def green_s(self) -> NDArray[np.int32]:
        """int32[N]: seconds since the action in force showed, or since the pending change began."""
        return self.signals.elapsed_s

    @property
    def min_green_s(self) -> int:
        return self.signals.min_green_s

    @property
    def shown_phase(self) -> NDArray[np.int32]:
        """int32[N]: the engine's phase that each light shows, clearance phases included."""
        return self.signals.shown_phase

    def reset(self, seed: int | None = None) -> NDArray[np.int32]:
        """Back to second 0, with the environment's own engine seed or with ``seed``; the same seed, the same run.

        Returns the first observation, int32[N, F, W], zero-padded.
        """
        self.engine.set_random_seed(self.seed if seed is None else seed)
        self.engine.reset()
        self._start()
        return self._observe()[0]

    def step(self, actions: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.float64], bool]:
        """Let the lights follow ``actions`` (int[N]) for one decision interval.

        Returns (observation int32[N, F, W], reward float64[N], done). The reward is minus (vehicles on in-lanes -
        vehicles on out-lanes) at the end of the interval.
        """
        start_s = self.time_s
        seconds = min(self.decision_interval_s, self.horizon_s - start_s)
        if seconds <= 0:
            raise RuntimeError("the run is over: call reset() before the next step()")
        wished = self._checked(actions)
        if self.signals.serves:
            for second in range(seconds):
                asked = self.signals.asked(wished, self.traffic.lane_vehicle_counts(), is_new=second == 0)
                self._drive(asked, 1)
        else:
            self._drive(wished, seconds)
        self.decision += 1
        self._shut_or_open()
        self._throughput.after_decision(start_s, self.engine.finished_vehicle_count)
        observation, reward = self._observe()
        done = self.decision >= self.n_decisions
        if done and not self.engine.finished_vehicle_count:
            self._warn_if_nobody_came()
        return observation, reward, done

    def feature_columns(self, names: Sequence[str]) -> list[int]:
        """Indices of the features along an observation's second axis.

        Args:
            names: of features, such as a controller's.

        Raises:
            InputError: the environment wasn't made with one of them.
        """
        for name in names:
            if name not in self.feature_names:
                fault = f"{name} is needed but not observed: make the environment with the controller's features"
                raise InputError("environment", "features", fault)
        return [self.feature_names.index(name) for name in names]

    def average_travel_time_s(self) -> float:
        """The engine's average so far: finished vehicles and those still under way or waiting to enter."""
        return self.engine.get_average_travel_time()

    def throughput_veh_per_min(self) -> float:
        """Mean of the minute samples so far, see ``measures.ThroughputMeter``."""
        return self._throughput.mean_veh_per_min

    def measures(self) -> Mapping[str, float | None]:
        """Every figure of ``measures.MEASURES`` so far; those of queues only with ``measures_queues``.

        With a lane that is shut there is no ``delay_s``: the shut lane's speed limit would count as undisturbed driving.
        """
        found = measure(self.engine.trips(), self._queues)
        return found if self._shut_lane is None else {**found, "delay_s": None}

    def _drive(self, actions: NDArray[np.int32], seconds: int) -> None:
        for phases, run_s in self.signals.advance(actions, seconds):
            if phases is not None:
                self.engine.set_phases(phases)
            self._run(run_s)

    def _run(self, seconds: int) -> None:
        if not self.measures_queues:
            self.engine.step_many(seconds)
            return
        for _ in range(seconds):
            self.engine.step_many(1)
            self._queues.sample(self.engine)

    def _start(self) -> None:
        self.decision = 0
        self._shut_or_open()
        self._observer.reset()
        if self._detectors is not None:
            self._detectors.reset()
        self.engine.set_phases(self.signals.reset())
        self._throughput = ThroughputMeter()
        self._queues = QueueMeter()

    def _shut_or_open(self) -> None:
        if self._shut_lane is not None:
            self._shut_lane.at(self.time_s)

    def _warn_if_nobody_came(self) -> None:
        if not len(self.engine.trips().created_s):
            file = self.network.flow_file(self.flow)
            what = f"no vehicle was created in {self.horizon_s} s, so that travel time and throughput are 0"
            warnings.warn(f"{file}: {what}", InputWarning, stacklevel=3)

    def _observe(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        if self._detectors is not None:
            self._detectors.look()
        observation, pressure = self._observer.observe(self.traffic, self.signals.current_action)
        return observation, -pressure.astype(np.float64)

    def _checked(self, actions: ArrayLike) -> NDArray[np.int32]:
        array = np.asarray(actions)
        if array.shape != self._action_counts.shape or array.dtype.kind not in "iu":
            raise ValueError(f"actions must be {len(self._action_counts)} integers, not {array.dtype} of shape {array.shape}")
        if ((array < 0) | (array >= self._action_counts)).any():
            i = int(np.argmax((array < 0) | (array >= self._action_counts)))
            raise ValueError(
                f"action {array[i]} at intersection {self.intersections[i].id}: there are 0 to {self._action_counts[i] - 1}"
            )
        return array.astype(np.int32)
