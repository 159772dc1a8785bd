"""The calls of the CityFlow interface (docs/cityflow-semantics.md, section 9) and the array interface beside it."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import streetflow as cityflow
from streetflow import Engine, InputError
from streetflow.engine.start import INITIAL_SLOTS
from streetflow.errors import InputWarning, UnknownIdError
from tests.helpers.small_network import CAR, demand, grid, line, write

SIGNAL = "i_0_0"
ROUTE = ["r_-1_0_0", "r_0_0_0"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    roadnet = grid(2, 1, seed=5)
    return write(tmp_path, roadnet, demand(roadnet, 60, 60, seed=5), seed=4)


def everything(engine: Engine) -> tuple[object, ...]:
    return (
        engine.get_vehicles(include_waiting=True),
        engine.get_vehicle_speed(),
        engine.get_vehicle_distance(),
        engine.get_lane_vehicles(),
        engine.get_average_travel_time(),
        engine.get_current_time(),
        engine.finished_vehicle_count,
        engine.phase_indices.tolist(),
        engine.lane_waiting_time_sums_s().tolist(),
    )


def run(engine: Engine, n_steps: int, seed: int = 0) -> list[tuple[object, ...]]:
    rng = np.random.RandomState(seed)
    seen = []
    for step in range(n_steps):
        if step % 10 == 0:
            engine.set_tl_phase(SIGNAL, int(rng.randint(8)))
        engine.next_step()
        seen.append(everything(engine))
    return seen


def test_import_is_light() -> None:
    """`import streetflow` brings the engine alone, so that a CityFlow program pays for nothing else."""
    code = (
        "import sys, streetflow; "
        "bad = {'streetflow.control.environment', 'streetflow.control.features', 'torch', 'model', 'hil'};"
        "sys.exit(bool(bad & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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


def test_vehicle_info(tmp_path: Path) -> None:
    flows = [{"vehicle": dict(CAR), "route": ROUTE, "interval": 1, "startTime": 0, "endTime": 0}] * 2
    engine = Engine(write(tmp_path, grid(seed=1), flows))
    engine.set_tl_phase(SIGNAL, 7)
    engine.next_step()
    ids = engine.get_vehicles()
    info = engine.get_vehicle_info(ids[0])
    assert list(info) == sorted(info)
    assert (info["running"], info["speed"], info["distance"]) == ("1", "2.000000", "1.000000")
    assert (info["road"], info["intersection"], info["route"]) == (ROUTE[0], SIGNAL, "r_-1_0_0 r_0_0_0 ")
    assert info["drivable"] in ("r_-1_0_0_0", "r_-1_0_0_1")
    seen = {}
    while engine.get_vehicle_count():
        for name in engine.get_vehicles():
            info = engine.get_vehicle_info(name)
            seen[info["drivable"].count("_TO_"), info.get("road")] = info["route"]
        engine.next_step()
    assert seen == {
        (0, ROUTE[0]): "r_-1_0_0 r_0_0_0 ",
        (1, None): "r_-1_0_0 r_0_0_0 ",  # on a lane link the road just left is still the first
        (0, ROUTE[1]): "r_0_0_0 ",
    }


@pytest.mark.parametrize("name", ["flow_0_1", "flow_9_0", "flow_00_0", "flow_0_00", "flow_x_0", "nobody", "", "flow_0_²"])
def test_unknown_vehicles(tmp_path: Path, name: str) -> None:
    flows = [{"vehicle": dict(CAR), "route": ROUTE, "interval": 1, "startTime": 0, "endTime": 0}]
    engine = Engine(write(tmp_path, grid(), flows))
    engine.next_step()
    for call in (engine.get_vehicle_info, engine.get_leader, lambda v: engine.set_vehicle_speed(v, 1.0)):
        with pytest.raises(RuntimeError, match=f"^Vehicle '{name}' not found") as caught:
            call(name)
        assert isinstance(caught.value, KeyError) and caught.value.name == name
        assert ("near matches: flow_0_0" in str(caught.value)) == (name not in ("nobody", ""))
    assert engine.set_vehicle_route(name, ROUTE) is False


def test_set_vehicle_speed_acts_once(tmp_path: Path) -> None:
    flows = [{"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 1, "startTime": 0, "endTime": 0}]
    engine = Engine(write(tmp_path, line(), flows))
    engine.step_many(10)
    assert engine.get_vehicle_speed() == {"flow_0_0": 11.11}
    engine.set_vehicle_speed("flow_0_0", 8.0)
    speeds = []
    for _ in range(3):
        engine.next_step()
        speeds.append(engine.get_vehicle_speed()["flow_0_0"])
    assert speeds == [8.0, 10.0, 11.11]
    engine.set_vehicle_speed("flow_0_0", 0.0)
    engine.next_step()
    assert engine.get_vehicle_speed()["flow_0_0"] == 11.11 - 4.5  # bounded by the brakes
    with pytest.raises(ValueError, match="finite"):
        engine.set_vehicle_speed("flow_0_0", float("nan"))


def test_a_vehicle_exactly_at_the_stop_line_stays_there(tmp_path: Path) -> None:
    """Distance to go 0 and speed 0: the stopping formula is 0 / 0, which has to end as standing still."""
    flows = [{"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 1, "startTime": 0, "endTime": 0}]
    engine = Engine(write(tmp_path, line(100.0), flows))
    engine.set_tl_phase("mid", 1)
    engine.next_step()
    state = engine._tables.state
    v = int(state.head[0])
    for values in (state.distance_0, state.distance_1):
        values[v] = 100.0
    for values in (state.speed_0, state.speed_1):
        values[v] = 0.0
    with np.errstate(invalid="ignore"):
        engine.step_many(3)
    assert (engine.get_vehicle_distance(), engine.get_vehicle_speed()) == ({"flow_0_0": 100.0}, {"flow_0_0": 0.0})
    assert engine.lane_waiting_time_sums_s()[0] == 3.0
    engine.set_tl_phase("mid", 0)
    engine.next_step()
    assert engine.get_vehicle_speed() == {"flow_0_0": 2.0}


def test_push_vehicle(tmp_path: Path) -> None:
    engine = Engine(write(tmp_path, line(), []))
    engine.push_vehicle({"speed": 3, "maxSpeed": 9.5, "colour": 7}, ["in_0", "out"])
    assert engine.get_vehicles(include_waiting=True) == ["manually_pushed_0"] and engine.get_vehicles() == []
    assert engine.get_vehicle_info("manually_pushed_0") == {"running": "0"}
    assert engine.get_leader("manually_pushed_0") == ""
    engine.next_step()
    assert engine.get_vehicle_speed() == {"manually_pushed_0": 7.5}  # 3 m/s + 4.5 m/s2
    engine.step_many(5)
    assert engine.get_vehicle_speed() == {"manually_pushed_0": 9.5}
    engine.push_vehicle({}, ["in_0", "out"])
    engine.reset()
    assert engine.get_vehicles(include_waiting=True) == []  # the pushed one is gone, too
    engine.next_step()
    engine.push_vehicle({}, ["in_0", "out"])
    assert engine.get_vehicles(include_waiting=True) == ["manually_pushed_2"]  # numbering goes on


def test_push_vehicle_faults(tmp_path: Path) -> None:
    engine = Engine(write(tmp_path, line(), []))
    for info, roads, message in (
        ({}, [], "push_vehicle: roads: must hold at least 1 road"),
        ({"length": -1}, ["in_0", "out"], r"push_vehicle: info\.length: must be above 0"),
        ({"maxSpeed": "9"}, ["in_0", "out"], r"push_vehicle: info\.maxSpeed: must be a number"),
        ({"speed": float("nan")}, ["in_0", "out"], r"info\.speed: must be finite, is nan"),
        ({"speed": -1}, ["in_0", "out"], r"info\.speed: must be at least 0"),
        ({"width": 10**400}, ["in_0", "out"], r"info\.width: must be finite"),
        ({"minGap": float("inf")}, ["in_0", "out"], r"info\.minGap: must be finite"),
    ):
        with pytest.raises(InputError, match=message):
            engine.push_vehicle(info, roads)
    with pytest.raises(KeyError, match="unknown road 'in_O'; near matches: in_0"):
        engine.push_vehicle({}, ["in_O", "out"])
    with pytest.warns(InputWarning, match="push_vehicle: roads: there is no path from road 'out' to road 'in_0'"):
        engine.push_vehicle({}, ["out", "in_0"])
    assert engine.get_vehicles(include_waiting=True) == ["manually_pushed_0"]
    engine.next_step()
    assert engine.get_vehicles(include_waiting=True) == []
    with pytest.raises(RuntimeError, match="not found"):
        engine.get_vehicle_info("manually_pushed_0")


def test_set_vehicle_route(tmp_path: Path) -> None:
    flows = [{"vehicle": dict(CAR), "route": ROUTE, "interval": 1, "startTime": 1, "endTime": 1}]
    engine = Engine(write(tmp_path, grid(), flows))
    engine.set_tl_phase(SIGNAL, 7)
    engine.push_vehicle({}, ROUTE)
    assert engine.set_vehicle_route("manually_pushed_0", ["r_0_0_1"])  # before it was planned
    assert not engine.set_vehicle_route("manually_pushed_0", ["nowhere"])
    assert not engine.set_vehicle_route("manually_pushed_0", ["r_-1_0_0"])  # one road only
    engine.step_many(2)
    assert engine.get_vehicle_info("manually_pushed_0")["route"] == "r_-1_0_0 r_0_0_1 "
    lane = engine.get_vehicle_info("flow_0_0")["drivable"] if "flow_0_0" in engine.get_vehicles() else ""
    engine.step_many(2)
    lane = lane or engine.get_vehicle_info("flow_0_0")["drivable"]
    turn = {"r_-1_0_0_0": "r_0_0_1", "r_-1_0_0_1": "r_0_0_3"}  # from the inner lane left, from the outer one right
    other = {"r_-1_0_0_0": "r_0_0_3", "r_-1_0_0_1": "r_0_0_1"}
    assert not engine.set_vehicle_route("flow_0_0", [other[lane]])
    assert engine.get_vehicle_info("flow_0_0")["route"] == "r_-1_0_0 r_0_0_0 "
    assert engine.set_vehicle_route("flow_0_0", [turn[lane]])
    assert engine.get_vehicle_info("flow_0_0")["route"] == f"r_-1_0_0 {turn[lane]} "
    on_link = None
    while engine.get_vehicle_count():
        if "flow_0_0" in engine.get_vehicles() and "road" not in engine.get_vehicle_info("flow_0_0"):
            on_link = engine.set_vehicle_route("flow_0_0", [turn[lane]])
        engine.next_step()
    assert on_link is False
    assert engine.finished_vehicle_count == 2


def test_snapshot_and_load(config: Path) -> None:
    engine = Engine(config)
    run(engine, 40)
    engine.push_vehicle({"maxSpeed": 8.0}, ROUTE)
    archive = engine.snapshot()
    here = everything(engine)
    first = run(engine, 60, seed=1)
    for _ in range(3):  # an archive stays unchanged
        engine.load(archive)
        assert everything(engine) == here
        assert run(engine, 60, seed=1) == first
    engine.reset()
    run(engine, 7)
    engine.load(archive)
    assert run(engine, 60, seed=1) == first


def test_archive_files_and_other_engines(config: Path, tmp_path: Path) -> None:
    engine = Engine(config)
    run(engine, 30)
    engine.push_vehicle({"maxSpeed": 8.0, "length": 6.5}, ROUTE)
    waiting = engine.get_vehicles(include_waiting=True)[0]
    engine.set_vehicle_speed(waiting, 3.0)
    assert any(engine.set_vehicle_route(v, [r]) for v in engine.get_vehicles() for r in ("r_0_0_1", "r_1_0_3"))
    archive = engine.snapshot()
    archive.dump(tmp_path / "archive.json")
    first = run(engine, 60, seed=1)
    other = Engine(config)
    other.load(archive)
    assert run(other, 60, seed=1) == first
    third = Engine(config)
    third.push_vehicle({"maxSpeed": 5.0}, list(reversed(["r_0_0_0", "r_-1_0_0"])))  # its numbering differs
    run(third, 11)
    third.load_from_file(tmp_path / "archive.json")
    assert run(third, 60, seed=1) == first


def test_a_changed_archive_is_refused(config: Path, tmp_path: Path) -> None:
    """Whatever number in it is changed: an engine must never run on a state that no engine was in."""
    engine = Engine(config)
    run(engine, 30)
    path = tmp_path / "archive.json"
    engine.snapshot().dump(path)
    text = path.read_text()
    places = [match.start() for match in re.finditer(r"\d(?=[,\]}])", text)]
    before = everything(engine)
    for place in random.Random(1).sample(places, 40):
        changed = f"{text[:place]}{9 - int(text[place])}{text[place + 1 :]}"
        if json.loads(changed) == json.loads(text):  # the last digit of a real may be beyond its precision
            continue
        path.write_text(changed)
        with pytest.raises(InputError, match="sha256: isn't that of the content"):
            engine.load_from_file(path)
        path.write_text(text[:place])
        with pytest.raises(InputError, match="not JSON"):
            engine.load_from_file(path)
    assert everything(engine) == before
    path.write_text(json.dumps(json.loads(text), indent=1))  # white space may change
    engine.load_from_file(path)
    assert everything(engine) == before


def test_archive_of_a_larger_engine(tmp_path: Path) -> None:
    flows = [{"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 1, "startTime": 0, "endTime": -1}] * 3
    path = write(tmp_path, line(100.0), flows)
    large, small = Engine(path), Engine(path)
    early = large.snapshot()
    large.step_many(300)
    archive = large.snapshot()
    small.load(archive)
    large.step_many(300)
    small.step_many(300)
    assert everything(large) == everything(small)
    small.load(early)  # and back to fewer vehicle slots
    small.step_many(600)
    assert everything(large) == everything(small)


def test_archive_faults(config: Path, tmp_path: Path) -> None:
    engine = Engine(config)
    engine.step_many(5)
    path = tmp_path / "archive.json"
    engine.snapshot().dump(path)
    longer = write(tmp_path / "longer", grid(2, 1, seed=5, length_m=130.0), demand(grid(2, 1, seed=5), 60, 60, seed=5))
    later = write(tmp_path / "later", grid(2, 1, seed=5), demand(grid(2, 1, seed=5), 60, 60, seed=6))
    for elsewhere in (write(tmp_path / "other", line(), []), longer, later):
        with pytest.raises(InputError, match="of another road network or flow file"):
            Engine(elsewhere).load(engine.snapshot())
    path.write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        engine.load_from_file(path)
    with pytest.raises(InputError, match="no such file"):
        engine.load_from_file(tmp_path / "absent.json")
    with pytest.raises(InputError, match="can't be written"):
        engine.snapshot().dump(tmp_path / "absent" / "archive.json")
    half = Engine.from_files(tmp_path / "roadnet.json", tmp_path / "flow.json", interval_s=0.5)
    with pytest.raises(InputError, match="another step length"):
        half.load(engine.snapshot())


def test_replay(tmp_path: Path) -> None:
    flows = [{"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 1, "startTime": 0, "endTime": 0}]
    path = write(tmp_path, line(20.0), flows, saveReplay=True)
    engine = Engine(path)
    engine.next_step()
    engine.set_tl_phase("mid", 1)
    engine.step_many(1)
    engine.set_save_replay(False)
    engine.next_step()
    engine.set_save_replay(True)
    engine.set_replay_file("second.txt")
    engine.next_step()
    engine.set_save_replay(False)
    assert (tmp_path / "replay.txt").read_text() == (
        "-19.0 -2.0 0.0 flow_0_0 0 5.0 2.0,;in_0 g,\n" + "-16.0 -2.0 0.0 flow_0_0 0 5.0 2.0,;in_0 r,\n"
    )
    assert len((tmp_path / "second.txt").read_text().splitlines()) == 1
    log = json.loads((tmp_path / "roadnet_log.json").read_text())["static"]
    assert log["edges"][0] == {
        "id": "in_0", "from": "end_0", "to": "mid", "points": [[-20, 0], [0, 0]], "nLane": 1, "laneWidths": [4],
    }  # fmt: skip
    mid = log["nodes"][0]
    assert (mid["id"], mid["virtual"], mid["width"], mid["point"]) == ("mid", False, 0, [0, 0])
    outline = np.array(mid["outline"]).reshape(-1, 2)
    assert {tuple(p) for p in outline.tolist()} == {(-5.0, 0.0), (-5.0, -4.0), (5.0, -4.0), (5.0, 0.0)}


def test_a_new_engine_takes_over_the_replay_of_an_old_one(tmp_path: Path) -> None:
    """As in a program that makes an engine anew for each episode, while a variable still holds the last one."""
    flows = [{"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 1, "startTime": 0, "endTime": 0}]
    path = write(tmp_path, line(20.0), flows, saveReplay=True)
    old = Engine(path)
    old.step_many(3)
    new = Engine(path)
    new.step_many(2)
    with pytest.raises(InputError, match=r"replay\.txt: another engine has begun its replay in this file"):
        old.next_step()
    with pytest.raises(InputError, match="another engine has begun its replay"):
        old.set_save_replay(True)
    old.set_replay_file("old.txt")
    old.next_step()
    new.set_replay_file("new.txt")
    third = Engine(path)  # nobody writes to replay.txt any more
    for engine in (old, new, third):
        engine.next_step()
        engine.set_save_replay(False)
    lines = {name: len((tmp_path / name).read_text().splitlines()) for name in ("old.txt", "new.txt", "replay.txt")}
    assert lines == {"old.txt": 2, "new.txt": 1, "replay.txt": 1}


def test_replay_needs_the_config(config: Path) -> None:
    engine = Engine(config)
    with pytest.raises(RuntimeError, match="saveReplay is false"):
        engine.set_save_replay(True)
    with pytest.raises(RuntimeError, match="saveReplay is false"):
        engine.set_replay_file("x.txt")


def test_replay_file_that_cannot_be_written(tmp_path: Path) -> None:
    path = write(tmp_path, line(), [], saveReplay=True, replayLogFile="absent/replay.txt")
    with pytest.raises(InputError, match=r"absent/replay\.txt: can't be written"):
        Engine(path)
