"""Bad calls, damaged snapshots, many engines, Ctrl-C: nothing crashes, hangs or passes silently."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streetflow import Engine, InputError
from streetflow.errors import StepError, UnknownIdError, UnknownVehicleError
from tests.helpers.processes import PATIENCE_S
from tests.helpers.small_network import CAR, demand, grid, line, write

SIGNAL = "i_0_0"
ROUTE = ["r_-1_0_0", "r_0_0_0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traps")


@pytest.fixture(scope="module")
def config(folder: Path) -> Path:
    roadnet = grid(seed=2)
    return write(folder, roadnet, demand(roadnet, 30, 20, seed=2), seed=1)


# ---------------------------------------------------------------------- calls

BAD_CALLS: list[tuple[str, Callable[[Engine], object], type[Exception], str]] = [
    ("phase of an unknown intersection", lambda e: e.set_tl_phase("i_0_O", 0), KeyError, "'i_0_O'; near matches: i_0_"),
    ("phase of a number", lambda e: e.set_tl_phase(3, 0), KeyError, "unknown intersection 3"),
    ("phase of a virtual intersection", lambda e: e.set_tl_phase("i_1_0", 0), IndexError, "is virtual"),
    ("phase too large", lambda e: e.set_tl_phase(SIGNAL, 8), IndexError, "has the phases 0 to 7, not 8"),
    ("phase negative", lambda e: e.set_tl_phase(SIGNAL, -1), IndexError, "not -1"),
    ("phase beyond 32 bits", lambda e: e.set_tl_phase(SIGNAL, 2**32), IndexError, "not 4294967296"),
    ("phase a float", lambda e: e.set_tl_phase(SIGNAL, 1.0), TypeError, "phase must be a whole number .*not 1.0"),
    ("phase a string", lambda e: e.set_tl_phase(SIGNAL, "1"), TypeError, "integer"),
    ("phase None", lambda e: e.set_tl_phase(SIGNAL, None), TypeError, "integer"),
    ("intersection number too large", lambda e: e.set_phase_by_index(5, 0), IndexError, "no intersection number 5"),
    ("intersection number negative", lambda e: e.set_phase_by_index(-1, 0), IndexError, "no intersection number -1"),
    ("phases too few", lambda e: e.set_phases([0]), ValueError, "needs 5 phases"),
    ("phases in a table", lambda e: e.set_phases([[0] * 5]), ValueError, "needs 5 phases"),
    ("phases fractional", lambda e: e.set_phases([-1.0] * 5), TypeError, "whole numbers, not float64"),
    ("phases NaN", lambda e: e.set_phases([math.nan] * 5), TypeError, "whole numbers"),
    ("phases strings", lambda e: e.set_phases(["0"] * 5), TypeError, "whole numbers"),
    ("phases too large", lambda e: e.set_phases([2**40] * 5), IndexError, "not 1099511627776|is virtual"),
    ("info of an unknown vehicle", lambda e: e.get_vehicle_info("flow_0_99"), RuntimeError, "Vehicle 'flow_0_99' not found"),
    ("info of a number", lambda e: e.get_vehicle_info(3), RuntimeError, "Vehicle '3' not found"),
    ("leader of an unknown vehicle", lambda e: e.get_leader("flow_99_0"), KeyError, "not found; near matches: flow_"),
    ("speed of an unknown vehicle", lambda e: e.set_vehicle_speed("x", 1.0), UnknownVehicleError, "Vehicle 'x' not found$"),
    ("speed NaN", lambda e: e.set_vehicle_speed(e.get_vehicles()[0], math.nan), ValueError, "must be a finite number"),
    ("speed infinite", lambda e: e.set_vehicle_speed(e.get_vehicles()[0], math.inf), ValueError, "must be a finite number"),
    ("speed of 10**400", lambda e: e.set_vehicle_speed(e.get_vehicles()[0], 10**400), ValueError, "must be a finite number"),
    ("speed a string", lambda e: e.set_vehicle_speed(e.get_vehicles()[0], "3"), TypeError, "real number"),
    ("speed None", lambda e: e.set_vehicle_speed(e.get_vehicles()[0], None), TypeError, "real number"),
    ("push on an unknown road", lambda e: e.push_vehicle({}, ["r_-1_0_O"]), UnknownIdError, "near matches: r_-1_0_0"),
    ("push on no road", lambda e: e.push_vehicle({}, []), InputError, "at least 1 road"),
    ("push on a string", lambda e: e.push_vehicle({}, "r_-1_0_0"), TypeError, "list of road ids, not the string"),
    ("push on numbers", lambda e: e.push_vehicle({}, [1, 2]), TypeError, "a road id is a string, not 1"),
    ("push on None", lambda e: e.push_vehicle({}, None), TypeError, "iterable"),
    ("push what is no object", lambda e: e.push_vehicle(5, ROUTE), TypeError, "iterable"),
    ("push of length 0", lambda e: e.push_vehicle({"length": 0}, ROUTE), InputError, r"info\.length: must be above 0"),
    ("push of negative gap", lambda e: e.push_vehicle({"minGap": -1}, ROUTE), InputError, r"info\.minGap: must be at least 0"),
    ("push of infinite speed", lambda e: e.push_vehicle({"speed": math.inf}, ROUTE), InputError, r"info\.speed: must be fin"),
    ("push of NaN", lambda e: e.push_vehicle({"maxSpeed": math.nan}, ROUTE), InputError, r"info\.maxSpeed: must be finite"),
    ("push of text", lambda e: e.push_vehicle({"width": "2"}, ROUTE), InputError, r"info\.width: must be a number, not a str"),
    ("push of True", lambda e: e.push_vehicle({"width": True}, ROUTE), InputError, "not a boolean"),
    ("push of None", lambda e: e.push_vehicle({"headwayTime": None}, ROUTE), InputError, "not null"),
    ("push of two faults", lambda e: e.push_vehicle({"width": -1, "length": -1}, ROUTE), InputError, r"also info\.width"),
    ("route a string", lambda e: e.set_vehicle_route(e.get_vehicles()[0], "r_0_0_0"), TypeError, "not the string"),
    ("route of numbers", lambda e: e.set_vehicle_route(e.get_vehicles()[0], [0]), TypeError, "a road id is a string"),
    ("steps negative", lambda e: e.step_many(-1), ValueError, "must be 0 to "),
    ("steps fractional", lambda e: e.step_many(2.5), TypeError, "the number of steps must be a whole number .*not 2.5"),
    ("steps a string", lambda e: e.step_many("3"), TypeError, "the number of steps must be .*not '3'"),
    ("steps beyond the counter", lambda e: e.step_many(2**31), ValueError, "must be 0 to "),
    ("seed a float", lambda e: e.set_random_seed(1.5), TypeError, "seed must be a whole number .*not 1.5"),
    ("seed a string", lambda e: e.set_random_seed("1"), TypeError, "integer"),
    ("seed None", lambda e: e.set_random_seed(None), TypeError, "integer"),
    ("load a path", lambda e: e.load("state.json"), TypeError, "load_from_file reads one"),
    ("load None", lambda e: e.load(None), TypeError, "needs an Archive"),
    ("load from nowhere", lambda e: e.load_from_file("absent.json"), InputError, r"absent\.json: there is no such file"),
    ("load from a folder", lambda e: e.load_from_file("/"), InputError, "can't be read"),
    ("load from a name with NUL", lambda e: e.load_from_file("a\0b"), InputError, "can't be read: embedded null"),
    ("dump to nowhere", lambda e: e.snapshot().dump("/absent/x.json"), InputError, "can't be written: No such file"),
    ("dump to a folder", lambda e: e.snapshot().dump("/"), InputError, "can't be written"),
    ("replay without saveReplay", lambda e: e.set_save_replay(True), RuntimeError, "saveReplay is false"),
    ("replay file without saveReplay", lambda e: e.set_replay_file("x.txt"), RuntimeError, "saveReplay is false"),
]  # fmt: skip


def state(engine: Engine) -> tuple[object, ...]:
    return engine.get_vehicles(include_waiting=True), engine.get_vehicle_distance(), engine.phase_indices.tolist()


@pytest.mark.parametrize(("call", "error", "message"), [row[1:] for row in BAD_CALLS], ids=[row[0] for row in BAD_CALLS])
def test_bad_call_raises_and_changes_nothing(config: Path, call: Any, error: Any, message: str) -> None:
    engine, untouched = Engine(config), Engine(config)
    for each in (engine, untouched):
        each.step_many(12)
    with pytest.raises(error, match=message):
        call(engine)
    assert state(engine) == state(untouched)
    for each in (engine, untouched):
        each.step_many(5)
    assert state(engine) == state(untouched)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", None])
def test_bad_thread_num(config: Path, threads: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"thread_num must be (a whole number|at least 1)"):
        Engine(config, threads)


def test_pushed_parameters_may_be_numpy_scalars(tmp_path: Path) -> None:
    engine = Engine(write(tmp_path, line(), []))
    engine.push_vehicle({"maxSpeed": np.float32(7.5), "length": np.int64(4)}, np.array(["in_0", "out"]).tolist())
    engine.step_many(5)
    assert engine.get_vehicle_speed() == {"manually_pushed_0": 7.5}


def test_errors_survive_pickling(config: Path) -> None:
    """They cross process borders: a worker's error arrives whole."""
    engine = Engine(config)
    engine.step_many(12)
    for call in (lambda: engine.set_tl_phase("i_0_O", 0), lambda: engine.get_leader("flow_0_9")):
        with pytest.raises(UnknownIdError) as caught:
            call()
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), str(again), again.name) == (type(caught.value), str(caught.value), caught.value.name)
    error = InputError("f", "a.b", "is bad", (("c", "too"),))
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == "f: a.b: is bad (also c: too)"


