"""Compiled entry points for the parts of an observation that need single vehicles (see ``vehicle_observation.py``)."""

from __future__ import annotations

from streetflow.kernels.jit import entry_point, helper
from streetflow.kernels.sources import OWN_COUNT, PASSED, PASSED_TRAVEL_TIME

# Columns of the int32 record of images: one row a drivable that an image shows.
DRIVABLE, FIRST_METRE, END_METRE = range(3)


@entry_point
def count_on_lanes(drivable, distance_m, lane_length_m, first_link, segments, values):  # type: ignore[no-untyped-def]
    """Vehicles on lane links (from ``first_link`` on, if not negative) and on parts of lanes: segments int32[blocks, 2] =
    (first entry, parts a lane)."""
    lanes = len(lane_length_m)
    for n in range(len(drivable)):
        lane = drivable[n]
        if lane >= lanes:
            if first_link >= 0:
                values[first_link + lane - lanes] += 1.0
            continue
        for block in range(len(segments)):
            parts = segments[block, 1]
            part = min(int(distance_m[n] / lane_length_m[lane] * parts), parts - 1)
            values[segments[block, 0] + lane * parts + part] += 1.0


@entry_point
def draw_images(drivable, distance_m, rows, cells, values):  # type: ignore[no-untyped-def]
    """Count the vehicles, ordered by drivable, into the images. A drivable that joins two lights is in two images."""
    begin = 0
    for r in range(len(rows)):
        while begin < len(drivable) and drivable[begin] < rows[r, DRIVABLE]:
            begin += 1
        n = begin
        while n < len(drivable) and drivable[n] == rows[r, DRIVABLE]:
            metre = min(rows[r, FIRST_METRE] + int(distance_m[n]), rows[r, END_METRE] - 1)
            if cells[metre] >= 0:
                values[cells[metre]] += 1.0
            n += 1


@helper
def _place(table, serial, wanted):  # type: ignore[no-untyped-def]
    """Index in the table of the number of the vehicle with a serial, or of the entry where it may be put."""
    mask = len(table) - 1
    at = ((wanted >> 32) * 31 + wanted) & mask
    while table[at] >= 0 and serial[table[at]] != wanted:
        at = (at + 1) & mask
    return at


@entry_point
def compare_passing(  # type: ignore[no-untyped-def]
    old_serial, old_created_s, old_light, serial, created_s, light, table, old_time_s, own
):
    """PASSED and PASSED_TRAVEL_TIME of every light.

    table: int32, all -1, a power of two in length and longer than ``serial``; see `_place`.
    """
    for i in range(0, len(own), OWN_COUNT):
        own[i + PASSED] = 0.0
        own[i + PASSED_TRAVEL_TIME] = 0.0
    for n in range(len(serial)):
        table[_place(table, serial, serial[n])] = n
    for n in range(len(old_serial)):
        if old_light[n] < 0:
            continue
        now = table[_place(table, serial, old_serial[n])]
        if now < 0 or light[now] != old_light[n]:
            own[OWN_COUNT * old_light[n] + PASSED] += 1.0
            own[OWN_COUNT * old_light[n] + PASSED_TRAVEL_TIME] += old_time_s - old_created_s[n]
