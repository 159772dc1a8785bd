"""A road network is read once and passed on; vehicles' ids are made and read in one place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streetflow.control.controllers import MaxPressure
from streetflow.control.environment import Environment
from streetflow.engine.vehicles import vehicle_id, vehicle_numbers
from streetflow.errors import InputError
from streetflow.networks.catalogue import Network, network_of
from streetflow.networks.generate_flow import Traffic
from streetflow.networks.generate_roadnet import Grid
from streetflow.networks.write import generated_network, write_network
from streetflow.roadnet import flow as flow_file
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


def test_a_demand_is_parsed_once_for_all_that_run_on_it(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """And anew where its content has changed, even in the same instant and to the same length, or is read by other rules."""
    parsed: list[str] = []
    array_elements = flow_file.array_elements

    def counting(path: str | Path) -> Any:
        parsed.append(Path(path).name)
        return array_elements(path)

    monkeypatch.setattr(flow_file, "array_elements", counting)
    monkeypatch.setattr(flow_file, "_last", None)
    roads, file = reader.read_roadnet(network.roadnet_file).road_index, network.flow_files[0]
    first = flow_file.read_flows(file, roads)
    for features in ("release", "deployable"):
        Environment(network, 0, features=features)
    assert flow_file.read_flows(file, dict(roads)) is first and parsed == ["flow_0.json"]
    flow_file.read_flows(file, roads, accept_integral_floats=True)
    swapped = dict(zip(roads, reversed(roads.values()), strict=True))
    assert flow_file.read_flows(file, swapped)[0].anchors != first[0].anchors and len(parsed) == 3
    text = file.read_text()
    before = flow_file.read_flows(file, roads)
    file.write_text(text.replace('"minGap":2.5', '"minGap":3.5'))
    assert flow_file.read_flows(file, roads)[0].kind.min_gap_m == 3.5 != before[0].kind.min_gap_m
    file.write_text("[")
    for _ in range(2):
        with pytest.raises(InputError, match="not JSON"):
            flow_file.read_flows(file, roads)
