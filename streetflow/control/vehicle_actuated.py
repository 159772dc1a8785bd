"""Vehicle-actuated control as it stands at crossings: two loops a lane, looked at each second; gap-out, max-out, skipping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streetflow.control.actuated import gains_of, in_ring
from streetflow.control.environment import Environment
from streetflow.control.intersection import Intersection
from streetflow.control.traffic_state import TrafficState
from streetflow.errors import FieldError

LONG_AGO_S = 1_000_000


class Sensors(Protocol):
    """What an actuated controller knows of the lanes; both are by lane of the engine."""

    quiet_s: NDArray[np.int64]
    """For how long no vehicle has left the lane; LONG_AGO_S or more: none yet."""

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Whether somebody is on the lane."""

    def look(self, seconds: int) -> None:
        """So long after the look before."""


class VehicleActuated:
    """Each light goes round the fewest of its phases that open all there is, and decides anew each second.

    A lane has a loop where it begins and one at its stop line, so that its vehicles are counted and each that leaves is
    noticed; it calls while its count is above 0. A phase is called by the lanes of which it opens something that the current
    phase doesn't. The current phase rests in green while no other is called. Else it goes on while a lane that could lose by a
    change still has vehicles and one has left it within the passage time (else it *gaps out*), for ``max_green_s`` after the
    first call for another phase at most (it *maxes out*). Then the next phase of the round that is called is served; others
    are skipped.

    Args:
        passage_s: whole seconds without a vehicle over its stop line, after which a lane's green is worth nothing.
        max_green_s: the longest green while another phase is called.
        min_green_s: the shortest green, where the environment's lights have no longer one.
        sensors: makes what it knows of the lanes; by default loops without a fault.
    """

    features = ("inter_2_current_phase",)  # unused: an environment observes at least one feature
    decision_interval_s = 1

    def __init__(
        self,
        passage_s: int = 3,
        max_green_s: int = 60,
        min_green_s: int = 5,
        sensors: Callable[[Environment], Sensors] | None = None,
    ) -> None:
        for name, value in (("passage_s", passage_s), ("max_green_s", max_green_s), ("min_green_s", min_green_s)):
            if value < 1:
                raise FieldError(name, f"must be 1 or more, is {value}")
        self.passage_s, self.max_green_s, self.min_green_s = passage_s, max_green_s, min_green_s
        self._sensors = sensors

    def reset(self, environment: Environment) -> None:
        self._environment = environment
        self._loops: Sensors = StopLines(environment.intersections, environment.traffic)
        if self._sensors is not None:
            self._loops = self._sensors(environment)
        self._lanes = [np.array(each.in_lanes) for each in environment.intersections]
        self._gains = [gains_of(each) for each in environment.intersections]
        self._calls = [in_ring(gains, each) for gains, each in zip(self._gains, environment.intersections, strict=True)]
        self._loses: list[NDArray[np.bool_]] = [
            np.any(gains, axis=0) for gains in self._gains
        ]  # [A, lane]: could it lose by a change?
        self._called_s = np.zeros(len(self._lanes), np.int64)  # for how long another phase has been called
        self._before = environment.current_action

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        environment = self._environment
        self._loops.look(environment.decision_interval_s)
        waiting = self._loops.waiting
        flowing = waiting & (self._loops.quiet_s < self.passage_s)
        current, elapsed_s = environment.current_action, environment.elapsed_s
        self._called_s[current != self._before] = 0
        self._before = current
        actions = current.copy()
        for i, lanes in enumerate(self._lanes):
            now = int(current[i])
            called = np.flatnonzero(self._calls[i][now] @ waiting[lanes])
            if not called.size:
                self._called_s[i] = 0
                continue
            goes_on = np.any(self._loses[i][now] & flowing[lanes]) and self._called_s[i] < self.max_green_s
            self._called_s[i] += environment.decision_interval_s
            if not goes_on and elapsed_s[i] >= self.min_green_s:
                actions[i] = called[np.argmin((called - now) % len(self._gains[i]))]
        return actions


class StopLines:
    """The loops at the stop lines of all lanes that lead into a light.

    Attributes:
        quiet_s: int64[lanes of the engine]: for how long no vehicle has left the lane; LONG_AGO_S or more: none yet.
    """

    def __init__(self, intersections: Sequence[Intersection], traffic: TrafficState) -> None:
        self._traffic = traffic
        self._watched = np.zeros(len(traffic.lane_length_m), bool)
        self._watched[[lane for each in intersections for lane in each.in_lanes]] = True
        self.quiet_s = np.full(self._watched.size, LONG_AGO_S, np.int64)
        self._before = self._vehicles()

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """bool[lanes of the engine]: whether somebody is on the lane."""
        return self._traffic.lane_vehicle_counts() > 0

    def look(self, seconds: int) -> None:
        """So long after the look before."""
        lane, serial = self._before
        now = self._vehicles()
        place = np.searchsorted(now[1], serial)
        found = place < now[1].size
        found[found] = (now[1][place[found]] == serial[found]) & (now[0][place[found]] == lane[found])
        self.quiet_s += seconds
        self.quiet_s[lane[~found]] = 0
        self._before = now

    def _vehicles(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Lane and serial of each vehicle on a watched lane, by serial."""
        vehicles = self._traffic.running_vehicles()
        on_lanes = np.flatnonzero(vehicles.drivable < self._watched.size)
        watched = on_lanes[self._watched[vehicles.drivable[on_lanes]]]
        order = watched[np.argsort(vehicles.serial[watched])]
        return vehicles.drivable[order], vehicles.serial[order]
