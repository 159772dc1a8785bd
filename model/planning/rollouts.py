"""Rollouts of an environment: what each action of each light costs, by the exact engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model.kernels import rollout as kernel
from model.planning.arrivals import KNOWN, Arrivals
from model.planning.base import NO_NETWORKS, packed
from model.policy.file import IntersectionPolicy
from model.policy.inputs import input_indices
from streetflow.control.environment import Environment
from streetflow.control.features import resolve_features
from streetflow.control.observation import Observer
from streetflow.engine.core import EngineCore
from streetflow.errors import InputError
from streetflow.kernels.sources import Source
from streetflow.kernels.step import OK
from streetflow.kernels.tables import N_FREE

_ROOM = 256  # vehicle slots to add, where a rollout ran out of them


class Planned(NamedTuple):
    """One planned decision. ``costs_s`` float64[N, A]: vehicle-seconds from now to the horizon, 0 for no such action;
    ``actions`` int32[N]: the cheapest of each light, the base's where it is as cheap."""

    costs_s: NDArray[np.float64]
    actions: NDArray[np.int32]


class Rollouts:
    """The planner of one environment with one base policy.

    Args:
        environment: on the built-in engine; rollouts start from its state and leave it as it is.
        base: the parts of a policy, one a light (their integers decide), or the name of a feature with a value for each
            action, whose first greatest decides (``phase_2_num_waiting_vehicle``: MaxQueue).
        horizon: decisions that a rollout takes, the first included.
        cut_s: a rollout that is further behind its base's is ended (vehicle-seconds).
        worth: what a vehicle has still to go counts as so many times its undisturbed travel time; 0: nothing. Without it a
            rollout is blind for what it gains beyond the horizon, which is most of it where a way leads past several lights.
        blind_seed: plan without knowing the arrivals from now on: each action is played on ``draws`` demands, drawn from the
            rates of the flow file (`Arrivals`) with this seed.

    Raises:
        InputError: the engine isn't the built-in one, or the base looks at what rollouts can't see (images).
    """

    def __init__(
        self,
        environment: Environment,
        base: Sequence[IntersectionPolicy] | str,
        *,
        horizon: int = 11,
        cut_s: float = np.inf,
        worth: float = 0.0,
        blind_seed: int | None = None,
        draws: int = 4,
    ) -> None:
        if not isinstance(environment.engine, EngineCore):
            raise InputError("planner", "engine", "plans with the built-in engine alone")
        self._environment, self._engine = environment, environment.engine
        self._horizon, self._cut_s = horizon, cut_s
        names = (
            [base] if isinstance(base, str) else list(dict.fromkeys(feature.name for part in base for feature in part.features))
        )
        specs = resolve_features(names)
        observer = Observer(environment.intersections, specs, environment.engine)
        self._networks = NO_NETWORKS
        if not isinstance(base, str):
            places = [
                input_indices(part, names, widths, observer.max_width)
                for part, widths in zip(base, observer.feature_widths, strict=True)
            ]
            self._networks = packed(base, places)
        self._n_lights = len(environment.intersections)
        numbers, phases, clearance_phases, clearance_s, least_green_s = environment.signals.tables
        interval_s = environment.decision_interval_s
        self._lights = kernel.Lights(
            numbers,
            phases,
            np.ascontiguousarray(clearance_phases),
            np.ascontiguousarray(clearance_s),
            np.ascontiguousarray(least_green_s),
            np.array([each.action_count for each in environment.intersections], np.int32),
            np.full((interval_s, len(environment.engine.intersection_ids)), -1, np.int32),
            np.zeros(interval_s, np.int32),
            environment.signals.service,
            np.zeros(self._n_lights, np.int32),
        )
        self._eyes = _eyes(observer, len(specs))
        self._values, self._seen = observer.tables.values, self._n_lights * (len(specs) * observer.max_width + 1)
        self._blocks: tuple[NDArray[np.generic], ...] = ()
        self._sight: kernel.Sight | None = None
        self._arrivals = None if blind_seed is None else Arrivals(self._engine.state, blind_seed)
        self._to_go = _to_go(environment.engine, worth)
        self._draws = 1 if blind_seed is None else draws

    def plan(self, wishes: NDArray[np.int32], lights: ArrayLike | None = None) -> Planned:
        """Plan the coming decision.

        Args:
            wishes: int32[N], what the base policy would do now.
            lights: numbers of the lights to plan, in their order; None: all. The others do what the base policy wishes, and
                their costs are 0.
        """
        order = np.arange(self._n_lights, dtype=np.int32) if lights is None else np.asarray(lights, np.int32)
        n, actions = self._n_lights, self._lights.phase_of_action.shape[1]
        rows = [np.zeros((self._draws, self._horizon)) for _ in range(3)]
        scratch = kernel.Scratch(
            np.zeros_like(self._environment.signals.state), np.zeros(n, np.int32), np.zeros(n, np.int32), *rows
        )
        demand = self._expected()
        while True:
            memory = self._engine.memory
            blocks, sight = self._scratch()
            planned = Planned(np.zeros((n, actions)), np.zeros(n, np.int32))
            fault = kernel.plan(
                *memory[:4], *blocks, memory[4], self._environment.signals.state, self._lights, self._eyes, sight,
                self._networks, self._to_go, demand, order, wishes, self._cut_s, *planned, scratch,
            )  # fmt: skip
            if fault == OK:
                return planned
            self._engine.make_room(int(self._engine.state.counters[N_FREE]) + _ROOM)

    def _expected(self) -> kernel.Demand:
        """The demand that rollouts meet."""
        if self._arrivals is None:
            return KNOWN
        horizon_s = self._horizon * self._environment.decision_interval_s
        return self._arrivals.draw(self._engine.state, self._engine.get_current_time(), horizon_s, self._draws)

    def _scratch(self) -> tuple[tuple[NDArray[np.generic], ...], kernel.Sight]:
        """Blocks of the engine's sizes, and room for what is seen of so many vehicles."""
        own = self._engine.memory[:4]
        if not self._blocks or any(a.shape != b.shape for a, b in zip(self._blocks, own, strict=True)):
            self._blocks = tuple(np.zeros_like(block) for block in own)
            slots, lanes = self._engine.state.status.size, len(self._eyes.max_speed_mps)
            self._sight = kernel.Sight(
                np.zeros(self._values), np.zeros(self._seen, np.int32), np.zeros(lanes), np.zeros(lanes),
                np.zeros(self._n_lights, np.int32),
                np.zeros(slots, np.int32), np.zeros(slots, np.int64), np.zeros(slots), np.zeros(slots),
                np.zeros(slots, np.int32), np.zeros(slots, np.int64), np.zeros(slots), np.zeros(slots, np.int32),
                np.zeros(2, np.int64), np.full(1 << (2 * slots).bit_length(), -1, np.int32),
            )  # fmt: skip
        assert self._sight is not None
        return self._blocks, self._sight


