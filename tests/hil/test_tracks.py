"""Which way has led a vehicle from one place to another within a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.light.tracks import Step, Ways
from streetflow.networks.catalogue import network_of
from streetflow.roadnet.network_tables import NetworkTables, load_network
from tests.helpers.sumo_files import CONFIG, import_to


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> NetworkTables:
    folder = tmp_path_factory.mktemp("nets") / "two"
    import_to(CONFIG, folder)
    return load_network(network_of(str(folder)).roadnet_file)


def lane(tables: NetworkTables, name: str) -> int:
    return tables.roadnet.lane_ids.index(name)


def link(tables: NetworkTables, start: str, end: str) -> int:
    found = tables.link_ids.index(f"{start}_TO_{end}")
    return len(tables.roadnet.lane_ids) + found


def test_from_lane_to_link_to_lane(tables: NetworkTables) -> None:
    ways, start, end = Ways(tables), lane(tables, "north_A_0"), lane(tables, "A_south_0")
    over = link(tables, "north_A_0", "A_south_0")
    assert ways.between(start, over) == (Step(start, over),)
    assert ways.between(start, end) == (Step(start, over), Step(over, end))


def test_to_a_lane_beside_is_no_step(tables: NetworkTables) -> None:
    ways, left, right = Ways(tables), lane(tables, "A_B_0"), lane(tables, "A_B_1")
    assert ways.between(left, right) == ()


def test_onto_a_lane_and_at_once_to_the_one_beside(tables: NetworkTables) -> None:
    ways, start = Ways(tables), lane(tables, "south_A_0")
    ends = [each for _, _, each in tables.links if each.start_lane == start]
    arrives = next(each.end_lane for each in ends if each.end_lane in (lane(tables, "A_B_0"), lane(tables, "A_B_1")))
    other = lane(tables, "A_B_0") + lane(tables, "A_B_1") - arrives
    way = ways.between(start, other)
    assert way is not None and [step.entered for step in way][-1] == arrives and len(way) == 2


def test_beside_within_the_crossing_is_no_step(tables: NetworkTables) -> None:
    movements = [(number, movement) for number, (_, movement, _) in enumerate(tables.links)]
    straight = [n for n, m in movements if (m.start_road, m.end_road) == _roads(tables, "fork_A", "A_B")]
    assert len(straight) == 2
    first = len(tables.roadnet.lane_ids)
    assert Ways(tables).between(first + straight[0], first + straight[1]) == ()


def test_against_the_traffic_there_is_no_way(tables: NetworkTables) -> None:
    assert Ways(tables).between(lane(tables, "A_south_0"), lane(tables, "north_A_0")) is None


def _roads(tables: NetworkTables, start: str, end: str) -> tuple[int, int]:
    ids = [road.id for road in tables.roadnet.roads]
    return ids.index(start), ids.index(end)


def test_every_way_of_the_network_is_found_from_its_links(tables: NetworkTables, tmp_path: Path) -> None:
    ways, first = Ways(tables), len(tables.roadnet.lane_ids)
    for number, (_, _, each) in enumerate(tables.links, first):
        assert ways.between(each.start_lane, number) == (Step(each.start_lane, number),)
        assert ways.between(number, each.end_lane) == (Step(number, each.end_lane),)
