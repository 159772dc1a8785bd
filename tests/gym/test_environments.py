"""The environments of `streetflow.gym`: official checkers, seeds, rewards, and the vector environment against single ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("pettingzoo")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import SyncVectorEnv  # noqa: E402
from pettingzoo.test import parallel_api_test, parallel_seed_test  # noqa: E402

from streetflow.control.controllers import FixedTime, run  # noqa: E402
from streetflow.control.environment import Environment  # noqa: E402
from streetflow.control.features import FEATURES  # noqa: E402
from streetflow.errors import InputError  # noqa: E402
from streetflow.gym import REWARDS, SignalEnv, SignalParallelEnv, SignalVectorEnv  # noqa: E402
from streetflow.gym.episodes import SEED_RANGE  # noqa: E402
from streetflow.gym.rewards import Reward  # noqa: E402

SHORT = {"horizon_s": 300}


def test_gymnasiums_checker_finds_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("TrafficLight-v0", network="crossing", horizon_s=300).unwrapped)


def test_pettingzoos_checkers_find_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(SignalParallelEnv("arterial", **SHORT), num_cycles=40)
        parallel_seed_test(lambda: SignalParallelEnv("arterial", **SHORT), num_cycles=40)


def test_an_episode_is_the_environments_run() -> None:
    """The same actions give the figures that `tinylight evaluate` reports with that seed, and an end at the horizon."""
    env = SignalEnv("crossing", **SHORT)
    env.reset(seed=5)
    rng = np.random.default_rng(5)
    rng.integers(1)
    environment = Environment("crossing", 0, seed=int(rng.integers(SEED_RANGE)), features=FixedTime.features, **SHORT)
    run(environment, FixedTime())
    n = environment.n_decisions
    for step in range(n):
        _, _, terminated, truncated, info = env.step(step % env.action_space.n)
        assert not terminated and truncated == (step == n - 1) and bool(info) == truncated
    assert info["average_travel_time_s"] == environment.average_travel_time_s() > 0
    assert info["throughput_veh_per_min"] == environment.throughput_veh_per_min()
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(0)


def test_observations_are_the_features_in_their_units_each_as_wide_as_it_is() -> None:
    names = ["inter_2_delay", "phase_2_num_vehicle", "inlane_2_sum_waiting_time"]
    env, plain = SignalEnv("crossing", features=names, **SHORT), Environment("crossing", 0, features=names, **SHORT)
    widths = plain.feature_widths[0]
    assert env.observation_space.shape == (widths.sum(),) and env.observation_space.high[0] == 1
    env.reset(seed=1)
    rng = np.random.default_rng(1)
    rng.integers(1)
    plain.reset(int(rng.integers(SEED_RANGE)))
    for action in (0, 3, 1, 2, 0):
        seen = env.step(action)[0]
        expected = plain.step([action])[0][0]
        values = [expected[f, : widths[f]] / FEATURES[name].lsb_per_unit for f, name in enumerate(names)]
        assert np.array_equal(seen, np.concatenate(values).astype(np.float32))
        assert env.observation_space.contains(seen)
    assert seen.any()


def rewards_of(reward: Reward, network: str = "crossing") -> tuple[np.ndarray, SignalParallelEnv]:
    env = SignalParallelEnv(network, reward=reward, horizon_s=600)
    env.reset(seed=3)
    given = [list(env.step(dict.fromkeys(env.agents, step % 2))[1].values()) for step in range(12)]
    return np.array(given), env


def test_rewards_by_name_are_those_of_the_engine() -> None:
    """From the engine's own counts, lane by lane."""
    for name in REWARDS:
        rewards, env = rewards_of(name)
        environment = env.episodes.environment
        engine, (light,) = environment.engine, environment.intersections
        inside, outside = list(light.in_lanes), list(light.out_lanes)
        vehicles = engine.lane_vehicle_counts()
        speeds = engine.lane_speed_sums_mps()[inside] / engine.lane_max_speed_mps[inside]
        expected = {
            "pressure": vehicles[outside].sum() - vehicles[inside].sum(),
            "queue": -engine.lane_waiting_counts()[inside].sum(),
            "waiting": -engine.lane_waiting_time_sums_s()[inside].sum() / 20,
            "delay": -(vehicles[inside] - speeds).sum(),
        }
        if name in expected:
            assert rewards[-1, 0] == pytest.approx(expected[name], abs=0.5 if name in ("delay", "waiting") else 0)
        assert rewards.any()
    assert (rewards_of("throughput")[0] >= 0).all()


