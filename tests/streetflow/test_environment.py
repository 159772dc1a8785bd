"""The environment: shapes, seeds, lights, measures; and the same run through CityFlow's interface."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import streetflow
from streetflow.control.controllers import MaxPressure, run
from streetflow.control.engines import TrafficEngine, make_engine
from streetflow.control.environment import Environment
from streetflow.control.features import RELEASE
from streetflow.control.measures import ThroughputMeter, summarise
from streetflow.errors import InputError
from streetflow.networks.catalogue import Network, find_network
from streetflow.roadnet.network_tables import load_network


def random_run(environment: Environment, decisions: int, seed: int = 1) -> list[tuple[np.ndarray, np.ndarray]]:
    """Observations and rewards under random actions."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(decisions):
        actions = rng.integers(0, [each.action_count for each in environment.intersections])
        observation, reward, _ = environment.step(actions)
        rows.append((observation, reward))
    return rows


def assert_equal_runs(a: list[tuple[np.ndarray, np.ndarray]], b: list[tuple[np.ndarray, np.ndarray]]) -> None:
    assert len(a) == len(b)
    for (observation_a, reward_a), (observation_b, reward_b) in zip(a, b, strict=True):
        np.testing.assert_array_equal(observation_a, observation_b)
        np.testing.assert_array_equal(reward_a, reward_b)


def test_shapes_and_first_observation() -> None:
    environment = Environment("arterial")
    observation = environment.reset()
    assert environment.feature_names == RELEASE
    assert observation.shape == (3, 11, environment.max_width) == (3, 11, 12) and observation.dtype == np.int32
    assert environment.feature_widths.tolist() == [[8] * 5 + [12] * 5 + [8]] * 3
    expected = np.zeros_like(observation)
    expected[:, 10, 0] = 1  # an empty network; action 0 is in force
    np.testing.assert_array_equal(observation, expected)
    observation, reward, done = environment.step([0, 3, 7])
    assert observation.shape == (3, 11, 12) and reward.shape == (3,) and reward.dtype == np.float64 and not done


def test_zero_padding_beyond_each_width() -> None:
    environment = Environment("crossing")
    environment.reset()
    for observation, _ in random_run(environment, 40):
        for f, width in enumerate(environment.feature_widths[0]):
            assert not observation[0, f, width:].any()


def test_same_seed_same_run_and_reset_restarts_it() -> None:
    first, second = Environment("crossing", 3), Environment("crossing", 3)
    first.reset(), second.reset()
    run = random_run(first, 60)
    assert_equal_runs(run, random_run(second, 60))
    first.reset()
    assert (first.decision, first.time_s, first.elapsed_s.tolist()) == (0, 0, [0])
    assert_equal_runs(run, random_run(first, 60))


def test_without_reset_the_first_run_is_the_same() -> None:
    first, second = Environment("crossing"), Environment("crossing")
    second.reset()
    assert_equal_runs(random_run(first, 30), random_run(second, 30))


def test_other_seed_other_run(tmp_path: Path) -> None:
    """Entry lanes (and how ties are broken) depend on the seed, which shows where a movement may start from two lanes."""
    crossing = find_network("crossing")
    roadnet = json.loads(crossing.roadnet_file.read_text())
    for road_link in roadnet["intersections"][0]["roadLinks"]:
        if road_link["type"] == "go_straight":
            road_link["laneLinks"].append({"startLaneIndex": 2, "endLaneIndex": 2})
    file = tmp_path / "roadnet.json"
    file.write_text(json.dumps(roadnet))
    environment = Environment(Network("two lanes", file, crossing.flow_files, 3600), seed=5)
    environment.reset()
    run = random_run(environment, 60)
    environment.reset(seed=6)
    other = random_run(environment, 60)
    assert any((a[0] != b[0]).any() for a, b in zip(run, other, strict=True))
    environment.reset(seed=5)
    assert_equal_runs(run, random_run(environment, 60))


def test_rewards_are_minus_the_pressure_and_features_fit_the_engine() -> None:
    environment = Environment("arterial", 2)
    environment.reset()
    rng = np.random.default_rng(0)
    for _ in range(50):
        observation, reward, _ = environment.step(rng.integers(0, 8, 3))
        counts = environment.engine.lane_vehicle_counts()
        waiting = environment.engine.lane_waiting_counts()
        for i, light in enumerate(environment.intersections):
            assert reward[i] == -(counts[list(light.in_lanes)].sum() - counts[list(light.out_lanes)].sum())
            values = dict(zip(RELEASE, observation[i], strict=True))
            assert values["inlane_2_num_vehicle"].tolist() == counts[list(light.in_lanes)].tolist()
            assert values["inlane_2_num_waiting_vehicle"].tolist() == waiting[list(light.in_lanes)].tolist()
            # A vehicle that waits has waited for a second or more.
            waited = values["inlane_2_sum_waiting_time"]
            assert (waited >= values["inlane_2_num_waiting_vehicle"]).all()
            assert ((waited > 0) == (values["inlane_2_num_waiting_vehicle"] > 0)).all()
            assert values["inter_2_current_phase"][:8].tolist() == np.eye(8)[environment.current_action[i]].tolist()


