"""Steps a second of the vector environment against one process an environment, in one run. Both with Gymnasium's interface.

pytest benchmarks/test_vector_speed.py --benchmark-only
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv  # noqa: E402

from streetflow.gym import SignalEnv, SignalVectorEnv  # noqa: E402

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


@pytest.mark.parametrize("way", WAYS)
def test_steps_of_a_batch(way: str, benchmark: Any) -> None:
    """An episode of 16 environments with drawn actions; `extra_info` has the environments' steps a second of the best round."""
    env = WAYS[way]()
    env.action_space.seed(0)
    env.reset(seed=0)

    def run() -> None:
        for _ in range(STEPS):
            env.step(env.action_space.sample())

    try:
        benchmark.pedantic(run, rounds=5, warmup_rounds=1)
        benchmark.extra_info["steps_per_s"] = round(STEPS * ENVIRONMENTS / benchmark.stats.stats.min)
    finally:
        env.close()
