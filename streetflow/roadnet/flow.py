"""Reading and checking a flow file: vehicle kinds, anchors and times (docs/cityflow-semantics.md, 1.4 and 12)."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from streetflow.collection import no_collection
from streetflow.errors import InputError, Problems
from streetflow.input_file import read_input
from streetflow.roadnet.cursor import Cursor
from streetflow.roadnet.json_reader import array_elements, read_json
from streetflow.roadnet.kept_arrays import find_kept, keep, key_of

# JSON name, least value (None: any), whether the least value itself is allowed
_VEHICLE_FIELDS = {
    "length": (0.0, False),
    "width": (0.0, True),
    "maxPosAcc": (0.0, False),
    "maxNegAcc": (0.0, False),
    "usualPosAcc": (0.0, False),
    "usualNegAcc": (0.0, False),
    "minGap": (0.0, True),
    "maxSpeed": (0.0, False),
    "headwayTime": (0.0, True),
}
PUSHED_DEFAULTS = {
    "speed": 0.0,
    "length": 5.0,
    "width": 2.0,
    "maxPosAcc": 4.5,
    "maxNegAcc": 4.5,
    "usualPosAcc": 2.5,
    "usualNegAcc": 2.5,
    "minGap": 2.0,
    "maxSpeed": 16.66667,
    "headwayTime": 1.0,
}
_INT32 = 2**31 - 1
T = TypeVar("T")


@dataclass(frozen=True)
class VehicleKind:
    """The parameters of a vehicle: m, m/s, m/s2, s."""

    length_m: float
    width_m: float
    max_pos_acc: float
    max_neg_acc: float
    usual_pos_acc: float
    usual_neg_acc: float
    min_gap_m: float
    max_speed_mps: float
    headway_s: float


@dataclass(frozen=True)
class Flow:
    """One element of a flow file. ``end_s`` -1: never ends. ``anchors``: road numbers."""

    kind: VehicleKind
    anchors: tuple[int, ...]
    interval_s: float
    start_s: int
    end_s: int


class _Read(NamedTuple):
    """A file that was read: its content's fingerprint, and what it was read with and to."""

    content: _Content
    accept_integral_floats: bool
    road_index: Mapping[str, int]
    flows: tuple[Flow, ...]


class _Content(NamedTuple):
    sha256: bytes
    n_bytes: int


_last: _Read | None = None


@no_collection()
def read_flows(path: str | Path, road_index: Mapping[str, int], accept_integral_floats: bool = False) -> tuple[Flow, ...]:
    """Read and check a flow file. InputError names file, JSON path and fault.

    A ``startTime`` such as 5.0 counts as 0 in CityFlow, silently. Here it is a fault, or, with
    ``accept_integral_floats``, means 5. The same content again, as when several agents run on one demand, isn't parsed again,
    nor, if it is large, by another process (`kept_arrays`).
    """
    global _last
    content, last = _content(path), _last
    if content is None:
        return _parse(path, road_index, accept_integral_floats)  # which says why it can't be read
    if last is not None and (content, accept_integral_floats) == last[:2] and road_index == last.road_index:
        return last.flows
    roads = json.dumps([*road_index.items()]).encode()
    key = key_of("flows", content.n_bytes, content.sha256, roads, bytes([accept_integral_floats]))
    arrays = find_kept(key)
    if arrays is not None:
        flows = _of_arrays(**arrays)
    else:
        flows = _parse(path, road_index, accept_integral_floats)
        if key and _content(path) == content:  # it is what was parsed
            keep(key, _as_arrays(flows))
    _last = _Read(content, accept_integral_floats, road_index, flows)
    return flows


def _content(path: str | Path) -> _Content | None:
    try:
        content = read_input(path)
    except InputError:
        return None
    return _Content(hashlib.sha256(content).digest(), len(content))


def _as_arrays(flows: Sequence[Flow]) -> dict[str, NDArray[Any]]:
    """Flows as arrays by name: their kinds and routes once each, by flow the numbers of its own."""
    kinds = {id(flow.kind): flow.kind for flow in flows}
    routes = {id(flow.anchors): flow.anchors for flow in flows}
    kind_number, route_number = ({each: n for n, each in enumerate(numbered)} for numbered in (kinds, routes))
    return {
        "kinds": np.array([astuple(kind) for kind in kinds.values()], np.float64).reshape(-1, len(_VEHICLE_FIELDS)),
        "ends": np.cumsum([len(route) for route in routes.values()], dtype=np.int64),
        "roads": np.fromiter(chain.from_iterable(routes.values()), np.int32),
        "kind": np.array([kind_number[id(flow.kind)] for flow in flows], np.int32),
        "route": np.array([route_number[id(flow.anchors)] for flow in flows], np.int32),
        "interval_s": np.array([flow.interval_s for flow in flows], np.float64),
        "start_s": np.array([flow.start_s for flow in flows], np.int32),
        "end_s": np.array([flow.end_s for flow in flows], np.int32),
    }


