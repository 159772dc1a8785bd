"""Future arrivals redrawn, for a planner that doesn't know them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from model.kernels.rollout import Demand
from streetflow.kernels.tables import NEXT_EVENT, State

KNOWN = Demand(*(np.zeros((0, 0), np.int32) for _ in Demand._fields))
"""No draws: arrivals as the flow file has them."""
_NEVER_S = 1_000_000_000


class Arrivals:
    """Draws what may arrive from now on, from the demand's rates alone.

    A flow file's vehicles that come one by one (``startTime`` = ``endTime``) are a sample of a Poisson process: its rate is
    their number over the time in which they come, and each vehicle's route and kind are those of one of them, drawn evenly.
    What has begun, and flows that repeat at an interval, stay as they are.

    Args:
        state: the engine's tables, for reading.
        seed: of the draws.
    """

    def __init__(self, state: State, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._single = state.flow_start == state.flow_end
        starts = state.flow_start[self._single]
        span_s = max(int(starts.max()) - int(starts.min()), 1) if starts.size else 1
        self._per_s = starts.size / span_s

    def draw(self, state: State, now_s: float, horizon_s: float, draws: int) -> Demand:
        """``draws`` demands that are alike up to now, for a rollout of horizon_s."""
        rows = [self._one(state, now_s, horizon_s) for _ in range(draws)]
        return Demand(*(np.stack(column).astype(np.int32) for column in zip(*rows, strict=True)))

    def _one(self, state: State, now_s: float, horizon_s: float) -> tuple[NDArray[np.int32], ...]:
        start, end, kind, route, order = (
            values.copy() for values in (state.flow_start, state.flow_end, state.flow_kind, state.flow_route, state.flow_order)
        )
        first = int(state.counters[NEXT_EVENT])
        future = order[first:]
        unknown = future[self._single[future]]
        count = min(int(self._rng.poisson(self._per_s * horizon_s)), unknown.size)
        earliest = int(np.floor(now_s)) + 1
        times_s = np.sort(self._rng.integers(earliest, earliest + int(horizon_s), count))
        start[unknown] = end[unknown] = _NEVER_S
        start[unknown[:count]] = end[unknown[:count]] = times_s
        models = self._rng.choice(np.flatnonzero(self._single), count) if count else np.zeros(0, np.intp)
        kind[unknown[:count]], route[unknown[:count]] = state.flow_kind[models], state.flow_route[models]
        order[first:] = future[np.argsort(start[future], kind="stable")]
        return start, end, kind, route, order
