"""What holds for every network, demand, step length and seed: on cases that hypothesis draws."""

from __future__ import annotations

import hashlib
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streetflow import Engine
from tests.helpers.drawn_networks import Case, cases, drawn
from tests.helpers.oracle import Oracle
from tests.helpers.processes import PATIENCE_S
from tests.helpers.small_network import demand, grid, write
from tests.streetflow.test_engine_oracle import assert_same

pytestmark = pytest.mark.filterwarnings("ignore::streetflow.errors.InputWarning")


def set_lights(engine: Engine, case: Case, rng: random.Random) -> None:
    if not case.own_lights:
        for signal in case.signals:
            engine.set_tl_phase(signal, rng.randrange(8))


def everything(engine: Engine) -> tuple[object, ...]:
    return (
        engine.get_vehicles(include_waiting=True),
        engine.get_lane_vehicles(),
        engine.get_vehicle_speed(),
        engine.get_vehicle_distance(),
        engine.get_average_travel_time(),
        engine.get_current_time(),
        engine.finished_vehicle_count,
        engine.phase_indices.tolist(),
        engine.lane_waiting_time_sums_s().tolist(),
        [engine.get_leader(v) for v in engine.get_vehicles()],
    )


def run(engine: Engine, case: Case, n_steps: int, seed: int) -> list[tuple[object, ...]]:
    rng = random.Random(seed)
    seen = []
    for step in range(n_steps):
        if step % 8 == 0:
            set_lights(engine, case, rng)
        engine.next_step()
        seen.append(everything(engine))
    return seen


def created_by(flow: dict[str, Any], clock_s: float, step_s: float) -> int:
    """Vehicles that a flow has created in the steps begun at 0, step_s, ... up to clock_s, in closed form.

    The first at the first step time f >= startTime; the n-th further one at the first step time >= f + n * interval;
    none after endTime. (Times are exact: step_s is a binary fraction.)
    """
    first_s = math.ceil(flow["startTime"] / step_s) * step_s
    last_s = clock_s if flow["endTime"] == -1 else min(clock_s, math.floor(flow["endTime"] / step_s) * step_s)
    return 0 if last_s < first_s else 1 + math.floor((last_s - first_s) / flow["interval"])


@drawn(40)
@given(case=cases(), seed=st.integers(0, 2**32))
def test_vehicles_are_conserved_and_move_as_they_can(tmp_path_factory: pytest.TempPathFactory, case: Case, seed: int) -> None:
    """At every step created = waiting + running + finished, by id; and speeds, accelerations, places within limits."""
    engine = Engine(case.write(tmp_path_factory.mktemp("case")))
    rng = random.Random(seed)
    lengths_m = dict(zip(engine.lane_ids, engine.lane_length_m.tolist(), strict=True))
    finished: set[str] = set()
    present_before: set[str] = set()
    created_at_s: dict[str, float] = {}
    finished_time_s = 0.0
    speeds_before: dict[str, float] = {}
    for step in range(100):
        if step % 8 == 0:
            set_lights(engine, case, rng)
        engine.next_step()
        clock_s = step * case.interval_s
        created = {
            f"flow_{i}_{n}" for i, flow in enumerate(case.flows) for n in range(created_by(flow, clock_s, case.interval_s))
        }
        running, present = set(engine.get_vehicles()), set(engine.get_vehicles(include_waiting=True))
        gone = present_before - present
        finished |= gone
        assert running <= present and present.isdisjoint(finished)
        assert present | finished == created
        assert len(finished) == engine.finished_vehicle_count and len(running) == engine.get_vehicle_count()
        present_before = present

        created_at_s |= dict.fromkeys(created - set(created_at_s), clock_s)
        finished_time_s += sum(clock_s - created_at_s[v] for v in gone)
        total_s = finished_time_s + sum(engine.get_current_time() - created_at_s[v] for v in present)
        assert engine.get_average_travel_time() == pytest.approx(total_s / max(len(created), 1), abs=1e-9)

        lanes, speeds, distances = engine.get_lane_vehicles(), engine.get_vehicle_speed(), engine.get_vehicle_distance()
        on_lanes = [v for of_lane in lanes.values() for v in of_lane]
        assert len(on_lanes) == len(set(on_lanes)) and set(on_lanes) <= running == set(speeds) == set(distances)
        assert {lane: len(of_lane) for lane, of_lane in lanes.items()} == engine.get_lane_vehicle_count()
        for lane, of_lane in lanes.items():
            assert all(0 <= distances[v] <= lengths_m[lane] for v in of_lane)
        for v, speed in speeds.items():
            kind, before = case.flows[int(v.split("_")[1])]["vehicle"], speeds_before.get(v, 0.0)
            assert 0 <= speed <= kind["maxSpeed"]
            assert speed <= before + kind["maxPosAcc"] * case.interval_s + 1e-9
            assert speed >= before - kind["maxNegAcc"] * case.interval_s - 1e-9
        speeds_before = speeds
    assert finished or len(running) > 5


