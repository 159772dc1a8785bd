"""Single vehicles: their ids, and all running ones as arrays of equal length, for what sums over a lane don't show."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

_SHADOW = "_shadow"
_ID = re.compile(r"(?:flow_(\d+)|manually_pushed)_(\d+)(?:_shadow)?", re.ASCII)


def vehicle_id(flow: int, ordinal: int, is_shadow: bool = False) -> str:
    """The id of the n-th vehicle of a flow; those of flow -1 were pushed. While one changes lanes, its shadow has another."""
    name = f"flow_{flow}_{ordinal}" if flow >= 0 else f"manually_pushed_{ordinal}"
    return name + _SHADOW if is_shadow else name


def vehicle_numbers(name: str) -> tuple[int, int] | None:
    """(flow, ordinal) of a vehicle's id, or of its shadow's; None for a text that can't be the id of a vehicle."""
    found = _ID.fullmatch(name)
    return (int(found[1] or -1), int(found[2])) if found else None


class Vehicles(NamedTuple):
    """One entry per running vehicle, ordered by drivable (all lanes, then all lane links)."""

    drivable: NDArray[np.int32]
    serial: NDArray[np.int64]  # unique within a run
    distance_m: NDArray[np.float64]  # of its front along its drivable
    created_s: NDArray[np.float64]  # time of its creation, from which its travel time counts

    @classmethod
    def empty(cls, count: int) -> Self:
        """Arrays for ``count`` vehicles, not yet filled in."""
        return cls(
            np.empty(count, np.int32),
            np.empty(count, np.int64),
            np.empty(count, np.float64),
            np.empty(count, np.float64),
        )
