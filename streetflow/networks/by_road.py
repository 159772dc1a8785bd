"""What a demand to be made says of single roads: a JSON file with rates, turning shares and exits by road id.

```json
{"rates": {"main_in": 600, "side_in": 0}, "turns": {"main_in": {"left": 0.1, "straight": 0.7, "right": 0.2}},
 "exits": {"main_out": 3, "side_out": 1}}
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streetflow.errors import Problems
from streetflow.near import did_you_mean
from streetflow.networks.movements import TURNS, movements
from streetflow.roadnet.cursor import Cursor
from streetflow.roadnet.json_reader import read_json
from streetflow.roadnet.network_tables import NetworkTables


@dataclass(frozen=True)
class ByRoad:
    """What differs from road to road. Roads are numbers, in file order.

    Attributes:
        file: where it was read, for messages.
        rates: vehicles an hour that begin their trip on a road, whether or not it leads into the network.
        turns: of a road, the parts of its traffic that go on to each next road (any sum).
        exits: where trips end, and the parts of all trips that end there; empty: on every road that leads out, alike.
    """

    file: str = ""
    rates: Mapping[int, float] = field(default_factory=dict)
    turns: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    exits: Mapping[int, float] = field(default_factory=dict)


def read_by_road(file: Path, network: NetworkTables) -> ByRoad:
    """Read and check such a file.

    Args:
        file: the JSON file. Each of its three parts may be left out.
        network: the road network that it is about.

    Raises:
        InputError: it names a road or a turn that isn't there, or holds a number that is none.
    """
    root = Cursor(read_json(file), file)
    readers: dict[str, Callable[[Cursor], Any]] = {
        "rates": _Numbers(network),
        "turns": _Turns(network),
        "exits": _Numbers(network),
    }
    problems = Problems(file)
    for name in root.members():
        if name not in readers:
            problems.add(name, f"unknown{did_you_mean(name, readers) or '; there are ' + ', '.join(readers)}")
    parts: dict[str, Any] = {name: problems.take(readers[name], root[name]) for name in readers if root.has(name)}
    problems.raise_if_any()
    if root.has("exits") and not any(parts["exits"].values()):
        raise root["exits"].fault("must hold a road with a part above 0")
    return ByRoad(str(file), **parts)


class _Numbers:
    """Reads an object of numbers by road id."""

    def __init__(self, network: NetworkTables) -> None:
        self.index = network.roadnet.road_index

    def __call__(self, cursor: Cursor) -> dict[int, float]:
        return _read_all(cursor, lambda name: _known(cursor, name, self.index, "road"), lambda each: each.number(least=0))


class _Turns:
    """Reads the parts of each road's traffic by type of turn, or by next road."""

    def __init__(self, network: NetworkTables) -> None:
        self.network = network
        self.movements = movements(network)

    def __call__(self, cursor: Cursor) -> dict[int, dict[int, float]]:
        index = self.network.roadnet.road_index
        found: dict[int, dict[int, float]] = {}
        problems = Problems(cursor.file)
        for name in cursor.members():
            road = problems.take(_known, cursor, name, index, "road", default=-1)
            if road >= 0:
                found[road] = problems.take(self._of_road, cursor[name], road)
        problems.raise_if_any()
        return found

    def _of_road(self, cursor: Cursor, road: int) -> dict[int, float]:
        by_turn = self.movements[road]
        next_roads = {self.network.roadnet.roads[each].id: each for roads in by_turn.values() for each in roads}
        parts = dict.fromkeys(next_roads.values(), 0.0)
        for name in cursor.members():
            part = cursor[name].number(least=0)
            turn = name if name in TURNS and name not in next_roads else None
            if turn is not None and not by_turn[turn]:
                there = ", ".join(each for each in TURNS if by_turn[each]) or "none"
                raise cursor[name].fault(f"no such turn from this road; there are: {there}")
            roads = by_turn[turn] if turn is not None else [_known(cursor, name, next_roads, "turn or next road", TURNS)]
            for each in roads:
                parts[each] += part / len(roads)
        if not any(parts.values()):
            raise cursor.fault("must hold a part above 0")
        return parts


def _known(cursor: Cursor, name: str, index: Mapping[str, int], kind: str, others: Iterable[str] = ()) -> int:
    if name not in index:
        raise cursor.fault(f"there is no {kind} {name!r}{did_you_mean(name, [*index, *others])}")
    return index[name]


def _read_all(cursor: Cursor, number: Callable[[str], int], value: Callable[[Cursor], float]) -> dict[int, float]:
    problems = Problems(cursor.file)
    pairs = [(problems.take(number, name, default=-1), problems.take(value, cursor[name])) for name in cursor.members()]
    problems.raise_if_any()
    return dict(pairs)