@drawn(25)
@given(case=cases(), steps=st.tuples(st.integers(0, 60), st.integers(1, 40)), seed=st.integers(0, 2**32))
def test_going_back_equals_running_on(
    tmp_path_factory: pytest.TempPathFactory, case: Case, steps: tuple[int, int], seed: int
) -> None:
    """By a snapshot in memory, by one from a file, in the same engine and in a new one; the archive stays as it is."""
    folder = tmp_path_factory.mktemp("case")
    config, file = case.write(folder), folder / "archive.json"
    engine = Engine(config)
    run(engine, case, steps[0], seed)
    archive = engine.snapshot()
    archive.dump(file)
    bytes_before = file.read_bytes()
    here = everything(engine)
    on = run(engine, case, steps[1], seed + 1)

    engine.load(archive)
    assert everything(engine) == here
    assert run(engine, case, steps[1], seed + 1) == on
    engine.load_from_file(file)
    assert everything(engine) == here
    assert run(engine, case, steps[1], seed + 1) == on
    fresh = Engine(config)
    fresh.load_from_file(file)
    assert everything(fresh) == here
    fresh.snapshot().dump(folder / "again.json")
    assert run(fresh, case, steps[1], seed + 1) == on
    archive.dump(file)
    assert file.read_bytes() == bytes_before
    other = Engine(config)
    other.load_from_file(folder / "again.json")  # a snapshot of what was loaded
    assert run(other, case, steps[1], seed + 1) == on


@drawn(25)
@given(case=cases(), chunks=st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_steps_may_be_taken_in_any_portions(tmp_path_factory: pytest.TempPathFactory, case: Case, chunks: list[int]) -> None:
    config = case.write(tmp_path_factory.mktemp("case"))
    one, many = Engine(config), Engine(config)
    for n in chunks:
        many.step_many(n)
        for _ in range(n):
            one.next_step()
        assert everything(one) == everything(many)


@drawn(25)
@given(case=cases(most_crossings=2, vehicles_a_crossing=20, steps=60), seed=st.integers(0, 2**32))
def test_equal_to_the_plain_oracle(tmp_path_factory: pytest.TempPathFactory, case: Case, seed: int) -> None:
    folder = tmp_path_factory.mktemp("case")
    engine = Engine(case.write(folder))
    oracle = Oracle(folder, case.interval_s, case.seed, case.own_lights)
    rng = random.Random(seed)
    for step in range(60):
        if step % 8 == 0 and not case.own_lights:
            for signal in case.signals:
                phase = rng.randrange(8)
                oracle.phase[engine.intersection_index[signal]] = phase
                engine.set_tl_phase(signal, phase)
        oracle.next_step()
        engine.next_step()
        assert_same(engine, oracle)


# ---------------------------------------------------------------------- other processes

FINGERPRINT = """
import hashlib, sys
from streetflow import Engine

engine = Engine(sys.argv[1], thread_num=int(sys.argv[2]))
for step in range(150):
    engine.set_tl_phase("i_0_0", step // 10 % 8)
    engine.next_step()
engine.snapshot().dump(sys.argv[3] + "archive.json")
engine.set_save_replay(False)
for name in ("replay.txt", "roadnet_log.json", "archive.json"):
    with open(sys.argv[3] + name, "rb") as file:
        print(name, hashlib.sha256(file.read()).hexdigest())
print(engine.get_average_travel_time().hex(), engine.get_vehicles())
"""


def test_same_seed_same_bytes_in_every_process_and_for_every_number_of_threads(tmp_path: Path) -> None:
    """Replay, road network log, snapshot file and results; string hashing differs between the processes."""
    roadnet = grid(2, 1, seed=4)
    flows = demand(roadnet, 60, 60, seed=4)
    running = []
    for threads in (1, 2, 7):
        folder = tmp_path / str(threads)
        config = write(folder, roadnet, flows, seed=12, saveReplay=True)
        command = [sys.executable, "-c", FINGERPRINT, str(config), str(threads), f"{folder}/"]
        environment = {**os.environ, "PYTHONHASHSEED": str(threads)}
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
    outputs = [process.communicate(timeout=PATIENCE_S)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert outputs[0] == outputs[1] == outputs[2] and "archive.json" in outputs[0]
    other = Engine(write(tmp_path / "other", roadnet, flows, seed=13, saveReplay=True))
    other.step_many(150)
    other.set_save_replay(False)
    digest = hashlib.sha256((tmp_path / "other" / "replay.txt").read_bytes()).hexdigest()
    assert digest not in outputs[0]  # another seed, other bytes


def test_uncompiled_kernels_agree_as_well(tmp_path: Path) -> None:
    """The kernels as plain Python, without numba's compiler, on small cases of this suite."""
    selection = [
        "test_engine_crossings.py",
        "test_engine_oracle.py::test_whole_trajectories_are_equal[0]",
        "test_engine_archive.py::test_snapshot_and_load",
        "test_engine_archive.py::test_replay",
        "test_decimal_text.py",
    ]
    folder = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(folder / each) for each in selection)]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [*command, f"--basetemp={tmp_path / 'inner'}"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout
    assert "28 passed" in done.stdout
