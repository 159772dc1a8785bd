"""Every kind of field of every input file, replaced by every kind of wrong value: refused with a reason, or sound."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streetflow import Engine, InputError
from streetflow.errors import StepError
from tests.helpers.small_network import demand, grid, write

DROP = object()
WRONG = (DROP, None, "x", "", True, -1, 0, 2.5, 1e-300, 1e308, -1e308, 2**31, 2**63, [], {}, [0], ["x"], "\ud800", "a\0b")


def fields(value: Any, path: tuple[Any, ...] = (), seen: set[tuple[Any, ...]] | None = None) -> Iterator[tuple[Any, ...]]:
    """A path to one field of each kind: of an array's elements, the first that has it."""
    seen = set() if seen is None else seen
    kind = tuple("#" if isinstance(key, int) else key for key in path)
    if kind not in seen:
        seen.add(kind)
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from fields(value[key], (*path, key), seen)
    elif isinstance(value, list):
        for i, element in enumerate(value):
            yield from fields(element, (*path, i), seen)


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return None if value is DROP else value
    result = copy.deepcopy(document)
    parent = result
    for key in path[:-1]:
        parent = parent[key]
    if value is DROP:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return result


@pytest.mark.filterwarnings("ignore::streetflow.errors.InputWarning")
@pytest.mark.parametrize("name", ["config", "roadnet", "flow"])
def test_any_wrong_value_anywhere(tmp_path: Path, name: str) -> None:
    roadnet = grid()
    write(tmp_path, roadnet, demand(roadnet, 12, 10, seed=3), saveReplay=True, roadnetLogFile="log.json")
    file = tmp_path / f"{name}.json"
    document = json.loads(file.read_text())
    outcomes: Counter[str] = Counter()
    for path in fields(document):
        for value in WRONG:
            file.write_text(json.dumps(changed(document, path, value)))
            where = f"{path} = {'nothing' if value is DROP else repr(value)}"
            try:
                engine = Engine(tmp_path / "config.json")
                engine.step_many(25)
                assert engine.get_vehicle_count() >= 0 and len(engine.get_lane_vehicle_count()) == len(engine.lane_ids), where
                outcomes["runs"] += 1
            except InputError as error:
                assert error.file and error.fault, where
                outcomes["refused"] += 1
            except StepError:
                outcomes["stopped"] += 1
            except Exception as error:
                raise AssertionError(f"{where}: {error!r}") from error
    assert outcomes["refused"] > 100 and outcomes["runs"] > 5
    assert outcomes["refused"] > outcomes["runs"]
