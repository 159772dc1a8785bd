"""The speed of the engine alone: its steps, reading from it, and running it in threads: `make bench ARGS="-k engine_speed"`.

Ratios within one run hold; figures of another machine or day are not comparable. docs/engine.md has committed ones.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from streetflow import Engine
from streetflow.networks.catalogue import find_network, network_names

NETWORKS = [name for name in ("crossing", "arterial", "Hangzhou1", "Jinan") if name in network_names()]
HORIZON_S = 3600
DECISION_S = 20


class Drive:
    """An hour of traffic, step by step; every 20 s all lights show their next phase, as FixedTime does."""

    def __init__(self, network: str, lane_change: bool = False) -> None:
        found = find_network(network)
        self.engine = Engine.from_files(Path(found.roadnet_file), Path(found.flow_file(0)), lane_change=lane_change)
        n_phases = self.engine.phase_counts
        self.phases = [np.where(n_phases > 0, k % np.maximum(n_phases, 1), -1) for k in range(HORIZON_S // DECISION_S)]
        self.one_by_one()  # compiles

    def one_by_one(self) -> None:
        for phases in self.phases:
            self.engine.set_phases(phases)
            for _ in range(DECISION_S):
                self.engine.next_step()

    def in_one_call_per_decision(self) -> None:
        for phases in self.phases:
            self.engine.set_phases(phases)
            self.engine.step_many(DECISION_S)

    def reset(self) -> None:
        self.engine.reset(seed=True)


def us_a_step(benchmark, n_steps: int) -> float:
    """The median, also noted in the benchmark's extra_info."""
    us: float = benchmark.stats.stats.median / n_steps * 1e6
    benchmark.extra_info["µs a step"] = round(us, 3)
    return us


@pytest.mark.benchmark(group="an hour of traffic in steps of 1 s, lights every 20 s, stepping only")
@pytest.mark.parametrize("lane_change", [False, True], ids=["", "lane changing"])
@pytest.mark.parametrize("network", NETWORKS)
def test_stepping(network: str, lane_change: bool, benchmark, say) -> None:
    drive = Drive(network, lane_change)
    benchmark.pedantic(drive.one_by_one, setup=drive.reset, rounds=15)
    how = "changing lanes" if lane_change else "stepping only"
    say(f"{network}, FixedTime, {how}: {us_a_step(benchmark, HORIZON_S):.2f} µs a step")


@pytest.mark.benchmark(group="lane counts and waiting counts of all lanes, as arrays")
@pytest.mark.parametrize("how", ["copies", "views"])
@pytest.mark.parametrize("network", NETWORKS)
def test_reading(network: str, how: str, benchmark, say) -> None:
    engine = Drive(network).engine

    def copies() -> None:
        engine.lane_vehicle_counts()
        engine.lane_waiting_counts()

    def views() -> None:
        engine.lane_vehicle_count_view  # noqa: B018
        engine.lane_waiting_count_view  # noqa: B018

    benchmark(copies if how == "copies" else views)
    say(f"{network}, all lane counts and waiting counts as {how}: {benchmark.stats.stats.median * 1e6:.3f} µs")


@pytest.fixture(scope="module")
def alone_us() -> list[float]:
    """The time of one engine's step, for the comparison."""
    return []


@pytest.mark.benchmark(group="an hour of traffic by engines side by side, 20 steps a call: as many threads as engines")
@pytest.mark.parametrize("n_engines", [1, 2])
@pytest.mark.parametrize("network", [NETWORKS[-1]])
def test_threads(network: str, n_engines: int, benchmark, say, alone_us: list[float]) -> None:
    """Two engines in two threads are to take at most 2 / 1.8 times as long as one."""
    drives = [Drive(network) for _ in range(n_engines)]

    def reset() -> None:
        for drive in drives:
            drive.reset()

    def run() -> None:
        for _ in pool.map(Drive.in_one_call_per_decision, drives):
            pass

    with ThreadPoolExecutor(n_engines) as pool:
        benchmark.pedantic(run, setup=reset, rounds=15)
    us = us_a_step(benchmark, HORIZON_S * n_engines)
    if n_engines == 1:
        alone_us.append(us)
    elif alone_us:
        say(f"{network}, two engines in two threads: {alone_us[0] / us:.2f} times the speed of one")
