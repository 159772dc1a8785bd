"""The compiled entry points that keep the present vehicles in order of their names and priorities, and list them.

The order of names is that of their characters: flow_10_2 comes before flow_1_3, since a digit comes before an underscore.
"""

from __future__ import annotations

import numpy as np

from streetflow.kernels.bits import list_set_bits
from streetflow.kernels.jit import entry_point, helper
from streetflow.kernels.tables import PENDING, SHADOW, unpack

NOBODY = -1  # in known
BY_NAME = 0
BY_PRIORITY = 1


@helper
def _identity(s, v):  # type: ignore[no-untyped-def]
    """A number that a slot's vehicle keeps for as long as it keeps its name, and that no other vehicle of the run has."""
    return np.int64(s.serial[v]) * 2 + (s.role[v] == SHADOW)


@helper
def _n_digits(number):  # type: ignore[no-untyped-def]
    digits = 1
    while number >= 10:
        number //= 10
        digits += 1
    return digits


@helper
def _compare_digits(one, other, prefix_comes_first):  # type: ignore[no-untyped-def]
    """Below 0, 0 or above 0: the order of two numbers as text.

    prefix_comes_first: 12 comes before 123, as at the text's end; otherwise after it, as before an underscore.
    """
    x = np.int64(one)
    y = np.int64(other)
    n_x = _n_digits(x)
    n_y = _n_digits(y)
    for _ in range(n_y - n_x):
        y //= 10
    for _ in range(n_x - n_y):
        x //= 10
    if x != y:
        return -1 if x < y else 1
    return n_x - n_y if prefix_comes_first else n_y - n_x


@helper
def _comes_before(s, v, w, how):  # type: ignore[no-untyped-def]
    """A shadow and its owner are in no order: shadows aren't listed."""
    if how == BY_PRIORITY:
        return s.priority[v] < s.priority[w]
    if s.flow[v] != s.flow[w]:
        if s.flow[v] < 0 or s.flow[w] < 0:
            return s.flow[w] < 0  # "flow" comes before "manually_pushed"
        return _compare_digits(s.flow[v], s.flow[w], False) < 0
    return _compare_digits(s.ordinal[v], s.ordinal[w], True) < 0


@helper
def _sift_down(s, slots, at, n, how):  # type: ignore[no-untyped-def]
    v = slots[at]
    while True:
        below = 2 * at + 1
        if below >= n:
            break
        if below + 1 < n and _comes_before(s, slots[below], slots[below + 1], how):
            below += 1
        if not _comes_before(s, v, slots[below], how):
            break
        slots[at] = slots[below]
        at = below
    slots[at] = v


@helper
def _sort(s, slots, n, how):  # type: ignore[no-untyped-def]
    """Heap sort: in place, and never slow."""
    for at in range(n // 2 - 1, -1, -1):
        _sift_down(s, slots, at, n, how)
    for last in range(n - 1, 0, -1):
        slots[0], slots[last] = slots[last], slots[0]
        _sift_down(s, slots, 0, last, how)


@helper
def _merge(s, slots, n, new, n_new, how):  # type: ignore[no-untyped-def]
    """Merge sorted new slots into n sorted ones, from the end."""
    _sort(s, new, n_new, how)
    at = n - 1
    for to in range(n + n_new - 1, -1, -1):
        if n_new == 0:
            break
        if at >= 0 and _comes_before(s, new[n_new - 1], slots[at], how):
            slots[to] = slots[at]
            at -= 1
        else:
            n_new -= 1
            slots[to] = new[n_new]


@helper
def _keep_known(s, slots, n, known):  # type: ignore[no-untyped-def]
    kept = 0
    for i in range(n):
        v = slots[i]
        if s.status[v] >= PENDING and known[v] == _identity(s, v):
            slots[kept] = v
            kept += 1
    return kept


@entry_point
def update_directory(  # type: ignore[no-untyped-def]
    net_i, net_f, veh_i, veh_f, offsets, known, by_name, by_priority, n_known, gone, new
):
    """Bring the order of names and of priorities up to date. Returns (number gone, number new).

    known: int64[slots], the identity of the vehicle that has the slot's name, or NOBODY. by_name, by_priority: int32[slots],
    the first n_known are the vehicles known. gone, new: int32[slots], filled with the slots whose name is no longer right, and
    with those that need one (by priority); a slot may be in both.
    """
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    n_gone = 0
    kept = _keep_known(s, by_name, n_known, known)
    _keep_known(s, by_priority, n_known, known)
    if kept < n_known:
        for v in range(known.size):
            if known[v] != NOBODY and (s.status[v] < PENDING or known[v] != _identity(s, v)):
                known[v] = NOBODY
                gone[n_gone] = v
                n_gone += 1
    n_new = 0
    for v in range(s.status.size):
        if s.status[v] >= PENDING and known[v] == NOBODY:
            known[v] = _identity(s, v)
            new[n_new] = v
            n_new += 1
    if n_new > 0:
        _merge(s, by_name, kept, new, n_new, BY_NAME)
        _merge(s, by_priority, kept, new, n_new, BY_PRIORITY)
    return n_gone, n_new


@entry_point
def list_drivers(net_i, net_f, veh_i, veh_f, offsets, slots, n, least_status, drivers):  # type: ignore[no-untyped-def]
    """Fill drivers with those of slots[:n], in order, that have at least a status and aren't shadows. Returns their number."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    found = 0
    for i in range(n):
        v = slots[i]
        if s.status[v] >= least_status and s.role[v] != SHADOW:
            drivers[found] = v
            found += 1
    return found


@entry_point
def list_lanes(net_i, net_f, veh_i, veh_f, offsets, lanes, end, slots):  # type: ignore[no-untyped-def]
    """Fill slots with the vehicles on the lanes, in the order of ``lanes``, front first; end[i]: the end of lanes[i]'s part."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    n = 0
    for i in range(lanes.size):
        v = s.head[lanes[i]]
        while v >= 0:
            slots[n] = v
            n += 1
            v = s.behind[v]
        end[i] = n
    return n


@entry_point
def find_vehicles_ahead(net_i, net_f, veh_i, veh_f, offsets, ahead):  # type: ignore[no-untyped-def]
    """ahead[v]: the slot of the vehicle that v follows, or -1; of a running v."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    for i in range(list_set_bits(s.occupied, s.listed)):
        v = s.head[s.listed[i]]
        leader = s.leader[v]
        while v >= 0:
            ahead[v] = leader
            leader = v
            v = s.behind[v]
