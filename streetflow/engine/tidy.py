"""Renumbering of vehicles: those of a lane get slots side by side, in the order of the lanes.

Slots are reused as vehicles come and go, so that after a while a lane's vehicles are scattered over memory. On a
large network, where they don't fit into the processor's cache, a step then takes longer (docs/scale.md). No result
depends on slot numbers.
"""

from __future__ import annotations

import numpy as np

from streetflow.kernels import tables as t

TIDY_STEPS = 256
_LEAST_SLOTS = 2048  # below that all vehicles are in the cache anyway


def tidy(tables: t.Tables) -> None:
    """Renumber the vehicles of a large network, and set the step at which to do it again. To be called between steps."""
    counters = tables.state.counters
    counters[t.TIDY_STEP] = counters[t.STEP] + TIDY_STEPS
    if tables.sizes["slots"] >= _LEAST_SLOTS:
        renumber(tables, _by_place(tables.state))


def _by_place(state: t.State) -> np.ndarray:
    """int64[slots]: slots by drivable, front first; those that don't run come last."""
    distance = state.distance_1 if state.counters[t.FLIP] else state.distance_0
    drivable = np.where(state.status == t.RUNNING, state.path[state.path_index], np.iinfo(np.int32).max)
    return np.argsort((drivable.astype(np.int64) << 32) - (distance * 1000.0).astype(np.int64))


def renumber(tables: t.Tables, order: np.ndarray) -> None:
    """Move vehicle order[i] to slot i, for all slots. Between steps this changes no result."""
    n_slots = order.size
    new_slot = np.empty(n_slots + 1, np.int32)
    new_slot[order] = np.arange(n_slots, dtype=np.int32)
    new_slot[-1] = -1  # so that -1 (none) stays -1
    for field in t.FIELDS:
        values = getattr(tables.state, field.name)
        if field.size == "slots" and field.name not in t.SLOT_LISTS:
            values[:] = values[order]
        if field.holds_slots:
            values[:] = new_slot[values]
