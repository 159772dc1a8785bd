"""Steps a second of the vector environment against one process an environment, and against sumo-rl on cologne1, in one run. All
with Gymnasium's interface; a step is a decision, every 20 s of traffic. All take the same drawn actions: how much traffic there
is, and so what a step takes, follows from them (twofold between draws on cologne1).

TINYLIGHT_SHARED=../shared pytest benchmarks/test_vector_speed.py --benchmark-only

Its folder datasets-sumo has RESCO's scenario cologne1; without it those runs are left out. sumo-rl is needed for its own alone:
pip install sumo-rl sumolib, in an environment of this project with libsumo.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv  # noqa: E402

from streetflow.gym import SignalEnv, SignalVectorEnv  # noqa: E402
from streetflow.networks.catalogue import Network, network_of  # noqa: E402
from streetflow.networks.write import write_network  # noqa: E402
from streetflow.sumo.importing import import_scenario  # noqa: E402
from streetflow.sumo.scenario import read_scenario  # noqa: E402

ENVIRONMENTS = 16
STEPS = 180  # an hour of traffic: one episode of each


def processes() -> Any:
    return AsyncVectorEnv([partial(SignalEnv, "crossing")] * ENVIRONMENTS)


def one_by_one() -> Any:
    return SyncVectorEnv([partial(SignalEnv, "crossing")] * ENVIRONMENTS)


WAYS: dict[str, Callable[[], Any]] = {
    "vector": partial(SignalVectorEnv, "crossing", ENVIRONMENTS),
    "vector, two threads": partial(SignalVectorEnv, "crossing", ENVIRONMENTS, threads=2),
    "single ones in one process": one_by_one,
    "a process each": processes,
}


def drawn_actions(env: Any, steps: int) -> list[Any]:
    """For each step one action, the same for all environments of a vector."""
    space = getattr(env, "single_action_space", env.action_space)
    space.seed(0)
    drawn = [space.sample() for _ in range(steps)]
    if space is env.action_space:
        return drawn
    return [np.broadcast_to(action, env.action_space.shape).astype(env.action_space.dtype) for action in drawn]


@pytest.mark.parametrize("way", WAYS)
def test_steps_of_a_batch(way: str, benchmark: Any) -> None:
    """An episode of 16 environments with drawn actions; `extra_info` has the environments' steps a second of the best round."""
    env = WAYS[way]()
    env.reset(seed=0)
    actions = drawn_actions(env, STEPS)

    def run() -> None:
        for action in actions:
            env.step(action)

    try:
        benchmark.pedantic(run, rounds=5, warmup_rounds=1)
        benchmark.extra_info["steps_per_s"] = round(STEPS * ENVIRONMENTS / benchmark.stats.stats.min)
    finally:
        env.close()


SCENARIO = Path(os.environ.get("TINYLIGHT_SHARED") or "none") / "datasets-sumo" / "cologne1" / "cologne1.sumocfg"
COLOGNE_ENVIRONMENTS, COLOGNE_S, INTERVAL_S = 16, 1800, 20


@pytest.fixture
def cologne(tmp_path: Path) -> Network:
    """cologne1 as a network of ours."""
    if not SCENARIO.is_file():
        pytest.skip("needs datasets-sumo in the folder TINYLIGHT_SHARED")
    write_network(tmp_path / "cologne1", import_scenario(read_scenario([SCENARIO])).files)
    return replace(network_of(str(tmp_path / "cologne1")), decision_interval_s=INTERVAL_S)


def our_vector(network: Network) -> Any:
    return SignalVectorEnv(network, COLOGNE_ENVIRONMENTS, horizon_s=COLOGNE_S, clearance="yellow")


def our_single(network: Network) -> Any:
    return SignalEnv(network, horizon_s=COLOGNE_S, clearance="yellow")


def our_single_on_sumo(network: Network) -> Any:
    pytest.importorskip("libsumo", reason="libsumo is not installed (extra: sumo)")
    return SignalEnv(network, horizon_s=COLOGNE_S, clearance="yellow", engine="sumo")


def sumo_rl(network: Network) -> Any:
    """With libsumo, its fastest way, and its own observation and reward."""
    os.environ.setdefault("SUMO_HOME", str(SCENARIO.parent))  # it asks for one, and needs nothing there with libsumo
    os.environ["LIBSUMO_AS_TRACI"] = "quiet"
    module = pytest.importorskip("sumo_rl", reason="sumo-rl is not installed (pip install sumo-rl sumolib)")
    files = [str(SCENARIO.with_name(f"cologne1.{kind}.xml")) for kind in ("net", "rou")]
    return module.SumoEnvironment(
        *files, begin_time=25_200, num_seconds=COLOGNE_S, delta_time=INTERVAL_S, yellow_time=3, min_green=5,
        max_green=COLOGNE_S, single_agent=True, sumo_seed=0, sumo_warnings=False, additional_sumo_cmd="--no-step-log",
    )  # fmt: skip


ON_COLOGNE: dict[str, tuple[Callable[[Network], Any], int]] = {
    "sumo-rl": (sumo_rl, 1),  # the first, as it is the one that says how libsumo is imported
    "vector": (our_vector, COLOGNE_ENVIRONMENTS),
    "one environment": (our_single, 1),
    "one environment on SUMO": (our_single_on_sumo, 1),
}


@pytest.mark.parametrize("way", ON_COLOGNE)
def test_steps_on_cologne1(way: str, cologne: Network, benchmark: Any) -> None:
    """Half an hour of traffic with drawn actions, on one core; `extra_info` as above."""
    make, count = ON_COLOGNE[way]
    env = make(cologne)
    env.reset(seed=0)
    steps = COLOGNE_S // INTERVAL_S
    actions = drawn_actions(env, steps)

    def run() -> None:
        for action in actions:
            env.step(action)

    try:
        benchmark.pedantic(run, setup=lambda: env.reset(seed=0) and None, rounds=3, warmup_rounds=1)
        benchmark.extra_info["steps_per_s"] = round(steps * count / benchmark.stats.stats.min)
    finally:
        env.close()
