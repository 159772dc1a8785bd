"""`--engine sumo`: SUMO's own run unchanged, the lights as they should be shown, and everything above the engine on it."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from model.evaluate import RunSettings, evaluate
from streetflow.control.environment import Environment
from streetflow.errors import FieldError, InputError, StepError
from streetflow.networks.catalogue import Network, network_of
from streetflow.roadnet.network_tables import load_network
from streetflow.sumo.engine import SumoEngine
from streetflow.sumo.process import SumoProcess
from streetflow.sumo.programs import OPEN
from tests.helpers.plain_sumo import run_plain_sumo, trip_lines
from tests.helpers.run_cli import tinylight
from tests.helpers.sumo_files import CONFIG, changed, import_to, needs_sumo

pytestmark = needs_sumo


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sumo") / "two"
    import_to(CONFIG, out)
    return out


@pytest.fixture
def network(folder: Path) -> Network:
    return network_of(str(folder))


@pytest.fixture
def engine(folder: Path) -> Iterator[SumoEngine]:
    made = SumoEngine(load_network(folder / "roadnet.json"), folder, seed=5)
    yield made
    made.close()


def test_reading_at_every_step_leaves_the_run_as_it_is(folder: Path, tmp_path: Path) -> None:
    tripinfo = tmp_path / "ours.xml"
    engine = SumoEngine(load_network(folder / "roadnet.json"), folder, seed=5, options=["--tripinfo-output", str(tripinfo)])
    for _ in range(600):
        engine.next_step()
        engine.lane_waiting_counts(), engine.lane_waiting_time_sums_s(), engine.lane_speed_sums_mps(), engine.trips()
    trips, ids = engine.trips(), engine.sumo_vehicle_ids()
    engine.close()
    run_plain_sumo(CONFIG, 600, 5, tmp_path / "plain.xml")
    assert trip_lines(tripinfo) == trip_lines(tmp_path / "plain.xml") != []
    finished = {ids[n]: i for i, n in enumerate(trips.flow) if trips.finished[i]}
    assert len(finished) == len(trip_lines(tripinfo))
    for line in trip_lines(tripinfo):
        values = dict(part.split("=") for part in line.split() if "=" in part)
        name, depart_s, delay_s, arrival_s = (values[key].strip('"/>') for key in ("id", "depart", "departDelay", "arrival"))
        i = finished[name]
        assert trips.entered_s[i] == pytest.approx(float(depart_s)) and trips.ended_s[i] == pytest.approx(float(arrival_s))
        assert trips.entry_wait_s[i] == pytest.approx(float(delay_s))


def test_a_run_may_begin_at_any_time_and_take_short_steps(tmp_path: Path) -> None:
    times = (
        (".sumocfg", '<begin value="0"/>', '<begin value="100"/><step-length value="0.5"/>'),
        (".sumocfg", '<end value="600"/>', '<end value="0:05:00"/>'),
    )
    config = changed(tmp_path / "files", *times)
    import_to(config, tmp_path / "out")
    network = network_of(str(tmp_path / "out"))
    assert network.horizon_s == 200
    tripinfo = tmp_path / "ours.xml"
    engine = SumoEngine(load_network(network.roadnet_file), tmp_path / "out", options=["--tripinfo-output", str(tripinfo)])
    engine.step_many(200)
    assert engine.get_current_time() == 200.0
    assert engine.trips().created_s.min() >= 0.0
    engine.close()
    run_plain_sumo(config, 200, 0, tmp_path / "plain.xml")
    assert trip_lines(tripinfo) == trip_lines(tmp_path / "plain.xml") != []


def test_same_seed_same_run_and_two_engines_do_not_meet(folder: Path, engine: SumoEngine) -> None:
    other = SumoEngine(load_network(folder / "roadnet.json"), folder, seed=6)
    seen = []
    for _ in range(15):
        engine.step_many(20)
        other.step_many(20)
        seen.append((engine.lane_vehicle_counts(), other.lane_vehicle_counts()))
    other.close()
    assert any((one != another).any() for one, another in seen)
    engine.reset()
    assert engine.get_current_time() == 0.0 and engine.finished_vehicle_count == 0 and not len(engine.trips().created_s)
    for one, _ in seen:
        engine.step_many(20)
        assert (engine.lane_vehicle_counts() == one).all()
    engine.set_random_seed(6)
    engine.reset()
    for _, another in seen:
        engine.step_many(20)
        assert (engine.lane_vehicle_counts() == another).all()


def test_counts_are_those_of_single_vehicles(engine: SumoEngine) -> None:
    engine.step_many(300)
    vehicles = engine.running_vehicles()
    on_lanes = vehicles.drivable[vehicles.drivable < len(engine.lane_ids)]
    assert (np.bincount(on_lanes, minlength=len(engine.lane_ids)) == engine.lane_vehicle_counts()).all()
    assert len(vehicles.drivable) == (~engine.trips().finished & engine.trips().entered).sum() > 20
    assert (np.diff(vehicles.drivable) >= 0).all()
    same = np.diff(vehicles.drivable) == 0
    assert (np.diff(vehicles.distance_m)[same] <= 0).all()
    assert (vehicles.distance_m[vehicles.drivable < len(engine.lane_ids)] <= engine.lane_length_m[on_lanes] + 0.1).all()
    assert (engine.lane_waiting_counts() <= engine.lane_vehicle_counts()).all()
    moving = engine.lane_vehicle_counts() > engine.lane_waiting_counts()
    assert (engine.lane_speed_sums_mps()[moving] > 0).all()


def test_no_signal_goes_from_green_to_red_or_from_yellow_to_green(network: Network) -> None:
    """With phases drawn at random every 5 s, looked at every second."""
    for clearance in ("yellow", "all_red"):
        environment = Environment(network, engine="sumo", features=["inter_2_current_phase"], clearance=clearance)
        environment.reset()
        assert isinstance(environment.engine, SumoEngine)
        rng = np.random.default_rng(1)
        counts = [each.action_count for each in environment.intersections]
        before: dict[str, str] = {}
        shown = set()
        for second in range(300):
            if second % 5 == 0:
                actions = rng.integers(0, counts).astype(np.int32)
            for phases, run_s in environment.signals.advance(actions, 1):
                if phases is not None:
                    environment.engine.set_phases(phases)
                environment.engine.step_many(run_s)
            states = environment.engine.light_states()
            for light, state in states.items():
                for old, new in zip(before.get(light, state), state, strict=True):
                    shown.add(old + new)
            before = states
        assert "Gy" in shown and "yr" in shown
        assert not {pair for pair in shown if pair[0] in OPEN and pair[1] in "rs"}, clearance
        assert clearance == "all_red" or not {pair for pair in shown if pair[0] == "y" and pair[1] in OPEN}


def test_phases_are_shown_as_the_program_has_them(folder: Path, engine: SumoEngine) -> None:
    binding = {each["light"]: each for each in json.loads((folder / "sumo.json").read_bytes())["lights"]}
    for phase in range(2):
        engine.reset()
        for light in binding.values():
            engine.set_phase_by_index(engine.intersection_index[light["intersection"]], phase)
        engine.step_many(30)
        assert engine.light_states() == {name: light["states"][phase] for name, light in binding.items()}
    with pytest.raises(IndexError, match="'A' has 3 phases, there is no phase 3"):
        engine.set_phase_by_index(engine.intersection_index["A"], 3)
    with pytest.raises(ValueError, match="without yellow"):
        engine.set_phase_by_index(engine.intersection_index["A"], 2)


@pytest.mark.parametrize("agent", ["MaxPressure", "Actuated", "OwnProgram"])
def test_agents_run_on_it_with_all_measures(network: Network, agent: str) -> None:
    found = {}

    def at_end(environment: Environment) -> None:
        found.update(environment.measures())

    (row,) = evaluate(network, agent, [0], settings=RunSettings("sumo", measure_queues=True), at_end=at_end)
    assert row.clearance == "yellow" and 40 < row.average_travel_time_s < 150
    assert 200 < found["created_vehicles"] < 240 and found["queue_vehicles"] > 0


def test_its_own_program_is_sumo_s_run(network: Network, tmp_path: Path) -> None:
    ended_s = []

    def at_end(environment: Environment) -> None:
        ended_s.extend(environment.engine.trips().ended_s.tolist())

    evaluate(network, "OwnProgram", [0], settings=RunSettings("sumo", seed=5), at_end=at_end)
    run_plain_sumo(CONFIG, 600, 5, tmp_path / "plain.xml")
    arrivals = [float(line.split(' arrival="')[1].split('"')[0]) for line in trip_lines(tmp_path / "plain.xml")]
    assert [each for each in ended_s if each == each] == arrivals
    with pytest.raises(InputError, match="needs the engine 'sumo'"):
        evaluate(network, "OwnProgram", [0])


def test_every_feature_can_be_observed(network: Network) -> None:
    environment = Environment(network, engine="sumo", features="all", clearance="yellow", horizon_s=200)
    seen = np.zeros(len(environment.feature_names), np.bool_)
    environment.reset()
    for decision in range(environment.n_decisions):
        observation, _, _ = environment.step(np.full(2, decision % 2, np.int32))
        seen |= observation.any(axis=(0, 2))
    assert [name for name, is_seen in zip(environment.feature_names, seen, strict=True) if not is_seen] == []
    on_in_lanes = [environment.engine.lane_vehicle_counts()[list(each.in_lanes)].sum() for each in environment.intersections]
    row = environment.feature_names.index("inlane_2_num_vehicle")
    assert observation[:, row].sum(axis=1).tolist() == on_in_lanes


def test_hold_is_refused_since_it_has_no_yellow(folder: Path, network: Network, capsys: pytest.CaptureFixture[str],
                                                monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    with pytest.raises(FieldError, match="shows yellow before red"):
        Environment(network, engine="sumo")
    monkeypatch.setenv("TINYLIGHT_DATA", str(folder.parent))
    options = ("--network", "two", "--agent", "MaxQueue", "--engine", "sumo", "--flows", "0", "--clearance", "hold")
    assert tinylight("evaluate", *options) == 2
    assert capsys.readouterr().err == (
        "tinylight: --clearance: hold: the engine 'sumo' shows yellow before red: any clearance but this one\n"
    )


def test_a_network_of_another_origin_is_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(
        InputError, match=r"sumo.json: missing: the SUMO engine runs data sets that `tinylight import-sumo` made"
    ):
        Environment("crossing", engine="sumo", clearance="yellow")
    copy = tmp_path / "two"
    for name, change, fault in (
        ("lanes", lambda values: values[1:], "lanes: holds 23 entries for the 24 of roadnet.json"),
        ("lanes", lambda values: ["elsewhere_0", *values[1:]], "its network has no lane 'elsewhere_0'"),
        ("step_s", lambda _: 0.3, "step_s: must divide a second"),
        ("lights", lambda values: [values[0] | {"light": "C"}, *values[1:]], "its light 'C' isn't the one"),
        ("lights", lambda values: [values[0] | {"intersection": "C"}, *values[1:]], "'C' isn't in roadnet.json"),
        ("config", lambda _: "sumo/other.sumocfg", "SUMO can't run it"),
    ):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        content = json.loads((copy / "sumo.json").read_bytes())
        content[name] = change(content[name])
        (copy / "sumo.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match=fault):
            SumoEngine(load_network(copy / "roadnet.json"), copy)


def test_a_process_that_has_gone_is_told_and_none_is_left() -> None:
    process = SumoProcess()
    number = process.pid
    os.kill(number, signal.SIGKILL)
    with pytest.raises(StepError, match="SUMO has ended"):
        process.call("states")
        process.call("states")
    process.close()
    dropped = SumoProcess()
    number = dropped.pid
    del dropped
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_without_libsumo_one_line_says_what_to_install(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streetflow.sumo.process.find_spec", lambda _: None)
    with pytest.raises(FieldError, match=r"SUMO isn't installed: pip install 'tinylight-hil\[sumo\]'"):
        Environment(network, engine="sumo", clearance="yellow")
