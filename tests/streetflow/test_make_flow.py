"""Demand for any road network: rates and turning shares are those asked for, and every route is driven to its end."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streetflow import Engine
from streetflow.check.report import FileToCheck, check
from streetflow.errors import FieldError, InputError
from streetflow.networks.by_road import ByRoad
from streetflow.networks.demand_for import ARRIVALS, ROUTES, AskedDemand, DemandMaker
from streetflow.networks.generate_roadnet import Grid, roadnet
from streetflow.networks.movements import movements
from streetflow.roadnet.network_tables import NetworkTables, load_network
from tests.helpers.drawn_networks import drawn
from tests.helpers.small_network import grid, line

NO_VIRTUAL = Path(__file__).parent / "networks" / "no_virtual" / "roadnet.json"


def network(folder: Path, content: Any) -> NetworkTables:
    file = folder / "roadnet.json"
    file.write_text(json.dumps(content))
    return load_network(file)


def road_ids(net: NetworkTables) -> list[str]:
    return [road.id for road in net.roadnet.roads]


def patchy(seed: int, n_columns: int, n_rows: int, n_lanes: int) -> Any:
    """A grid from which half of the lane links are gone, and some movements altogether."""
    rng = random.Random(seed)
    net = grid(n_columns, n_rows, seed=seed, n_lanes=n_lanes, length_m=110.0)
    for road in net["roads"]:
        for lane in road["lanes"]:
            lane["maxSpeed"] = rng.choice([8.3, 11.111, 13.9])
    for intersection in net["intersections"]:
        for link in intersection.get("roadLinks", []):
            n_kept = 0 if rng.random() < 0.25 else max(len(link["laneLinks"]) // 2, 1)
            link["laneLinks"] = rng.sample(link["laneLinks"], n_kept)
    return net


@drawn(60)
@given(
    seed=st.integers(0, 10**6),
    size=st.sampled_from([(1, 1), (2, 1), (2, 2), (3, 2)]),
    n_lanes=st.integers(1, 3),
    routes=st.sampled_from(ROUTES),
    arrivals=st.sampled_from(ARRIVALS),
    profile=st.sampled_from(["flat", "peak"]),
)
def test_every_route_is_driven_to_its_end(
    tmp_path_factory: pytest.TempPathFactory, seed: int, size: tuple[int, int], n_lanes: int, routes: str, arrivals: str,
    profile: str,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("patchy")
    net = network(folder, patchy(seed, *size, n_lanes))
    asked = AskedDemand(40, routes=routes, arrivals=arrivals, profile=profile, horizon_s=900)  # too few for a jam without end
    try:
        maker = DemandMaker(net, asked)
    except InputError as fault:
        assert "no route leads" in str(fault) or "no lane link leads" in str(fault) or "none leads" in str(fault)
        return
    flow = maker.flow(seed)
    assert flow == DemandMaker(net, asked).flow(seed)
    file = folder / "flow.json"
    file.write_text(json.dumps(flow))
    report = check(FileToCheck(file, net.file, 900))
    assert not report.faults
    assert {each.topic for each in report.warnings} <= {"demand above capacity"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine = Engine.from_files(net.file, file, seed=seed, rl_traffic_light=False)
    engine.step_many(900)
    for _ in range(40):
        engine.step_many(100)
        if engine.finished_vehicle_count == len(flow):
            break
    assert engine.finished_vehicle_count == len(flow)


def test_some_drawn_networks_can_be_driven_only_in_part(tmp_path: Path) -> None:
    """The property above isn't empty: there are roads without an exit, and pairs of roads that can't follow one another."""
    without_exit = undrivable = 0
    for seed in range(20):
        net = network(tmp_path, patchy(seed, 2, 2, 2))
        try:
            maker = DemandMaker(net, AskedDemand(2000, horizon_s=100))
        except InputError:
            continue
        without_exit += len(maker.without_exit)
        router = net.router
        used = {
            route for each in maker.flow(0) for route in zip(each["route"], each["route"][1:], each["route"][2:], strict=False)
        }
        ids = road_ids(net)
        for road in maker.rates:
            on_the_map = {(ids[road], ids[a], ids[b]) for a in router.next_roads[road] for b in router.next_roads[a]}
            undrivable += len(on_the_map - used)
    assert without_exit > 3 and undrivable > 100


def assert_share(found: int, total: int, share: float) -> None:
    """Within five standard deviations of a binomial number."""
    assert abs(found - total * share) <= 5 * (total * share * (1 - share)) ** 0.5 + 1e-9, (found, total, share)


@pytest.mark.parametrize("turns", [(0.2, 0.15), (0.05, 0.6), (0.0, 0.0), (0.5, 0.5)])
def test_turning_shares_come_out_at_every_crossing(tmp_path: Path, turns: tuple[float, float]) -> None:
    net = network(tmp_path, roadnet(Grid(rows=2, columns=3)))
    own = {"straight": 0.5, "right": 0.5}
    road, by_turn = next((road, each) for road, each in enumerate(movements(net)) if all(each.values()))
    by_road = ByRoad(turns={road: {each: own.get(turn, 0.0) for turn, roads in by_turn.items() for each in roads}})
    flow = DemandMaker(net, AskedDemand(2000, turns=turns, by_road=by_road)).flow(1)
    taken: dict[int, Counter[int]] = {}
    index = net.roadnet.road_index
    for each in flow:
        for start, end in pairwise(each["route"]):
            taken.setdefault(index[start], Counter())[index[end]] += 1
    asked = {"left": turns[0], "right": turns[1], "straight": 1 - sum(turns)}
    for start, to in taken.items():
        shares = own if start == road else asked
        for turn, roads in movements(net)[start].items():
            assert len(roads) == 1
            assert_share(to[roads[0]], to.total(), shares.get(turn, 0.0))
    assert len(taken) > 10


def test_shares_of_turns_that_are_not_there_go_to_the_others(tmp_path: Path) -> None:
    content = grid(1, 1, n_lanes=2)
    crossing = next(each for each in content["intersections"] if not each["virtual"])
    start = "r_-1_0_0"
    for link in crossing["roadLinks"]:
        if link["startRoad"] == start and link["type"] == "go_straight":
            link["laneLinks"] = []
    net = network(tmp_path, content)
    flow = DemandMaker(net, AskedDemand(2000, turns=(0.3, 0.1))).flow(0)
    ends = Counter(each["route"][1] for each in flow if each["route"][0] == start)
    assert set(ends) == {"r_0_0_1", "r_0_0_3"}
    assert_share(ends["r_0_0_1"], ends.total(), 0.75)  # left
    straight_on = DemandMaker(net, AskedDemand(2000, turns=(0, 0))).flow(0)
    ends = Counter(each["route"][1] for each in straight_on if each["route"][0] == start)
    assert_share(ends["r_0_0_1"], ends.total(), 0.5)


def test_nobody_turns_round_where_there_is_another_way(tmp_path: Path) -> None:
    content = grid(1, 1, n_lanes=1)
    crossing = next(each for each in content["intersections"] if not each["virtual"])
    back = {
        "type": "turn_left",
        "startRoad": "r_-1_0_0",
        "endRoad": "r_0_0_2",
        "laneLinks": [{"startLaneIndex": 0, "endLaneIndex": 0}],
    }
    crossing["roadLinks"].append(back)
    only = {**back, "startRoad": "r_1_0_2", "endRoad": "r_0_0_0"}
    crossing["roadLinks"] = [each for each in crossing["roadLinks"] if each["startRoad"] != "r_1_0_2"] + [only]
    for phase in crossing["trafficLight"]["lightphases"]:
        phase["availableRoadLinks"] = list(range(len(crossing["roadLinks"])))
    net = network(tmp_path, content)
    for routes in ROUTES:
        made = {tuple(each["route"]) for each in DemandMaker(net, AskedDemand(500, routes=routes)).flow(0)}
        assert ("r_-1_0_0", "r_0_0_2") not in made and ("r_1_0_2", "r_0_0_0") in made


def test_rates_come_out_and_are_each_road_s_own(tmp_path: Path) -> None:
    net = network(tmp_path, roadnet(Grid()))
    ids = road_ids(net)
    by_road = ByRoad(rates={0: 0, 1: 1200.0}) if ids[0] in {"road_0_1_0"} else ByRoad(rates={ids.index("road_0_1_0"): 1200.0})
    maker = DemandMaker(net, AskedDemand(300, by_road=by_road))
    counts = Counter(each["route"][0] for number in range(20) for each in maker.flow(3, number))
    assert len(counts) == 4
    for road, number in counts.items():
        mean = 20 * (1200 if road == "road_0_1_0" else 300)
        assert abs(number - mean) <= 5 * mean**0.5
    plain = DemandMaker(net, AskedDemand(300)).flow(3)
    others = [each for each in maker.flow(3) if each["route"][0] != "road_0_1_0"]
    assert others == [each for each in plain if each["route"][0] != "road_0_1_0"]


def test_regular_arrivals_are_evenly_spaced_and_follow_the_profile(tmp_path: Path) -> None:
    net = network(tmp_path, roadnet(Grid()))
    for rate in (70.0, 360.0, 1000.0):
        flow = DemandMaker(net, AskedDemand(rate, arrivals="regular")).flow(0)
        for starts in by_entry(flow).values():
            assert len(starts) == pytest.approx(rate, abs=1)
            assert all(abs(after - before - 3600 / rate) < 1 for before, after in pairwise(starts))
    flow = DemandMaker(net, AskedDemand(1000, arrivals="regular", profile="peak")).flow(0)
    middle = sum(1200 <= each["startTime"] < 2400 for each in flow)
    assert middle / len(flow) == pytest.approx((1.25 + 1.6 + 1.7 + 1.5) / 12, abs=0.01)


def by_entry(flow: list[dict[str, Any]]) -> dict[str, list[int]]:
    starts: dict[str, list[int]] = {}
    for each in flow:
        assert each["startTime"] == each["endTime"]
        starts.setdefault(each["route"][0], []).append(each["startTime"])
    return starts


@pytest.mark.parametrize("seed", range(5))
def test_shortest_routes_are_those_that_the_engine_plans(tmp_path: Path, seed: int) -> None:
    content = grid(3, 2, seed=seed, n_lanes=2)
    net = network(tmp_path, content)
    flow = DemandMaker(net, AskedDemand(800, routes="shortest")).flow(seed)
    index, length_m = net.roadnet.road_index, net.router.average_length_m
    pairs = Counter()
    for each in flow:
        route = [index[road] for road in each["route"]]
        planned = net.router.shortest_path(route[0], route[-1])
        assert planned is not None
        assert sum(length_m[road] for road in route) == pytest.approx(sum(length_m[road] for road in planned), rel=1e-12)
        pairs[route[0], route[-1]] += 1
    assert len(pairs) == 10 * 9
    for number in pairs.values():
        assert_share(number, len(flow), 1 / 90)


def test_fastest_routes_take_the_fast_roads(tmp_path: Path) -> None:
    content = grid(2, 2, seed=1, n_lanes=1, length_m=200.0)
    slow = next(each for each in content["roads"] if each["id"] == "r_0_0_0")
    slow["lanes"] = [{"width": 3.5, "maxSpeed": 1.5}]
    net = network(tmp_path, content)
    start, end = (net.roadnet.road_index[name] for name in ("r_-1_0_0", "r_1_0_0"))
    asked = {"rates": {start: 500.0}, "exits": {end: 1.0}}
    made = {
        routes: {
            tuple(each["route"]) for each in DemandMaker(net, AskedDemand(0, routes=routes, by_road=ByRoad(**asked))).flow(0)
        }
        for routes in ("shortest", "fastest")
    }
    assert made["shortest"] == {("r_-1_0_0", "r_0_0_0", "r_1_0_0")}
    assert made["fastest"] == {("r_-1_0_0", "r_0_0_1", "r_0_1_0", "r_1_1_3", "r_1_0_0")}


def test_exits_get_their_parts(tmp_path: Path) -> None:
    net = network(tmp_path, roadnet(Grid(rows=2, columns=2)))
    ids = road_ids(net)
    start, one, other = (ids.index(name) for name in ("road_0_1_0", "road_2_1_0", "road_2_2_1"))
    by_road = ByRoad(rates={start: 3000.0}, exits={one: 3.0, other: 1.0, start: 0.0})
    flow = DemandMaker(net, AskedDemand(0, routes="shortest", by_road=by_road)).flow(0)
    ends = Counter(each["route"][-1] for each in flow)
    assert set(ends) == {ids[one], ids[other]}
    assert_share(ends[ids[one]], len(flow), 0.75)


def test_vehicles_are_as_fast_as_their_route_allows_or_as_asked(tmp_path: Path) -> None:
    net = network(tmp_path, roadnet(Grid(columns=2, speed_mps=16.67, side_speed_mps=8.333)))
    speeds = {each["vehicle"]["maxSpeed"] for each in DemandMaker(net, AskedDemand()).flow(0)}
    assert speeds == {16.67, 8.333}
    speeds = {each["vehicle"]["maxSpeed"] for each in DemandMaker(net, AskedDemand(max_speed_mps=12)).flow(0)}
    assert speeds == {12}


def test_no_road_is_driven_again_within_the_look_ahead(tmp_path: Path) -> None:
    """Blocks of 30 m, and two lefts in three: the way round a block is far shorter than what a fast vehicle looks ahead."""
    net = network(tmp_path, grid(2, 2, seed=3, n_lanes=1, length_m=30.0))
    flow = DemandMaker(net, AskedDemand(1000, turns=(0.66, 0.2), max_speed_mps=30)).flow(0)
    assert all(len(set(each["route"])) == len(each["route"]) for each in flow)
    slow = DemandMaker(net, AskedDemand(1000, turns=(0.66, 0.2), max_speed_mps=5)).flow(0)
    assert any(len(set(each["route"])) < len(each["route"]) for each in slow)


@pytest.mark.parametrize("seed", [5, 15, 21])
def test_best_routes_too_do_not_come_back_within_the_look_ahead(tmp_path: Path, seed: int) -> None:
    """Lanes that don't lead on make some best ways go round a block of 550 m: no way for vehicles that look 1.3 km ahead."""
    net = network(tmp_path, patchy(seed, 3, 2, 2))
    by_speed = {
        speed_mps: {
            tuple(each["route"])
            for each in DemandMaker(net, AskedDemand(900, routes="shortest", max_speed_mps=speed_mps)).flow(0)
        }
        for speed_mps in (13.9, 100)
    }
    returning = {route for route in by_speed[13.9] if len(set(route)) < len(route)}
    assert returning and by_speed[100] == by_speed[13.9] - returning