def test_lights_follow_the_actions_three_seconds_late() -> None:
    environment = Environment("crossing")
    environment.reset()
    environment.step([0])
    assert (environment.current_action[0], environment.elapsed_s[0]) == (0, 20)
    environment.step([5])  # 3 s of hold, then 17 s of action 5
    assert (environment.current_action[0], environment.elapsed_s[0]) == (5, 17)
    assert environment.engine.phase_indices[0] == environment.shown_phase[0] == 5
    environment.step([5])
    assert environment.elapsed_s[0] == 37


class Watched:
    """An engine that notes the phase of its first light before each step."""

    def __init__(self, engine: TrafficEngine) -> None:
        self._engine = engine
        self.shown: list[int] = []

    def step_many(self, n: int) -> None:
        for _ in range(n):
            self.shown.append(int(self._engine.phase_indices[0]))
            self._engine.step_many(1)

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)


def watched(environment: Environment) -> list[int]:
    """Phases shown at each second from now on."""
    watch = Watched(environment.engine)
    environment.engine = watch  # type: ignore[assignment]
    return watch.shown


@pytest.mark.parametrize("clearance", ["yellow", "all_red"])
def test_clearance_is_shown_by_the_engine(clearance: str) -> None:
    """Three seconds of a phase behind the file's eight, then the new one."""
    environment = Environment("crossing", clearance=clearance)
    environment.reset()
    shown = watched(environment)
    for action in (1, 2):
        environment.step([action])
    assert all(phase >= 8 for phase in [*shown[:3], *shown[20:23]])
    assert shown[3:20] == [1] * 17 and shown[23:] == [2] * 17


def test_every_green_lasts_its_minimum() -> None:
    environment = Environment("crossing", clearance="yellow", min_green_s=30)
    environment.reset()
    shown = watched(environment)
    random_run(environment, 100)
    runs = [(phase, len(list(group))) for phase, group in itertools.groupby(shown)]
    greens = [length for phase, length in runs if phase < 8]
    assert len(greens) > 20
    assert min(greens[:-1]) == 30  # the last one is cut off by the end
    assert {length for phase, length in runs if phase >= 8} == {3}


def test_clearances_cost_capacity_and_differ() -> None:
    time_s = {}
    for clearance in ("hold", "yellow", "all_red"):
        environment = Environment("crossing", clearance=clearance)
        run(environment, MaxPressure())
        time_s[clearance] = environment.average_travel_time_s()
    assert time_s["hold"] < min(time_s["yellow"], time_s["all_red"]) and time_s["yellow"] != time_s["all_red"]


def test_end_of_the_run() -> None:
    environment = Environment("crossing", horizon_s=50)
    environment.reset()
    assert environment.n_decisions == 3
    assert [environment.step([0])[2] for _ in range(3)] == [False, False, True]
    assert environment.time_s == 50 == environment.engine.get_current_time()
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        environment.step([0])
    environment.reset()
    environment.step([0])


