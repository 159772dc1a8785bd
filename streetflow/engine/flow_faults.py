"""What in a demand never drives, or not to its end: found, and warned of, when an engine is made."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streetflow.engine.demand import Demand
from streetflow.errors import InputWarning
from streetflow.roadnet.flow import Flow
from streetflow.roadnet.network_tables import NetworkTables
from streetflow.roadnet.oddities import Oddity

_MAX_CLOCKS = 4_000_000


class FlowFaults(NamedTuple):
    """See `EngineCore`."""

    invalid_flows: tuple[int, ...]
    missed_flows: tuple[int, ...]
    dead_ends: tuple[tuple[int, int], ...]


def find_flow_faults(flows: Sequence[Flow], routes: Sequence[int], demand: Demand) -> FlowFaults:
    """routes: each flow's route, by its number in ``demand``."""
    stuck = demand.dead_ends()
    return FlowFaults(
        tuple(i for i, route in enumerate(routes) if not demand.valid[route]),
        _missed_flows(flows, demand.delta),
        tuple((i, lane) for i, route in enumerate(routes) for lane in stuck.get(route, ())),
    )


def warn_of_oddities(oddities: Sequence[Oddity], file: str) -> None:
    """One InputWarning for each kind of oddity in a road network, with the first places."""
    for topic in dict.fromkeys(oddity.topic for oddity in oddities):
        _warn(file, topic, [(oddity.place, oddity.text) for oddity in oddities if oddity.topic == topic])


def warn_of_flow_faults(faults: FlowFaults, file: str, flows: Sequence[Flow], network: NetworkTables) -> None:
    """One InputWarning for each kind of fault, with the first places."""
    _warn(
        file,
        "invalid routes, dropped when they first fire",
        [(f"[{i}].route", network.router.fault(flows[i].anchors)) for i in faults.invalid_flows],
    )
    _warn(
        file,
        "flows that never fire: no step falls between startTime and endTime",
        [(f"[{i}]", f"{flows[i].start_s} to {flows[i].end_s} s") for i in faults.missed_flows],
    )
    _warn(
        file,
        "routes with a dead end",
        [(f"[{i}].route", f"no path onwards from lane {network.roadnet.lane_ids[lane]!r}") for i, lane in faults.dead_ends],
    )


def _warn(file: str, what: str, found: list[tuple[str, str]]) -> None:
    if found:
        shown = "; ".join(f"{place}: {fault}" for place, fault in found[:5])
        more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
        warnings.warn(f"{file}: {len(found)} {what}: {shown}{more}", InputWarning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """The stack level, as the function that calls this one names it, of the line that makes an `Engine`."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("streetflow.engine."):
        level, frame = level + 1, frame.f_back
    return level


def _missed_flows(flows: Sequence[Flow], delta: float) -> tuple[int, ...]:
    """Flows with a window in which no step falls. The clock is a running sum, so with most step lengths it misses whole
    seconds."""
    last = max((flow.start_s for flow in flows if flow.end_s != -1), default=0)
    n_clocks = min(int(max(last, 0) / delta) + 3, _MAX_CLOCKS)
    clocks = np.add.accumulate(np.concatenate(([0.0], np.full(n_clocks, delta))))
    starts = np.fromiter((flow.start_s for flow in flows), np.float64, len(flows))
    ends = np.fromiter((flow.end_s for flow in flows), np.float64, len(flows))
    first = np.searchsorted(clocks, starts)
    return tuple(np.flatnonzero((ends != -1) & (np.append(clocks, -np.inf)[first] > ends)).tolist())
