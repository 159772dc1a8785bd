"""The layout of an observation's arrays, for the kernels that fill them in and for all code that reads them.

These numbers are compiled into the kernels, so they are in this folder: see ``jit.py``.
"""

from __future__ import annotations

from enum import IntEnum


class Source(IntEnum):
    """Arrays that cells read: one entry per lane, per lane link, or as given below."""

    VEHICLES = 0  # per lane
    WAITING = 1  # per lane: vehicles slower than 0.1 m/s
    WAITING_TIME = 2  # per lane: s, summed over its vehicles: how long each has been slower than 0.1 m/s
    DELAY = 3  # per lane: 1 - mean speed / the lane's limit; 0 on an empty lane
    LINK_VEHICLES = 4  # per lane link
    SEGMENT_VEHICLES = 5  # lane * K + k: vehicles on the k-th of K equal parts of the lane, the first where it begins
    ACTION = 6  # per action of the intersection: 1 for the current one, 0 for the others
    OWN = 7  # the intersection's own CHANGED, PASSED, PASSED_TRAVEL_TIME
    IMAGE = 8  # per cell of the intersection's image, row by row from the south-west


CHANGED = 0  # 1: the current action isn't that of the last decision
PASSED = 1  # vehicles that have left the in-lanes since then: they were there, and no longer are
PASSED_TRAVEL_TIME = 2  # s: the sum of the travel times that these had at the last decision
OWN_COUNT = 3
LANE_BLOCKS = 4  # the sources with one entry per lane, which come first in the source vector: VEHICLES to DELAY
