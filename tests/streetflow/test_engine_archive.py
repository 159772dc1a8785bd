"""Snapshots and replay files."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

from streetflow import Engine, InputError
from tests.helpers.driven_engine import ROUTE, everything, run
from tests.helpers.small_network import CAR, demand, grid, line, write


@pytest.fixture
def config(tmp_path: Path) -> Path:
    roadnet = grid(2, 1, seed=5)
    return write(tmp_path, roadnet, demand(roadnet, 60, 60, seed=5), seed=4)


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


def test_vehicles_pushed_after_a_load_get_ids_of_their_own(config: Path) -> None:
    """The numbering isn't part of a snapshot, so that another engine would name a second vehicle manually_pushed_0."""
    engine, other = Engine(config), Engine(config)
    engine.push_vehicle({}, ROUTE)
    engine.next_step()
    other.load(engine.snapshot())
    other.push_vehicle({}, ROUTE)
    ids = other.get_vehicles(include_waiting=True)
    assert len(set(ids)) == len(ids) and {"manually_pushed_0", "manually_pushed_1"} <= {*ids}
    other.step_many(100)
    assert set(other.get_vehicle_speed()) == set(other.get_vehicles())
    assert len(set(other.trips().ids)) == len(other.trips().ids)


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
    """Whichever number in it is changed: an engine must never run on a state that no engine was in."""
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
    """As in a program that makes a new engine for each episode, while a variable still holds the last one."""
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
    third = Engine(path)  # no engine writes to replay.txt any more
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
