"""What a light's firmware is told about SUMO's lanes: which are side by side, how long they are, which have no way out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hil.build.light_plan import light_documents
from streetflow.networks.catalogue import Network, network_of
from streetflow.sumo.binding import read_binding
from tests.helpers.sumo_files import CONFIG, DRAWN, changed, import_to


def document_of(config: Path, out: Path) -> tuple[dict[str, Any], Network]:
    """Of the light A."""
    import_to(config, out)
    network = network_of(str(out))
    return next(each for each in light_documents(network) if each["intersection"] == "A"), network


def test_lanes_of_one_road_form_a_ring_and_a_lane_alone_has_none_beside(tmp_path: Path) -> None:
    document, network = document_of(CONFIG, tmp_path / "two")
    names, sensed = read_binding(network.roadnet_file.parent).lanes, document["sensing"]
    lanes = [*sensed["in_lanes"], *sensed["out_lanes"]]
    beside = {names[lane["lane"]]: names[lanes[lane["beside"]]["lane"]] for lane in lanes}
    assert beside["fork_A_1"] == "fork_A_2" and beside["fork_A_2"] == "fork_A_1"
    assert beside["north_A_0"] == "north_A_0"
    assert {name.rpartition("_")[0] for name in beside} == {
        "fork_A", "B_A", "north_A", "south_A", "A_B", "A_fork", "A_north", "A_south"
    }  # fmt: skip


def test_lanes_are_as_long_as_sumo_has_them(tmp_path: Path) -> None:
    longer = (
        ".net.xml",
        'length="139.60" shape="248.40,300.00 248.40,160.40"',
        'length="300" shape="248.40,300.00 248.40,160.40"',
    )
    for config, fit in ((CONFIG, 19), (changed(tmp_path / "longer", longer), 41)):
        document, network = document_of(config, tmp_path / f"net_{fit}")
        lane = read_binding(network.roadnet_file.parent).lanes.index("north_A_0")
        assert next(each["most"] for each in document["sensing"]["in_lanes"] if each["lane"] == lane) == fit


def test_a_lane_that_leads_nowhere_out_is_sensed_all_the_same(tmp_path: Path) -> None:
    """Its vehicles change to the lane beside."""
    text = (DRAWN / "two_lights.net.xml").read_text(encoding="utf-8")
    ways = re.findall(r'<connection from="fork_A" [^>]*fromLane="2"[^>]*/>', text)
    config = changed(tmp_path / "cut", *((".net.xml", way, "") for way in ways))
    document, network = document_of(config, tmp_path / "net")
    lane = read_binding(network.roadnet_file.parent).lanes.index("fork_A_2")
    *others, last = document["sensing"]["in_lanes"]
    assert ways and last["lane"] == lane and last["groups"] == []
    assert all(each["groups"] for each in others) and last["beside"] != len(others)