# ---------------------------------------------------------------------- snapshots on disk


def damage(text: str, **members: object) -> str:
    return json.dumps({**json.loads(text), **members})


def sealed(text: str, **members: object) -> str:
    """With a right checksum, as another version of the program might write it."""
    content = {**json.loads(text), **members}
    del content["sha256"]
    body = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return json.dumps({**content, "sha256": hashlib.sha256(body.encode()).hexdigest()})


BAD_ARCHIVES: list[tuple[str, Callable[[str], str], str]] = [
    ("empty", lambda text: "", "line 1, column 1: not JSON"),
    ("cut off", lambda text: text[: len(text) // 2], "not JSON"),
    ("an array", lambda text: "[]", "this isn't an engine's snapshot"),
    ("a roadnet", lambda text: '{"intersections": [], "roads": []}', "format: must be 'streetflow-archive'"),
    ("nested without end", lambda text: "[" * 100_000, "nested too deeply"),
    ("another version", lambda text: damage(text, version=99), "version: must be .*, is 99"),
    ("no version", lambda text: damage(text, version=None), "version: must be .*, is None"),
    ("no checksum", lambda text: damage(text, sha256=None), "sha256: isn't that of the content"),
    ("one digit changed", lambda text: text.replace('"counters": [12,', '"counters": [13,', 1), "damaged or edited"),
    ("a vehicle slot out of range", lambda text: damage(text, ways={"9999": [[0], 0, 0, 0]}), "damaged or edited"),
    ("other inputs", lambda text: sealed(text, inputs="0" * 64), "of another road network or flow file"),
    ("no inputs", lambda text: sealed(text, inputs=None), "of another road network or flow file"),
    ("no arrays", lambda text: sealed(text, arrays={}), "not a snapshot"),
    ("arrays of different sizes", lambda text: sealed(text, arrays={**json.loads(text)["arrays"], "gap": [0.0]}), "not a snap"),
    ("kinds of one number", lambda text: sealed(text, kinds=[[1.0]]), "not a snapshot"),
    ("routes of nothing", lambda text: sealed(text, routes=None), "not a snapshot"),
    ("ways of text", lambda text: sealed(text, ways={"a": "b"}), "not a snapshot"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), [row[1:] for row in BAD_ARCHIVES], ids=[row[0] for row in BAD_ARCHIVES])
def test_damaged_archive_is_refused(config: Path, tmp_path: Path, change: Any, message: str) -> None:
    engine, untouched = Engine(config), Engine(config)
    for each in (engine, untouched):
        each.step_many(12)
    path = tmp_path / "archive.json"
    engine.snapshot().dump(path)
    text = path.read_text()
    changed = change(text)
    assert changed != text
    path.write_text(changed)
    with pytest.raises(InputError, match=message):
        engine.load_from_file(path)
    assert state(engine) == state(untouched)


def test_archive_of_other_input_of_the_same_size_is_refused(tmp_path: Path) -> None:
    """Same numbers of roads, lanes and flows; only one lane's speed limit, or one start time, differs."""
    roadnet = grid()
    flows = demand(roadnet, 10, 20, seed=1)
    other_roadnet, other_flows = copy.deepcopy(roadnet), copy.deepcopy(flows)
    other_roadnet["roads"][0]["lanes"][0]["maxSpeed"] = 9.0
    other_flows[3]["interval"] = 59.0
    archive = Engine(write(tmp_path / "a", roadnet, flows)).snapshot()
    archive.dump(tmp_path / "archive.json")
    for name, files in (("b", (other_roadnet, flows)), ("c", (roadnet, other_flows))):
        other = Engine(write(tmp_path / name, *files))
        with pytest.raises(InputError, match="of another road network or flow file"):
            other.load(archive)
        with pytest.raises(InputError, match="of another road network or flow file"):
            other.load_from_file(tmp_path / "archive.json")
    same = Engine(write(tmp_path / "d", roadnet, flows, seed=9))  # the same content in another place
    same.load(archive)


# ---------------------------------------------------------------------- files that logs would overwrite


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"roadnetLogFile": "roadnet.json"}, "roadnetLogFile"),
        ({"replayLogFile": "./flow.json"}, "replayLogFile"),
        ({"replayLogFile": "roadnet_log.json"}, "replayLogFile"),
        ({"replayLogFile": "config.json"}, "replayLogFile"),
        ({"roadnetLogFile": "./config.json"}, "roadnetLogFile"),
    ],
)
def test_a_log_may_not_overwrite_another_file(tmp_path: Path, changes: Any, place: str) -> None:
    path = write(tmp_path, grid(), [], saveReplay=True, **changes)
    before = {file: file.read_text() for file in tmp_path.iterdir()}
    with pytest.raises(InputError, match=f"{place}: is the file of .*: it would be overwritten"):
        Engine(path)
    assert before == {file: file.read_text() for file in tmp_path.iterdir()}


