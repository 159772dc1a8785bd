"""The calls of the CityFlow interface (docs/cityflow-semantics.md, section 9) and the array interface beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import streetflow as cityflow
from streetflow import Engine
from streetflow.engine.start import INITIAL_SLOTS
from streetflow.errors import UnknownIdError
from tests.helpers.driven_engine import ROUTE, SIGNAL, everything, run
from tests.helpers.small_network import CAR, demand, grid, line, write


@pytest.fixture
def config(tmp_path: Path) -> Path:
    roadnet = grid(2, 1, seed=5)
    return write(tmp_path, roadnet, demand(roadnet, 60, 60, seed=5), seed=4)


def test_import_is_light() -> None:
    """`streetflow.Engine` brings the engine alone, so that a CityFlow program pays for nothing else."""
    code = (
        "import sys, streetflow; streetflow.Engine; "
        "bad = {'streetflow.control.environment', 'streetflow.control.features', 'torch', 'model', 'hil'};"
        "sys.exit(bool(bad & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_names_are_looked_up_late_and_listed() -> None:
    assert set(cityflow.__all__) <= set(dir(cityflow))
    with pytest.raises(AttributeError, match=r"module 'streetflow' has no attribute 'Motor'"):
        _ = cityflow.Motor


def test_a_cityflow_program_runs(config: Path) -> None:
    engine = cityflow.Engine(str(config), thread_num=4)
    for _ in range(30):
        engine.next_step()
    assert engine.get_current_time() == 30.0
    counts, waiting = engine.get_lane_vehicle_count(), engine.get_lane_waiting_vehicle_count()
    assert list(counts) == list(waiting) == sorted(engine.lane_ids)
    assert all(type(n) is int for n in [*counts.values(), *waiting.values()])
    lanes = engine.get_lane_vehicles()
    assert {lane: len(ids) for lane, ids in lanes.items()} == counts
    speeds = engine.get_vehicle_speed()
    assert list(speeds) == sorted(speeds) == list(engine.get_vehicle_distance())
    assert {lane: sum(speeds[v] < 0.1 for v in ids) for lane, ids in lanes.items()} == waiting
    assert set(engine.get_vehicles()) == set(speeds) and len(speeds) == engine.get_vehicle_count() > 10
    assert sum(counts.values()) <= len(speeds)  # the rest is on lane links
    assert set(engine.get_vehicles()) < set(engine.get_vehicles(include_waiting=True))


def test_array_interface_has_the_shapes_it_promises(config: Path) -> None:
    engine = Engine(config)
    n_lanes, n_intersections = len(engine.lane_ids), len(engine.intersection_ids)
    engine.step_many(40)
    for values, dtype in (
        (engine.lane_vehicle_counts(), np.int32),
        (engine.lane_waiting_counts(), np.int32),
        (engine.lane_speed_sums_mps(), np.float64),
        (engine.lane_waiting_time_sums_s(), np.float64),
        (engine.lane_length_m, np.float64),
        (engine.lane_max_speed_mps, np.float64),
    ):
        assert (values.dtype, values.shape) == (dtype, (n_lanes,))
        assert values.any()
    assert engine.phase_indices.shape == (n_intersections,) and engine.phase_indices.dtype == np.int32
    assert [engine.lane_index[name] for name in engine.lane_ids] == list(range(n_lanes))
    assert [engine.intersection_index[name] for name in engine.intersection_ids] == list(range(n_intersections))
    before = engine.lane_vehicle_counts()
    kept = before.copy()
    engine.step_many(5)
    assert (before == kept).all() and (engine.lane_vehicle_counts() != kept).any()  # a copy, not a view


def test_phases(config: Path) -> None:
    engine = Engine(config)
    shown = engine.phase_indices
    number = engine.intersection_index[SIGNAL]
    engine.set_tl_phase(SIGNAL, 3)
    assert shown[number] == 3  # a view
    with pytest.raises(ValueError, match="read-only"):
        shown[number] = 1
    phases = np.full(len(engine.intersection_ids), -1)
    phases[number] = 5
    engine.set_phases(phases)
    assert shown.tolist() == [5 if i == number else 0 for i in range(shown.size)]
    engine.step_many(100)
    assert shown[number] == 5  # nothing changes by itself


def test_phase_faults(config: Path) -> None:
    engine = Engine(config)
    with pytest.raises(KeyError) as unknown:
        engine.set_tl_phase("i_0_O", 0)
    assert isinstance(unknown.value, UnknownIdError)
    assert str(unknown.value).startswith("unknown intersection 'i_0_O'; near matches: i_0_")
    for phase in (8, -1):
        with pytest.raises(IndexError, match=f"intersection 'i_0_0' has the phases 0 to 7, not {phase}"):
            engine.set_tl_phase(SIGNAL, phase)
    with pytest.raises(IndexError, match="intersection 'i_-1_0' is virtual"):
        engine.set_tl_phase("i_-1_0", 0)
    with pytest.raises(IndexError, match="no intersection number 99"):
        engine.set_phase_by_index(99, 0)
    with pytest.raises(ValueError, match="one per intersection"):
        engine.set_phases([0])
    for bad in (-2, 8):
        phases = np.full(len(engine.intersection_ids), -1)
        phases[engine.intersection_index[SIGNAL]] = bad
        with pytest.raises(IndexError, match=f"not {bad}"):
            engine.set_phases(phases)
    assert engine.phase_indices.tolist() == [0] * len(engine.intersection_ids)


def test_own_lights_cannot_be_set(tmp_path: Path) -> None:
    engine = Engine(write(tmp_path, grid(), [], rlTrafficLight=False))
    number = engine.intersection_index[SIGNAL]
    with pytest.raises(RuntimeError, match="rlTrafficLight is false"):
        engine.set_tl_phase(SIGNAL, 1)
    shown = []
    for _ in range(15):
        engine.next_step()
        shown.append(int(engine.phase_indices[number]))
    assert shown == [0] * 4 + [1] * 8 + [2] * 3  # phase times 5, 8, 11 s


def test_reset(config: Path) -> None:
    engine = Engine(config)
    first = run(engine, 60)
    engine.reset()
    assert everything(engine)[:4] == ([], {}, {}, {lane: [] for lane in sorted(engine.lane_ids)})
    assert (engine.get_average_travel_time(), engine.get_current_time(), engine.finished_vehicle_count) == (0, 0, 0)
    other = run(engine, 60)
    assert other != first  # the generator went on
    engine.reset(seed=True)
    assert run(engine, 60) == first
    engine.reset()
    engine.set_random_seed(4 - 2**32)  # modulo 2**32
    assert run(engine, 60) == first


def test_generator_is_mt19937(tmp_path: Path) -> None:
    """Priorities are every third output here: priority, thread, entry lane. 700 vehicles need a second block."""
    flows = [{"vehicle": dict(CAR), "route": ROUTE, "interval": 1, "startTime": k, "endTime": k} for k in range(700)]
    engine = Engine(write(tmp_path, grid(), flows, seed=-5))
    engine.step_many(700)
    state = engine._tables.state
    outputs = np.random.RandomState(2**32 - 5).randint(0, 2**32, 2100, np.uint32).view(np.int32)
    present = np.flatnonzero(state.status > 0)
    assert present.size > 400
    assert (state.priority[present] == outputs[0::3][state.ordinal[present] * 0 + state.flow[present]]).all()


def test_number_of_vehicles_has_no_limit(tmp_path: Path) -> None:
    """A closed road: the queue outside grows for ever, past every size that the engine starts with."""
    flows = [{"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 1, "startTime": 0, "endTime": -1}] * 3
    one, many = (Engine(write(tmp_path, line(100.0), flows)) for _ in range(2))
    for engine in (one, many):
        engine.set_tl_phase("mid", 1)
    for _ in range(500):
        one.next_step()
    many.step_many(500)
    assert everything(one) == everything(many)
    assert len(one.get_vehicles(include_waiting=True)) == 1500 > 10 * INITIAL_SLOTS
    assert one.get_vehicle_count() == one.lane_vehicle_counts().sum() == 14  # 7.5 m each: at 100, 92.5, ..., 2.5 m


def test_slots_are_used_again(tmp_path: Path) -> None:
    flows = [{"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 5, "startTime": 0, "endTime": -1}]
    engine = Engine(write(tmp_path, line(100.0), flows))
    engine.step_many(20_000)
    assert engine.finished_vehicle_count > 3_900
    assert engine._tables.sizes["slots"] == INITIAL_SLOTS
