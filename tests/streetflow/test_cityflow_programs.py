"""Programs in the manner of CityFlow's documentation run with their import changed, and give CityFlow's numbers."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import streetflow
from tests.helpers.golden import NETWORKS, network_folder, read_trace, trace_config, traces
from tests.helpers.processes import PATIENCE_S
from tests.helpers.small_network import CAR, grid, line, write

PROGRAMS = Path(__file__).parent / "programs"
OWN_LIGHTS = traces(["arterial_flow2_engine", "example_engine"])  # lights by the road network's plan
ONE_LIGHT = traces(["crossing_flow1_random", "hangzhou1_flow2_random"])  # one intersection, set from outside


@pytest.fixture
def run_program(monkeypatch: pytest.MonkeyPatch) -> Any:
    """run_program(name, *arguments): runs a program with nothing but its import changed; returns its variables."""

    def run(name: str, *arguments: object) -> dict[str, Any]:
        file = PROGRAMS / f"{name}.py"
        source = file.read_text()
        assert source.count("\nimport cityflow\n") == 1
        source = source.replace("\nimport cityflow\n", "\nimport streetflow as cityflow\n")
        monkeypatch.setattr(sys, "argv", [str(file), *map(str, arguments)])
        variables: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(source, str(file), "exec"), variables)
        return variables

    return run


def golden_config(folder: Path, name: str, **changes: object) -> Path:
    """The config of a recorded run, on the network's files where they lie."""
    path = folder / "config.json"
    path.write_text(json.dumps(trace_config(name) | changes))
    return path


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", traces(NETWORKS))
def test_recorded_runs_by_names_with_any_number_of_threads(tmp_path: Path, run_program: Any, name: str, threads: int) -> None:
    trace = read_trace(name)
    phases = [[int(p) for p in row] if row[0] >= 0 else [] for row in trace["phase"]]
    schedule = tmp_path / "schedule.json"
    schedule.write_text(json.dumps({"intersections": trace["intersections"].tolist(), "phases": phases}))
    program = run_program("follow_trace", golden_config(tmp_path, name), threads, schedule)
    lanes = trace["lanes"].tolist()
    assert len(program["shown"]) == len(phases) >= 600
    for step, (count, waiting, running, travel_time) in enumerate(program["shown"]):
        assert [count[lane] for lane in lanes] == trace["count"][step].tolist(), f"step {step}"
        assert [waiting[lane] for lane in lanes] == trace["waiting"][step].tolist(), f"step {step}"
        assert (running, travel_time) == (trace["running"][step], trace["average_travel_time"][step]), f"step {step}"


@pytest.mark.parametrize("name", OWN_LIGHTS)
def test_quick_start(tmp_path: Path, run_program: Any, capsys: pytest.CaptureFixture[str], name: str) -> None:
    trace = read_trace(name)
    running, times_s = (trace[key][:1000].tolist() for key in ("running", "average_travel_time"))
    program = run_program("quick_start", golden_config(tmp_path, name), 1000)
    assert (program["running"], program["average_travel_time"]) == (running, times_s)
    assert capsys.readouterr().out == f"after 1000 s: {running[-1]} vehicles, average travel time {times_s[-1]:.2f} s\n"


@pytest.mark.parametrize("name", OWN_LIGHTS)
def test_data_access(tmp_path: Path, run_program: Any, name: str) -> None:
    trace = read_trace(name)
    program = run_program("data_access", golden_config(tmp_path, name), 300)
    lanes = trace["lanes"].tolist()
    speeds: dict[int, dict[str, float]] = {}
    for step, vehicle, speed in zip(trace["detail_step"], trace["detail_vehicle"], trace["detail_speed"], strict=True):
        speeds.setdefault(int(step), {})[str(vehicle)] = float(speed)
    assert sum(step < 300 for step in speeds) > 3
    for step, (count, waiting, speed, distance) in enumerate(program["history"]):
        assert [count[lane] for lane in lanes] == trace["count"][step].tolist()
        assert [waiting[lane] for lane in lanes] == trace["waiting"][step].tolist()
        assert list(speed) == list(distance) == sorted(speed)
        if step in speeds:
            assert speed == speeds[step]
    assert {info["running"] for info in program["infos"].values()} >= {"1"}
    assert program["message"] == "Vehicle 'no such vehicle' not found"


