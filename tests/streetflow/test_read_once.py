"""A road network is read once and passed on; vehicles' ids are made and read in one place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streetflow.control.controllers import MaxPressure
from streetflow.control.environment import Environment
from streetflow.engine.vehicles import vehicle_id, vehicle_numbers
from streetflow.networks.catalogue import Network, network_of
from streetflow.networks.generate_flow import Traffic
from streetflow.networks.generate_roadnet import Grid
from streetflow.networks.write import generated_network, write_network
from streetflow.roadnet import reader


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Network:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_network(tmp_path / "net", generated_network(Grid(), Traffic(300, horizon_s=60), 2, 0))
    return network_of(str(tmp_path / "net"))


@pytest.mark.parametrize(("clearance", "files"), [("hold", 1), ("yellow", 2)])
def test_a_road_network_is_read_once(network: Network, clearance: str, files: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is made of it; with a clearance so is the derived one."""
    read: Counter[str] = Counter()
    read_json = reader.read_json

    def counting(path: str | Path, *rest: Any) -> Any:
        read[str(path)] += 1
        return read_json(path, *rest)

    monkeypatch.setattr(reader, "read_json", counting)
    for flow in (0, 1):
        controller = MaxPressure()
        environment = Environment(network, flow, clearance=clearance, features=controller.features)
        observation = environment.reset()
        controller.reset(environment)
        environment.step(controller.act(observation))
    assert len(read) == files and set(read.values()) == {1}
    assert str(network.roadnet_file) in read


def test_a_changed_road_network_is_read_anew(network: Network) -> None:
    before = Environment(network).intersections
    text = network.roadnet_file.read_text()
    network.roadnet_file.write_text(text.replace(before[0].id, "renamed"))
    assert Environment(network).intersections[0].id == "renamed"


@pytest.mark.parametrize(("numbers", "name"), [((3, 17), "flow_3_17"), ((0, 0), "flow_0_0"), ((-1, 4), "manually_pushed_4")])
def test_ids_name_flow_and_ordinal(numbers: tuple[int, int], name: str) -> None:
    assert vehicle_id(*numbers) == name and vehicle_id(*numbers, is_shadow=True) == f"{name}_shadow"
    assert vehicle_numbers(name) == vehicle_numbers(f"{name}_shadow") == numbers


@pytest.mark.parametrize("name", ["", "flow_1", "flow__1", "flow_-1_2", "manually_pushed_x", "flow_1_²", " flow_1_2"])
def test_what_is_no_id(name: str) -> None:
    assert vehicle_numbers(name) is None
