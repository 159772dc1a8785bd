"""Compiled entry points that read measures off the engine's state, lane by lane, in list order."""

from __future__ import annotations

from streetflow.kernels.jit import entry_point
from streetflow.kernels.tables import DELTA, FLIP, STEP, unpack


@entry_point
def lane_speed_sums(net_i, net_f, veh_i, veh_f, offsets, result):  # type: ignore[no-untyped-def]
    """result[lane]: sum of the speeds of the vehicles on the lane, front first, m/s."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    speed = s.speed_1 if s.counters[FLIP] else s.speed_0
    for lane in range(result.size):
        total = 0.0
        v = s.head[lane]
        while v >= 0:
            total += speed[v]
            v = s.behind[v]
        result[lane] = total


@entry_point
def lane_waiting_times(net_i, net_f, veh_i, veh_f, offsets, result):  # type: ignore[no-untyped-def]
    """result[lane]: sum over the vehicles on the lane of the time since they last moved, s."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    for lane in range(result.size):
        steps = 0
        v = s.head[lane]
        while v >= 0:
            steps += s.counters[STEP] - s.moving_step[v]
            v = s.behind[v]
        result[lane] = steps * s.reals[DELTA]