@pytest.mark.parametrize("name", ONE_LIGHT)
def test_reinforcement_learning_loop(tmp_path: Path, run_program: Any, name: str) -> None:
    trace = read_trace(name)
    hold, (signal,), lanes = int(trace["hold"]), trace["intersections"].tolist(), trace["lanes"].tolist()
    actions = trace["phase"][:1200:hold, 0].tolist()
    task = tmp_path / "task.json"
    task.write_text(json.dumps({"signal": signal, "lanes": lanes, "hold": hold, "actions": actions}))
    program = run_program("rl_loop", golden_config(tmp_path, name), task)
    ends = range(hold - 1, len(actions) * hold, hold)
    counts = [[0] * len(lanes), *(trace["count"][step].tolist() for step in ends)]
    rewards = [-int(trace["waiting"][step].sum()) for step in ends]
    assert program["episodes"] == [(counts, rewards, trace["average_travel_time"][ends[-1]])] * 2


@pytest.mark.parametrize("name", OWN_LIGHTS)
def test_replay(tmp_path: Path, run_program: Any, name: str) -> None:
    folder = f"{tmp_path}/"
    config = trace_config(name)
    for file in (config["roadnetFile"], config["flowFile"]):
        (tmp_path / file).symlink_to(network_folder(name) / file)
    logs = {"saveReplay": True, "roadnetLogFile": "roadnet_log.json", "replayLogFile": "replay.txt"}
    program = run_program("replay", golden_config(tmp_path, name, **logs, dir=folder), folder)
    running = read_trace(name)["running"].tolist()
    assert [len(vehicles) for vehicles, _ in program["first"]] == running[:100]
    assert [len(vehicles) for vehicles, _ in program["second"]] == running[150:180]
    edges = {edge["id"]: edge for edge in program["roadnet"]["edges"]}
    nodes = {node["id"]: node for node in program["roadnet"]["nodes"]}
    for vehicles, roads in [*program["first"], *program["second"]]:
        assert set(roads) == {name for name, edge in edges.items() if not nodes[edge["to"]]["virtual"]}
        assert all(len(lights) == edges[road]["nLane"] and set(lights) <= set("rgi") for road, lights in roads.items())
        assert all(len(vehicle) == 7 and vehicle[4] == "0" for vehicle in vehicles)
        assert len({vehicle[3] for vehicle in vehicles}) == len(vehicles)
    letters = {letter for _, roads in program["first"] for lights in roads.values() for letter in lights}
    assert {"r", "g"} <= letters


@pytest.mark.parametrize("name", ONE_LIGHT)
def test_archive(tmp_path: Path, run_program: Any, name: str) -> None:
    trace = read_trace(name)
    hold, (signal,) = int(trace["hold"]), trace["intersections"].tolist()
    plan, state = tmp_path / "plan.json", tmp_path / "state.json"
    plan.write_text(json.dumps({"hold": hold, "phases": trace["phase"][: 30 * hold : hold, 0].tolist()}))
    program = run_program("archive", golden_config(tmp_path, name), signal, plan, state)
    assert program["time_after_load"] == 15 * hold
    assert len({outcome[0] for outcome in program["outcomes"].values()}) > 3
    assert program["by_plan"] == program["by_plan_from_file"]
    assert program["by_plan"][0] == trace["average_travel_time"][30 * hold - 1]


