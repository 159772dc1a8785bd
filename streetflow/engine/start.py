"""The tables at the start of a run: their sizes, the flows, no vehicles, all slots free, the random generator at its seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streetflow.collection import no_collection
from streetflow.engine.demand import Demand
from streetflow.engine.team import TeamSteps, useful_threads
from streetflow.engine.tidy import TIDY_STEPS
from streetflow.kernels import step
from streetflow.kernels import tables as t
from streetflow.roadnet.flow import Flow

INITIAL_SLOTS = 64  # of vehicles and of trips; both grow


def initial_sizes(n_flows: int, segments: NDArray[np.int32], lane_change: bool) -> dict[str, int]:
    """The sizes of `State` that don't depend on the network. segments: see `lane_segments`."""
    return {
        "counters": t.N_COUNTERS,
        "reals": t.N_REALS,
        "rng": t.RNG_WORDS,
        "priority_buckets": t.PRIORITY_BUCKETS,
        "flows": n_flows,
        "slots": INITIAL_SLOTS,
        "segments": int(segments[-1]),
        "segments_1": segments.size,
        "changers": INITIAL_SLOTS if lane_change else 0,
        "trips": INITIAL_SLOTS,
        "path": 1,
        "sideways": 1,
        "routes": 1,
        "candidates": 1,
        "kinds": t.KIND_SIZE,
    }


@no_collection()
def number_flows(state: t.State, flows: Sequence[Flow], demand: Demand) -> None:
    """Fill in the flows' tables; their kinds and routes get numbers in ``demand``."""
    for column, values in (
        (state.flow_start, (flow.start_s for flow in flows)),
        (state.flow_end, (flow.end_s for flow in flows)),
        (state.flow_interval, (flow.interval_s for flow in flows)),
        (state.flow_kind, demand.all_kinds([flow.kind for flow in flows])),
        (state.flow_route, demand.all_routes([flow.anchors for flow in flows])),
    ):
        column[:] = np.fromiter(values, column.dtype, len(flows))
    state.flow_order[:] = np.argsort(state.flow_start, kind="stable")


def clear_run(state: t.State) -> None:
    """Back to step 0 without vehicles. Lights and generator stay as they are."""
    for to_clear in (
        state.priority_uses, state.n_vehicles, state.n_waiting, state.out_count, state.status, state.occupied, state.queued,
    ):  # fmt: skip
        to_clear[:] = 0
    for to_empty in (state.head, state.tail, state.arrival_step, state.queue_head, state.queue_tail):
        to_empty[:] = -1
    for counter in (
        t.STEP, t.FLIP, t.N_RUNNING, t.N_PRESENT, t.N_FINISHED, t.N_FREE, t.N_FREED, t.N_PENDING,
        t.NEXT_EVENT, t.N_ACTIVE_FLOWS, t.BROKEN, t.N_CREATED, t.N_TRIPS,
    ):  # fmt: skip
        state.counters[counter] = 0
    state.counters[t.TIDY_STEP] = TIDY_STEPS
    state.reals[t.FLOW_CLOCK] = 0.0
    state.reals[t.FINISHED_TIME] = 0.0
    state.flow_counter[:] = 0
    state.flow_credit[:] = state.flow_interval
    add_free_slots(state, 0)


def add_free_slots(state: t.State, first: int) -> None:
    """Make the slots from ``first`` on free; lower numbers are used first."""
    n_free = int(state.counters[t.N_FREE])
    new = np.arange(state.status.size - 1, first - 1, -1, dtype=np.int32)
    state.free_slots[: new.size + n_free] = np.concatenate((new, state.free_slots[:n_free]))
    state.counters[t.N_FREE] = n_free + new.size


def next_pushed(state: t.State) -> int:
    """The least number of a pushed vehicle that is above those of all present and finished ones: ids stay unique."""
    n_trips = int(state.counters[t.N_TRIPS])
    present = state.ordinal[(state.status >= t.PENDING) & (state.flow < 0)]
    gone = state.trip_ordinal[:n_trips][state.trip_flow[:n_trips] < 0]
    return 1 + max(int(present.max(initial=-1)), int(gone.max(initial=-1)))


def seed_generator(state: t.State, seed: int) -> None:
    """Restart the random generator from a seed, taken modulo 2**32."""
    generator: Any = np.random.RandomState(seed % 2**32).get_state(legacy=False)
    state.rng[:] = np.asarray(generator["state"]["key"], np.uint32).view(np.int32)
    state.counters[t.RNG_POSITION] = t.RNG_WORDS


def step_kernel(lane_change: bool, thread_num: int = 1) -> Any:
    """The compiled `step_many`; those of lane changing (by one thread) and of a team are loaded only where they are needed."""
    if not lane_change:
        threads = useful_threads(thread_num)
        return TeamSteps(step.step_many, threads) if threads > 1 else step.step_many
    from streetflow.kernels import lane_step

    return lane_step.step_many