def _of_arrays(
    kinds: NDArray[Any], ends: NDArray[Any], roads: NDArray[Any], kind: NDArray[Any], route: NDArray[Any], **times: NDArray[Any]
) -> tuple[Flow, ...]:
    """The flows of `_as_arrays`."""
    vehicle_kinds = [VehicleKind(*row) for row in kinds.tolist()]
    numbers = np.array(range(int(roads.max(initial=-1)) + 1), object)  # one object for each road, as when parsed
    on_route = numbers[roads].tolist()
    routes = [tuple(on_route[begin:end]) for begin, end in pairwise([0, *ends.tolist()])]
    columns = (kind, route, times["interval_s"], times["start_s"], times["end_s"])
    return tuple(
        Flow(vehicle_kinds[k], routes[r], interval_s, start_s, end_s)
        for k, r, interval_s, start_s, end_s in zip(*(column.tolist() for column in columns), strict=True)
    )


def _parse(path: str | Path, road_index: Mapping[str, int], accept_integral_floats: bool) -> tuple[Flow, ...]:
    plain = _parse_plain(path, road_index)
    if plain is not None:
        return plain
    root = Cursor(read_json(path), path)
    problems = Problems(path)
    kinds, routes = _Seen(vehicle_kind), _Seen(lambda route: _anchors(route, road_index))
    flows = [problems.take(_flow, cursor, kinds, routes, accept_integral_floats) for cursor in root.items()]
    problems.raise_if_any()
    return tuple(flows)


def _parse_plain(path: str | Path, road_index: Mapping[str, int]) -> tuple[Flow, ...] | None:
    """What `_flow` reads, in a fraction of the time and memory; None where anything isn't as it should be."""
    kinds: dict[tuple[object, ...], VehicleKind] = {}
    routes: dict[tuple[int, ...], tuple[int, ...]] = {}  # equal ones are kept once
    flows = []
    try:
        for value in array_elements(path):
            vehicle, route, interval = value["vehicle"], value["route"], value["interval"]
            start, end = value.get("startTime", 0), value.get("endTime", -1)
            key = *vehicle.values(), *vehicle, *map(type, vehicle.values())
            kind = kinds.get(key)
            if kind is None:
                kind = kinds[key] = vehicle_kind(Cursor(vehicle, path))
            anchors = tuple(map(road_index.__getitem__, route))
            plain = type(route) is list and anchors and type(interval) in (int, float) and type(start) is type(end) is int
            if not (plain and 1 <= interval < math.inf and -_INT32 <= start <= _INT32 and -_INT32 <= end <= _INT32):
                return None
            flows.append(Flow(kind, routes.setdefault(anchors, anchors), float(interval), start, end))
    except (ValueError, OverflowError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    return tuple(flows)


class _Seen(Generic[T]):
    """Reads values, and an equal one without a fault only once: most vehicles of a file are of one kind, and on few routes."""

    def __init__(self, read: Callable[[Cursor], T]) -> None:
        self._read = read
        self._found: dict[str, T] = {}

    def __call__(self, cursor: Cursor) -> T:
        key = repr(cursor.value)  # tells 5 from 5.0, True and "5"
        if key not in self._found:
            self._found[key] = self._read(cursor)
        return self._found[key]


def vehicle_kind(cursor: Cursor, defaults: Mapping[str, float] | None = None) -> VehicleKind:
    """The vehicle parameters of an object; absent ones are faults unless ``defaults`` holds them."""
    problems = Problems(cursor.file)
    values = [
        defaults[name]
        if defaults is not None and not cursor.has(name)
        else problems.take(_parameter, cursor, name, default=0.0)
        for name in _VEHICLE_FIELDS
    ]
    problems.raise_if_any()
    return VehicleKind(*values)


def _parameter(cursor: Cursor, name: str) -> float:
    least, inclusive = _VEHICLE_FIELDS[name]
    return cursor[name].number(least=least) if inclusive else cursor[name].number(above=least)


def _time(cursor: Cursor, name: str, default: int, accept_integral_floats: bool) -> int:
    if not cursor.has(name):
        return default
    field = cursor[name]
    value = field.value
    if isinstance(value, float):
        if not (accept_integral_floats and value.is_integer() and abs(value) <= _INT32):
            raise field.fault(f"must be an integer (CityFlow silently takes {value!r} as {default})")
        return int(value)
    return field.integer(-_INT32, _INT32)


def _anchors(cursor: Cursor, road_index: Mapping[str, int]) -> tuple[int, ...]:
    problems = Problems(cursor.file)
    anchors = [problems.take(_road, road, road_index) for road in cursor.items(least=1)]
    problems.raise_if_any()
    return tuple(anchors)


def _road(cursor: Cursor, road_index: Mapping[str, int]) -> int:
    name = cursor.text()
    if name not in road_index:
        raise cursor.fault(f"there is no road {name!r}")
    return road_index[name]


def _flow(cursor: Cursor, kinds: _Seen[VehicleKind], routes: _Seen[tuple[int, ...]], accept_integral_floats: bool) -> Flow:
    cursor.members()
    problems = Problems(cursor.file)
    kind = problems.take(lambda: kinds(cursor["vehicle"]))
    anchors = problems.take(lambda: routes(cursor["route"]))
    interval_s = problems.take(lambda: cursor["interval"].number(above=0))
    start_s = problems.take(_time, cursor, "startTime", 0, accept_integral_floats)
    end_s = problems.take(_time, cursor, "endTime", -1, accept_integral_floats)
    problems.raise_if_any()
    if interval_s < 1 and (start_s != end_s or end_s == -1):
        raise cursor["interval"].fault(f"must be at least 1 s unless startTime and endTime are one instant, is {interval_s:g}")
    return Flow(kind, anchors, interval_s, start_s, end_s)
