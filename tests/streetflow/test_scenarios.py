"""The built-in networks: always the same bytes, valid, and hard enough to distinguish controllers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from streetflow.control.controllers import FixedTime, MaxPressure, run
from streetflow.control.environment import Environment
from streetflow.control.intersection import signalled_intersections
from streetflow.networks import scenarios
from streetflow.networks.catalogue import find_network
from streetflow.roadnet.flow import read_flows
from streetflow.roadnet.reader import read_roadnet
from tests.helpers.golden import HERE

NAMES = tuple(scenarios.SCENARIOS)

# SHA-256 of roadnet.json and flow_0.json ... flow_9.json, one after the other. Policies are trained on these bytes:
# a change of the generator that changes them needs new policies.
DIGESTS = {
    "crossing": "429b904eb54f87fdf4944ba71134dc1a35c044749f711123f9f2d128f6b22a94",
    "arterial": "e73d6c28f7ff8af885dd8c39d8ecb7adb591093d3c4a2c2197bb5e902501dbbe",
}


@pytest.mark.parametrize("name", NAMES)
def test_bytes_never_change(name: str) -> None:
    digest = hashlib.sha256(scenarios.roadnet_bytes(name))
    for flow in range(scenarios.FLOW_COUNT):
        digest.update(scenarios.flow_bytes(name, flow))
    assert digest.hexdigest() == DIGESTS[name]


def test_bytes_are_those_that_cityflow_read() -> None:
    """The recordings in `tests/golden` are of these files: other bytes would be other networks than the recorded ones."""
    sums = dict(reversed(line.split()) for line in (HERE / "SHA256SUMS").read_text().splitlines())
    assert sums.keys() == {f"{name}/{file}.json" for name in NAMES for file in ("roadnet", "flow_0", "flow_1", "flow_2")}
    for file, recorded in sums.items():
        name, _, flow = file.removesuffix(".json").partition("/")
        content = scenarios.roadnet_bytes(name) if flow == "roadnet" else scenarios.flow_bytes(name, int(flow[-1]))
        assert hashlib.sha256(content).hexdigest() == recorded, (
            f"the built-in {file} isn't the one that CityFlow was recorded on"
        )


@pytest.mark.parametrize("name", NAMES)
def test_files_on_disk_hold_the_bytes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    network = find_network(name)
    assert network.roadnet_file.is_relative_to(tmp_path)
    assert network.roadnet_file.read_bytes() == scenarios.roadnet_bytes(name)
    assert [file.read_bytes() for file in network.flow_files] == [scenarios.flow_bytes(name, k) for k in range(10)]
    leftovers = [each for each in network.roadnet_file.parent.parent.iterdir() if each.name.startswith(".")]
    assert not leftovers


@pytest.mark.parametrize("name", NAMES)
def test_flows_differ_from_each_other(name: str) -> None:
    assert len({scenarios.flow_bytes(name, flow) for flow in range(scenarios.FLOW_COUNT)}) == scenarios.FLOW_COUNT


@pytest.mark.parametrize(("name", "lights"), [("crossing", 1), ("arterial", 3)])
def test_crossings_have_eight_phases_and_rights_always_open(name: str, lights: int) -> None:
    network = find_network(name)
    found = signalled_intersections(read_roadnet(network.roadnet_file))
    assert len(found) == lights
    net = read_roadnet(network.roadnet_file)
    for light in found:
        assert light.phases == tuple(range(8))
        assert len(light.in_lanes) == len(light.out_lanes) == 12
        assert len(light.lane_links) == 36
        rights = {i for i, link in enumerate(net.intersections[light.number].road_links) if link.rank == 1}
        assert len(rights) == 4
        for phase in net.intersections[light.number].phases:
            assert rights < set(phase.road_links) and len(phase.road_links) == 6


@pytest.mark.parametrize("name", NAMES)
def test_lane_links_meet_their_lanes(name: str) -> None:
    """Explicit geometry: each path begins and ends where its lanes do, to the millimetre."""
    from streetflow.roadnet.geometry import roadnet_lane_shapes

    net = read_roadnet(find_network(name).roadnet_file)
    lanes = roadnet_lane_shapes(net)
    for intersection in net.intersections:
        for road_link in intersection.road_links:
            for link in road_link.lane_links:
                assert link.points[0] == pytest.approx(lanes[link.start_lane][-1], abs=1e-3)
                assert link.points[-1] == pytest.approx(lanes[link.end_lane][0], abs=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_demand_is_one_vehicle_a_flow_with_a_peak_in_the_middle(name: str) -> None:
    network = find_network(name)
    net = read_roadnet(network.roadnet_file)
    for file in network.flow_files:
        flows = read_flows(file, net.road_index)
        starts = [flow.start_s for flow in flows]
        assert all(flow.start_s == flow.end_s and len(flow.anchors) >= 2 for flow in flows)
        assert starts == sorted(starts) and starts[0] >= 0 and starts[-1] < scenarios.HORIZON_S
        middle = sum(1200 <= start < 2400 for start in starts)
        assert 0.40 < middle / len(starts) < 0.55
        assert abs(len(starts) / scenarios.SCENARIOS[name].traffic.vehicles_per_hour - 1) <= 0.031


def test_route_choice_covers_all_movements_of_the_crossing() -> None:
    routes = {tuple(each["route"]) for each in json.loads(scenarios.flow_bytes("crossing", 0))}
    assert len(routes) == 12


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("flow", [0, 7])
def test_fixed_time_is_clearly_worse_than_max_pressure(name: str, flow: int) -> None:
    time_s = {}
    for kind in (FixedTime, MaxPressure):
        environment = Environment(name, flow)
        run(environment, kind())
        time_s[kind] = environment.average_travel_time_s()
    assert time_s[FixedTime] > 1.3 * time_s[MaxPressure]
    # Not jammed: under MaxPressure a trip takes less than four times the free drive.
    free_drive_s = 2 * scenarios.SCENARIOS[name].grid.entry_m / scenarios.SCENARIOS[name].grid.speed_mps
    assert time_s[MaxPressure] < 4 * free_drive_s
