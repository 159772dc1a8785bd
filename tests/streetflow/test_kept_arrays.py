"""What was parsed is kept on disk for other processes: the same as parsed anew, never out of date, never half of it."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streetflow import Engine, InputError
from streetflow.roadnet import crossing_columns, flow, kept_arrays, network_tables
from tests.helpers.small_network import demand, grid, write


@pytest.fixture
def parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of what is kept, empty; however small a file is, what is made of it is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(kept_arrays.VARIABLE, raising=False)
    monkeypatch.setattr(kept_arrays, "LEAST_BYTES", 0)
    forget()
    return tmp_path / "cache" / "tinylight-hil" / "parsed"


@pytest.fixture
def config(tmp_path: Path, parsed: Path) -> Path:
    roadnet = grid(2, 2, seed=1)
    return write(tmp_path, roadnet, demand(roadnet, 40, 60, seed=1))


def forget() -> None:
    """As in a new process."""
    network_tables._cache.clear()
    flow._last = None


def tables(config: Path) -> tuple[Any, ...]:
    forget()
    engine = Engine(str(config))
    return repr(engine.flows), *(values.tobytes() for values in engine.state)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was made anew."""
    names: list[str] = []
    for module, name in ((flow, "_parse"), (crossing_columns, "_find_columns")):
        function = getattr(module, name)

        def noting(*arguments: Any, name: str = name, function: Any = function) -> Any:
            names.append(name)
            return function(*arguments)

        monkeypatch.setattr(module, name, noting)
    return names


def test_another_process_has_the_same_without_making_it(config: Path, parsed: Path, made: list[str]) -> None:
    first = tables(config)
    assert sorted(made) == ["_find_columns", "_parse"] and len(list(parsed.iterdir())) == 2
    assert tables(config) == first and len(made) == 2


def test_roads_of_equal_number_are_one_object(config: Path, parsed: Path) -> None:
    """Else the flows of a large file take three times the memory."""
    tables(config)
    forget()
    flows = Engine(str(config)).flows
    roads = [road for each in {id(one.anchors): one.anchors for one in flows}.values() for road in each]
    assert len(set(map(id, roads))) == len(set(roads))


@pytest.mark.parametrize("damage", ["cut", "empty", "bit", "other", "folder"])
def test_a_damaged_entry_is_made_anew(damage: str, config: Path, parsed: Path, made: list[str]) -> None:
    first = tables(config)
    one, other = sorted(parsed.iterdir())
    contents = one.read_bytes(), other.read_bytes()
    for file, content, foreign in ((one, *contents), (other, *contents[::-1])):
        if damage == "folder":
            file.unlink()
            file.mkdir()
        elif damage == "bit":
            middle = len(content) // 2
            file.write_bytes(content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :])
        else:
            file.write_bytes({"cut": content[:-1], "empty": b"", "other": foreign}[damage])
    assert tables(config) == first and len(made) == 4
    if damage != "folder":
        assert (one.read_bytes(), other.read_bytes()) == contents
        assert tables(config) == first and len(made) == 4


def test_another_content_is_another_entry(config: Path, parsed: Path, tmp_path: Path, made: list[str]) -> None:
    tables(config)
    file = tmp_path / "flow.json"
    file.write_text(file.read_text().replace('"interval": ', '"interval": 1'))
    forget()
    flows = Engine(str(config)).flows
    assert made.count("_parse") == 2 and [one.interval_s for one in flows] == [
        f["interval"] for f in json.loads(file.read_text())
    ]


