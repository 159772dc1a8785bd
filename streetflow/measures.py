"""What a run is judged by, counted exactly as in the paper's experiment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
        """Tell the meter that the decision begun at ``start_s`` is over; the count is the engine's total so far."""
        if start_s > 0 and start_s % SAMPLE_S == 0:
            self.samples.append(finished_vehicle_count - self._finished)
            self._finished = finished_vehicle_count

    @property
    def mean_veh_per_min(self) -> float:
        """Mean of the samples, 0.0 before the first."""
        return sum(self.samples) / len(self.samples) if self.samples else 0.0


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
