"""A program that reads everything at every step, as arrays and by names: its reading time against its stepping time.

`make bench ARGS="-k reading_speed"`; docs/engine.md has committed figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.test_beside_cityflow import dictionaries, dictionaries_and_all_infos, lanes_and_speeds
from benchmarks.test_engine_speed import DECISION_S, HORIZON_S, NETWORKS, Drive
from streetflow import Engine


def arrays(engine: Engine) -> None:
    """Lanes, speeds, distances, waiting, leaders, infos: all of it."""
    engine.lane_vehicle_counts()
    engine.lane_waiting_counts()
    engine.vehicle_table()


@pytest.mark.benchmark(group="an hour of traffic, everything read at every step")
@pytest.mark.parametrize("read", [arrays, lanes_and_speeds, dictionaries, dictionaries_and_all_infos])
@pytest.mark.parametrize("network", NETWORKS)
def test_reading_against_stepping(network: str, read: Callable[[Engine], None], benchmark, say) -> None:
    drive = Drive(network)
    engine = drive.engine
    stepping_s: list[float] = []
    reading_s: list[float] = []

    def run() -> None:
        stepping = reading = 0.0
        for phases in drive.phases[: HORIZON_S // DECISION_S]:
            engine.set_phases(phases)
            for _ in range(DECISION_S):
                started_s = time.perf_counter()
                engine.next_step()
                stepped_s = time.perf_counter()
                read(engine)
                reading += time.perf_counter() - stepped_s
                stepping += stepped_s - started_s
        stepping_s.append(stepping)
        reading_s.append(reading)

    benchmark.pedantic(run, setup=drive.reset, rounds=5, warmup_rounds=1)
    ratio = float(np.median(np.array(reading_s) / np.array(stepping_s)))
    us = float(np.median(reading_s)) / HORIZON_S * 1e6
    benchmark.extra_info.update({"reading, µs a step": round(us, 1), "times the steps": round(ratio, 2)})
    name = read.__name__.replace("_", " ")
    say(f"{network}, read as {name}: {us:.1f} µs a step, {ratio:.2f} times what the steps take")
