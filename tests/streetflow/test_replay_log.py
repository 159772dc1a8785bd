"""Replay files, byte for byte, against a plain writer, and what is in them while an engine runs."""

import gc
import json
import math
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streetflow import Engine, InputError, InputWarning
from streetflow.networks.catalogue import find_network, network_names
from streetflow.roadnet.geometry import direction_at
from streetflow.roadnet.polylines import Polylines
from tests.helpers.plain_replay import plain_line
from tests.helpers.small_network import demand, grid, write
from tests.streetflow.test_engine_edges import RECORDED, engine_of

PUSHED = {"speed": 3.0, "length": 1e-05, "width": 1e16, "minGap": 1.5}


def small_grid(folder: Path, **config: Any) -> Path:
    """A config of 150 vehicles on two crossings; the name of one road isn't ASCII."""
    roadnet = json.loads(json.dumps(grid(2, 1, seed=3, n_lanes=3, length_m=220.0)).replace('"r_0_0_0"', '"Straße 1"'))
    return write(folder, roadnet, demand(roadnet, 150, 60, seed=5), saveReplay=True, **config)


def drive(engine: Engine, steps: int) -> str:
    """Step with lights that change; returns what the replay should hold."""
    expected = ""
    for step in range(steps):
        if engine.config.rl_traffic_light and step % 5 == 0:
            engine.set_phases(np.where(engine.phase_counts > 0, step // 5 % np.maximum(engine.phase_counts, 1), -1))
        engine.next_step()
        expected += plain_line(engine)
    engine.set_save_replay(True)
    return expected


@pytest.mark.parametrize("own_lights", [False, True])
@pytest.mark.parametrize("lane_change", [False, True])
def test_a_replay_is_what_a_plain_writer_makes(lane_change: bool, own_lights: bool, tmp_path: Path) -> None:
    engine = Engine(small_grid(tmp_path, laneChange=lane_change, rlTrafficLight=not own_lights))
    expected = drive(engine, 20)
    engine.push_vehicle(PUSHED, [engine.network.roadnet.roads[road].id for road in engine.demand.routes[0]])
    expected += drive(engine, 130)
    written = (tmp_path / "replay.txt").read_bytes().decode()
    assert written == expected
    assert "manually_pushed_0 0 1e-05 1e+16," in written and " 12.0 2.5," in written and ",Straße 1 " in written
    assert (" 1 5.0 2.0," in written) == lane_change


@pytest.mark.parametrize("name", RECORDED)
def test_so_it_is_where_roads_and_lane_links_are_odd(name: str, tmp_path: Path) -> None:
    engine_of(name, tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    content |= {"saveReplay": True, "replayLogFile": "replay.txt", "roadnetLogFile": "roadnet_log.json"}
    (tmp_path / "config.json").write_text(json.dumps(content))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # of what is odd
        engine = Engine(tmp_path / "config.json")
    expected = drive(engine, 30)
    assert (tmp_path / "replay.txt").read_text() == expected and " flow_0_0 " in expected


@pytest.mark.skipif("Jinan" not in network_names(), reason="needs the data sets")
@pytest.mark.parametrize("lane_change", [False, True])
def test_so_it_is_on_a_large_network(lane_change: bool, tmp_path: Path) -> None:
    network = find_network("Jinan")
    files = {"roadnetFile": str(network.roadnet_file), "flowFile": str(network.flow_files[0]), "dir": ""}
    logs = {"replayLogFile": str(tmp_path / "replay.txt"), "roadnetLogFile": str(tmp_path / "log.json")}
    engine = Engine(write(tmp_path, {}, [], saveReplay=True, laneChange=lane_change, **files, **logs))
    engine.step_many(150)
    engine.set_replay_file(str(tmp_path / "later.txt"))
    expected = drive(engine, 30)
    assert (tmp_path / "later.txt").read_text() == expected and expected.count("flow_") > 3000


def test_a_snapshot_of_another_engine_brings_its_vehicle_kinds(tmp_path: Path) -> None:
    config = small_grid(tmp_path)
    first = Engine(config)
    first.push_vehicle(PUSHED, [first.network.roadnet.roads[road].id for road in first.demand.routes[0]])
    first.step_many(20)
    second = Engine(config)  # takes the file over
    second.load(first.snapshot())
    assert (tmp_path / "replay.txt").read_text() == "" and drive(second, 5) == (tmp_path / "replay.txt").read_text()
    assert " 1e-05 1e+16," in (tmp_path / "replay.txt").read_text()


def test_a_reader_sees_whole_lines_while_the_engine_runs(tmp_path: Path) -> None:
    engine = Engine(small_grid(tmp_path))
    waiting = []
    for step in range(1, 121):
        engine.next_step()
        text = (tmp_path / "replay.txt").read_text()
        assert text == "" or text.endswith(",\n")
        waiting.append(step - text.count("\n"))
    assert min(waiting) >= 0 and max(waiting) > 1  # lines, for the next block
    engine.set_save_replay(False)
    assert (tmp_path / "replay.txt").read_text().count("\n") == 120


def test_what_is_left_is_written_when_the_engine_goes_or_the_program_ends(tmp_path: Path) -> None:
    config = small_grid(tmp_path)
    engine = Engine(config)
    engine.step_many(3)
    assert (tmp_path / "replay.txt").read_text() == ""
    del engine
    gc.collect()
    assert (tmp_path / "replay.txt").read_text().count("\n") == 3
    program = f"from streetflow import Engine; engine = Engine({str(config)!r}); engine.step_many(4); raise KeyboardInterrupt"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode != 0
    assert (tmp_path / "replay.txt").read_text().count("\n") == 4


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    engine = Engine(small_grid(tmp_path, replayLogFile="full"))
    with pytest.raises(InputError, match=r"full: can't be written: No space left on device"):
        engine.step_many(1000)
    with pytest.raises(InputError, match=r"full: can't be written: No space left on device"):
        engine.set_save_replay(False)
    with pytest.warns(InputWarning, match=r"full: can't be written: No space left on device: its end is missing"):
        engine.set_replay_file("other.txt")
    engine.set_save_replay(True)
    engine.next_step()
    del engine
    gc.collect()
    assert len((tmp_path / "other.txt").read_text().splitlines()) == 1


def test_polylines_are_lists_of_points_and_flat_arrays() -> None:
    shapes = [[(0.0, 0.0), (3.0, 4.0)], [(1.0, 1.0), (1.0, 1.0), (-0.5, 1.0)], [(2.0, 2.0), (2.0, 2.0)]]
    polylines = Polylines.of(shapes)
    assert list(polylines) == shapes and polylines[-1] == shapes[-1]
    assert list(polylines[1:]) == shapes[1:] and list(polylines[:0]) == [] and list(polylines[2:1]) == []
    with pytest.raises(IndexError):
        polylines[3]
    assert polylines.segment_m[[1, 3, 4, 6]].tolist() == [5.0, 0.0, 1.5, 0.0]
    angles = polylines.angle_rad
    assert angles[[1, 4]].tolist() == [math.atan2(4.0 / 5.0, 3.0 / 5.0), math.pi] and angles[3] == angles[6] == 0.0
    assert direction_at(shapes[1], 0.5) == (-1.0, 0.0)
