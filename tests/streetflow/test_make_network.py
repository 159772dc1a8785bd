"""`tinylight make-network`: what it writes loads, runs and is what was asked for; shifted copies are the paper's noise."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from streetflow import Engine
from streetflow.control.environment import Environment
from streetflow.control.intersection import signalled_intersections
from streetflow.errors import InputError
from streetflow.networks import generate_flow, generate_roadnet
from streetflow.networks.catalogue import network_of
from streetflow.networks.generate_flow import Traffic, poisson
from streetflow.networks.generate_roadnet import Grid, start_lanes
from streetflow.networks.write import generated_network, shifted_copies, write_network
from streetflow.roadnet.reader import TURN_RANKS, read_roadnet
from tests.helpers.drawn_networks import drawn
from tinylight.cli import app

GRIDS = st.builds(
    Grid,
    rows=st.integers(1, 3),
    columns=st.integers(1, 3),
    lanes=st.integers(1, 4),
    side_lanes=st.integers(1, 4),
    block_m=st.sampled_from([60, 150.5, 400]),
    side_block_m=st.sampled_from([60, 250]),
    entry_m=st.sampled_from([60, 300]),
    speed_mps=st.sampled_from([8.0, 11.111, 16.67]),
    side_speed_mps=st.sampled_from([5.5, 13.9]),
    phases=st.sampled_from([4, 8, 9]),
    curves=st.booleans(),
)
SHARES = st.tuples(st.sampled_from([0.0, 0.1, 0.45]), st.sampled_from([0.0, 0.2, 0.45]))
TRAFFIC = st.builds(
    Traffic,
    vehicles_per_hour=st.sampled_from([0, 300, 4000]),
    main_share=st.sampled_from([0.0, 0.5, 1.0]),
    westward_share=st.sampled_from([0.0, 0.5, 1.0]),
    side_turns=SHARES,
    main_turns=SHARES,
    profile=st.sampled_from(sorted(generate_flow.PROFILES)),
    routes=st.sampled_from(generate_flow.ROUTES),
    horizon_s=st.sampled_from([120, 200]),
    max_speed_mps=st.sampled_from([7.0, 11.111, 20.0]),
)


@drawn(60)
@given(grid=GRIDS, traffic=TRAFFIC, seed=st.integers(0, 3), noise_s=st.sampled_from([None, 0, 60]))
def test_every_network_loads_runs_and_loses_no_vehicle(
    tmp_path_factory: pytest.TempPathFactory, grid: Grid, traffic: Traffic, seed: int, noise_s: int | None
) -> None:
    folder = tmp_path_factory.mktemp("made") / "network"
    files = generated_network(grid, traffic, 1, seed, noise_s)
    assert files == generated_network(grid, traffic, 1, seed, noise_s)
    write_network(folder, files)
    network = network_of(str(folder))
    assert network.horizon_s == traffic.horizon_s
    flows = json.loads(network.flow_files[0].read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a route that can't be planned, a dead end, a flow that never fires
        engine = Engine.from_files(network.roadnet_file, network.flow_files[0], seed=seed, rl_traffic_light=False)
    assert len(signalled_intersections(read_roadnet(network.roadnet_file))) == grid.rows * grid.columns
    for _ in range(4):
        engine.step_many(traffic.horizon_s // 4 + 20)
        trips = engine.trips()
        now_s = engine.get_current_time()
        assert trips.flow.size == sum(each["startTime"] < now_s for each in flows)
        waiting, running = engine.queued_vehicle_count, engine.get_vehicle_count()
        assert trips.flow.size == waiting + running + engine.finished_vehicle_count
        assert running >= engine.lane_vehicle_counts().sum()


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 6])
def test_lanes_are_shared_out_among_turns(lanes: int) -> None:
    by_turn = {kind: list(start_lanes(kind, lanes)) for kind in TURN_RANKS}
    assert by_turn["turn_left"] == [0] and by_turn["turn_right"] == [lanes - 1]
    assert by_turn["go_straight"] == {1: [0], 2: [1], 3: [1], 4: [1, 2], 6: [1, 2, 3, 4]}[lanes]


@pytest.mark.parametrize(("phases", "opened"), [(4, [6] * 4), (8, [6] * 8), (9, [4] + [6] * 8)])
def test_phases(phases: int, opened: list[int], tmp_path: Path) -> None:
    write_network(tmp_path / "n", generated_network(Grid(phases=phases), Traffic(0), 1, 0))
    light = next(each for each in read_roadnet(tmp_path / "n" / "roadnet.json").intersections if not each.virtual)
    assert [len(phase.road_links) for phase in light.phases] == opened
    rights = {i for i, link in enumerate(light.road_links) if link.rank == TURN_RANKS["turn_right"]}
    served = [set(phase.road_links) for phase in light.phases]
    assert all(rights <= phase for phase in served) and set.union(*served) == set(range(12))


def test_a_grid_has_the_lengths_and_speeds_that_were_asked_for(tmp_path: Path) -> None:
    grid = Grid(
        rows=2, columns=3, lanes=2, side_lanes=1, block_m=500, side_block_m=350, entry_m=200, speed_mps=15, side_speed_mps=9
    )
    write_network(tmp_path / "n", generated_network(grid, Traffic(0), 1, 0))
    net = read_roadnet(tmp_path / "n" / "roadnet.json")
    found = Counter()
    for road in net.roads:
        (x0, y0), (x1, y1) = road.points
        found[abs(x1 - x0) + abs(y1 - y0), road.n_lanes, *set(road.lane_max_speeds_mps)] += 1
    # main: 2 rows of 2 inner blocks and 2 ends, both ways; side: 3 columns of 1 inner block and 2 ends
    assert found == {(500, 2, 15): 8, (200, 2, 15): 8, (350, 1, 9): 6, (200, 1, 9): 12}
    assert [i.id for i in net.intersections if not i.virtual][:4] == [
        "intersection_1_1", "intersection_2_1", "intersection_3_1", "intersection_1_2",
    ]  # fmt: skip
    assert {i.width_m for i in net.intersections if not i.virtual} == {2 * 4 + 3}


def trips(grid: Grid, traffic: Traffic, seed: int = 0) -> list[dict[str, Any]]:
    return generate_flow.flow(grid, traffic, random.Random(seed).random)


def test_arrivals_are_poisson() -> None:
    draw = random.Random(5).random
    for mean in (0.0, 0.3, 7.6):
        numbers = np.array([poisson(mean, draw) for _ in range(20_000)])
        tolerance = 5 * (mean / 20_000) ** 0.5 + 1e-12
        assert numbers.mean() == pytest.approx(mean, abs=tolerance)
        assert numbers.var() == pytest.approx(mean, abs=0.05 * mean + tolerance)
    counts = [len(trips(Grid(), Traffic(500, horizon_s=720), seed)) for seed in range(200)]
    assert np.mean(counts) == pytest.approx(100, abs=3) and np.var(counts) == pytest.approx(100, rel=0.4)


def test_the_profile_shapes_demand_over_the_horizon() -> None:
    for profile, share in (("flat", 1 / 3), ("peak", (1.25 + 1.6 + 1.7 + 1.5) / 12)):
        starts = [each["startTime"] for each in trips(Grid(), Traffic(20_000, profile=profile, horizon_s=1800))]
        assert starts == sorted(starts) and starts[0] >= 0 and starts[-1] < 1800
        assert sum(600 <= start < 1200 for start in starts) / len(starts) == pytest.approx(share, abs=0.02)


def test_shares_and_turning_ratios_come_out() -> None:
    traffic = Traffic(40_000, main_share=0.7, westward_share=0.2, main_turns=(0.3, 0.1), side_turns=(0.05, 0.25))
    made = trips(Grid(rows=2, columns=2), traffic)
    firsts = Counter(int(each["route"][0][-1]) for each in made)
    assert firsts[2] / len(made) == pytest.approx(0.14, abs=0.01)
    assert firsts[0] / len(made) == pytest.approx(0.56, abs=0.01)
    turns: dict[bool, Counter[int]] = {True: Counter(), False: Counter()}
    for each in made:
        headings = [int(road[-1]) for road in each["route"]]
        for now, then in pairwise(headings):
            turns[now % 2 == 0][(then - now) % 4] += 1
    for on_main, (left, right) in ((True, (0.3, 0.1)), (False, (0.05, 0.25))):
        total = turns[on_main].total()
        assert turns[on_main][1] / total == pytest.approx(left, abs=0.01)
        assert turns[on_main][3] / total == pytest.approx(right, abs=0.01)
        assert turns[on_main][2] == 0


def test_routes_by_ends_reach_every_other_end() -> None:
    made = trips(Grid(rows=1, columns=2), Traffic(20_000, routes="ends"))
    pairs = {tuple(each["route"]) for each in made}
    assert len(pairs) == 6 * 5


STREAM = {"vehicle": generate_flow.VEHICLE, "route": ["a", "b"], "interval": 2.5, "startTime": 10, "endTime": 20}


def test_noise_shifts_each_start_uniformly_and_clips_at_zero() -> None:
    singles = [
        STREAM | {"startTime": start, "endTime": start, "interval": 5, "number": n} for n, start in enumerate([30, 500] * 5000)
    ]
    files = shifted_copies(singles, 60, 2, 7, 3600)
    assert list(files) == ["flow_0.json", "flow_1.json"] and files["flow_0.json"] != files["flow_1.json"]
    moved = json.loads(files["flow_0.json"])
    assert [each["startTime"] for each in moved] == sorted(each["startTime"] for each in moved)
    assert all(each["startTime"] == each["endTime"] for each in moved)
    by_number = sorted(moved, key=lambda each: each["number"])
    untimed = [{**each, "startTime": 0, "endTime": 0} for each in singles]
    assert [{**each, "startTime": 0, "endTime": 0} for each in by_number] == untimed
    shifts = Counter(each["startTime"] - 500 for each in by_number[1::2])
    assert set(shifts) == set(range(-60, 61))  # each has a chance of 1 in 121
    assert max(shifts.values()) < 3 * min(shifts.values())
    early = Counter(each["startTime"] for each in by_number[::2])
    assert set(early) == set(range(91)) and early[0] / 5000 == pytest.approx(31 / 121, abs=0.03)


def test_noise_turns_streams_into_the_vehicles_that_the_engine_would_create(tmp_path: Path) -> None:
    flows = [STREAM, STREAM | {"endTime": -1, "startTime": 590, "interval": 4}, STREAM | {"startTime": 3, "endTime": 3}]
    moved = json.loads(shifted_copies(flows, 0, 1, 0, 600)["flow_0.json"])
    assert [each["startTime"] for each in moved] == [3, 10, 13, 15, 18, 20, 590, 594, 598]
    from tests.helpers.small_network import grid, write

    route = {"route": ["r_-1_0_0", "r_0_0_0"]}
    engine = Engine(write(tmp_path, grid(), [each | route for each in flows]))
    engine.step_many(600)
    assert sorted(engine.trips().created_s.tolist()) == [each["startTime"] for each in moved]


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["make-network", *map(str, arguments)])


def test_the_command_makes_a_network_that_the_others_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--columns", 2, "--phases", 9, "--vehicles", 900, "--horizon", 300, "--flows", 2, "--seed", 3)
    result = run(tmp_path / "mine", *options)
    assert result.exit_code == 0 and "TINYLIGHT_DATA" in result.output
    assert sorted(file.name for file in (tmp_path / "mine").iterdir()) == [
        "flow_0.json", "flow_1.json", "network.json", "roadnet.json",
    ]  # fmt: skip
    monkeypatch.setenv("TINYLIGHT_DATA", str(tmp_path))
    environment = Environment("mine", 1)
    assert environment.horizon_s == 300 and [each.action_count for each in environment.intersections] == [9, 9]
    again = run(tmp_path / "again", *options)
    assert again.exit_code == 0
    for file in (tmp_path / "mine").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_the_command_makes_noisy_copies_of_a_network_and_of_a_file(tmp_path: Path) -> None:
    assert run(tmp_path / "base", "--vehicles", 500, "--horizon", 400, "--flows", 1).exit_code == 0
    for number, source in enumerate((tmp_path / "base", tmp_path / "base" / "flow_0.json")):
        folder = tmp_path / f"noisy{number}"
        assert run(folder, "--noise", 60, "--from", source, "--flows", 3).exit_code == 0
        network = network_of(str(folder))
        assert len(network.flow_files) == 3 and network.horizon_s == 400
        assert network.roadnet_file.read_bytes() == (tmp_path / "base" / "roadnet.json").read_bytes()
    assert json.loads((tmp_path / "noisy0" / "network.json").read_bytes())["made_of"]["noise_s"] == 60
    built_in = run(tmp_path / "crossing60", "--noise", 60, "--from", "crossing", "--flows", 1)
    assert built_in.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rows", 0), "--rows: must be at least 1"),
        (("--rows", 200, "--columns", 200), "more than 10000 crossings"),
        (("--lanes", 0), "--lanes: must be at least 1"),
        (("--phases", 5), "--phases: must be one of 4, 8, 9"),
        (("--block", 20), "--block: must be from 40 m"),
        (("--entry", "nan"), "--entry: must be from"),
        (("--speed", 0), "--speed: must be from 1 to 100"),
        (("--vehicles", -1), "--vehicles: must make from 0"),
        (("--vehicles", "inf"), "--vehicles: must make from 0"),
        (("--main-share", 1.5), "--main-share: must be from 0 to 1"),
        (("--turns", "0.5"), "is not two shares"),
        (("--turns", "0.5,0.6"), "--turns: must be two shares"),
        (("--side-turns", "-0.1,0.1"), "--side-turns: must be two shares"),
        (("--profile", "rush"), "--profile: unknown 'rush'; there are flat, peak"),
        (("--routes", "all"), "--routes: unknown 'all'; there are turns, ends"),
        (("--horizon", 0), "--horizon: must be at least 1"),
        (("--horizon", -5), "--horizon: must be at least 1"),
        (("--rows", 1, "--columns", 20000), "--columns: more than 10000 crossings"),
        (("--flows", 0), "--flows: must be at least 1"),
        (("--noise", -1), "--noise: must be 0 s or more"),
        (("--from", "crossing"), "--from: makes shifted copies: say by how much with --noise"),
        (("--from", "crossing", "--noise", 60, "--rows", 2), "--rows: describes a new network"),
        (("--from", "nowhere", "--noise", 60), "unknown network"),
    ],
)
def test_bad_options(tmp_path: Path, arguments: tuple[object, ...], message: str) -> None:
    result = run(tmp_path / "new", *arguments)
    assert isinstance(result.exception, InputError) and message in str(result.exception)
    assert not (tmp_path / "new").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    assert run(tmp_path / "new", "--flows", 1).exit_code == 0
    result = run(tmp_path / "new", "--flows", 1)
    assert isinstance(result.exception, InputError) and "is there already" in str(result.exception)


def test_start_lanes_serve_all_roads() -> None:
    net = generate_roadnet.roadnet(Grid(rows=2, columns=2, lanes=2, side_lanes=3))
    for intersection in net["intersections"]:
        linked = {
            (link["startRoad"], lane["startLaneIndex"]) for link in intersection["roadLinks"] for lane in link["laneLinks"]
        }
        for road in net["roads"]:
            if road["endIntersection"] == intersection["id"] and not intersection["virtual"]:
                assert {(road["id"], lane) for lane in range(len(road["lanes"]))} <= linked
