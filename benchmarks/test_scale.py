"""How a step's time, loading and memory grow with the network: grids of 1 to 1,024 signalled crossings.

`make bench ARGS="benchmarks/test_scale.py --benchmark-json=FILE"`, then `python scripts/scale_report.py FILE` writes
docs/scale.md's tables and picture. Every light follows a plan of 8 phases of 20 s (FixedTime of the paper).
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from streetflow import Engine
from streetflow.control.intersection import signalled_intersections
from streetflow.networks.catalogue import Network, find_network, network_names, network_of
from streetflow.networks.generate_flow import Traffic
from streetflow.networks.generate_roadnet import Grid
from streetflow.networks.write import generated_network, write_network
from streetflow.roadnet.kept_arrays import VARIABLE
from streetflow.roadnet.network_tables import load_network
from streetflow.roadnet.reader import read_roadnet

SIDES = (1, 4, 8, 14, 32)
PHASE_S = 20
CYCLE_STEPS = 320  # two rounds of 8 phases, and one renumbering of vehicles
FEW = 500  # vehicles that start in 100 s

LOAD = """
import json, re, sys, time
from streetflow import Engine

def mib(field):
    return int(re.search(rf"{field}:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

before = mib("VmRSS")
start = time.perf_counter(), time.process_time()
engine = Engine.from_files(sys.argv[1], sys.argv[2])
took = time.perf_counter() - start[0], time.process_time() - start[1]
print(json.dumps(dict(load_s=took[0], load_cpu_s=took[1], memory_mib=mib("VmRSS") - before, peak_mib=mib("VmHWM") - before)))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    """Networks by (crossings a side, vehicles an hour on each road that leads in, 0: few), each written once."""
    known: dict[tuple[int, int], Network] = {}

    def network(side: int, an_hour: int) -> Network:
        if (side, an_hour) not in known:
            traffic = Traffic(an_hour * 4 * side) if an_hour else Traffic(FEW * 36, horizon_s=100)
            folder = tmp_path_factory.mktemp("scale") / f"grid{side}"
            write_network(folder, generated_network(Grid(rows=side, columns=side), traffic, 1, 0))
            known[side, an_hour] = network_of(str(folder))
        return known[side, an_hour]

    return network


def light_plan(network: Network) -> list[np.ndarray]:
    """FixedTime: the arguments of `set_phases` in turn: the phases that open anything, one after the other, at every light."""
    lights = signalled_intersections(read_roadnet(network.roadnet_file))
    n_intersections = len(read_roadnet(network.roadnet_file).intersections)
    plan = []
    for turn in range(math.lcm(*(len(light.phases) for light in lights))):
        phases = np.full(n_intersections, -1, np.int32)
        for light in lights:
            phases[light.number] = light.phases[turn % len(light.phases)]
        plan.append(phases)
    return plan


def drive(engine: Engine, plan: list[np.ndarray], seconds: int) -> None:
    start_s = int(engine.get_current_time())
    for now_s in range(start_s, start_s + seconds, PHASE_S):
        engine.set_phases(plan[now_s // PHASE_S % len(plan)])
        engine.step_many(PHASE_S)


def measure(network: Network, benchmark, warm_up_s: int, steps: int) -> None:
    engine = Engine.from_files(network.roadnet_file, network.flow_files[0])
    plan = light_plan(network)
    drive(engine, plan, warm_up_s)
    start, running, standing = engine.snapshot(), [], []
    for _ in range(0, steps, PHASE_S):
        drive(engine, plan, PHASE_S)
        running.append(engine.get_vehicle_count())
        standing.append(engine.lane_waiting_counts().sum())
    benchmark.extra_info.update(
        network=network.name,
        crossings=int((engine.phase_counts > 1).sum()),
        lanes=len(engine.lane_ids),
        running=int(np.mean(running)),
        standing=int(np.mean(standing)),
        steps=steps,
    )
    rounds = 30 if steps == PHASE_S else 6
    benchmark.pedantic(drive, (engine, plan, steps), setup=lambda: engine.load(start), rounds=rounds, warmup_rounds=1)


def load(network: Network, environment: dict[str, str]) -> dict[str, float]:
    """A fresh process's time and memory for an engine."""
    command = [sys.executable, "-W", "ignore", "-c", LOAD, str(network.roadnet_file), str(network.flow_files[0])]
    loaded = subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(loaded.stdout)
    return figures


@pytest.mark.benchmark(group="loading 1,024 crossings and 76,661 vehicles with what another process has kept")
def test_loading(made, benchmark, say, tmp_path: Path) -> None:
    """In turn with loading that keeps and finds nothing, so that a busy machine slows both."""
    network = made(32, 600)
    kept = {"XDG_CACHE_HOME": str(tmp_path), VARIABLE: ""}
    load(network, kept)
    anew_s, kept_s = [], []

    def both() -> None:
        kept_s.append(load(network, kept)["load_cpu_s"])
        anew_s.append(load(network, {VARIABLE: "0"})["load_cpu_s"])

    benchmark.pedantic(both, rounds=5)
    ratio = float(np.median(np.array(anew_s) / np.array(kept_s)))
    benchmark.extra_info.update(anew_cpu_s=min(anew_s), kept_cpu_s=min(kept_s), ratio=ratio)
    say(f"1,024 crossings, 76,661 vehicles: {min(anew_s):.1f} s CPU, {min(kept_s):.1f} where kept, {ratio:.2f} times as fast")


@pytest.mark.benchmark(group="320 steps, 400 vehicles an hour on each road that leads in, after 2,400 s")
@pytest.mark.parametrize("side", SIDES)
def test_steps(side: int, made, benchmark) -> None:
    network = made(side, 400)
    benchmark.extra_info.update(load(network, {VARIABLE: "0"}), roadnet_mib=_mib(network.roadnet_file))
    measure(network, benchmark, 2400, CYCLE_STEPS)


@pytest.mark.benchmark(group="20 steps, 500 vehicles in the whole network, after 100 s")
@pytest.mark.parametrize("side", SIDES[1:])
def test_steps_with_few_vehicles(side: int, made, benchmark) -> None:
    measure(made(side, 0), benchmark, 100, PHASE_S)


@pytest.mark.benchmark(group="320 steps, 1,024 crossings with 20,000 running vehicles")
@pytest.mark.parametrize(("an_hour", "warm_up_s"), [(400, 3200), (600, 1360)])
def test_steps_with_20000_vehicles(an_hour: int, warm_up_s: int, made, benchmark) -> None:
    benchmark.extra_info.update(demand=f"{an_hour}/h, after {warm_up_s:,} s")
    measure(made(32, an_hour), benchmark, warm_up_s, CYCLE_STEPS)


@pytest.mark.benchmark(group="20 steps by one thread and by two, 1,024 crossings with 20,000 running vehicles")
@pytest.mark.parametrize("how", ["step_many", "next_step"])
def test_threads(how: str, made, benchmark, say) -> None:
    """Both engines drive the same seconds in turn, so that a busy machine slows both; their tables stay equal."""
    network = made(32, 600)
    tables, plan = load_network(network.roadnet_file), light_plan(network)
    engines = [Engine.from_files(tables, network.flow_files[0]) for _ in range(2)]
    engines[1].use_threads(2)
    for engine in engines:
        drive(engine, plan, 1360)

    def took_s(engine: Engine) -> float:
        engine.set_phases(plan[int(engine.get_current_time()) // PHASE_S % len(plan)])
        started_s = time.perf_counter()
        if how == "step_many":
            engine.step_many(PHASE_S)
        else:
            for _ in range(PHASE_S):
                engine.next_step()
        return time.perf_counter() - started_s

    alone_s = [took_s(engines[0])]
    together_s = []

    def both() -> None:
        together_s.append(took_s(engines[1]))
        alone_s.append(took_s(engines[0]))

    benchmark.pedantic(both, rounds=30)
    ratio = float(np.median(np.array(alone_s[:-1]) / np.array(together_s)))
    benchmark.extra_info.update(running=engines[0].get_vehicle_count(), ratio=ratio)
    say(f"1,024 crossings, {engines[0].get_vehicle_count()} vehicles, two threads, {how}: {ratio:.2f} times the speed of one")


@pytest.mark.benchmark(group="320 steps, data sets, after 1,200 s")
@pytest.mark.parametrize("name", [name for name in ("Hangzhou1", "Jinan") if name in network_names()])
def test_steps_of_data_sets(name: str, benchmark) -> None:
    measure(find_network(name), benchmark, 1200, CYCLE_STEPS)


def _mib(file: Path) -> float:
    return file.stat().st_size / 2**20