def test_a_network_without_road_ends(tmp_path: Path) -> None:
    net = load_network(NO_VIRTUAL)
    flow = DemandMaker(net, AskedDemand()).flow(0)
    led_to = {road for each in net.router.next_roads for road in each}
    index = net.roadnet.road_index
    assert flow and all(index[each["route"][0]] not in led_to for each in flow)
    assert all(not net.router.next_roads[index[each["route"][-1]]] for each in flow)


def test_roads_without_an_exit_are_named(tmp_path: Path) -> None:
    content = line(n_arms=2)
    content["intersections"][0]["roadLinks"][1]["laneLinks"] = []
    content["intersections"][0]["roadLinks"].append(
        {"type": "turn_left", "startRoad": "in_1", "endRoad": "pit", "laneLinks": [{"startLaneIndex": 0, "endLaneIndex": 0}]}
    )
    pit = {**content["roads"][-1], "id": "pit", "endIntersection": "deep"}
    content["roads"].append(pit)
    content["intersections"][0]["roads"].append("pit")
    deep = {**content["intersections"][0], "id": "deep", "point": {"x": 30, "y": 0}, "roads": ["pit", "round"], "roadLinks": []}
    deep["roadLinks"] = [
        {"type": "turn_left", "startRoad": "pit", "endRoad": "round", "laneLinks": [{"startLaneIndex": 0, "endLaneIndex": 0}]}
    ]
    round_ = {**pit, "id": "round", "startIntersection": "deep", "endIntersection": "mid", "points": pit["points"][::-1]}
    content["roads"].append(round_)
    content["intersections"][0]["roads"].append("round")
    content["intersections"][0]["roadLinks"].append(
        {"type": "turn_left", "startRoad": "round", "endRoad": "pit", "laneLinks": [{"startLaneIndex": 0, "endLaneIndex": 0}]}
    )
    deep["trafficLight"] = {"lightphases": [{"time": 30, "availableRoadLinks": [0]}]}
    content["intersections"].append(deep)
    net = network(tmp_path, content)
    maker = DemandMaker(net, AskedDemand())
    assert maker.without_exit == ["in_1"]
    assert {each["route"][0] for each in maker.flow(0)} == {"in_0"}
    index = net.roadnet.road_index
    with pytest.raises(InputError, match=r"^by\.json: rates\.in_1: no route leads from this road to one on which trips end$"):
        DemandMaker(net, AskedDemand(by_road=ByRoad("by.json", {index["in_1"]: 100.0})))
    with pytest.raises(InputError, match=r"^by\.json: rates\.out: no lane link leads on from this road$"):
        DemandMaker(net, AskedDemand(by_road=ByRoad("by.json", {index["out"]: 100.0})))
    with pytest.raises(InputError, match=r"roadnet\.json: roads\[1\]: 'in_1': no route leads from"):
        DemandMaker(net, AskedDemand(by_road=ByRoad("by.json", {index["in_0"]: 0.0})))