@pytest.mark.parametrize("name", ["config.json", "./roadnet.json", "link", "roadnet_log.json"])
def test_nor_may_a_replay_that_moves_to_it(tmp_path: Path, name: str) -> None:
    engine = Engine(write(tmp_path, grid(), [], saveReplay=True))
    (tmp_path / "link").symlink_to("flow.json")
    before = {file: file.read_text() for file in tmp_path.iterdir() if file.name != "replay.txt"}
    with pytest.raises(InputError, match=r"is the file of .*: it would be overwritten"):
        engine.set_replay_file(name)
    engine.step_many(3)
    engine.set_save_replay(False)
    assert before == {file: file.read_text() for file in before}
    assert len((tmp_path / "replay.txt").read_text().splitlines()) == 3


def test_replay_goes_on_after_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    flows = [{"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 5, "startTime": 0, "endTime": -1}]
    engine = Engine(write(tmp_path, line(), flows, saveReplay=True))
    engine.step_many(3)
    for bad in ("absent/replay.txt", "", "a\0b"):
        with pytest.raises(InputError, match="can't be written"):
            engine.set_replay_file(bad)
        engine.next_step()
    engine.set_save_replay(True)
    assert len((tmp_path / "replay.txt").read_text().splitlines()) == 6
    engine.set_replay_file("../" + tmp_path.name + "/replay.txt")  # the same file by another name: starts anew
    engine.next_step()
    engine.set_save_replay(True)
    assert len((tmp_path / "replay.txt").read_text().splitlines()) == 1


# ---------------------------------------------------------------------- demand


def test_endless_flow_of_many_vehicles_a_step_is_refused(tmp_path: Path) -> None:
    """startTime = endTime = -1 is no single instant: -1 means without end, so the interval must be 1 s or more."""
    flow = {"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 0.001, "startTime": -1, "endTime": -1}
    with pytest.raises(InputError, match=r"\[0\]\.interval: must be at least 1 s"):
        Engine(write(tmp_path, line(), [flow]))
    Engine(write(tmp_path, line(), [{**flow, "startTime": 3, "endTime": 3}])).step_many(10)


def test_step_of_hours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="interval: must be above 0 s and at most 60 s, is 3600"):
        Engine(write(tmp_path, line(), [], interval=3600))


# ---------------------------------------------------------------------- many engines


def test_engines_come_and_go_in_any_order(config: Path, tmp_path: Path) -> None:
    """Created, stepped, loaded from each other and destroyed at random, some of them before their first step."""
    reference = Engine(config)
    expected = []
    for _ in range(40):
        expected.append(state(reference))
        reference.next_step()
    rng = random.Random(3)
    engines: list[tuple[Engine, int]] = []
    created = 0
    while created < 50:
        action = rng.random()
        if action < 0.3 or not engines:
            engines.append((Engine(config, rng.choice([1, 2, 8])), 0))
            created += 1
        elif action < 0.5:
            engines.pop(rng.randrange(len(engines)))
        elif action < 0.6:
            (source, step), at = rng.choice(engines), rng.randrange(len(engines))
            engines[at][0].load(source.snapshot())
            engines[at] = engines[at][0], step
        else:
            at = rng.randrange(len(engines))
            engine, step = engines[at]
            n = rng.randrange(0, min(8, 39 - step) + 1)
            engine.step_many(n)
            engines[at] = engine, step + n
            assert state(engine) == expected[step + n]


def test_engines_in_threads_do_not_disturb_each_other(config: Path) -> None:
    expected = Engine(config)
    expected.step_many(300)
    results: list[object] = []

    def work() -> None:
        engine = Engine(config)
        for _ in range(30):
            engine.step_many(10)
        results.append(state(engine))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [state(expected)] * 4


# ---------------------------------------------------------------------- Ctrl-C

INTERRUPTED = """
import os, signal, sys, threading
from streetflow import Engine

engine = Engine(sys.argv[1])
engine.next_step()
if sys.argv[2] == "step_many":
    work = lambda: engine.step_many(2**31 - 10)   # hours
elif sys.argv[2] == "next_step":
    def work():
        while True:
            engine.next_step()
else:
    def work():
        while True:
            os.utime(sys.argv[3])   # so that the network is built again
            Engine(sys.argv[1])
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    work()
except KeyboardInterrupt:
    before = engine.get_current_time()
    engine.step_many(3)   # the state is whole: the engine goes on
    assert engine.get_current_time() == before + 3
    print("interrupted")
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to its own process")
@pytest.mark.parametrize("where", ["step_many", "next_step", "load"])
def test_ctrl_c_interrupts(config: Path, where: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(config), where, str(config.with_name("roadnet.json"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def test_uncaught_interrupt_ends_the_process_by_the_signal(config: Path) -> None:
    code = INTERRUPTED.replace("except KeyboardInterrupt", "except ZeroDivisionError")
    command = [sys.executable, "-c", code, str(config), "step_many"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGINT and "KeyboardInterrupt" in done.stderr


def test_own_lights_cannot_be_set_by_number_either(tmp_path: Path) -> None:
    engine = Engine(write(tmp_path, grid(), [], rlTrafficLight=False))
    with pytest.raises(StepError, match="rlTrafficLight is false"):
        engine.set_phase_by_index(engine.intersection_index[SIGNAL], 1)
