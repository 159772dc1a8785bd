"""Every running vehicle by itself, as arrays of equal length: what features need that a lane's sums don't tell."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray


class Vehicles(NamedTuple):
    """One entry a running vehicle, ordered by drivable (all lanes, then all lane links)."""

    drivable: NDArray[np.int32]
    serial: NDArray[np.int64]  # no two vehicles' of a run
    distance_m: NDArray[np.float64]  # of its front along its drivable
    created_s: NDArray[np.float64]  # since when its travel time counts

    @classmethod
    def empty(cls, count: int) -> Self:
        """Arrays for ``count`` vehicles, not yet filled in."""
        return cls(
            np.empty(count, np.int32),
            np.empty(count, np.int64),
            np.empty(count, np.float64),
            np.empty(count, np.float64),
        )