def _to_go(engine: EngineCore, worth: float) -> kernel.ToGo:
    if not worth:
        return kernel.ToGo(np.zeros(0), np.zeros(0))
    state = engine.state
    by_metre = worth / state.speed_limit
    by_path = np.zeros(state.path.size)
    for index in range(state.path.size - 1, -1, -1):
        drivable = state.path[index]
        if drivable >= 0:
            later = by_path[index + 1] if index + 1 < state.path.size else 0.0
            by_path[index] = state.length[drivable] * by_metre[drivable] + later
    return kernel.ToGo(by_path, by_metre)


def _eyes(observer: Observer, n_features: int) -> kernel.Eyes:
    tables = observer.tables
    by_vehicle = tables.by_vehicle
    if Source.IMAGE in tables.sources:
        raise InputError("planner", "features", "rollouts can't see images of the crossing")
    passing = by_vehicle is not None and by_vehicle.passing
    needs = [
        Source.WAITING_TIME in tables.sources,
        Source.DELAY in tables.sources,
        Source.OWN in tables.sources,
        by_vehicle is not None,
        passing,
    ]
    places = [n_features * observer.max_width, tables.first_own, tables.first_by_vehicle, 0, -1]
    segments, light_of_lane, lane_length_m = np.zeros((0, 2), np.int32), np.zeros(0, np.int32), np.zeros(0)
    if by_vehicle is not None:
        places[kernel.BY_VEHICLE_COUNT], places[kernel.FIRST_LINK] = by_vehicle.size, by_vehicle.first_link
        segments, light_of_lane, lane_length_m = by_vehicle.segments, by_vehicle.light_of_lane, by_vehicle.lane_length_m
    return kernel.Eyes(
        np.array(needs, np.int32),
        np.array(places, np.int32),
        tables.max_speed_mps,
        lane_length_m,
        tables.first_action,
        tables.cells,
        tables.scales,
        tables.term_indices,
        tables.term_weights,
        segments,
        light_of_lane,
    )