@pytest.mark.parametrize("what", ["version", "sources", "numpy", "roads", "floats"])
def test_other_code_and_other_roads_have_their_own(
    what: str, config: Path, tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    roads = {road: number for number, road in enumerate(Engine(str(config)).network.roadnet.road_index)}
    floats = False
    if what == "version":
        (tmp_path / "__init__.py").write_text('__version__ = "0.0.0"')
        monkeypatch.setattr(kept_arrays, "_PACKAGE", tmp_path / "__init__.py")
    elif what == "sources":
        monkeypatch.setattr(kept_arrays, "source_fingerprint", lambda folder: 1)
    elif what == "numpy":
        monkeypatch.setattr(np, "__version__", "0.0.0")
    elif what == "roads":
        roads = {road: len(roads) - 1 - number for road, number in roads.items()}
    else:
        floats = True
    made.clear()
    forget()
    flow.read_flows(tmp_path / "flow.json", roads, floats)
    assert made == ["_parse"]


def test_a_file_that_changes_while_it_is_read_is_not_kept(
    config: Path, parsed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = flow._parse

    def changing(path: Path, *rest: Any) -> Any:
        Path(path).write_text("[]")
        return parse(path, *rest)

    monkeypatch.setattr(flow, "_parse", changing)
    assert Engine(str(config)).flows == ()
    assert [file.name.partition("-")[0] for file in parsed.iterdir()] == ["crossings"]


def test_faults_are_found_each_time(config: Path, parsed: Path, tmp_path: Path) -> None:
    (tmp_path / "flow.json").write_text('[{"vehicle": 1}]')
    for _ in range(2):
        forget()
        with pytest.raises(InputError, match=r"flow\.json"):
            Engine(str(config))
    assert [file.name.partition("-")[0] for file in parsed.iterdir()] == ["crossings"]


def test_small_files_aren_t_kept(config: Path, parsed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_arrays, "LEAST_BYTES", 2**20)
    tables(config)
    assert not parsed.exists()


def test_a_bound_of_0_keeps_and_reads_nothing(
    config: Path, parsed: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kept_arrays.VARIABLE, "0")
    tables(config)
    assert not parsed.exists()
    monkeypatch.delenv(kept_arrays.VARIABLE)
    tables(config)
    made.clear()
    monkeypatch.setenv(kept_arrays.VARIABLE, "0")
    tables(config)
    assert sorted(made) == ["_find_columns", "_parse"]


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "٣", "9" * 30])
def test_a_bound_must_be_a_number(text: str, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kept_arrays.VARIABLE, text)
    with pytest.raises(InputError, match="STREETFLOW_CACHE_MIB: must be a whole number of MiB"):
        tables(config)


def test_the_folder_stays_within_its_bound(parsed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of 0.4 MiB in a folder of 1 MiB: the one that wasn't used for longest goes, and what a stopped process left."""
    monkeypatch.setenv(kept_arrays.VARIABLE, "1")
    keys = [kept_arrays.key_of("test", 1, bytes([number])) for number in range(4)]
    values = np.arange(50_000.0)

    def age(name: str, s: int) -> None:
        os.utime(parsed / name, (s, s))

    kept_arrays.keep(keys[0], {"values": values})
    kept_arrays.keep(keys[1], {"values": values})
    (parsed / ".left").write_bytes(b"x" * 1000)
    for name, s in ((keys[0], 100), (keys[1], 200), (".left", 50)):
        age(name, s)
    assert kept_arrays.find_kept(keys[0]) is not None  # which makes it the younger one
    kept_arrays.keep(keys[2], {"values": values})
    assert {file.name for file in parsed.iterdir()} == {keys[0], keys[2]}
    kept_arrays.keep(keys[3], {"values": np.zeros(200_000)})  # more than the bound
    assert {file.name for file in parsed.iterdir()} == {keys[0], keys[2]}


def test_where_nothing_can_be_written_nothing_is_kept(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tables(config)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert tables(config) == first


def test_a_full_disk_leaves_nothing_behind(parsed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    kept_arrays.keep(kept_arrays.key_of("test", 1, b""), {"values": np.arange(3)})
    assert list(parsed.iterdir()) == []


def test_writers_and_readers_at_one_time(parsed: Path) -> None:
    """A reader finds all or nothing."""
    key, values = kept_arrays.key_of("test", 1, b""), np.arange(100_000)

    def write_and_read(_: int) -> bool:
        kept_arrays.keep(key, {"values": values})
        found = kept_arrays.find_kept(key)
        return found is not None and np.array_equal(found["values"], values)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(write_and_read, range(40)))
    assert [file.name for file in parsed.iterdir()] == [key]


def test_objects_are_refused(parsed: Path) -> None:
    """They would need pickle."""
    with pytest.raises(ValueError, match="Object arrays"):
        kept_arrays.keep(kept_arrays.key_of("test", 1, b""), {"values": np.array([{}], object)})
