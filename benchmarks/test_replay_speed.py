"""What a step costs with `saveReplay`: compiled code against a plain writer, in one run: `make bench ARGS="-k replay_speed"`.

The plain writer of the tests makes the same bytes vehicle by vehicle. The ratio holds; the figures are this machine's.
"""

import time
from pathlib import Path

import numpy as np
import pytest

from streetflow import Engine
from streetflow.networks.catalogue import find_network, network_names
from tests.helpers.plain_replay import plain_line
from tests.helpers.small_network import write

NETWORKS = [name for name in ("crossing", "Hangzhou1", "Jinan") if name in network_names()]
WARM_UP_S = 600
STEPS = 200
PLAIN_STEPS = 10


@pytest.mark.benchmark(group="200 steps of 1 s with saveReplay, after 600 s")
@pytest.mark.parametrize("lane_change", [False, True], ids=["", "lane changing"])
@pytest.mark.parametrize("network", NETWORKS)
def test_replay(network: str, lane_change: bool, tmp_path: Path, benchmark, say) -> None:
    found = find_network(network)
    files = {"dir": "", "roadnetFile": str(found.roadnet_file), "flowFile": str(found.flow_files[0])}
    logs = {"roadnetLogFile": str(tmp_path / "log.json"), "replayLogFile": str(tmp_path / "replay.txt")}
    engine = Engine(write(tmp_path, {}, [], saveReplay=True, laneChange=lane_change, rlTrafficLight=False, **files, **logs))
    engine.set_save_replay(False)
    engine.step_many(WARM_UP_S)
    engine.set_save_replay(True)
    start = engine.snapshot()
    benchmark.pedantic(engine.step_many, (STEPS,), setup=lambda: engine.load(start), rounds=5, warmup_rounds=1)
    us = benchmark.stats.stats.median / STEPS * 1e6

    engine.load(start)
    engine.set_save_replay(False)
    plain_us = []
    for _ in range(PLAIN_STEPS):
        began = time.perf_counter()
        engine.next_step()
        plain_line(engine)
        plain_us.append((time.perf_counter() - began) * 1e6)
    ratio = float(np.median(plain_us)) / us
    benchmark.extra_info.update({"µs a step": round(us, 1), "times a plain writer's speed": round(ratio, 1)})
    vehicles = engine.get_vehicle_count()
    say(f"{network}, {vehicles} vehicles, replay: {us:.0f} µs a step, {ratio:.1f} times a plain writer's speed")