def test_rewards_with_weights_and_as_a_function() -> None:
    queue, passed = rewards_of("queue", "arterial")[0], rewards_of("throughput", "arterial")[0]
    mixed: list[Reward] = [{"queue": 0.25, "throughput": 2}, [("queue", 0.25), ("throughput", 2)]]
    for reward in mixed:
        assert np.allclose(rewards_of(reward, "arterial")[0], 0.25 * queue + 2 * passed)

    def waiting(environment: Environment) -> list[int]:
        counts = environment.engine.lane_waiting_counts()
        return [-int(counts[list(each.in_lanes)].sum()) for each in environment.intersections]

    assert np.array_equal(rewards_of(waiting, "arterial")[0], queue)
    assert (queue.max(axis=0) != queue.min(axis=0)).all()


def actions_of(env: Any, steps: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, env.single_action_space.n, env.num_envs) for _ in range(steps)]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_vector_environment_is_so_many_single_ones(threads: int) -> None:
    """Gymnasium's own vector of single environments, step by step, over ends of episodes; two flows are drawn from."""
    make: Callable[[], SignalEnv] = lambda: SignalEnv("crossing", flows=(0, 1), **SHORT)  # noqa: E731
    one, many = SyncVectorEnv([make] * 4), SignalVectorEnv("crossing", 4, flows=(0, 1), threads=threads, **SHORT)
    assert one.single_observation_space == many.single_observation_space and one.action_space == many.action_space
    assert np.array_equal(one.reset(seed=7)[0], many.reset(seed=7)[0])
    ends = 0
    for actions in actions_of(many, 40):
        expected, found = one.step(actions), many.step(actions)
        for left, right in zip(expected[:4], found[:4], strict=True):
            assert np.array_equal(left, right) and left.dtype == right.dtype
        assert expected[4].keys() == found[4].keys()
        assert all(np.array_equal(expected[4][name], found[4][name]) for name in expected[4])
        ends += int(found[3].sum())
    assert ends == 8
    many.close()


def test_a_vector_of_networks_has_their_lights_side_by_side() -> None:
    single = SignalParallelEnv("arterial", **SHORT)
    lights = len(single.possible_agents)
    many = SignalVectorEnv("arterial", 2 * lights, **SHORT)
    seen, _ = many.reset(seed=4)
    expected, _ = single.reset(seed=5)
    for actions in actions_of(many, 10):
        assert np.array_equal(seen[lights:], np.stack(list(expected.values())))
        seen, rewards, *_ = many.step(actions)
        expected, given, *_ = single.step(dict(zip(single.possible_agents, actions[lights:], strict=True)))
        assert np.array_equal(rewards[lights:], list(given.values()))
    assert not np.array_equal(seen[lights:], seen[:lights])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SignalEnv("arterial"), "network: arterial: has"),
        (lambda: SignalEnv("crossing", reward="queu"), "reward: queu: unknown; did you mean queue?"),
        (lambda: SignalEnv("crossing", reward={}), "reward: must have at least one name"),
        (lambda: SignalEnv("crossing", reward={"queue": float("nan")}), "with finite weights"),
        (lambda: SignalEnv("crossing", reward=3), "reward: must be a name, names with weights, or a function"),
        (lambda: SignalEnv("crossing", reward={"queue": "much"}), "reward: must be a name"),
        (lambda: SignalEnv("crossing", features=["phase_2_num_vehicles"]), "unknown feature"),
        (lambda: SignalEnv("crossing", flows=()), "flows: must name at least one"),
        (lambda: SignalEnv("crossing", flows=(0, 99)), "99"),
        (lambda: SignalEnv("crosing"), "did you mean crossing?"),
        (lambda: SignalEnv("crossing", clearance="blue"), "clearance: blue: unknown"),
        (lambda: SignalEnv("crossing", render_mode="human"), "render_mode: human: there is none"),
        (lambda: SignalVectorEnv("arterial", 4), "num_envs: must be a multiple"),
        (lambda: SignalVectorEnv("crossing", 0), "num_envs: must be a multiple"),
        (lambda: SignalVectorEnv("crossing", 1, threads=0), "threads: must be 1 or more"),
        (lambda: SignalVectorEnv("crossing", 2).reset(seed=[1]), "seed: must be one number, or one for each of 2"),
        (lambda: rewards_of(lambda _: [1.0, 2.0]), "reward: the function gave an array of shape"),
    ],
)
def test_what_is_wrong_is_said(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError) as fault:
        make()
    assert message in str(fault.value)
