"""Intervals of means by the bootstrap: runs drawn again with replacement, from a fixed seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

RESAMPLES = 10_000
LEVEL = 0.95


class Interval(NamedTuple):
    """A mean and its bounds."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{self.mean:+.2f} ({self.low:+.2f} to {self.high:+.2f})"


def mean_interval(values: Sequence[float]) -> Interval:
    """The mean of some runs and its 95 % interval: percentiles of the means of 10,000 resamples. With one run, no width.

    For paired runs give their differences. ValueError for no values.
    """
    if not len(values):
        raise ValueError("no runs to take a mean of")
    data = np.asarray(values, np.float64)
    drawn = np.random.default_rng(0).integers(0, data.size, (RESAMPLES, data.size))
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(data[drawn].mean(axis=1), [tail, 100 - tail])
    return Interval(float(data.mean()), float(low), float(high))
