"""The speed of the simulation: the engine alone, and a decision with features and lights. Run with `make bench`.

The group shows ratios within one run; figures of another machine or day are not comparable.
"""

import pytest

from streetflow.control.environment import Environment
from streetflow.networks.catalogue import find_network, network_names

NETWORKS = [name for name in ("crossing", "arterial", "Hangzhou1", "Jinan") if name in network_names()]


@pytest.mark.benchmark(group="300 steps of 1 s, lights as FixedTime leaves them, from 600 s on")
@pytest.mark.parametrize("network", NETWORKS)
def test_engine_steps(network: str, benchmark) -> None:
    environment = _warmed_up(network)
    engine = environment.engine

    def step() -> None:
        engine.load(start)
        engine.step_many(300)

    start = engine.snapshot()
    benchmark(step)
    benchmark.extra_info["running vehicles"] = int(engine.get_vehicle_count())


@pytest.mark.benchmark(group="observing all intersections: the release's 11 features, and all 37")
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("features", ["release", "all"])
def test_features(network: str, features: str, benchmark) -> None:
    environment = _warmed_up(network, features)
    benchmark(environment._observe)


@pytest.mark.benchmark(group="an episode of the horizon with FixedTime, features computed")
@pytest.mark.parametrize("network", NETWORKS)
def test_episode(network: str, benchmark) -> None:
    from streetflow.control.controllers import FixedTime, run

    environment = Environment(find_network(network), 0)
    benchmark.pedantic(run, args=(environment, FixedTime()), rounds=5, warmup_rounds=1)


def _warmed_up(network: str, features: str = "release") -> Environment:
    from streetflow.control.controllers import FixedTime

    environment = Environment(find_network(network), 0, features=features)
    observation = environment.reset()
    controller = FixedTime()
    controller.reset(environment)
    for _ in range(30):
        observation, _, _ = environment.step(controller.act(observation))
    return environment
