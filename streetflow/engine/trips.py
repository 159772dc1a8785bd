"""Every vehicle's trip so far: when it was created, entered and ended, and how long it would have taken undisturbed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streetflow.engine.vehicles import vehicle_id
from streetflow.kernels import tables as t


@dataclass(frozen=True)
class Trips:
    """One entry per vehicle: finished ones in the order of their ends, then those under way or waiting to enter.

    flow, ordinal: int32, the vehicle ``flow_<flow>_<ordinal>``; flow -1: pushed in from outside.
    created_s, entered_s, ended_s: float64, the start of the step in which it happened; NaN: not yet.
    free_flow_s: float64, the time that its path so far takes without any other vehicle, light or acceleration: length
    by the lower of the vehicle's top speed and the speed limit, lane by lane and lane link by lane link. NaN: not known.
    """

    now_s: float
    flow: NDArray[np.int32]
    ordinal: NDArray[np.int32]
    created_s: NDArray[np.float64]
    entered_s: NDArray[np.float64]
    ended_s: NDArray[np.float64]
    free_flow_s: NDArray[np.float64]

    @property
    def ids(self) -> list[str]:
        pairs = zip(self.flow.tolist(), self.ordinal.tolist(), strict=True)
        return [vehicle_id(flow, ordinal) for flow, ordinal in pairs]

    @property
    def entered(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.entered_s)

    @property
    def finished(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.ended_s)

    @property
    def travel_time_s(self) -> NDArray[np.float64]:
        """Since creation, up to the end or now: what CityFlow averages."""
        return np.where(self.finished, self.ended_s, self.now_s) - self.created_s

    @property
    def network_time_s(self) -> NDArray[np.float64]:
        """Since entry, up to the end or now; NaN before entry."""
        return np.where(self.finished, self.ended_s, self.now_s) - self.entered_s

    @property
    def entry_wait_s(self) -> NDArray[np.float64]:
        """From creation to entry, or to now."""
        return np.where(self.entered, self.entered_s, self.now_s) - self.created_s

    @property
    def delay_s(self) -> NDArray[np.float64]:
        """Network time beyond the undisturbed one; NaN before entry."""
        return self.network_time_s - self.free_flow_s


def read_trips(state: t.State) -> Trips:
    """The trips of an engine's vehicles since its last reset."""
    delta = float(state.reals[t.DELTA])
    n = int(state.counters[t.N_TRIPS])
    present = np.flatnonzero((state.status >= t.PENDING) & (state.role != t.SHADOW))
    created = np.concatenate([state.trip_created[:n], state.enter_step[present]])
    entered = np.concatenate([state.trip_entered[:n], state.entry_step[present]])
    ended_s = np.full(created.size, np.nan)
    ended_s[:n] = state.trip_ended[:n] * delta
    return Trips(
        now_s=int(state.counters[t.STEP]) * delta,
        flow=np.concatenate([state.trip_flow[:n], state.flow[present]]),
        ordinal=np.concatenate([state.trip_ordinal[:n], state.ordinal[present]]),
        created_s=created * delta,
        entered_s=np.where(entered >= 0, entered * delta, np.nan),
        ended_s=ended_s,
        free_flow_s=np.concatenate([state.trip_free_flow_s[:n], _free_flow_s(state, present)]),
    )


def _free_flow_s(state: t.State, present: NDArray[np.intp]) -> NDArray[np.float64]:
    """The undisturbed time of vehicles under way, over the drivables that they have left and their part of the present one."""
    running = state.status[present] == t.RUNNING
    drivable = np.where(running, state.path[np.where(running, state.path_index[present], 0)], 0)
    distance = (state.distance_1 if state.counters[t.FLIP] else state.distance_0)[present]
    top_speed = state.kinds[state.kind[present] * t.KIND_SIZE + t.MAX_SPEED]
    return state.free_flow_s[present] + distance / np.minimum(top_speed, state.speed_limit[drivable])


def average_travel_time_s(state: t.State, now_s: float, delta: float) -> float:
    """CityFlow's figure of this name, summed in its order: over finished and present vehicles, shadows included; 0.0 without
    any."""
    present = np.flatnonzero(state.status >= t.PENDING)
    n = int(state.counters[t.N_FINISHED]) + present.size
    if n == 0:
        return 0.0
    present = present[np.argsort(state.priority[present])]
    travelled = now_s - state.enter_step[present] * delta
    sums = np.add.accumulate(np.concatenate(([state.reals[t.FINISHED_TIME]], travelled)))
    return float(sums[-1] / n)


def std_travel_time_s(trips: Trips) -> float:
    """Standard deviation of the population of travel times, finished or under way; 0.0 without any."""
    return float(np.std(trips.travel_time_s)) if trips.created_s.size else 0.0
