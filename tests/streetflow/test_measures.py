"""Every measure against values worked out by hand, in the engine, through the environment, and for CityFlow's adaptor."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from streetflow import Engine
from streetflow.control.environment import Environment
from streetflow.control.measures import MEASURES, QueueMeter, measure
from streetflow.engine.trips import Trips
from tests.helpers.places import ROOT
from tests.helpers.small_network import CAR, demand, grid, line, write
from tests.streetflow.test_environment import stand_in  # noqa: F401  (a fixture)

# On `line` at 10 m/s, from standing: 1, 4, 9, 16, 25 m after 1 to 5 s, then 10 m a second. The path is 1000 + 1 + 30 m; a
# trip ends in the step in which it is exceeded: 25 + 10 * (n - 5) > 1031 for the n-th, so n = 106, which starts 105 s on.
SLOW = CAR | {"maxSpeed": 10.0}
TRIP_S = 105
FREE_FLOW_S = 103.1


def single(start_s: int, vehicle: dict[str, float] = SLOW) -> dict[str, object]:
    return {"vehicle": vehicle, "route": ["in_0", "out"], "interval": 1, "startTime": start_s, "endTime": start_s}


def engine_on_line(folder: Path, flows: list[dict[str, object]]) -> Engine:
    return Engine(write(folder, line(), flows))


def test_a_trip_alone(tmp_path: Path) -> None:
    engine = engine_on_line(tmp_path, [single(5)])
    engine.step_many(5)
    assert engine.trips().ids == []
    engine.step_many(TRIP_S)  # up to the start of the step in which it ends
    trips = engine.trips()
    assert trips.ids == ["flow_0_0"] and not trips.finished.any()
    assert trips.travel_time_s.tolist() == trips.network_time_s.tolist() == [TRIP_S]
    assert trips.free_flow_s == pytest.approx([(25 + 10 * (TRIP_S - 5)) / 10])
    engine.step_many(50)
    trips = engine.trips()
    assert (trips.created_s, trips.entered_s, trips.ended_s) == ([5.0], [5.0], [5.0 + TRIP_S])
    assert trips.travel_time_s.tolist() == [TRIP_S] == [engine.get_average_travel_time()]
    assert trips.free_flow_s == pytest.approx([FREE_FLOW_S])
    assert trips.delay_s == pytest.approx([TRIP_S - FREE_FLOW_S])


def test_waiting_to_enter_counts_from_creation_only(tmp_path: Path) -> None:
    """The one ahead must be 7.5 m on, which it is (9 m) after 3 s."""
    engine = engine_on_line(tmp_path, [single(0), single(0)])
    engine.step_many(2)
    assert engine.queued_vehicle_count == 1
    assert engine.trips().entry_wait_s.tolist() == [0.0, 2.0]
    assert math.isnan(engine.trips().network_time_s[1])
    engine.step_many(200)
    trips = engine.trips()
    assert trips.finished.all() and engine.queued_vehicle_count == 0
    assert sorted(trips.entry_wait_s.tolist()) == [0.0, 3.0]
    assert (trips.travel_time_s - trips.network_time_s).tolist() == trips.entry_wait_s.tolist()


def test_free_flow_goes_by_the_lower_speed_limit(tmp_path: Path) -> None:
    """in_0 and out allow 20 m/s, the lane link any speed: a vehicle of 25 m/s drives the 1 m across at 25."""
    engine = engine_on_line(tmp_path, [single(0, CAR | {"maxSpeed": 25.0})])
    engine.step_many(200)
    assert engine.trips().free_flow_s == pytest.approx([1000 / 20 + 1 / 25 + 30 / 20])


def test_queues_at_a_red_light(tmp_path: Path) -> None:
    engine = engine_on_line(tmp_path, [single(0), single(30), single(30)])
    engine.set_tl_phase("mid", 1)
    queues = QueueMeter()
    for _ in range(300):
        engine.next_step()
        queues.sample(engine)
    assert queues.standing[0] == 0 and queues.standing[-1] == 3
    assert queues.outside == [0] * 30 + [1] * 3 + [0] * 267
    figures = measure(engine.trips(), queues)
    assert figures["largest_queue_vehicles"] == 3.0
    assert figures["queue_vehicles"] == sum(queues.standing) / 300
    assert figures["entry_queue_vehicles"] == pytest.approx(0.01)
    assert (figures["completion_rate"], figures["finished_travel_time_s"]) == (0.0, None)


NAN = math.nan
BY_HAND = Trips(  # two finished, one under way, one waiting to enter; now is 100 s
    now_s=100.0,
    flow=np.array([0, 1, 2, -1], np.int32),
    ordinal=np.array([0, 0, 3, 7], np.int32),
    created_s=np.array([0.0, 10.0, 20.0, 96.0]),
    entered_s=np.array([0.0, 14.0, 26.0, NAN]),
    ended_s=np.array([50.0, 90.0, NAN, NAN]),
    free_flow_s=np.array([40.0, 40.0, 30.0, 0.0]),
)
BY_HAND_FIGURES = {
    "travel_time_s": (50 + 80 + 80 + 4) / 4,
    "finished_travel_time_s": (50 + 80) / 2,
    "network_time_s": (50 + 76 + 74) / 3,
    "finished_network_time_s": (50 + 76) / 2,
    "entry_wait_s": (0 + 4 + 6 + 4) / 4,
    "delay_s": (10 + 36 + 44) / 3,
    "created_vehicles": 4,
    "entered_vehicles": 3,
    "finished_vehicles": 2,
    "completion_rate": 0.5,
    "queue_vehicles": 2.0,
    "largest_queue_vehicles": 3,
    "entry_queue_vehicles": 0.5,
}


def test_every_measure_by_hand() -> None:
    assert measure(BY_HAND, QueueMeter([1, 3], [0, 1])) == pytest.approx(BY_HAND_FIGURES)
    assert BY_HAND.ids == ["flow_0_0", "flow_1_0", "flow_2_3", "manually_pushed_7"]


def test_without_vehicles_averages_are_undefined() -> None:
    none = np.zeros(0)
    figures = measure(Trips(5.0, none.astype(np.int32), none.astype(np.int32), none, none, none, none))
    counts = {"created_vehicles": 0.0, "entered_vehicles": 0.0, "finished_vehicles": 0.0}
    assert figures == dict.fromkeys(BY_HAND_FIGURES) | counts


def test_the_documented_table_is_the_one_in_the_code() -> None:
    text = (ROOT / "docs" / "measures.md").read_text(encoding="utf-8")
    rows = [f"| `{spec.name}` | {spec.unit} | {spec.definition} |" for spec in MEASURES]
    assert "| --- | --- | --- |\n" + "\n".join(rows) + "\n\n" in text
    assert len(rows) == len({spec.name for spec in MEASURES}) == len(BY_HAND_FIGURES)


@pytest.fixture
def busy(tmp_path: Path) -> Engine:
    roadnet = grid(2, 2, seed=3)
    engine = Engine(write(tmp_path, roadnet, demand(roadnet, 150, 150, seed=3), seed=1, rlTrafficLight=False))
    engine.step_many(250)
    return engine


def equal(one: Trips, other: Trips) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(vars(one).values(), vars(other).values(), strict=True))


def test_trips_agree_with_the_engine(busy: Engine) -> None:
    trips = busy.trips()
    assert trips.finished.sum() == busy.finished_vehicle_count > 100
    assert sorted(np.array(trips.ids)[~trips.finished]) == sorted(busy.get_vehicles(include_waiting=True)) != []
    assert (trips.entered & ~trips.finished).sum() == busy.get_vehicle_count()
    assert trips.travel_time_s.mean() == pytest.approx(busy.get_average_travel_time(), rel=1e-12)
    assert len(set(trips.ids)) == len(trips.ids) == len(np.unique(trips.flow.astype(np.int64) << 32 | trips.ordinal))
    entered = trips.entered
    assert (trips.created_s[entered] <= trips.entered_s[entered]).all()
    assert (trips.delay_s[entered] > -1.0).all()  # a trip ends, by its count, at the start of its last step


def test_who_changes_lanes_is_one_vehicle(tmp_path: Path) -> None:
    """Although the engine, as CityFlow does, simulates two vehicles during the change."""
    roadnet = grid(2, 2, seed=3, length_m=250)
    flows = demand(roadnet, 150, 150, seed=3)
    engine = Engine(write(tmp_path, roadnet, flows, seed=1, rlTrafficLight=False, laneChange=True))
    n_steps_with_two = 0
    for _ in range(300):
        engine.next_step()
        trips = engine.trips()
        under_way = set(np.array(trips.ids)[~trips.finished])
        assert under_way == set(engine.get_vehicles(include_waiting=True))
        assert len(set(trips.ids)) == len(trips.ids)
        n_steps_with_two += engine.get_vehicle_count() > len(engine.get_vehicles())
    assert n_steps_with_two > 20 and trips.finished.sum() > 80


def test_trips_go_with_snapshots(busy: Engine, tmp_path: Path) -> None:
    before, archive = busy.trips(), busy.snapshot()
    archive.dump(tmp_path / "archive.json")
    busy.step_many(60)
    assert not equal(busy.trips(), before)
    busy.load(archive)
    assert equal(busy.trips(), before)
    busy.reset()
    assert busy.trips().ids == []
    busy.load_from_file(tmp_path / "archive.json")
    assert equal(busy.trips(), before)


def test_a_new_route_keeps_the_time_of_the_path_driven(tmp_path: Path) -> None:
    """Turned from the road straight ahead to the one to the right, in the middle of the first road."""
    roadnet = grid(1, 1, seed=0)
    flow = [single(0) | {"route": ["r_-1_0_0", "r_0_0_0"]}]
    plain, turned = (Engine(write(tmp_path / name, roadnet, flow, rlTrafficLight=False)) for name in "ab")
    plain.step_many(8)
    turned.step_many(8)
    assert turned.set_vehicle_route("flow_0_0", ["r_0_0_3"])
    plain.step_many(300)
    turned.step_many(300)
    for engine in (plain, turned):
        assert engine.trips().finished.all() and 15 < engine.trips().free_flow_s[0] < 30
    assert plain.trips().free_flow_s[0] != turned.trips().free_flow_s[0]


def test_measuring_queues_changes_nothing_else() -> None:
    runs = []
    for measured in (False, True):
        environment = Environment("crossing", 0, horizon_s=400)
        environment.measures_queues = measured
        environment.reset()
        seen = [environment.step([n % 8])[0].tolist() for n in range(20)]
        runs.append((seen, environment.average_travel_time_s(), environment.measures()))
    assert runs[0][:2] == runs[1][:2]
    (without, asked) = (run[2] for run in runs)
    queues = {"queue_vehicles", "largest_queue_vehicles", "entry_queue_vehicles"}
    assert {name for name in asked if asked[name] != without[name]} == queues
    assert all(without[name] is None for name in queues) and (asked["queue_vehicles"] or 0) > 1
    environment.reset()
    assert environment.measures()["queue_vehicles"] is None


def test_cityflow_has_the_same_measures(stand_in: ModuleType) -> None:  # noqa: F811
    found = []
    for engine in ("builtin", "cityflow"):
        environment = Environment("crossing", 2, engine=engine, horizon_s=600)
        environment.measures_queues = True
        environment.reset()
        for n in range(30):
            environment.step([n // 3 % 8])
        found.append((environment.measures(), environment.engine.trips()))
    (own, own_trips), (other, other_trips) = found
    assert other["delay_s"] is None and own["delay_s"] is not None
    names = own.keys() - {"delay_s"}
    assert {name: own[name] for name in names} == pytest.approx({name: other[name] for name in names}, rel=1e-12)
    for name in ("created_s", "entered_s", "ended_s"):
        assert of_vehicle(own_trips, name) == of_vehicle(other_trips, name)


def of_vehicle(trips: Trips, name: str) -> dict[str, str]:
    return dict(zip(trips.ids, map(repr, getattr(trips, name).tolist()), strict=True))


def test_evaluate_prints_and_exports_them(tmp_path: Path) -> None:
    import json

    from typer.testing import CliRunner

    from tinylight.cli import app

    rows_file, trips_file = tmp_path / "rows.json", tmp_path / "trips.csv"
    arguments = ["evaluate", "--network", "crossing", "--agent", "MaxPressure", "--flows", "0-1", "--measures"]
    result = CliRunner().invoke(app, [*arguments, "--json", str(rows_file), "--trips", str(trips_file)])
    assert result.exit_code == 0 and all(spec.name in result.output for spec in MEASURES)
    rows = json.loads(rows_file.read_text())
    with trips_file.open(newline="") as file:
        trips = list(csv.DictReader(file))
    for row in rows:
        own = [trip for trip in trips if int(trip["flow"]) == row["flow"]]
        assert row["measures"]["travel_time_s"] == pytest.approx(row["average_travel_time_s"], rel=1e-12)
        assert len(own) == row["measures"]["created_vehicles"]
        mean_s = sum(float(trip["travel_time_s"]) for trip in own) / len(own)
        assert mean_s == pytest.approx(row["average_travel_time_s"], rel=1e-12)
        assert sum(trip["ended_s"] == "" for trip in own) == len(own) - row["measures"]["finished_vehicles"]
