"""Importing SUMO scenarios: what becomes of lanes, movements, phases, conflicts and demand, by a network drawn by hand."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from streetflow.control.intersection import signalled_intersections
from streetflow.control.signal_groups import signal_plans
from streetflow.networks.catalogue import network_of
from streetflow.roadnet.network_tables import NetworkTables, load_network
from streetflow.sumo.binding import read_binding
from streetflow.sumo.importing import import_scenario
from streetflow.sumo.net import read_net
from streetflow.sumo.roadnet import convert
from streetflow.sumo.scenario import read_scenario
from tests.helpers.run_cli import tinylight
from tests.helpers.sumo_files import CONFIG, DRAWN, changed, import_to


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sumo") / "two"
    import_to(CONFIG, out)
    return out


@pytest.fixture(scope="module")
def network(folder: Path) -> NetworkTables:
    return load_network(folder / "roadnet.json")


def at(folder: Path, name: str) -> dict[str, Any]:
    roadnet = json.loads((folder / "roadnet.json").read_bytes())
    return next(each for each in roadnet["intersections"] if each["id"] == name)


def movements(intersection: dict[str, Any]) -> list[str]:
    return [f"{each['startRoad']} {each['endRoad']}" for each in intersection["roadLinks"]]


def test_lanes_are_counted_from_the_left_and_footways_are_none(folder: Path, network: NetworkTables) -> None:
    binding = read_binding(folder)
    named = dict(zip(network.roadnet.lane_ids, binding.lanes, strict=True))
    assert (named["fork_A_0"], named["fork_A_1"]) == ("fork_A_2", "fork_A_1")  # its lane 0 is the footway
    assert "fork_A_2" not in named
    assert (named["hill_B_0"], named["hill_B_1"]) == ("hill_B_1", "hill_B_0")
    assert network.lane_shapes.length_m == pytest.approx(binding.lane_lengths_m, abs=0.05)
    left, right = (network.lane_shapes[network.roadnet.lane_ids.index(f"A_B_{i}")] for i in (0, 1))
    assert left[0][1] - right[0][1] == pytest.approx(3.2) and left[0] == pytest.approx((257.2, 148.4), abs=0.01)


def test_movements_phases_and_states_of_a_light(folder: Path) -> None:
    light = at(folder, "A")
    names = movements(light)
    assert sorted(names) == sorted(
        f"{start}_A A_{end}"
        for start, ends in (
            ("north", ("fork", "south", "B")),
            ("south", ("B", "north", "fork")),
            ("B", ("north", "fork", "south")),
            ("fork", ("south", "B", "north")),
        )
        for end in ends
    )
    kinds = dict(zip(names, (each["type"] for each in light["roadLinks"]), strict=True))
    assert (kinds["north_A A_fork"], kinds["north_A A_B"], kinds["fork_A A_B"]) == ("turn_right", "turn_left", "go_straight")
    main = {"B_A A_north", "B_A A_fork", "B_A A_south", "fork_A A_south", "fork_A A_B", "fork_A A_north"}
    side = {name for name in names if name[:5] in ("north", "south")}
    phases = light["trafficLight"]["lightphases"]
    opened = [{names[i] for i in phase["availableRoadLinks"]} for phase in phases]
    assert opened == [main, {"B_A A_south", "fork_A A_north"}, side]
    permitted = [{names[i] for i in phase["permittedRoadLinks"]} for phase in phases]
    assert permitted == [{"B_A A_south", "fork_A A_north"}, set(), {"north_A A_B", "south_A A_fork"}]
    assert [phase["time"] for phase in phases] == [33, 6, 20]
    bound = next(each for each in read_binding(folder).lights if each.light == "A")
    assert bound.states == ("rrrGGGgrrrGGGg", "rrrrrrGrrrrrrG", "GGgsrrrGGgsrrr")
    assert bound.signals[names.index("fork_A A_B")] == (11, 12) and bound.yellow_s == 3.0


def test_conflicts_are_those_of_the_right_of_way(folder: Path, network: NetworkTables) -> None:
    light = at(folder, "A")
    names = movements(light)
    conflicts = {frozenset(names[i] for i in pair) for pair in light["conflicts"]}
    assert {"north_A A_south", "fork_A A_B"} in conflicts and {"B_A A_south", "fork_A A_B"} in conflicts
    assert {"north_A A_south", "south_A A_north"} not in conflicts and {"B_A A_fork", "fork_A A_B"} not in conflicts
    yields = {(names[a], names[b]) for a, b in light["yields"]}
    assert ("B_A A_south", "fork_A A_B") in yields and ("fork_A A_B", "B_A A_south") not in yields
    plan = next(each for each in signal_plans(network) if each.intersection == "A")
    groups = [{names[link] for link in group.road_links} for group in plan.groups]
    lefts, mains = (next(i for i, group in enumerate(groups) if name in group) for name in ("B_A A_south", "B_A A_fork"))
    pair = (min(lefts, mains), max(lefts, mains))
    assert pair in plan.permitted and pair not in plan.conflicts


def test_the_file_s_conflicts_go_before_those_of_the_shapes(folder: Path, tmp_path: Path) -> None:
    roadnet = json.loads((folder / "roadnet.json").read_bytes())
    for each in roadnet["intersections"]:
        if "conflicts" in each:
            each["conflicts"] = []
    (tmp_path / "roadnet.json").write_text(json.dumps(roadnet))
    assert all(not plan.conflicts | plan.permitted for plan in signal_plans(load_network(tmp_path / "roadnet.json")))


def test_a_junction_without_a_light_is_always_open_and_ends_are_virtual(folder: Path, network: NetworkTables) -> None:
    fork = at(folder, "fork")
    assert fork["trafficLight"]["lightphases"] == [{"time": 30, "availableRoadLinks": list(range(len(fork["roadLinks"])))}]
    assert at(folder, "west")["virtual"] and not fork["virtual"]
    assert [each.id for each in signalled_intersections(network.roadnet)] == ["A", "B"]


def test_demand_becomes_single_vehicles_that_can_be_driven(folder: Path) -> None:
    flow = json.loads((folder / "flow_0.json").read_bytes())
    routes = {}
    for each in flow:
        routes.setdefault((each["route"][0], each["route"][-1]), []).append(each)
    assert len(routes["south_A", "A_north"]) == 40 and len(routes["west_fork", "B_east"]) == 75
    assert [each["startTime"] for each in routes["hill_B", "B_east"]] == [0, 120, 240, 360, 480]
    assert routes["hill_B", "B_east"][0]["vehicle"]["length"] == 12.0
    assert routes["lane_fork", "B_hill"][0]["startTime"] == 12  # departs at 12.5 s
    assert all(one["startTime"] <= other["startTime"] for one, other in pairwise(flow))
    assert network_of(str(folder)).horizon_s == 600


def test_what_is_taken_and_what_is_not_is_told(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert tinylight("import-sumo", str(CONFIG), str(tmp_path / "two"), "--json", str(report)) == 0
    told = json.loads(report.read_bytes())
    taken = told["taken"]
    assert (taken["lights"], taken["phases to choose from"], taken["vehicles"]) == (2, 5, 220)
    assert taken["vehicles on our own engine"] == 189
    notes = "\n".join(told["notes"])
    for part in ("1 lanes that aren't for road traffic", "turn on red", "for buses", "1 pedestrians", "verbose", "31 vehicles"):
        assert part in notes
    assert {each.name for each in (tmp_path / "two" / "sumo").iterdir()} == {
        "scenario.sumocfg", "two_lights.net.xml", "two_lights.rou.xml"
    }  # fmt: skip


def test_in_parts_every_vehicle_is_driven_through_every_light(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that turn left from the right lane, and the one that would change lanes between two lights, are cut."""
    out = tmp_path / "parts"
    assert tinylight("import-sumo", str(CONFIG), str(out), "--in-parts", "--interval", "5") == 0
    assert "31 vehicles cut into parts" in " ".join(capsys.readouterr().out.split())
    assert network_of(str(out)).decision_interval_s == 5
    network = load_network(out / "roadnet.json")
    flow = json.loads((out / "flow_0.json").read_bytes())
    for each in flow:
        route = tuple(network.roadnet.road_index[road] for road in each["route"])
        lanes = network.router.entry_lanes(route)
        assert lanes and not any(network.router.lane_path(route, 0, lane).is_dead_end for lane in lanes)
    turning = [each for each in flow if each["route"][0] == "hill_B" and each["route"][-1] != "B_east"]
    rest = [each for each in flow if each["route"] == ["B_A", "A_south"]]
    assert [each["route"] for each in turning] == [["hill_B", "B_A"]]
    assert len(rest) == 1 and rest[0]["startTime"] > turning[0]["startTime"] + 20
    corner = [each for each in flow if each["route"][-1] == "A_north" and each["route"][0] != "south_A"]
    assert len(corner) == 30


