"""Latency figures of a run: median, 99th percentile and maximum, by nearest rank, so that each is a value that was measured."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class LatencyStats:
    """Figures of one series (microseconds, or cycles), with the number of values behind them."""

    count: int
    p50: float
    p99: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "LatencyStats":
        """Of at least one value; ValueError for none: an empty run has no latency."""
        if not values:
            raise ValueError("no values, so no latency figures")
        return cls(len(values), nearest_rank(values, 50), nearest_rank(values, 99), max(values))

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def nearest_rank(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` % of the values do not exceed."""
    if not 0 < percent <= 100:
        raise ValueError(f"a percentile lies in (0, 100], not {percent}")
    ordered = sorted(values)
    return ordered[math.ceil(percent * len(ordered) / 100) - 1]