@pytest.mark.parametrize(
    "actions", [[8], [-1], [0, 0], [0.0], [[0]], ["0"]]
)  # fmt: skip
def test_bad_actions_are_refused_and_change_nothing(actions: list[object]) -> None:
    environment = Environment("crossing")
    environment.reset()
    with pytest.raises(ValueError, match="action"):
        environment.step(actions)  # type: ignore[arg-type]
    assert environment.time_s == 0 == environment.engine.get_current_time()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flow": 10}, "flow 10: no such flow"),
        ({"clearance": "red"}, "red: unknown"),
        ({"engine": "matsim"}, "unknown engine; there are builtin, cityflow, sumo"),
        ({"engine": "sumo"}, "shows yellow before red"),
        ({"features": ["speed"]}, "unknown feature"),
        ({"horizon_s": 0}, "horizon_s: must be above 0, is 0"),
    ],
)
def test_bad_options_are_input_errors(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Environment("crossing", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["flow", "seed", "horizon_s", "min_green_s"])
@pytest.mark.parametrize("value", [2.5, "2"])
def test_options_that_must_be_whole_numbers(option: str, value: object) -> None:
    with pytest.raises(TypeError, match=rf"^{option} must be a whole number .*not {value!r}$"):
        Environment("crossing", **{option: value})  # type: ignore[arg-type]


def test_faulty_roadnet_is_named_even_with_a_clearance(tmp_path: Path) -> None:
    """The error names the user's file, not the one derived from it."""
    network = find_network("crossing")
    text = network.roadnet_file.read_text().replace('"startLaneIndex":2', '"startLaneIndex":3', 1)
    bad = tmp_path / "roadnet.json"
    bad.write_text(text)
    faulty = Network("bad", bad, network.flow_files, 3600)
    with pytest.raises(InputError) as caught:
        Environment(faulty, clearance="yellow")
    assert caught.value.file == str(bad) and "startLaneIndex" in caught.value.place


# --- measures ---


def test_throughput_samples_are_taken_after_the_decision_that_starts_at_a_full_minute() -> None:
    meter = ThroughputMeter()
    for decision in range(10):  # ten decisions of 20 s; the k-th ends with k * k vehicles finished
        meter.after_decision(decision * 20, (decision + 1) ** 2)
    assert meter.samples == [4**2, 7**2 - 4**2, 10**2 - 7**2]
    assert meter.mean_veh_per_min == 100 / 3


def test_no_sample_no_throughput() -> None:
    meter = ThroughputMeter()
    meter.after_decision(0, 5)
    assert meter.mean_veh_per_min == 0.0


def test_summary_uses_the_population_deviation() -> None:
    summary = summarise([1.0, 3.0])
    assert (summary.mean, summary.deviation, summary.runs) == (2.0, 1.0, 2)
    with pytest.raises(ValueError, match="no runs"):
        summarise([])


# --- CityFlow ---

INTERFACE = (
    "next_step", "get_vehicle_count", "get_vehicles", "get_lane_vehicle_count", "get_lane_waiting_vehicle_count",
    "get_lane_vehicles", "get_vehicle_speed", "get_vehicle_distance", "get_vehicle_info", "get_leader",
    "get_current_time", "get_average_travel_time", "set_tl_phase", "set_vehicle_speed", "reset", "set_random_seed",
)  # fmt: skip


class StandIn:
    """What ``cityflow.Engine`` offers, and nothing of our array interface, around our own engine."""

    def __init__(self, config_file: str, thread_num: int = 1) -> None:
        engine = streetflow.Engine(config_file, thread_num)
        for name in INTERFACE:
            setattr(self, name, getattr(engine, name))


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("cityflow")
    module.Engine = StandIn  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cityflow", module)


@pytest.mark.parametrize("clearance", ["hold", "yellow"])
def test_both_engines_give_the_same_run(stand_in: None, clearance: str) -> None:
    runs, measures = [], []
    for engine in ("builtin", "cityflow"):
        environment = Environment("arterial", 1, engine=engine, features="all", clearance=clearance, horizon_s=1200)
        environment.reset()
        runs.append(random_run(environment, 60))
        measures.append((environment.average_travel_time_s(), environment.throughput_veh_per_min()))
        environment.reset()
        assert_equal_runs(runs[-1][:10], random_run(environment, 10))
    assert_equal_runs(*runs)
    assert measures[0] == measures[1] and measures[0][1] > 0


def test_max_pressure_on_both_engines(stand_in: None) -> None:
    results = []
    for engine in ("builtin", "cityflow"):
        environment = Environment("crossing", engine=engine, horizon_s=900)
        run(environment, MaxPressure())
        results.append(environment.average_travel_time_s())
    assert results[0] == results[1]


def test_both_engines_know_the_same_lanes(stand_in: None) -> None:
    network = find_network("arterial")
    own, other = (
        make_engine(k, load_network(network.roadnet_file), network.flow_files[0], seed=1) for k in ("builtin", "cityflow")
    )
    assert own.lane_ids == other.lane_ids and own.intersection_ids == other.intersection_ids
    np.testing.assert_array_equal(own.lane_max_speed_mps, other.lane_max_speed_mps)
    np.testing.assert_array_equal(own.lane_length_m, other.lane_length_m)


def test_cityflow_is_never_given_a_phase_that_it_would_abort_on(stand_in: None) -> None:
    network = find_network("crossing")
    engine = make_engine("cityflow", load_network(network.roadnet_file), network.flow_files[0], seed=1)
    phases = np.full(5, -1, np.int32)
    phases[0] = 8
    with pytest.raises(IndexError, match="has 8 phases, there is no phase 8"):
        engine.set_phases(phases)


def test_missing_cityflow_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cityflow", None)  # makes the import fail, installed or not
    with pytest.raises(InputError, match=r"can't be imported.*pip install"):
        Environment("crossing", engine="cityflow")


def test_engine_that_never_stepped_is_never_destroyed(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real one hangs when it is; one that has stepped is given back."""
    ended = []
    monkeypatch.setattr(StandIn, "__del__", lambda self: ended.append(id(self)), raising=False)
    network = find_network("crossing")
    for steps in (0, 1):
        engine = make_engine("cityflow", load_network(network.roadnet_file), network.flow_files[0], seed=1)
        engine.step_many(steps)
        del engine
        assert len(ended) == steps


def test_a_controller_needs_its_features_observed() -> None:
    """In whatever order and beside others; InputError where one isn't there."""
    times_s = []
    for features in (("phase_2_pressure",), ("inlane_2_num_vehicle", "phase_2_pressure", "phase_2_delay")):
        environment = Environment("arterial", features=features, horizon_s=600)
        run(environment, MaxPressure())
        times_s.append(environment.average_travel_time_s())
    assert times_s[0] == times_s[1] > 0
    with pytest.raises(InputError, match="phase_2_pressure is needed but not observed"):
        run(Environment("arterial", features=["inlane_2_num_vehicle"]), MaxPressure())
