"""Networks by name: the search path, horizons, and the errors of each bad entry."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from streetflow.errors import InputError, InputWarning
from streetflow.networks.catalogue import (
    RUN_SEEDS,
    UnknownNetwork,
    default_seed,
    find_network,
    list_networks,
    network_names,
    network_of,
)


def data_set(base: Path, name: str, flows: int = 2) -> Path:
    folder = base / name
    folder.mkdir(parents=True)
    (folder / "roadnet.json").write_text("{}")
    for k in range(flows):
        (folder / f"flow_{k}.json").write_text("[]")
    return folder


@pytest.fixture
def two_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first, second = tmp_path / "first", tmp_path / "second"
    data_set(first, "Hangzhou1", flows=11)
    data_set(first, "Elsewhere")
    data_set(second, "Elsewhere", flows=1)
    data_set(second, "LosAngeles")
    monkeypatch.setenv("TINYLIGHT_DATA", f"{first}{os.pathsep}{second}{os.pathsep}")
    return first, second


def test_search_path(two_folders: tuple[Path, Path]) -> None:
    first, second = two_folders
    assert network_names() == ["crossing", "arterial", "Elsewhere", "Hangzhou1", "LosAngeles"]
    assert [each.name for each in list_networks()] == network_names()
    assert find_network("Elsewhere").roadnet_file == first / "Elsewhere" / "roadnet.json"  # the first one wins
    assert find_network("LosAngeles").roadnet_file == second / "LosAngeles" / "roadnet.json"
    assert find_network("Elsewhere").source == "data set"
    assert find_network("crossing").source == "built-in"


def test_flow_files_are_in_numeric_order(two_folders: tuple[Path, Path]) -> None:
    files = find_network("Hangzhou1").flow_files
    assert [file.name for file in files] == [f"flow_{k}.json" for k in range(11)]


def test_horizons(two_folders: tuple[Path, Path]) -> None:
    assert find_network("LosAngeles").horizon_s == 1800
    assert find_network("Elsewhere").horizon_s == 3600
    assert find_network("Elsewhere").decision_interval_s == 20
    (two_folders[0] / "Elsewhere" / "network.json").write_text('{"horizon_s": 1200}')
    assert find_network("Elsewhere").horizon_s == 1200
    (two_folders[0] / "Elsewhere" / "network.json").write_text('{"horizon_s": 1200, "decision_interval_s": 10}')
    assert find_network("Elsewhere").decision_interval_s == 10


@pytest.mark.parametrize(
    "content",
    [
        *("{", '{"horizon_s": 0}', '{"horizon_s": "900"}', "[]", '{"horizon_s": true}', '{"horizon_s": 9, "horizon": 9}'),
        *('{"decision_interval_s": 9}', '{"horizon_s": 9, "decision_interval_s": 0}'),
        '{"horizon_s": 9, "decision_interval_s": null}',
    ],
)
def test_bad_network_json(two_folders: tuple[Path, Path], content: str) -> None:
    (two_folders[0] / "Elsewhere" / "network.json").write_text(content)
    with pytest.raises(InputError, match=r"network\.json"):
        find_network("Elsewhere")


@pytest.mark.parametrize(
    ("name", "near"),
    [("Hangzou1", ["Hangzhou1", "Hangzhou3", "Hangzhou2"]), ("losangeles", ["LosAngeles"]), ("zzzz", []), ("", [])],
)
def test_unknown_network_names_near_matches(two_folders: tuple[Path, Path], name: str, near: list[str]) -> None:
    with pytest.raises(UnknownNetwork, match="unknown network") as caught:
        find_network(name)
    assert isinstance(caught.value, InputError)
    assert sorted(caught.value.near_matches) == sorted(near) and caught.value.near_matches[:1] == near[:1]
    assert all(each in str(caught.value) for each in [*near[:1], "crossing, arterial"])


@pytest.mark.parametrize("name", ["../first/Hangzhou1", "..", ".", "a/../Hangzhou1"])
def test_a_name_is_not_a_path(two_folders: tuple[Path, Path], name: str) -> None:
    with pytest.raises(UnknownNetwork):
        find_network(name)


def test_without_the_variable_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TINYLIGHT_DATA", raising=False)
    with pytest.raises(UnknownNetwork, match="TINYLIGHT_DATA is not set"):
        find_network("Jinan")


def test_listed_folder_that_is_missing_is_named_only_when_it_matters(
    two_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = two_folders[0] / "nowhere"
    monkeypatch.setenv("TINYLIGHT_DATA", f"{nowhere}{os.pathsep}{two_folders[1]}")
    assert network_names() == ["crossing", "arterial", "Elsewhere", "LosAngeles"]
    with pytest.raises(UnknownNetwork, match=f"TINYLIGHT_DATA lists {nowhere}, which can't be read: No such file"):
        find_network("Jinan")


def test_gap_in_the_flow_files(two_folders: tuple[Path, Path]) -> None:
    (two_folders[0] / "Hangzhou1" / "flow_4.json").unlink()
    with pytest.raises(InputError, match=r"flow_4\.json: missing"):
        find_network("Hangzhou1")


@pytest.mark.parametrize("entry", ["nowhere", "x" * 300, "~nobody-of-this-name/x", "file"])
def test_listed_folder_that_cannot_be_read_is_reported_when_networks_are_listed(
    two_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    (two_folders[0] / "file").touch()
    listed = entry if entry.startswith("~") else str(two_folders[0] / entry)
    monkeypatch.setenv("TINYLIGHT_DATA", f"{listed}{os.pathsep}{two_folders[1]}")
    with pytest.warns(InputWarning, match=rf"^TINYLIGHT_DATA lists {re.escape(listed)}, which can't be read: \w"):
        assert [each.name for each in list_networks()] == ["crossing", "arterial", "Elsewhere", "LosAngeles"]


def test_a_folder_that_we_may_not_read(two_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read anything, so the refusal is simulated."""
    usual = Path.iterdir

    def refusing(folder: Path) -> Iterator[Path]:
        if folder == two_folders[0]:
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return usual(folder)

    monkeypatch.setattr(Path, "iterdir", refusing)
    with pytest.warns(InputWarning, match=f"lists {two_folders[0]}, which can't be read: Permission denied"):
        assert [each.name for each in list_networks()] == ["crossing", "arterial", "Elsewhere", "LosAngeles"]


