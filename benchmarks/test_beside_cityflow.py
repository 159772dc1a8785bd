"""This engine and the real CityFlow, turn by turn in one process: `make bench ARGS="-k beside_cityflow"`.

CityFlow isn't on the package index, so it is built by hand (docs/cityflow.md); where `import cityflow` finds nothing, this says
so and measures nothing. Every program here is one text for both modules: the dictionaries that a program reads at each step,
a replay, loading. A ratio is the median over rounds in which both ran one after the other.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import streetflow
from streetflow.networks.catalogue import find_network, network_names

NETWORKS = [name for name in ("crossing", "Hangzhou1", "Jinan") if name in network_names()]
WARM_UP_STEPS = 600
STEPS = 300
ROUNDS = 5


def nothing(engine: Any) -> None:
    """Steps only."""


def lanes_and_speeds(engine: Any) -> None:
    engine.get_lane_vehicles()
    engine.get_vehicle_speed()


def dictionaries(engine: Any) -> None:
    engine.get_lane_vehicle_count()
    engine.get_lane_waiting_vehicle_count()
    engine.get_vehicle_distance()
    engine.get_vehicles()
    lanes_and_speeds(engine)


def dictionaries_and_all_infos(engine: Any) -> None:
    dictionaries(engine)
    for vehicle in engine.get_vehicles():
        engine.get_vehicle_info(vehicle)
        engine.get_leader(vehicle)


READS: list[Callable[[Any], None]] = [nothing, lanes_and_speeds, dictionaries, dictionaries_and_all_infos]


def write_config(folder: Path, network: str, replay: bool = False) -> Path:
    """A config file of a network's first flow, lights by their own plan, as both modules read it."""
    found = find_network(network)
    for name, file in (("roadnet.json", found.roadnet_file), ("flow.json", found.flow_files[0])):
        (folder / name).write_bytes(Path(file).read_bytes())
    config = {"interval": 1.0, "seed": 0, "dir": f"{folder}/", "roadnetFile": "roadnet.json", "flowFile": "flow.json"}
    config |= {"rlTrafficLight": False, "laneChange": False, "saveReplay": replay}
    config |= {"roadnetLogFile": "log.json", "replayLogFile": "replay.txt"}
    file = folder / "config.json"
    file.write_text(json.dumps(config))
    return file


def program_s(module: ModuleType, config: Path, read: Callable[[Any], None]) -> tuple[float, float]:
    """Time to load, and for the steps with what is read after each, s."""
    started_s = time.perf_counter()
    engine = module.Engine(str(config), thread_num=1)
    loaded_s = time.perf_counter()
    for _ in range(WARM_UP_STEPS):
        engine.next_step()
    before_s = time.perf_counter()
    for _ in range(STEPS):
        engine.next_step()
        read(engine)
    return loaded_s - started_s, time.perf_counter() - before_s


def compare(module: ModuleType, config: Path, read: Callable[[Any], None], rounds: int = ROUNDS) -> tuple[float, float, int]:
    """CityFlow's time by ours, loading and program; and how many vehicles ran in ours at the end (in both: they are equal)."""
    program_s(streetflow, config, read)  # compiles
    ratios = []
    for turn in range(rounds):
        pair: dict[str, tuple[float, float]] = {}
        for engine in (module, streetflow) if turn % 2 else (streetflow, module):
            pair[engine.__name__] = program_s(engine, config, read)
        theirs, ours = pair[module.__name__], pair["streetflow"]
        ratios.append((theirs[0] / ours[0], theirs[1] / ours[1]))
    loading, running = np.median(ratios, axis=0).tolist()
    engine = streetflow.Engine(str(config))
    engine.step_many(WARM_UP_STEPS + STEPS)
    return loading, running, engine.get_vehicle_count()


@pytest.fixture(scope="module")
def cityflow() -> ModuleType:
    try:
        return importlib.import_module("cityflow")
    except ImportError:
        pytest.skip("the real cityflow can't be imported here, so nothing is compared with it")


@pytest.mark.benchmark(group="beside the real CityFlow")
@pytest.mark.parametrize("program", [*READS, "replay"], ids=lambda each: getattr(each, "__name__", each))
@pytest.mark.parametrize("network", NETWORKS)
def test_beside_cityflow(
    network: str, program: Callable[[Any], None] | str, cityflow: ModuleType, tmp_path: Path, benchmark, say
) -> None:
    read = nothing if isinstance(program, str) else program
    config = write_config(tmp_path, network, replay=program == "replay")
    loading, running, vehicles = benchmark.pedantic(compare, (cityflow, config, read), rounds=1)
    name = program if isinstance(program, str) else read.__name__.replace("_", " ")
    say(f"{network}, {vehicles} vehicles, {name}: CityFlow takes {running:.1f} times as long; loading: {loading:.1f} times")
