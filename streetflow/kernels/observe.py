"""The compiled entry point that computes every value of an observation from the source vector (see ``features.py``)."""

from __future__ import annotations

import numpy as np

from streetflow.kernels.jit import entry_point
from streetflow.kernels.sources import LANE_BLOCKS, Source

# Columns of the int32 cell record.
FIRST_TERM, END_TERM, POSITION, MINIMUM, MAXIMUM = range(5)


@entry_point
def observe_cells(  # type: ignore[no-untyped-def]
    vehicles,
    waiting,
    waiting_time_s,
    speed_sums_mps,
    max_speed_mps,
    current_action,
    first_action,
    values,
    cells,
    scales,
    term_indices,
    term_weights,
    out,
):
    """Fill in the lanes' and actions' blocks of the source vector ``values``, then every cell of ``out``."""
    lanes = len(vehicles)
    for lane in range(lanes):
        count = vehicles[lane]
        values[Source.VEHICLES * lanes + lane] = count
        values[Source.WAITING * lanes + lane] = waiting[lane]
        values[Source.WAITING_TIME * lanes + lane] = waiting_time_s[lane]
        delay = 0.0
        if count > 0:
            delay = 1.0 - speed_sums_mps[lane] / count / max_speed_mps[lane]
        values[Source.DELAY * lanes + lane] = delay
    for k in range(LANE_BLOCKS * lanes, first_action[-1]):
        values[k] = 0.0
    for i in range(len(current_action)):
        values[first_action[i] + current_action[i]] = 1.0
    for c in range(len(scales)):
        total = 0.0
        for t in range(cells[c, FIRST_TERM], cells[c, END_TERM]):
            total += term_weights[t] * values[term_indices[t]]
        rounded = np.floor(total * scales[c] + 0.5)
        out[cells[c, POSITION]] = int(min(max(rounded, cells[c, MINIMUM]), cells[c, MAXIMUM]))