def test_a_bad_data_set_does_not_hide_the_others(two_folders: tuple[Path, Path]) -> None:
    (two_folders[0] / "Hangzhou1" / "flow_4.json").unlink()
    with pytest.warns(InputWarning, match=r"the network Hangzhou1 is left out: .*flow_4\.json: missing"):
        assert [each.name for each in list_networks()] == ["crossing", "arterial", "Elsewhere", "LosAngeles"]


def test_a_folder_without_flows_is_reported(two_folders: tuple[Path, Path]) -> None:
    data_set(two_folders[0], "Bare", flows=0)
    data_set(two_folders[0], "LosAngeles", flows=0)  # the second folder's is whole
    fault = r"first/Bare: flow_0\.json: missing"
    for find in (find_network, network_of):
        with pytest.raises(InputError, match=fault):
            find("Bare")
    with pytest.warns(InputWarning, match=f"the network Bare is left out: .*{fault}"):
        assert [each.name for each in list_networks()] == network_names()
    assert "Bare" not in network_names() and "LosAngeles" in network_names()


def test_the_cache_that_cannot_be_written(two_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    (two_folders[0] / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(two_folders[0] / "file"))
    with pytest.raises(InputError, match=r"file/.*: can't be written: Not a directory; XDG_CACHE_HOME can name another"):
        find_network("crossing")
    with pytest.raises(InputError, match="XDG_CACHE_HOME can name another"):
        list_networks()


@pytest.mark.parametrize("flow", [-1, 2])
def test_flow_out_of_range(two_folders: tuple[Path, Path], flow: int) -> None:
    with pytest.raises(InputError, match=f"network Elsewhere: flow {flow}: no such flow; there are 0 to 1"):
        find_network("Elsewhere").flow_file(flow)


def test_seeds_of_the_release_repeat_beyond_ten_flows() -> None:
    assert len(RUN_SEEDS) == 10
    assert [default_seed(k) for k in (0, 9, 10)] == [992832, 992817, 992832]
