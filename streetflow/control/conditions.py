"""What goes wrong at a crossing while it runs: detectors that miscount or are dead, and a lane that is shut for a while.

Detectors are those of lanes: their faults are in the counts of vehicles and of waiting vehicles, and in the sums of waiting
times and speeds, so in every feature that is made of these. A dead or stuck lane is one in what is seen of single vehicles
(segments, images, passing), too; miscounts are not in these. Rewards are made of what the detectors show; travel times and
other measures are the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streetflow.control.intersection import Intersection
from streetflow.control.traffic_state import TrafficState
from streetflow.engine.core import EngineCore
from streetflow.engine.vehicles import Vehicles
from streetflow.errors import FieldError, InputError
from streetflow.roadnet.reader import Point

SHUT_MPS = 1e-6  # the speed limit of a lane that is shut: in ten minutes a vehicle moves by less than 1 mm
METRES_A_VEHICLE = 7.5  # of a standing queue
MOST_STUCK = 15  # vehicles that a stuck detector shows
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Conditions:
    """What goes wrong in a run. FieldError for values that make no sense.

    Attributes:
        miscount: the chance that a lane's count is wrong by one, up or down, at a decision.
        dead_lanes: in-lanes of the whole network with a detector that shows nothing, all the time.
        stuck_lanes: in-lanes with a detector that shows one queue of 1 to 15 standing vehicles, all the time.
        shut_s: for so long a lane is shut: what is on it stands. Which one and when is drawn: an in-lane, shut at a decision
            between a tenth and half of the horizon.
        seed: of all these draws.
    """

    miscount: float = 0.0
    dead_lanes: int = 0
    stuck_lanes: int = 0
    shut_s: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.miscount <= 1:
            raise FieldError("miscount", f"must be from 0 to 1, is {self.miscount:g}")
        for name in ("dead_lanes", "stuck_lanes", "shut_s", "seed"):
            if getattr(self, name) < 0:
                raise FieldError(name, f"must be 0 or more, is {getattr(self, name)}")

    @property
    def blurs(self) -> bool:
        """Whether detectors show something else than what is there."""
        return bool(self.miscount or self.dead_lanes or self.stuck_lanes)


FINE = Conditions()


class Detectors:
    """The state of the traffic as faulty detectors show it (`TrafficState`). `look` draws the errors of the coming look."""

    def __init__(self, engine: TrafficState, intersections: Sequence[Intersection], conditions: Conditions) -> None:
        self._engine, self._conditions = engine, conditions
        rng = np.random.default_rng([conditions.seed, 0])
        in_lanes = _in_lanes(intersections)
        faulty = min(conditions.dead_lanes + conditions.stuck_lanes, in_lanes.size)
        lanes = rng.choice(in_lanes, faulty, replace=False)
        self._faulty, self._dead, self._stuck = lanes, lanes[: conditions.dead_lanes], lanes[conditions.dead_lanes :]
        room = np.floor(engine.lane_length_m[self._stuck] / METRES_A_VEHICLE)
        self._shown = 1 + np.floor(rng.random(self._stuck.size) * np.minimum(room, MOST_STUCK)).astype(np.int32)
        self._ghosts = _queues(self._stuck, self._shown, engine.lane_length_m)
        self.reset()

    def reset(self) -> None:
        """As at the start of a run: the same errors again."""
        self._rng = np.random.default_rng([self._conditions.seed, 1])
        self.look()

    def look(self) -> None:
        """Draws the errors of all counts until the next call."""
        lanes, chance = len(self._engine.lane_length_m), self._conditions.miscount
        self._errors = [_errors(self._rng, lanes, chance) for _ in range(2)] if chance else []

    @property
    def lane_max_speed_mps(self) -> Floats:
        return self._engine.lane_max_speed_mps

    @property
    def lane_length_m(self) -> Floats:
        return self._engine.lane_length_m

    @property
    def drivable_shapes(self) -> Sequence[Sequence[Point]]:
        return self._engine.drivable_shapes

    def lane_vehicle_counts(self) -> Ints:
        return self._counts(self._engine.lane_vehicle_counts(), 0)

    def lane_waiting_counts(self) -> Ints:
        return self._counts(self._engine.lane_waiting_counts(), 1)

    def lane_waiting_time_sums_s(self) -> Floats:
        return self._sums(self._engine.lane_waiting_time_sums_s())

    def lane_speed_sums_mps(self) -> Floats:
        return self._sums(self._engine.lane_speed_sums_mps())

    def running_vehicles(self) -> Vehicles:
        own, ghosts = self._engine.running_vehicles(), self._ghosts
        if not self._faulty.size:
            return own
        seen = ~np.isin(own.drivable, self._faulty)
        drivable = np.concatenate([own.drivable[seen], ghosts.drivable])
        order = np.argsort(drivable, kind="stable")
        return Vehicles(
            drivable[order],
            np.concatenate([own.serial[seen], ghosts.serial])[order],
            np.concatenate([own.distance_m[seen], ghosts.distance_m])[order],
            np.concatenate([own.created_s[seen], ghosts.created_s])[order],
        )

    def get_current_time(self) -> float:
        return self._engine.get_current_time()

    def _counts(self, counts: Ints, kind: int) -> Ints:
        shown = counts.copy()
        if self._errors:
            shown = np.maximum(shown + self._errors[kind], 0).astype(np.int32)
        shown[self._dead], shown[self._stuck] = 0, self._shown
        return shown

    def _sums(self, sums: Floats) -> Floats:
        shown = sums.copy()
        shown[self._dead] = shown[self._stuck] = 0.0
        return shown


class ShutLane:
    """A lane that is shut for a while, on the built-in engine: its speed limit is all but 0, rollouts included.

    Attributes:
        lane: its number.
        start_s, end_s: when it is shut.

    Raises:
        InputError: on another engine.
    """

    def __init__(
        self, engine: object, intersections: Sequence[Intersection], conditions: Conditions, horizon_s: int, interval_s: int
    ) -> None:
        if not isinstance(engine, EngineCore):
            raise InputError("conditions", "shut_s", "only the built-in engine can shut a lane")
        self._engine = engine
        rng = np.random.default_rng([conditions.seed, 2])
        self.lane = int(rng.choice(_in_lanes(intersections)))
        self.start_s = int((0.1 + 0.4 * rng.random()) * horizon_s) // interval_s * interval_s
        self.end_s = self.start_s + conditions.shut_s

    def at(self, time_s: float) -> None:
        """Shuts or opens the lane for what follows this time."""
        shut = self.start_s <= time_s < self.end_s
        limit_mps = SHUT_MPS if shut else self._engine.lane_max_speed_mps[self.lane]
        self._engine.state.speed_limit[self.lane] = limit_mps


def _in_lanes(intersections: Sequence[Intersection]) -> NDArray[np.int64]:
    return np.array(sorted({lane for each in intersections for lane in each.in_lanes}), np.int64)


def _queues(lanes: NDArray[np.int64], counts: Ints, lane_length_m: Floats) -> Vehicles:
    """Vehicles that stand on these lanes from the stop line back. Their serials are no vehicle's, and stay."""
    lane = np.repeat(lanes, counts)
    place = np.concatenate([np.arange(count) for count in counts]) if lanes.size else np.zeros(0, np.int64)
    distance_m = np.maximum(lane_length_m[lane] - METRES_A_VEHICLE * place, 0.0)
    return Vehicles(lane.astype(np.int32), -1 - np.arange(lane.size, dtype=np.int64), distance_m, np.zeros(lane.size))


def _errors(rng: np.random.Generator, lanes: int, chance: float) -> Ints:
    drawn = rng.random(lanes)
    return (drawn < chance / 2).astype(np.int32) - (drawn > 1 - chance / 2).astype(np.int32)
