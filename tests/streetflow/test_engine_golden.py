"""The engine against recorded runs of CityFlow itself: every step, every lane, bit for bit."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from streetflow import Engine
from tests.helpers.shared_data import DATASETS, GOLDEN, needs_shared

TRACES = {
    "atlanta_flow0_fixed": "Atlanta",
    "atlanta_flow4_random": "Atlanta",
    "example_engine": "example",
    "example_engine_half": "example",
    "hangzhou1_flow0_fixed": "Hangzhou1",
    "hangzhou1_flow2_random": "Hangzhou1",
    "hangzhou2_flow3_random": "Hangzhou2",
    "hangzhou3_flow1_random": "Hangzhou3",
    "jinan_flow0_random": "Jinan",
    "losangeles_flow0_random": "LosAngeles",
}
# Of a CityFlow build made deterministic, see cityflow-semantics.md, chapter 10.
LANE_CHANGE_TRACES = {
    "lanechange/atlanta_flow4_random_lanechange": "Atlanta",
    "lanechange/example_engine_lanechange": "example",
    "lanechange/hangzhou1_flow2_random_lanechange": "Hangzhou1",
    "lanechange/jinan_flow0_random_lanechange": "Jinan",
}


def start(trace, data_set: str) -> Engine:
    config = json.loads(str(trace["config"]))
    folder = DATASETS / data_set
    return Engine.from_files(
        folder / config["roadnetFile"],
        folder / config["flowFile"],
        interval_s=config["interval"],
        seed=config["seed"],
        rl_traffic_light=config["rlTrafficLight"],
        lane_change=config["laneChange"],
    )


@needs_shared
@pytest.mark.parametrize("name", TRACES)
def test_equals_cityflow_at_every_step(name: str) -> None:
    trace = read(GOLDEN / f"{name}.npz")
    compare(start(trace, TRACES[name]), trace)


@needs_shared
@pytest.mark.parametrize("thread_num", [1, 2])
@pytest.mark.parametrize("name", LANE_CHANGE_TRACES)
def test_equals_cityflow_with_lane_changing(name: str, thread_num: int, tmp_path: Path) -> None:
    trace = read(GOLDEN / f"{name}.npz")
    config = json.loads(str(trace["config"])) | {"dir": f"{DATASETS / LANE_CHANGE_TRACES[name]}/"}
    assert config["laneChange"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    compare(Engine(str(tmp_path / "config.json"), thread_num=thread_num), trace)


def read(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return {key: file[key] for key in file.files}


def compare(engine: Engine, trace: dict[str, np.ndarray]) -> None:
    lanes = [engine.lane_index[lane] for lane in trace["lanes"]]
    signals = [engine.intersection_index[signal] for signal in trace["intersections"]]
    vehicles: defaultdict[int, dict[str, tuple[float, float]]] = defaultdict(dict)
    details = (trace[f"detail_{what}"].tolist() for what in ("step", "vehicle", "speed", "distance"))
    for step, vehicle, speed, distance in zip(*details, strict=True):
        vehicles[step][vehicle] = speed, distance
    assert len(vehicles) >= 10

    phases = np.full(len(engine.intersection_ids), -1)
    for step, recorded in enumerate(trace["phase"]):
        if recorded[0] >= 0:
            phases[signals] = recorded
            engine.set_phases(phases)
        engine.next_step()
        np.testing.assert_array_equal(engine.lane_vehicle_counts()[lanes], trace["count"][step], f"step {step}")
        np.testing.assert_array_equal(engine.lane_waiting_counts()[lanes], trace["waiting"][step], f"step {step}")
        assert engine.get_vehicle_count() == trace["running"][step], f"step {step}"
        assert engine.get_average_travel_time() == trace["average_travel_time"][step], f"step {step}"
        if step in vehicles:
            speeds, distances = engine.get_vehicle_speed(), engine.get_vehicle_distance()
            assert {v: (speeds[v], distances[v]) for v in speeds} == vehicles[step], f"step {step}"


@needs_shared
def test_many_steps_in_one_call_are_the_same_as_one_by_one() -> None:
    with np.load(GOLDEN / "hangzhou1_flow0_fixed.npz") as trace:
        one, many = start(trace, "Hangzhou1"), start(trace, "Hangzhou1")
    for phase in (1, 3, 2, 6):
        signal = one.intersection_index["intersection_1_1"]
        one.set_phase_by_index(signal, phase)
        many.set_phase_by_index(signal, phase)
        for _ in range(150):
            one.next_step()
        many.step_many(150)
        assert one.get_vehicle_distance() == many.get_vehicle_distance() != {}
        assert one.get_current_time() == many.get_current_time()
