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


class Places(NamedTuple):
    """One entry per running vehicle: its number, unique within a run; its drivable; its front's distance along that; its speed;
    its length."""

    number: NDArray[np.int64]
    drivable: NDArray[np.int32]
    distance_m: NDArray[np.float64]
    speed_mps: NDArray[np.float64]
    length_m: NDArray[np.float64]


_SHADOW_BIT = 1 << 62


def id_of_number(number: int) -> str:
    """The id of the vehicle with a number: see `VehicleTable`."""
    is_shadow = number >= _SHADOW_BIT >> 1  # that of a pushed vehicle's shadow is below the bit: its flow is -1
    number -= is_shadow * _SHADOW_BIT
    return vehicle_id(number >> 32, number & 0xFFFFFFFF, is_shadow)


def number_of_id(name: str) -> int:
    """The number of the vehicle with an id: see `VehicleTable`.

    Raises:
        ValueError: no vehicle can have the id.
    """
    numbers = vehicle_numbers(name)
    if numbers is None:
        raise ValueError(f"{name!r} can't be the id of a vehicle")
    return numbers[0] * (1 << 32) + numbers[1] + name.endswith(_SHADOW) * _SHADOW_BIT


class VehicleTable(NamedTuple):
    """One entry per running vehicle, ordered by drivable (all lanes, then all lane links), front first: `Engine.vehicle_table`.

    Attributes:
        first: int32[drivables + 1]; the vehicles on drivable d are the entries first[d] to first[d + 1] - 1.
        number: int64, unique within a run; `Engine.vehicle_names` gives the ids, `number_of_id` the number of an id.
        drivable: int32, the number of its lane, or the number of lanes plus that of its lane link.
        leader: int32, the entry of the vehicle that it follows, -1: none.
        route, place: int32, the number of its route (`Engine.route_road_ids`), and the position of its road in it.
        priority: int32; `get_vehicles` is ordered by it.
        distance_m, speed_mps: float64; the distance is that of its front along its drivable.
        waiting_s: float64, how long it has been slower than 0.1 m/s.
        created_s: float64, the time of its creation, from which its travel time counts.
    """

    first: NDArray[np.int32]
    number: NDArray[np.int64]
    drivable: NDArray[np.int32]
    leader: NDArray[np.int32]
    route: NDArray[np.int32]
    place: NDArray[np.int32]
    priority: NDArray[np.int32]
    distance_m: NDArray[np.float64]
    speed_mps: NDArray[np.float64]
    waiting_s: NDArray[np.float64]
    created_s: NDArray[np.float64]
