"""Where the vehicles of an engine are, and the way that has led a vehicle from one place to another: what loops are made from.

A drivable is a lane or, behind all lanes, a lane link. A `Step` is a front's passing from one drivable to the next one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from streetflow.control.environment import Environment
from streetflow.engine.cityflow_names import Engine
from streetflow.engine.vehicles import Places
from streetflow.page.recorder import unrecorded
from streetflow.roadnet.network_tables import NetworkTables
from streetflow.sumo.engine import SumoEngine

MOST_STEPS = 12  # that a vehicle can make in a second, over the shortest lanes
_FLOW_SHIFT = 32  # of a vehicle's number


class Step(NamedTuple):
    left: int
    entered: int


class Tracks(Protocol):
    """An engine as loops see it.

    lengths_m: float64[drivables]. whole_lane: int[lanes], the lane that a lane is a part of, itself mostly: its loops are those
    of the whole. appears_anywhere: vehicles come and go anywhere on a lane; else over its beginning and its end. driven_s: for
    how long one that has come within a second may have driven by its end.
    """

    @property
    def lengths_m(self) -> NDArray[np.float64]: ...
    @property
    def whole_lane(self) -> NDArray[np.int64]: ...
    @property
    def appears_anywhere(self) -> bool: ...
    @property
    def driven_s(self) -> float: ...
    def places(self) -> Places: ...


class BuiltInTracks:
    """The built-in engine's."""

    appears_anywhere = False
    driven_s = 0.0

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.lengths_m = np.asarray(engine.state.length, np.float64).copy()
        self.whole_lane = np.arange(len(engine.lane_ids))
        self._vehicle_m = np.array([*(flow.kind.length_m for flow in engine.flows), _PUSHED_M])

    def places(self) -> Places:
        table = self._engine.vehicle_table()
        flow = np.minimum(np.maximum(table.number, 0) >> _FLOW_SHIFT, len(self._vehicle_m) - 1)
        return Places(table.number, table.drivable, table.distance_m, table.speed_mps, self._vehicle_m[flow])


_PUSHED_M = 5.0


class SumoTracks:
    """SUMO's. A lane before a light's that is counted as part of it has no loops of its own."""

    appears_anywhere = True

    def __init__(self, engine: SumoEngine) -> None:
        self._engine = engine
        self.lengths_m = engine.drivable_lengths_m
        self.whole_lane = engine.whole_lane
        self.driven_s = 1.0 - engine.step_s

    def places(self) -> Places:
        return self._engine.places()


def tracks_of(environment: Environment) -> Tracks:
    """Those of the environment's engine, the built-in one or SUMO, recorded or not."""
    engine = unrecorded(environment.engine)
    return SumoTracks(engine) if isinstance(engine, SumoEngine) else BuiltInTracks(cast(Engine, engine))


class Ways:
    """The way of the fewest steps between two drivables. To change to one beside, of the same road or movement, is no step."""

    def __init__(self, network: NetworkTables) -> None:
        lane_count = len(network.roadnet.lane_ids)
        self._onwards: dict[int, list[int]] = defaultdict(list)
        self.start_lane: dict[int, int] = {}
        movements: dict[tuple[int, int], list[int]] = defaultdict(list)
        for number, (_, movement, link) in enumerate(network.links, lane_count):
            movements[movement.start_road, movement.end_road].append(number)
            self._onwards[link.start_lane].append(number)
            self._onwards[number].append(link.end_lane)
            self.start_lane[number] = link.start_lane
        self._beside: dict[int, Sequence[int]] = {}
        for road in network.roadnet.roads:
            lanes = range(road.first_lane, road.first_lane + road.n_lanes)
            self._beside |= dict.fromkeys(lanes, lanes)
        for ways in movements.values():
            self._beside |= dict.fromkeys(ways, ways)
        self._known: dict[tuple[int, int], tuple[Step, ...] | None] = {}

    def between(self, start: int, end: int) -> tuple[Step, ...] | None:
        """The steps from one drivable to another; none where it only lies beside; None: there is no way that short."""
        if (start, end) not in self._known:
            self._known[start, end] = self._find(start, end)
        return self._known[start, end]

    def _find(self, start: int, end: int) -> tuple[Step, ...] | None:
        came_from: dict[int, tuple[int, bool] | None] = {start: None}
        ring = [start]
        for _ in range(MOST_STEPS + 1):
            ring += self._widened(ring, came_from)
            if end in came_from:
                return _steps_to(end, came_from)
            following: list[int] = []
            for here in ring:
                for there in self._onwards[here]:
                    if there not in came_from:
                        came_from[there] = here, True
                        following.append(there)
            ring = following
        return None

    def _widened(self, ring: Sequence[int], came_from: dict[int, tuple[int, bool] | None]) -> list[int]:
        """The drivables beside those of a ring."""
        found: list[int] = []
        waiting = deque(ring)
        while waiting:
            here = waiting.popleft()
            for there in self._beside.get(here, ()):
                if there not in came_from:
                    came_from[there] = here, False
                    found.append(there)
        return found


def _steps_to(end: int, came_from: dict[int, tuple[int, bool] | None]) -> tuple[Step, ...]:
    steps: list[Step] = []
    here = end
    while (before := came_from[here]) is not None:
        if before[1]:
            steps.append(Step(before[0], here))
        here = before[0]
    return tuple(reversed(steps))
