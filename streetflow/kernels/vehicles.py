"""The compiled entry point that reads every running vehicle off the engine's state."""

from __future__ import annotations

import numpy as np

from streetflow.kernels.bits import list_set_bits
from streetflow.kernels.jit import entry_point
from streetflow.kernels.tables import DELTA, FLIP, SHADOW, unpack


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
            serial[n] = np.int64(s.flow[v]) * 4294967296 + s.ordinal[v]
            if s.role[v] == SHADOW:
                serial[n] += np.int64(1) << 62
            distance_m[n] = distance[v]
            created_s[n] = s.enter_step[v] * s.reals[DELTA]
            n += 1
            v = s.behind[v]
