"""The compiled entry point that reads every running vehicle off the engine's state."""

from __future__ import annotations

import numpy as np

from streetflow.kernels.bits import list_set_bits
from streetflow.kernels.jit import entry_point, helper
from streetflow.kernels.tables import DELTA, FLIP, SHADOW, STEP, unpack


@helper
def _number(s, v):  # type: ignore[no-untyped-def]
    number = np.int64(s.flow[v]) * 4294967296 + s.ordinal[v]
    if s.role[v] == SHADOW:
        number += np.int64(1) << 62
    return number


@entry_point
def running_vehicles(  # type: ignore[no-untyped-def]
    net_i, net_f, veh_i, veh_f, offsets, drivable, serial, distance_m, created_s
):
    """Fill in the arrays of `streetflow.engine.vehicles.Vehicles`, drivable by drivable, front first."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    distance = s.distance_1 if s.counters[FLIP] else s.distance_0
    n = 0
    for i in range(list_set_bits(s.occupied, s.listed)):
        d = s.listed[i]
        v = s.head[d]
        while v >= 0:
            drivable[n] = d
            serial[n] = _number(s, v)
            distance_m[n] = distance[v]
            created_s[n] = s.enter_step[v] * s.reals[DELTA]
            n += 1
            v = s.behind[v]


# Rows of the blocks of `vehicle_table`.
DRIVABLE, LEADER, ROUTE, PLACE, PRIORITY = range(5)
DISTANCE, SPEED, WAITING, CREATED = range(4)


@entry_point
def vehicle_table(net_i, net_f, veh_i, veh_f, offsets, row, first, number, ints, reals):  # type: ignore[no-untyped-def]
    """Fill in the arrays of `streetflow.engine.vehicles.VehicleTable`.

    ints: int32[5, vehicles], reals: float64[4, vehicles], rows as above. row: int32[slots], scratch.
    """
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    distance = s.distance_1 if s.counters[FLIP] else s.distance_0
    speed = s.speed_1 if s.counters[FLIP] else s.speed_0
    n = 0
    for d in range(s.head.size):
        first[d] = n
        v = s.head[d]
        while v >= 0:
            row[v] = n
            number[n] = _number(s, v)
            ints[DRIVABLE, n] = d
            ints[LEADER, n] = s.leader[v] if n == first[d] else n - 1
            ints[ROUTE, n] = s.route[v]
            ints[PLACE, n] = s.place[v]
            ints[PRIORITY, n] = s.priority[v]
            reals[DISTANCE, n] = distance[v]
            reals[SPEED, n] = speed[v]
            reals[WAITING, n] = (s.counters[STEP] - s.moving_step[v]) * s.reals[DELTA]
            reals[CREATED, n] = s.enter_step[v] * s.reals[DELTA]
            n += 1
            v = s.behind[v]
    first[s.head.size] = n
    for d in range(s.head.size):  # a list's first vehicle follows one on another drivable: a slot so far
        if first[d] < first[d + 1]:
            ahead = ints[LEADER, first[d]]
            ints[LEADER, first[d]] = row[ahead] if ahead >= 0 else -1
