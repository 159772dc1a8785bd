"""The engine against ten recorded runs of CityFlow itself: every step, every lane, bit for bit."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pytest
from shared_data import DATASETS, GOLDEN, needs_shared

from streetflow import Engine

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


def start(trace, data_set: str) -> Engine:
    config = json.loads(str(trace["config"]))
    assert not config["laneChange"]
    folder = DATASETS / data_set
    return Engine.from_files(
        folder / config["roadnetFile"],
        folder / config["flowFile"],
        interval_s=config["interval"],
        seed=config["seed"],
        rl_traffic_light=config["rlTrafficLight"],
    )


@needs_shared
@pytest.mark.parametrize("name", TRACES)
def test_equals_cityflow_at_every_step(name: str) -> None:
    with np.load(GOLDEN / f"{name}.npz") as file:
        trace = {key: file[key] for key in file.files}
    engine = start(trace, TRACES[name])
    lanes = [engine.lane_index[lane] for lane in trace["lanes"]]
    signals = [engine.intersection_index[signal] for signal in trace["intersections"]]
    vehicles: defaultdict[int, dict[str, tuple[float, float]]] = defaultdict(dict)
    details = (trace[f"detail_{what}"].tolist() for what in ("step", "vehicle", "speed", "distance"))
    for step, vehicle, speed, distance in zip(*details, strict=True):
        vehicles[step][vehicle] = speed, distance
    assert len(vehicles) > 10

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
