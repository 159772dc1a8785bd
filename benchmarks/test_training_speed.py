"""The cost of training: a run of Hangzhou1's size with more replicas, with more intersections, and with all 37 features.

pytest benchmarks/test_training_speed.py --benchmark-only --benchmark-json=FILE. `extra_info` has the seconds of a whole run (64
+ 128 episodes) of one replica, on the clock and of the cores, and the peak memory so far."""

import resource
import time

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: train)")

from model.train.search_and_refine import Execution, Trained, TrainingConfig, train
from streetflow.control.environment import Environment
from streetflow.errors import InputError
from streetflow.networks.catalogue import find_network

SEARCH_EPISODES, REFINE_EPISODES = 2, 4  # a third of the episodes are searched, as in a whole run
WHOLE_EPISODES = 64 + 128


def trained(network: str, replicas: int, features: str) -> Trained | None:
    environments = [Environment(network, k % 10, features=features) for k in range(replicas)]
    config = TrainingConfig(search_episodes=SEARCH_EPISODES, refine_episodes=REFINE_EPISODES)
    return train(environments, range(replicas), environments[0].lsb_per_unit, config, execution=Execution(threads=2))


@pytest.mark.benchmark(group="training, per run of 64 + 128 episodes: see extra_info")
@pytest.mark.parametrize(
    ("network", "replicas", "features"),
    [
        *(("Hangzhou1", replicas, "release") for replicas in (1, 10, 40)),
        *(("Jinan", replicas, "release") for replicas in (1, 4)),  # 12 and 48 intersections
        ("Hangzhou1", 10, "all"),
    ],
)
def test_training(network: str, replicas: int, features: str, benchmark) -> None:
    try:
        find_network(network)
    except InputError as missing:
        pytest.skip(f"needs a data set in TINYLIGHT_DATA: {missing}")
    trained("crossing", 1, features)  # compiled
    before_s = time.process_time()
    benchmark.pedantic(trained, args=(network, replicas, features), rounds=1)
    runs = (SEARCH_EPISODES + REFINE_EPISODES) / WHOLE_EPISODES * replicas
    benchmark.extra_info["cpu_seconds_per_run"] = round((time.process_time() - before_s) / runs, 2)
    benchmark.extra_info["seconds_per_run"] = round(benchmark.stats.stats.min / runs, 2)
    benchmark.extra_info["peak_memory_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