def test_files_named_one_by_one_give_the_same_network(folder: Path, tmp_path: Path) -> None:
    packed = tmp_path / "two_lights.net.xml.gz"
    packed.write_bytes(gzip.compress((DRAWN / "two_lights.net.xml").read_bytes()))
    options = ("--begin", "0", "--end", "600")
    assert tinylight("import-sumo", str(packed), str(DRAWN / "two_lights.rou.xml"), str(tmp_path / "out"), *options) == 0
    for name in ("roadnet.json", "flow_0.json", "sumo.json"):
        assert (tmp_path / "out" / name).read_bytes() == (folder / name).read_bytes()


def test_without_an_end_the_run_lasts_until_the_last_departure(tmp_path: Path) -> None:
    imported = import_scenario(read_scenario([changed(tmp_path, (".sumocfg", '<end value="600"/>', ""))]))
    assert imported.taken["horizon, s"] == 601


def test_movements_whose_lanes_show_different_signals_are_kept_apart(tmp_path: Path) -> None:
    config = changed(tmp_path, (".net.xml", 'state="rrrGGGgrrrGGGg"', 'state="rrrGGrgrrrGGGg"'))
    light = next(each for each in convert(read_net(config.with_name("two_lights.net.xml"))).lights if each.light == "A")
    assert len(light.signals) == 13
    assert (4,) in light.signals and (5,) in light.signals