def test_shares_that_lead_round_in_circles(tmp_path: Path) -> None:
    net = network(tmp_path, grid(2, 2, n_lanes=1, length_m=300.0))
    index = net.roadnet.road_index
    ring = ["r_0_0_0", "r_1_0_1", "r_1_1_2", "r_0_1_3"]
    parts = {index[road]: {index[after]: 1.0} for road, after in zip(ring, [*ring[1:], ring[0]], strict=True)}
    turns = {road: {**dict.fromkeys(net.router.next_roads[road], 0.0), **to} for road, to in parts.items()}
    entry = {index["r_-1_0_0"]: 100.0}
    with pytest.raises(InputError, match="no route leads from"):
        DemandMaker(net, AskedDemand(0, turns=(0, 0), by_road=ByRoad(rates=entry, turns=turns)))
    for road in parts:
        for after in turns[road]:
            turns[road][after] = turns[road][after] or 1e-9
    maker = DemandMaker(net, AskedDemand(0, turns=(0, 0), by_road=ByRoad(rates=entry, turns=turns)))
    with pytest.raises(FieldError, match="turns: lead vehicles from road 'r_-1_0_0' round in circles"):
        maker.flow(0)


def test_networks_that_nothing_leads_into_or_out_of(tmp_path: Path) -> None:
    content = grid(1, 1, n_lanes=1)
    shut = {"roadLinks": [], "trafficLight": {"lightphases": [{"time": 5, "availableRoadLinks": []}]}}
    net = network(tmp_path, content | {"intersections": [{**each, **shut} for each in content["intersections"]]})
    with pytest.raises(InputError, match="none leads into the network: say by road where trips begin"):
        DemandMaker(net, AskedDemand())
    with pytest.raises(InputError, match="none leads out of the network: say by road where trips end"):
        DemandMaker(net, AskedDemand(by_road=ByRoad(rates={0: 5.0})))
