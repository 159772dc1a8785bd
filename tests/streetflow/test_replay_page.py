"""The replay page, opened in headless Chromium: vehicles and light colours are the engine's, at several times."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from streetflow.control.controllers import MaxPressure, run
from streetflow.control.environment import Environment
from streetflow.engine.cityflow_names import Engine
from streetflow.networks.catalogue import find_network
from streetflow.page.recorder import Recorder
from streetflow.page.write import page_content, write_replay_page
from streetflow.roadnet.geometry import point_at
from tests.helpers.processes import PATIENCE_S

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SWITCHES = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,800",
    "--virtual-time-budget=10000",
    "--dump-dom",
]
RGB = {"g": (0x35, 0xC4, 0x6A), "p": (0xD9, 0xD1, 0x3C), "r": (0xE5, 0x48, 0x4D)}
HORIZON_S = 700


@pytest.fixture(scope="module")
def recorded() -> tuple[Recorder, Engine, dict[int, dict[str, object]]]:
    """A recorder over 700 s of the arterial, the engine, and the state that it reported after some of the steps."""
    environment = Environment(find_network("arterial"), 0, horizon_s=HORIZON_S)
    engine = environment.engine
    assert isinstance(engine, Engine)
    truth: dict[int, dict[str, object]] = {}

    class Witness(Recorder):
        def next_step(self) -> None:
            super().next_step()
            step = round(engine.get_current_time())
            if step % 100 == 0:
                truth[step] = {
                    "speed": engine.get_vehicle_speed(),
                    "distance": engine.get_vehicle_distance(),
                    "drivable": {v: engine.get_vehicle_info(v)["drivable"] for v in engine.get_vehicle_speed()},
                    "phases": engine.phase_indices.copy(),
                }

    recorder = Witness(engine)
    environment.engine = recorder  # type: ignore[assignment]
    run(environment, MaxPressure())
    return recorder, engine, truth


def test_positions_are_those_of_the_geometry(recorded) -> None:
    recorder, engine, truth = recorded
    recording = recorder.recording()
    network = engine.network
    shapes = dict(
        zip((*network.roadnet.lane_ids, *network.link_ids), (*network.lane_shapes, *network.link_shapes), strict=True)
    )
    for step, state in truth.items():
        here = np.flatnonzero(recording.frame == step - 1)
        vehicles = np.searchsorted(recording.vehicle_first, here, side="right") - 1
        places = {recording.vehicle_ids[v]: recording.position_m[k] for v, k in zip(vehicles, here, strict=True)}
        assert set(places) == set(state["speed"]) and len(places) > 10
        for vehicle, place in places.items():
            expected = point_at(shapes[state["drivable"][vehicle]], state["distance"][vehicle])
            assert tuple(place) == expected  # to the last bit


def test_a_window_of_the_run_is_kept() -> None:
    environment = Environment(find_network("crossing"), 0, horizon_s=400)
    recorder = Recorder(environment.engine, 100, 160)  # type: ignore[arg-type]
    environment.engine = recorder  # type: ignore[assignment]
    run(environment, MaxPressure())
    recording = recorder.recording()
    assert (recording.n_frames, recording.first_step) == (60, 101)
    assert recording.frame.min() == 0 and recording.frame.max() == 59
    for first, end in zip(recording.vehicle_first[:-1], recording.vehicle_first[1:], strict=True):
        assert (np.diff(recording.frame[first:end]) == 1).all()


def test_lights_of_a_lane_are_open_part_open_or_closed(recorded) -> None:
    recorder, engine, _ = recorded
    content = page_content(recorder.recording(), engine.network, "arterial")
    lights = content["lights"]
    assert isinstance(lights, list)
    letters = {letter for light in lights for letter in light["by_phase"]}
    assert letters >= {"g", "r"} and letters <= {"g", "r", "p"}
    phases = [len(each.phases) for each in engine.network.roadnet.intersections]
    assert all(len(light["by_phase"]) == phases[light["intersection"]] for light in lights)


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian's package chromium)")
@pytest.mark.parametrize("step", [100, 300, 600])
def test_chromium_shows_what_the_engine_had(recorded, step: int, tmp_path: Path) -> None:
    recorder, engine, truth = recorded
    page = tmp_path / "replay.html"
    write_replay_page(recorder.recording(), engine.network, "a </script> title", page)
    shown = dumped(page, step - 1, tmp_path)
    state = truth[step]

    speeds = {vehicle["id"]: vehicle["speed"] for vehicle in shown["vehicles"]}
    assert set(speeds) == set(state["speed"])
    moving = sum(speed > 1 for speed in speeds.values())
    assert moving > 5
    # Seen speeds are displacements: on bends a little less than the engine's, which also averages over the second.
    close = [abs(speeds[v] - state["speed"][v]) < 2.5 for v in speeds]
    assert sum(close) >= 0.9 * len(close)

    network = engine.network
    lane_links = {}
    for k, (number, _, lane_link) in enumerate(network.links):
        lane_links.setdefault((number, lane_link.start_lane), []).append(k)
    is_open = opened(engine, state["phases"])
    seen = {light["lane"]: light for light in shown["lights"]}
    assert len(seen) == len(lane_links)
    letters = set()
    for (_, lane), links in lane_links.items():
        light = seen[engine.lane_ids[lane]]
        states = {is_open[k] for k in links}
        expected = "p" if len(states) == 2 else "g" if states == {True} else "r"
        assert light["letter"] == expected
        assert light["rgb"] == pytest.approx(RGB[expected], abs=40), light
        letters.add(expected)
    assert {"g", "r"} <= letters


def opened(engine: Engine, phases: np.ndarray) -> list[bool]:
    """Per lane link: whether its road link is available in its intersection's phase."""
    states = []
    for number, road_link, _ in engine.network.links:
        intersection = engine.network.roadnet.intersections[number]
        available = intersection.phases[phases[number]].road_links
        states.append(any(intersection.road_links[r] is road_link for r in available))
    return states


def dumped(page: Path, frame: int, folder: Path) -> dict:
    """What the page says that it draws at a frame."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *SWITCHES, f"--user-data-dir={folder / 'profile'}", f"{page.as_uri()}#frame={frame}&dump"]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    found = re.search(r'<pre id="state"[^>]*>(.*?)</pre>', dom, re.DOTALL)
    assert found is not None, dom[-2000:]
    return json.loads(html.unescape(found[1]))