def test_a_light_of_two_junctions_is_one_intersection_s(tmp_path: Path) -> None:
    """The light of B is joined to that of A: its ten signals follow A's fourteen."""
    text = (DRAWN / "two_lights.net.xml").read_text()
    for index in range(9, -1, -1):
        text = text.replace(f'tl="B" linkIndex="{index}"', f'tl="A" linkIndex="{index + 14}"')
    begin, end = text.index('<tlLogic id="B"'), text.index("</tlLogic>", text.index('<tlLogic id="B"')) + len("</tlLogic>")
    text = text[:begin] + text[end:]
    for state, rest in (
        ("rrrGGGgrrrGGGg", "rrrrGGGGGg"), ("rrryyygrrryyyg", "rrrryyyyyy"), ("rrrrrrGrrrrrrG", "rrrrrrrrrr"),
        ("rrrrrryrrrrrry", "rrrrrrrrrr"), ("GGgsrrrGGgsrrr", "GGGGrrrrrr"), ("yyysrrryyysrrr", "yyyyrrrrrr"),
    ):  # fmt: skip
        text = text.replace(f'state="{state}"', f'state="{state}{rest}"')
    file = tmp_path / "joined.net.xml"
    file.write_text(text)
    converted = convert(read_net(file))
    assert converted.joined == {"A": ["A", "B"]}
    (light,) = converted.lights
    assert sorted(signal for signals in light.signals for signal in signals) == list(range(24))
    names = {each["id"]: each for each in converted.roadnet["intersections"]}
    assert names["B"]["virtual"] and len(names["A"]["roadLinks"]) == 18
    opened = names["A"]["trafficLight"]["lightphases"][0]["availableRoadLinks"]
    assert "A_B B_east" in {movements(names["A"])[i] for i in opened}
    pairs = {frozenset(movements(names["A"])[i] for i in pair) for pair in names["A"]["conflicts"]}
    assert frozenset({"hill_B B_A", "east_B B_A"}) in pairs  # B's own right of way
    assert not any({one.split("_")[0], other.split("_")[0]} == {"north", "hill"} for one, other in map(tuple, pairs))
