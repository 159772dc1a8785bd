"""`tinylight check`: every fault at once, every warning from a file made to raise it, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streetflow.check.check_flow import vehicle_count
from streetflow.check.report import FileToCheck, check, files_to_check
from streetflow.engine.cityflow_names import Engine
from streetflow.errors import InputError
from streetflow.networks.generate_flow import Traffic
from streetflow.networks.generate_roadnet import Grid
from streetflow.networks.write import generated_network, write_network
from streetflow.roadnet.flow import Flow, VehicleKind
from tests.helpers.small_network import CAR, demand, grid, line, write
from tinylight.cli import app

ROUTE = ["in_0", "out"]


def entry(**fields: Any) -> dict[str, Any]:
    return {"vehicle": dict(CAR), "route": ROUTE, "interval": 1.0, "startTime": 0, "endTime": 0} | fields


def files(folder: Path, roadnet: Any, flows: Any) -> tuple[Path, Path]:
    write(folder, roadnet, flows)
    return folder / "roadnet.json", folder / "flow.json"


def found(folder: Path, roadnet: Any, flows: Any, interval_s: float = 1.0) -> list[tuple[str, str, str]]:
    """(topic, place, text) of all warnings; there must be no fault."""
    net, flow = files(folder, roadnet, flows)
    reports = [check(FileToCheck(net)), check(FileToCheck(flow, net, 3600), interval_s)]
    assert [report.faults for report in reports] == [[], []]
    return [tuple(warning) for report in reports for warning in report.warnings]


def test_a_clean_network_is_described_and_has_no_warnings(tmp_path: Path) -> None:
    grid_2x3 = Grid(rows=2, columns=3, side_lanes=2)
    write_network(tmp_path / "clean", generated_network(grid_2x3, Traffic(600, horizon_s=1800), 2, 0))
    network, *demands = (check(subject) for subject in files_to_check([str(tmp_path / "clean")]))
    assert [each.warnings + each.faults for each in (network, *demands)] == [[], [], []]
    # main: 2 rows of 2 blocks and 2 ends, both ways; side: 3 columns of 1 block and 2 ends; crossings are 15 m wide
    main_m, side_m = 2 * (2 * 370 + 2 * 285) * 2 * 3, 3 * (370 + 2 * 285) * 2 * 2
    assert network.content == {
        "crossings": 6, "signalled_crossings": 6, "road_ends": 10, "phases": "8", "roads": 34, "lanes": 84,
        "lane_links": 6 * 2 * (3 * 1 + 2 + 2 + 2 * 1 + 3 + 3), "lane_km": (main_m + side_m) / 1000,
        "speed_limits_mps": "11.111",
    }  # fmt: skip
    for report in demands:
        flows = json.loads(Path(report.file).read_bytes())
        assert report.content["flows"] == report.content["vehicles"] == len(flows)
        assert report.content["vehicles_per_hour"] == 2 * len(flows)
        assert report.content["horizon_s"] == 1800 and report.content["last_start_s"] == flows[-1]["startTime"]


def unconnected_road() -> Any:
    """`line`, and beside it a road `far` between two crossings that nothing leads to or from."""
    net = line()
    net["intersections"] += [
        {
            "id": name, "point": {"x": x, "y": 99}, "virtual": False, "width": 0, "roads": ["far"], "roadLinks": [],
            "trafficLight": {"lightphases": [{"time": 30, "availableRoadLinks": []}]},
        }
        for name, x in (("a", 0), ("b", 90))
    ]  # fmt: skip
    net["roads"].append({
        "id": "far", "startIntersection": "a", "endIntersection": "b", "lanes": [{"width": 4, "maxSpeed": 20}],
        "points": [{"x": 0, "y": 99}, {"x": 90, "y": 99}],
    })  # fmt: skip
    return net


def test_roads_that_nothing_reaches_or_leaves(tmp_path: Path) -> None:
    topics = {topic: (place, text) for topic, place, text in found(tmp_path, unconnected_road(), [entry()])}
    assert topics["unreachable road"] == ("roads[2]", "no path leads from a road end to 'far'")
    assert topics["road without a path out"] == ("roads[2]", "no path leads from 'far' to a road end")
    assert topics["dead end"] == ("roads[2].lanes[0]", "no lane link leads on from lane far_0")
    assert "phase 0 serves no movement" in topics


def changed(change: Callable[[dict[str, Any]], Any]) -> Any:
    """`line` of two arms with its crossing changed, without the phase that opens nothing."""
    net = line(n_arms=2)
    crossing = net["intersections"][0]
    crossing["trafficLight"]["lightphases"].pop()
    change(crossing)
    return net


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (lambda c: None, None),
        (
            lambda c: c["trafficLight"]["lightphases"].append({"time": 5, "availableRoadLinks": []}),
            ("phase 1 serves no movement", "intersections[0].trafficLight.lightphases[1]"),
        ),
        (
            lambda c: c["trafficLight"]["lightphases"][0].update(availableRoadLinks=[0]),
            ("movement that no phase serves", "intersections[0].roadLinks[1]"),
        ),
        (lambda c: c["roadLinks"][1].update(laneLinks=[]), ("movement without a lane link", "intersections[0].roadLinks[1]")),
        (lambda c: c["roads"].remove("out"), ("road that its crossing doesn't list", "intersections[0].roads")),
        (
            lambda c: c["roadLinks"][1].update(startRoad="out"),
            ("movement between roads that don't meet here", "intersections[0].roadLinks[1]"),
        ),
    ],
)
def test_warnings_about_crossings(tmp_path: Path, change: Callable[[Any], Any], warning: tuple[str, str] | None) -> None:
    net, _ = files(tmp_path, changed(change), [])
    report = check(FileToCheck(net))
    assert report.faults == []
    pairs = [(each.topic, each.place) for each in report.warnings]
    assert pairs == [] if warning is None else warning in pairs


def test_a_crossing_that_lists_a_strangers_road(tmp_path: Path) -> None:
    net = unconnected_road()
    net["intersections"][0]["roads"].append("far")
    warnings = found(tmp_path, net, [entry()])
    assert ("listed road that doesn't meet the crossing", "intersections[0].roads[2]", "'far'") in warnings


FAST = CAR | {"maxSpeed": 25.0}


@pytest.mark.parametrize(
    ("flow", "warning"),
    [
        (entry(), None),
        (
            entry(route=["out", "in_0"]),
            ("route that can't be planned", "[0].route", "there is no path from road 'out' to road 'in_0'"),
        ),
        (entry(route=["in_0"]), ("route that can't be planned", "[0].route", "the route has only one road, 'in_0'")),
        (
            entry(startTime=3600, endTime=3600),
            ("flow that starts after the horizon", "[0].startTime", "3600 s, the horizon is 3600 s"),
        ),
        (
            entry(vehicle=FAST),
            (
                "vehicle faster than a lane of its route",
                "[0].vehicle.maxSpeed",
                "25 m/s, a lane of its route allows 20; crossings have no limit",
            ),
        ),
    ],
)
def test_warnings_about_flows(tmp_path: Path, flow: dict[str, Any], warning: tuple[str, str, str] | None) -> None:
    warnings = found(tmp_path, changed(lambda c: None), [entry(), flow])
    shifted = warning and (warning[0], warning[1].replace("[0]", "[1]"), warning[2])
    assert warnings == ([] if shifted is None else [shifted])


def test_windows_that_steps_jump_over(tmp_path: Path) -> None:
    flows = [entry(startTime=1, endTime=1)]
    assert found(tmp_path / "1", changed(lambda c: None), flows, 0.5) == []
    [(topic, place, text)] = found(tmp_path / "2", changed(lambda c: None), flows, 0.7)
    assert (topic, place, text) == ("flow between two steps", "[0]", "no step falls between 1 and 1 s")


def test_routes_with_a_dead_end(tmp_path: Path) -> None:
    """Two lanes in, two on the middle road, but only its lane 1 leads on, and lane 0 in leads to its lane 0 only."""
    net = grid(2, 1, n_lanes=2)
    for crossing in net["intersections"]:
        for link in crossing.get("roadLinks", []):
            if link["startRoad"] == "r_-1_0_0" and link["endRoad"] == "r_0_0_0":
                link["laneLinks"] = [{"startLaneIndex": 0, "endLaneIndex": 0}]
            if link["startRoad"] == "r_0_0_0" and link["endRoad"] == "r_1_0_0":
                link["laneLinks"] = [{"startLaneIndex": 1, "endLaneIndex": 1}]
    warnings = found(tmp_path, net, [entry(route=["r_-1_0_0", "r_0_0_0", "r_1_0_0"])])
    assert ("route with a dead end", "[0].route", "no path onwards from lane 'r_-1_0_0_0'") in warnings


def test_demand_above_capacity(tmp_path: Path) -> None:
    """A lane passes a vehicle each 2 s headway + 5 m / 11.11 m/s = 2.45 s. Two arms that may drive at once need the time
    of the busier one; with a phase each, that of both."""
    flows = [entry(interval=3.0, endTime=-1), entry(interval=4.0, endTime=-1, route=["in_1", "out"])]
    both = changed(lambda c: None)
    assert found(tmp_path / "1", both, flows) == []
    apart = changed(lambda c: c["trafficLight"].update(lightphases=[{"time": 9, "availableRoadLinks": [k]} for k in (0, 1)]))
    [(topic, place, text)] = found(tmp_path / "2", apart, flows)
    assert topic == "demand above capacity" and place == "intersections[0] of the road network"
    assert "'mid'" in text and f"{(2 + 5 / 11.11) * (1 / 3 + 1 / 4):.0%} of the time" in text  # 143 %
    too_many = [entry(interval=2.0, endTime=-1)]
    assert [warning[0] for warning in found(tmp_path / "3", both, too_many)] == ["demand above capacity"]


KIND = VehicleKind(5, 2, 2, 4.5, 2, 4.5, 2.5, 11, 2)


@pytest.mark.parametrize(
    ("interval_s", "start_s", "end_s", "vehicles"),
    [(1, 5, 5, 1), (1, 99, 99, 1), (1, 100, 100, 0), (2.5, 10, 20, 5), (10, 0, -1, 10), (10, 95, 300, 1), (1, -3, -2, 0)],
)
def test_vehicles_up_to_the_horizon(interval_s: float, start_s: int, end_s: int, vehicles: int) -> None:
    assert vehicle_count(Flow(KIND, (0, 1), interval_s, start_s, end_s), 100) == vehicles


# ------------------------------------------------------------------ faults, files, the command


def test_all_faults_of_both_files_at_once(tmp_path: Path) -> None:
    roadnet = line()
    roadnet["roads"][0]["lanes"][0]["width"] = "wide"
    roadnet["roads"][1]["points"] = []
    net, flow = files(tmp_path, roadnet, [entry(route=["nowhere"]), entry(interval=0), entry(vehicle={})])
    network, traffic = check(FileToCheck(net)), check(FileToCheck(flow, net))
    assert {place for place, _ in network.faults} == {f"roads[{i}].lanes[0].width" for i in (0, 1)} | {"roads[1].points"}
    places = {place for place, _ in traffic.faults}
    assert {"[0].route[0]", "[1].interval", "[2].vehicle.length", ""} <= places
    assert any("routes weren't checked" in fault for _, fault in traffic.faults)


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    write_network(tmp_path / "clean", generated_network(Grid(), Traffic(100, horizon_s=600), 2, 0))
    return tmp_path / "clean"


def test_exit_codes(clean: Path, tmp_path: Path) -> None:
    ok = run(clean, "--strict")
    assert ok.exit_code == 0 and "3 files: no faults, no warnings" in ok.output
    flow = clean / "flow_0.json"
    flows = json.loads(flow.read_bytes())
    flow.write_text(json.dumps([*flows, flows[0] | {"startTime": 999, "endTime": 999}]))
    warned = run(clean)
    assert warned.exit_code == 0 and "warning: flow that starts after the horizon" in warned.output
    assert run(clean, "--strict").exit_code == 1
    flow.write_text(json.dumps([*flows, flows[0] | {"interval": -1}, flows[0] | {"route": []}]))
    report = tmp_path / "report.json"
    faulty = run(clean, "--json", report)
    assert faulty.exit_code == 2 and f"[{len(flows)}].interval" in faulty.output
    content = json.loads(report.read_bytes())
    assert content["exit_code"] == 2 and [len(each["faults"]) for each in content["files"]] == [0, 2, 0]
    assert [fault["place"] for fault in content["files"][1]["faults"]] == [
        f"[{len(flows)}].interval",
        f"[{len(flows) + 1}].route",
    ]


def test_many_alike_warnings_are_one_paragraph(clean: Path) -> None:
    flow = clean / "flow_1.json"
    flows = json.loads(flow.read_bytes())
    late = [flows[0] | {"startTime": 999, "endTime": 999}] * 7
    flow.write_text(json.dumps(flows + late))
    result = run(clean)
    assert "flow that starts after the horizon (7x)" in result.output and "and 4 more" in result.output
    assert result.output.count("the horizon is 600 s") == 3


def test_what_may_be_named(clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "a flow.json"
    elsewhere.write_bytes((clean / "flow_1.json").read_bytes())
    net = clean / "roadnet.json"
    assert files_to_check([str(net)]) == [FileToCheck(net)]
    assert files_to_check([str(clean / "flow_1.json")]) == [FileToCheck(net), FileToCheck(clean / "flow_1.json", net, 600)]
    assert files_to_check([str(net), str(elsewhere)]) == [FileToCheck(net), FileToCheck(elsewhere, net)]
    monkeypatch.setenv("TINYLIGHT_DATA", str(tmp_path))
    assert [subject.file for subject in files_to_check(["clean"])] == [net, clean / "flow_0.json", clean / "flow_1.json"]
    assert files_to_check(["clean", str(net)]) == files_to_check(["clean"])


def test_files_that_are_no_json(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    result = run(tmp_path / "broken.json")
    assert result.exit_code == 2 and "line 1, column 2" in result.output


def test_bad_step(clean: Path) -> None:
    result = run(clean, "--interval", 0)
    assert isinstance(result.exception, InputError) and "interval" in str(result.exception)


def test_small_networks_of_the_other_tests_are_sound(tmp_path: Path) -> None:
    roadnet = grid(2, 2, seed=1)
    warnings = found(tmp_path, roadnet, demand(roadnet, 30, 100, seed=1))
    assert {warning[0] for warning in warnings} <= {"demand above capacity"}


NETWORKS = Path(__file__).parent / "networks"


def test_where_no_intersection_is_virtual_routes_decide_what_is_reachable(tmp_path: Path) -> None:
    """A part cut out of a city, with crossings where it was cut."""
    report = check(FileToCheck(NETWORKS / "no_virtual" / "roadnet.json"))
    topics = {warning.topic for warning in report.warnings}
    assert report.content["road_ends"] == 0 and report.faults == []
    assert topics.isdisjoint({"unreachable road", "road without a path out", "road on no route"})
    net = json.loads((NETWORKS / "no_virtual" / "roadnet.json").read_bytes())
    ends = [each for each in net["intersections"] if not each["roadLinks"]]  # where nothing goes on
    net["roads"].append(
        {
            **net["roads"][0], "id": "alone", "startIntersection": ends[0]["id"], "endIntersection": ends[1]["id"],
            "points": [ends[0]["point"], ends[1]["point"]],
        }
    )  # fmt: skip
    (tmp_path / "roadnet.json").write_text(json.dumps(net))
    warnings = [
        warning for warning in check(FileToCheck(tmp_path / "roadnet.json")).warnings if warning.topic == "road on no route"
    ]
    assert [(warning.place, warning.text) for warning in warnings] == [
        ("roads[10]", "nothing leads onto 'alone' nor on from it")
    ]


def two_crossings(first_m: float, second_m: float, limit_mps: float) -> Any:
    """A road of first_m, a crossing that is always open, a road of second_m, a crossing that is red at first."""
    net = line(first_m, exit_m=second_m)
    lane = [{"width": 4, "maxSpeed": limit_mps}]
    crossing, *ends = net["intersections"]
    crossing["trafficLight"]["lightphases"].pop()
    far = {"x": second_m + 300, "y": 0}
    red = {
        "id": "red", "point": {"x": second_m, "y": 0}, "virtual": False, "width": 0, "roads": ["out", "last"],
        "roadLinks": [
            {
                "type": "go_straight", "startRoad": "out", "endRoad": "last",
                "laneLinks": [
                    {"startLaneIndex": 0, "endLaneIndex": 0, "points": [{"x": second_m, "y": 0}, {"x": second_m + 1, "y": 0}]}
                ],
            }
        ],
        "trafficLight": {"lightphases": [{"time": 30, "availableRoadLinks": []}, {"time": 30, "availableRoadLinks": [0]}]},
    }  # fmt: skip
    net["roads"][1]["endIntersection"] = "red"
    net["roads"].append(
        {
            "id": "last", "startIntersection": "red", "endIntersection": "end", "lanes": lane,
            "points": [{"x": second_m, "y": 0}, far],
        }
    )  # fmt: skip
    for road in net["roads"]:
        road["lanes"] = lane
    end = {"id": "end", "point": far, "virtual": True, "roads": []}
    net["intersections"] = [crossing, red, *(each for each in ends if each["id"] != "exit"), end]
    return net


@pytest.mark.parametrize(("second_m", "warned"), [(5, True), (30, True), (45, True), (48, False), (60, False)])
def test_an_approach_gets_a_warning_where_cars_pass_a_red_light(tmp_path: Path, second_m: float, warned: bool) -> None:
    """At 16.67 m/s: 30.9 m to brake and 16.7 m in the step before. The engine agrees: some of 20 cars pass, or none does."""
    passed = 0
    for metre in range(20):
        net = two_crossings(500 + metre, second_m, 16.67)
        flow = entry(route=["in_0", "last"], vehicle=CAR | {"maxSpeed": 16.67})
        engine = Engine(write(tmp_path / str(metre), net, [flow]))
        engine.step_many(200)
        passed += engine.finished_vehicle_count
    warnings = [
        each for each in check(FileToCheck(tmp_path / "0" / "roadnet.json")).warnings if each.topic.startswith("approach")
    ]
    assert (passed > 0) == warned == bool(warnings)
    if warned:
        assert warnings[0].place == "roads[1].lanes[0]"
        assert f"lane out_0 is {second_m:.1f} m long" in warnings[0].text and "up to 47.5 m to stop" in warnings[0].text


def test_short_approaches_are_named_lane_by_lane() -> None:
    report = check(FileToCheck(NETWORKS / "short_approach" / "roadnet.json"))
    warnings = [each for each in report.warnings if each.topic == "approach shorter than the braking distance"]
    assert len(warnings) == 12 and "lane leg0_in_0 is 2.0 m long" in warnings[0].text
    longer = check(FileToCheck(NETWORKS / "short_approach" / "roadnet.json"), interval_s=1.5).warnings
    assert "up to 30.4 m" in next(each.text for each in longer if each.topic == warnings[0].topic)  # 13.7 + 1.5 * 11.11


def test_a_demand_without_a_vehicle_is_said(tmp_path: Path) -> None:
    warnings = found(tmp_path / "empty", line(), [])
    assert ("demand without a vehicle", "whole file", "it holds no flow") in warnings
    late = found(tmp_path / "late", line(), [entry(startTime=4000, endTime=4000)])
    assert ("demand without a vehicle", "whole file", "none of its 1 flows creates one within 3600 s") in late
    assert "demand without a vehicle" not in {topic for topic, _, _ in found(tmp_path / "one", line(), [entry()])}
