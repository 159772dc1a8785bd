"""The measures of a run. `MEASURES` defines every figure once; docs/measures.md shows the same table.

Published travel times differ by hundreds of seconds by definition alone: whether vehicles under way count, and whether
time starts at creation or at entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streetflow.engine.trips import Trips

SAMPLE_S = 60


class ThroughputMeter:
    """Vehicles per minute: the mean of samples taken about once a minute.

    A sample is taken after each decision whose *start* second s satisfies ``s % 60 == 0`` and ``s > 0``, and is the
    number of vehicles that have finished since the sample before. So the first one covers a minute and a decision,
    and what finishes after the last one isn't counted.
    """

    def __init__(self) -> None:
        self.samples: list[int] = []
        self._finished = 0

    def after_decision(self, start_s: int, finished_vehicle_count: int) -> None:
        """Record the end of the decision begun at ``start_s``; the count is the engine's total so far."""
        if start_s > 0 and start_s % SAMPLE_S == 0:
            self.samples.append(finished_vehicle_count - self._finished)
            self._finished = finished_vehicle_count

    @property
    def mean_veh_per_min(self) -> float:
        """Mean of the samples, 0.0 before the first."""
        return sum(self.samples) / len(self.samples) if self.samples else 0.0


class QueueState(Protocol):
    """The part of an engine that the measurement of queues reads."""

    @property
    def queued_vehicle_count(self) -> int: ...
    def lane_waiting_counts(self) -> NDArray[np.int32]: ...


@dataclass
class QueueMeter:
    """Standing vehicles and vehicles that wait to enter, one sample per call. It costs nothing where it isn't called."""

    standing: list[int] = field(default_factory=list)
    outside: list[int] = field(default_factory=list)

    def sample(self, engine: QueueState) -> None:
        self.standing.append(int(engine.lane_waiting_counts().sum()))
        self.outside.append(engine.queued_vehicle_count)


@dataclass(frozen=True)
class MeasureSpec:
    """A figure of a run: its name ends in its unit, ``of`` computes it (None where it isn't defined)."""

    name: str
    unit: str
    definition: str
    of: Callable[[Trips, QueueMeter], float | None]


def _mean(values: NDArray[np.floating[Any]] | Sequence[int]) -> float | None:
    value = float(np.mean(values)) if len(values) else math.nan
    return None if math.isnan(value) else value


MEASURES = (
    MeasureSpec(
        "travel_time_s",
        "s",
        "CityFlow's average travel time, and the paper's: mean over all vehicles created, from creation to the end of the "
        "trip, or to now for those under way or waiting to enter.",
        lambda trips, _: _mean(trips.travel_time_s),
    ),
    MeasureSpec(
        "finished_travel_time_s",
        "s",
        "The same over finished vehicles only. The worse a network jams, the more it flatters: stuck vehicles don't count.",
        lambda trips, _: _mean(trips.travel_time_s[trips.finished]),
    ),
    MeasureSpec(
        "network_time_s",
        "s",
        "Mean over all vehicles that have entered, from entry to the end of the trip, or to now. Time spent waiting for room "
        "on the first lane isn't counted.",
        lambda trips, _: _mean(trips.network_time_s[trips.entered]),
    ),
    MeasureSpec(
        "finished_network_time_s",
        "s",
        "The same over finished vehicles only.",
        lambda trips, _: _mean(trips.network_time_s[trips.finished]),
    ),
    MeasureSpec(
        "entry_wait_s",
        "s",
        "Mean over all vehicles created, from creation to entry, or to now for those that still wait.",
        lambda trips, _: _mean(trips.entry_wait_s),
    ),
    MeasureSpec(
        "delay_s",
        "s",
        "Mean over all vehicles that have entered, of their network time less the time that the path driven so far takes "
        "undisturbed (each lane and lane link at the lower of speed limit and vehicle's top speed, no acceleration).",
        lambda trips, _: _mean(trips.delay_s[trips.entered]),
    ),
    MeasureSpec(
        "created_vehicles",
        "vehicles",
        "Vehicles that the flows have created, those dropped for an invalid route aside.",
        lambda trips, _: float(trips.created_s.size),
    ),
    MeasureSpec(
        "entered_vehicles",
        "vehicles",
        "Vehicles that have entered the network.",
        lambda trips, _: float(trips.entered.sum()),
    ),
    MeasureSpec(
        "finished_vehicles",
        "vehicles",
        "Vehicles that have ended their trip.",
        lambda trips, _: float(trips.finished.sum()),
    ),
    MeasureSpec(
        "completion_rate",
        "1",
        "Finished vehicles by created vehicles.",
        lambda trips, _: _mean(trips.finished.astype(np.float64)),
    ),
    MeasureSpec(
        "queue_vehicles",
        "vehicles",
        "Mean over the samples (one a simulated second) of the vehicles on lanes that are slower than 0.1 m/s.",
        lambda _, queue: _mean(queue.standing),
    ),
    MeasureSpec(
        "largest_queue_vehicles",
        "vehicles",
        "Largest of these samples.",
        lambda _, queue: float(max(queue.standing)) if queue.standing else None,
    ),
    MeasureSpec(
        "entry_queue_vehicles",
        "vehicles",
        "Mean over the samples of the vehicles that wait to enter.",
        lambda _, queue: _mean(queue.outside),
    ),
)


def measure(trips: Trips, queue: QueueMeter | None = None) -> Mapping[str, float | None]:
    """Every figure of `MEASURES`, by name; None where there is nothing to average over (no queue samples, say)."""
    meter = queue or QueueMeter()
    return {spec.name: spec.of(trips, meter) for spec in MEASURES}


@dataclass(frozen=True)
class Summary:
    """Mean and **population** standard deviation over a model's runs on a network."""

    mean: float
    deviation: float
    runs: int


def summarise(values: Sequence[float]) -> Summary:
    """Summary of one measure over several runs; at least one value is needed."""
    if not values:
        raise ValueError("nothing to summarise: no runs")
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / len(values)
    return Summary(mean, math.sqrt(variance), len(values))
