"""The engine against recorded runs of CityFlow itself: every step, every lane, bit for bit."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from streetflow import Engine
from tests.helpers.golden import (
    BUILTIN_TRACES,
    LANE_CHANGE_TRACES,
    TRACES,
    network_folder,
    read_trace,
    trace_config,
    traces,
)


def start(name: str) -> Engine:
    config, folder = trace_config(name), network_folder(name)
    return Engine.from_files(
        folder / config["roadnetFile"],
        folder / config["flowFile"],
        interval_s=config["interval"],
        seed=config["seed"],
        rl_traffic_light=config["rlTrafficLight"],
        lane_change=config["laneChange"],
    )


@pytest.mark.parametrize("name", traces(TRACES))
def test_equals_cityflow_at_every_step(name: str) -> None:
    compare(start(name), read_trace(name))


@pytest.mark.parametrize("thread_num", [1, 2])
@pytest.mark.parametrize("name", traces(LANE_CHANGE_TRACES))
def test_equals_cityflow_with_lane_changing(name: str, thread_num: int, tmp_path: Path) -> None:
    config = trace_config(name)
    assert config["laneChange"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    compare(Engine(str(tmp_path / "config.json"), thread_num=thread_num), read_trace(name))


def test_recordings_in_this_repository_are_whole_runs() -> None:
    """Traffic that queues and moves, under three kinds of lights: a run that can't fail would prove nothing."""
    assert len(BUILTIN_TRACES) == 6
    for name in BUILTIN_TRACES:
        trace = read_trace(name)
        assert len(trace["count"]) == len(trace["phase"]) == 1800
        assert trace["running"][600:].min() >= 25
        assert trace["waiting"].max() >= 38, "the longest queue, in vehicles"
        assert trace["phase"].max() == {"fixed": 7, "random": 7, "engine": -1}[name.rpartition("_")[2]]


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


@pytest.mark.parametrize("name", traces(["crossing_flow0_fixed", "hangzhou1_flow0_fixed"]))
def test_many_steps_in_one_call_are_the_same_as_one_by_one(name: str) -> None:
    one, many = start(name), start(name)
    for phase in (1, 3, 2, 6):
        signal = one.intersection_index["intersection_1_1"]
        one.set_phase_by_index(signal, phase)
        many.set_phase_by_index(signal, phase)
        for _ in range(150):
            one.next_step()
        many.step_many(150)
        assert one.get_vehicle_distance() == many.get_vehicle_distance() != {}
        assert one.get_current_time() == many.get_current_time()
