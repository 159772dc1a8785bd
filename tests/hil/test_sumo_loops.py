"""Loops made from SUMO's vehicles: beside SUMO's own detectors, and beside what SUMO counts on each road."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from hil.light.loops import ENTRY, STOP_LINE, Loops
from hil.loop.edges import Edge
from streetflow.control.environment import Environment
from streetflow.networks.catalogue import Network, network_of
from streetflow.sumo.binding import read_binding
from streetflow.sumo.engine import SumoEngine
from tests.helpers.sumo_files import CONFIG, changed, import_to, needs_sumo

pytestmark = needs_sumo
SECONDS = 500
A_STEP_S = 1.0  # SUMO's clock of a step is that of its beginning
ROADS = (("A_B_0", "A_B_1"), ("B_A_0", "B_A_1"), ("fork_A_1", "fork_A_2"), ("A_fork_0",))  # none of the network's entries


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Network:
    folder = tmp_path_factory.mktemp("nets") / "two"
    import_to(CONFIG, folder)
    return network_of(str(folder))


class Driven:
    """The network's own programs, second by second, with the loops of some lanes."""

    def __init__(self, network: Network, seed: int = 0, options: Sequence[str] = ()) -> None:
        features = ["phase_2_num_vehicle"]
        self.environment = Environment(network, engine="sumo", features=features, clearance="computed", seed=seed)
        assert isinstance(self.environment.engine, SumoEngine)
        self.engine = self.environment.engine
        self.engine.options = options
        self.engine.reset()

    def edges(self, lanes: Sequence[int]) -> Iterator[list[Edge]]:
        loops = Loops(self.environment, lanes)
        for _ in range(SECONDS):
            self.engine.step_many(1)
            yield loops.step()


def test_loops_come_on_when_sumos_own_detectors_see_a_front(two: Network, tmp_path: Path) -> None:
    names = [name for road in ROADS for name in road]
    numbers = [read_binding(two.roadnet_file.parent).lanes.index(name) for name in names]
    additional, root = tmp_path / "loops.add.xml", ET.Element("additional")
    for k, name in enumerate(names):
        for which, at_m in ((ENTRY, "0.01"), (STOP_LINE, "-0.01")):
            where = {"id": str(2 * k + which), "lane": name, "pos": at_m, "file": str(tmp_path / "seen.xml")}
            ET.SubElement(root, "instantInductionLoop", where)
    additional.write_bytes(ET.tostring(root))
    driven = Driven(two, options=("--additional-files", str(additional)))
    came_on: dict[int, list[float]] = defaultdict(list)
    for second, edges in enumerate(driven.edges(numbers)):
        for edge in edges:
            if edge.level:
                came_on[edge.loop].append(second + edge.at_s)
    driven.engine.close()
    seen: dict[int, list[float]] = defaultdict(list)
    for each in ET.parse(tmp_path / "seen.xml").getroot():
        if each.get("state") == "enter":
            seen[int(each.get("id", ""))].append(float(each.get("time", "nan")) + A_STEP_S)
    assert sum(map(len, came_on.values())) > 400
    for road in ROADS:
        for which in (ENTRY, STOP_LINE):
            loops = [2 * names.index(name) + which for name in road]
            own, theirs = (np.sort(np.concatenate([times[loop] for loop in loops])) for times in (came_on, seen))
            assert abs(len(own) - len(theirs)) <= 1, (road, which)
            nearest = np.abs(own[:, None] - theirs[None, :]).min(axis=1)
            assert np.mean(nearest < 0.05) > 0.95, "a few change lanes on the centimetre between the two detectors"


@pytest.mark.parametrize("seed", [0, 5])
def test_entries_less_departures_are_what_each_road_holds_in_every_second(seed: int, two: Network) -> None:
    """Though vehicles change lanes."""
    assert off_by_lanes(Driven(two, seed)) > 0, "nobody has changed lanes: the test shows nothing"


@pytest.mark.parametrize("step_s", ["0.5", "0.1"])
def test_who_enters_the_network_between_two_seconds_is_felt(step_s: str, tmp_path: Path) -> None:
    """With steps shorter than a second he has driven on by its end, past the loop."""
    config = changed(tmp_path / "drawn", (".sumocfg", "<time>", f'<time><step-length value="{step_s}"/>'))
    import_to(config, tmp_path / "two")
    off_by_lanes(Driven(network_of(str(tmp_path / "two"))))


def off_by_lanes(driven: Driven) -> int:
    """Asserts that all roads' sums are right; returns how far the lanes' are off, in vehicles and seconds."""
    roads = [road for each in driven.environment.intersections for road in (*each.in_road_lanes, *each.out_road_lanes)]
    lanes = sorted({lane for road in roads for lane in road})
    counts, off = np.zeros(len(lanes), np.int64), 0
    for second, edges in enumerate(driven.edges(lanes)):
        for edge in edges:
            if edge.level:
                counts[edge.loop // 2] += 1 if edge.loop % 2 == ENTRY else -1
        true = driven.engine.lane_vehicle_counts()
        off += int(np.abs(counts - true[lanes]).sum())
        for road in roads:
            own = [lanes.index(lane) for lane in road]
            assert counts[own].sum() == true[list(road)].sum(), (second, road)
    driven.engine.close()
    return off