def test_custom_speed(tmp_path: Path, run_program: Any) -> None:
    """The held vehicle drives at 3 m/s from its third step on (11.11 m/s less 4.5 m/s a step), and a column forms
    behind it. On the 700 m road the first vehicle, at 40 s, has driven 40 s * 11.11 m/s less the 30.9 m lost in
    speeding up at 2 m/s2: it is then far from the end of the road, and 60 s at 3 m/s don't get it there."""
    flows = [{"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 5, "startTime": 0, "endTime": 40}]
    program = run_program("custom_speed", write(tmp_path, line(700.0), flows))
    slow, speeds, column = program["slow"], program["speeds"], program["column"]
    assert slow == "flow_0_0"
    assert [round(step[slow], 2) for step in speeds[:3]] == [6.61, 3.0, 3.0]
    assert {step[slow] for step in speeds[1:]} == {3.0}
    assert column == [f"flow_0_{k}" for k in range(9)]
    assert program["leaders"] == ["", *column[:-1]]
    assert [speeds[-1][vehicle] for vehicle in column[:4]] == pytest.approx([3.0] * 4, abs=0.1)


def test_push_vehicle(tmp_path: Path, run_program: Any) -> None:
    """5 m/s at the start and default acceleration of 4.5 m/s2: 9.5, then its own top speed of 10 m/s."""
    program = run_program("push_vehicle", write(tmp_path, grid(), []), "i_0_0")
    assert program["vehicle"] == "manually_pushed_0"
    assert program["route_before"] == "r_-1_0_0 r_0_0_0 "
    (turn,) = program["turned"]  # the inner lane turns left, the outer one right
    assert program["route_after"] == f"r_-1_0_0 {turn} "
    assert program["unknown_road"] is False
    assert [speed for speed, _ in program["track"][:3]] == [9.5, 10.0, 10.0]
    assert program["track"][-1][1].startswith(turn)


def test_the_engine_needs_numpy_and_numba_alone(tmp_path: Path) -> None:
    """A program runs in a process in which nothing else that is installed can be imported, model and hil included."""
    flows = [{"vehicle": dict(CAR), "route": ["in_0", "out"], "interval": 5, "startTime": 0, "endTime": 40}]
    config = write(tmp_path, line(), flows)
    source = (PROGRAMS / "quick_start.py").read_text().replace("\nimport cityflow\n", "\nimport streetflow as cityflow\n")
    blocker = """
import sys
allowed = {"streetflow", "numpy", "numba", "llvmlite", *sys.stdlib_module_names}
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(f"blocked: {name}", name=name)
sys.meta_path.insert(0, Blocker())
"""
    command = [sys.executable, "-c", blocker + source, str(config), "50"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("after 50 s: 9 vehicles, average travel time ")
    refused = subprocess.run([sys.executable, "-c", blocker + "import hil"], capture_output=True, text=True, check=False)
    assert "blocked: hil" in refused.stderr


def test_signatures_are_those_of_the_interface() -> None:
    """Section 9.1's table: every call with its parameter names, so that calls by keyword work as well."""
    engine = streetflow.Engine
    assert list(inspect.signature(engine).parameters) == ["config_file", "thread_num"]
    assert inspect.signature(engine).parameters["thread_num"].default == 1
    calls = {
        "next_step": "()",
        "get_vehicle_count": "()",
        "get_vehicles": "(include_waiting=False)",
        "get_lane_vehicle_count": "()",
        "get_lane_waiting_vehicle_count": "()",
        "get_lane_vehicles": "()",
        "get_vehicle_speed": "()",
        "get_vehicle_distance": "()",
        "get_vehicle_info": "(vehicle_id)",
        "get_leader": "(vehicle_id)",
        "get_current_time": "()",
        "get_average_travel_time": "()",
        "set_tl_phase": "(intersection_id, phase_id)",
        "set_vehicle_speed": "(vehicle_id, speed)",
        "push_vehicle": "(info, roads)",
        "set_vehicle_route": "(vehicle_id, route)",
        "reset": "(seed=False)",
        "set_random_seed": "(seed)",
        "snapshot": "()",
        "load": "(archive)",
        "load_from_file": "(path)",
        "set_replay_file": "(replay_file)",
        "set_save_replay": "(open)",
    }
    for name, wanted in calls.items():
        parameters = list(inspect.signature(getattr(engine, name)).parameters.values())[1:]
        plain = [p.replace(annotation=p.empty) for p in parameters]
        assert str(inspect.Signature(plain)) == wanted, name
    assert list(inspect.signature(streetflow.Archive.dump).parameters) == ["self", "path"]
