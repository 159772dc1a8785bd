"""The vehicles of a replay line (docs/cityflow-semantics.md, section 9.3) as text."""

from __future__ import annotations

from streetflow.kernels.decimal_text import LONGEST_DOUBLE, write_double, write_integer
from streetflow.kernels.jit import entry_point, helper
from streetflow.kernels.polyline_places import point_at, segment_at
from streetflow.kernels.tables import FLIP, OWNER, State, unpack

_FLOW, _PUSHED = tuple(b"flow_"), tuple(b"manually_pushed_")
_SPACE, _MINUS, _ZERO, _BELOW = (ord(c) for c in " -0_")
LONGEST_VEHICLE = 3 * (LONGEST_DOUBLE + 1) + len(_PUSHED) + 10 + 1 + 2  # bytes, without the text of its kind


@helper
def _write_letters(text, at, letters):  # type: ignore[no-untyped-def]
    for letter in letters:
        text[at] = letter
        at += 1
    return at


@helper
def _write_id(s: State, text, at, v):  # type: ignore[no-untyped-def]
    if s.flow[v] >= 0:
        at = write_integer(text, _write_letters(text, at, _FLOW), int(s.flow[v]))
        text[at] = _BELOW
        at += 1
    else:
        at = _write_letters(text, at, _PUSHED)
    return write_integer(text, at, int(s.ordinal[v]))


@entry_point
def write_vehicles(  # type: ignore[no-untyped-def]
    net_i, net_f, veh_i, veh_f, offsets, order, first, x, y, segment_m, angle_rad, endings, ending_first, powers, text
):
    """Write the vehicles in the slots ``order``; returns the number of bytes.

    first, x, y, segment_m, angle_rad: shapes of the drivables, see `streetflow.roadnet.polylines`. endings: the text of each
    vehicle kind, which ends an entry, from ending_first[kind] on. text: uint8, LONGEST_VEHICLE and an ending for each vehicle.
    """
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    shapes = (first, x, y, segment_m)
    at = 0
    for v in order:
        drivable = s.path[s.path_index[v]]
        distance_m = s.distance_1[v] if s.counters[FLIP] else s.distance_0[v]
        px, py = point_at(shapes, s.length, drivable, distance_m)
        if s.role[v] == OWNER:
            beside = s.path[s.path_index[s.partner[v]]]
            qx, qy = point_at(shapes, s.length, beside, distance_m)
            share = 2 * abs(s.offset[v]) / (s.lane_width[drivable] + s.lane_width[beside])
            px, py = px + (qx - px) * share, py + (qy - py) * share
        at = write_double(text, at, px, powers)
        text[at] = _SPACE
        at = write_double(text, at + 1, py, powers)
        text[at] = _SPACE
        at = write_double(text, at + 1, angle_rad[segment_at(first, segment_m, drivable, distance_m)], powers)
        text[at] = _SPACE
        at = _write_id(s, text, at + 1, v)
        text[at] = _SPACE
        at += 1
        if s.direction[v] < 0:
            text[at] = _MINUS
            at += 1
        text[at] = _ZERO + abs(s.direction[v])
        at += 1
        for k in range(ending_first[s.kind[v]], ending_first[s.kind[v] + 1]):
            text[at] = endings[k]
            at += 1
    return at
