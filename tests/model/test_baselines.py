"""The baselines' rewards and actions by hand, and their training."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from model.baselines.registry import BASELINES  # noqa: E402
from model.baselines.training import (  # noqa: E402
    BaselineEnvironment,
    feature_scale,
    replica_arrays,
    train_baseline,
    waiting_weights,
)
from model.dqn.learner import BaselineConfig, ValueLearner  # noqa: E402
from model.dqn.value_graph import ValueGraph  # noqa: E402
from streetflow.control.environment import Environment  # noqa: E402
from streetflow.control.intersection import signalled_intersections  # noqa: E402
from streetflow.networks.catalogue import find_network  # noqa: E402
from streetflow.roadnet.reader import read_roadnet  # noqa: E402
from tests.helpers.baselines import arterial, graph_of, inputs  # noqa: E402
from tests.helpers.toy_environment import ToyEnvironment  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """As in training: threads of such small matrices only wait for each other."""
    torch.set_num_threads(1)


def test_waiting_reward_by_hand() -> None:
    view = BaselineEnvironment(BASELINES["FRAP"], arterial("FRAP"))
    view.reset()
    for _ in range(6):
        _, rewards, _ = view.step(np.array([2, 2, 2]))
    engine = view.environment.engine
    waiting = dict(zip(engine.lane_ids, engine.lane_waiting_counts().tolist(), strict=True))
    assert rewards.max() < 0
    for n, each in enumerate(view.environment.intersections):
        by_road = []
        for road in each.in_roads:
            lanes = [count for lane, count in waiting.items() if lane.rpartition("_")[0] == road]
            by_road.append(sum(lanes) / len(lanes))
        assert rewards[n] == pytest.approx(-sum(by_road) / len(by_road))


def test_waiting_weights_cover_every_in_lane_once() -> None:
    weights = waiting_weights(arterial("FRAP"))
    assert weights.sum(axis=1) == pytest.approx(np.ones(3))
    assert (weights > 0).sum(axis=1).tolist() == [12, 12, 12]


def test_pressure_reward_is_the_environments_own() -> None:
    view, plain = BaselineEnvironment(BASELINES["MPLight"], arterial("MPLight")), arterial("MPLight")
    view.reset(), plain.reset()
    for action in (0, 3, 5, 5):
        actions = np.full(3, action)
        assert np.array_equal(view.step(actions)[1], plain.step(actions)[1])


def test_ecolight_keeps_the_phase_or_takes_the_next() -> None:
    view = BaselineEnvironment(BASELINES["EcoLight"], arterial("EcoLight"))
    view.reset()
    last = [7, 7, 7]
    seen = []
    for actions in ([1, 0, 1], [1, 0, 0], [0, 1, 0]):
        view.step(np.array(actions))
        seen.append(view.environment.current_action.tolist())
    assert seen == [[1, 0, 1], [2, 0, 1], [2, 1, 1]]
    counts = BASELINES["EcoLight"].phases(np.array([1, 1, 1]), SimpleNamespace(  # the last phase leads to the first
        intersections=view.environment.intersections, current_action=np.array(last)))  # fmt: skip
    assert counts.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", BASELINES)
def test_learning_lowers_the_loss_on_what_was_seen(name: str) -> None:
    """100 steps on one minibatch with a frozen target."""
    intersections = list(signalled_intersections(read_roadnet(find_network("arterial").roadnet_file)))
    graph, widths = graph_of(name, intersections, [1])
    states = inputs(intersections, widths, 1, batch=33).flatten(2).numpy()
    rng = np.random.default_rng(0)
    config = BaselineConfig(batch=32, tau=0.0)
    actions, seeds = np.full(3, 2, np.int64), np.arange(3, dtype=np.uint64)
    learner = ValueLearner(graph, seeds, seeds, actions, np.ones(states.shape[2], np.float32), 32, config)
    learner.start_episode(states[:, 0])
    for b in range(1, 32):  # one short of a minibatch
        assert np.isnan(learner.observe(rng.integers(0, 2, 3), rng.uniform(-5, 0, 3), states[:, b], 1e-3)).all()
    learner.observe(rng.integers(0, 2, 3), rng.uniform(-5, 0, 3), states[:, 32], 1e-3)
    losses = [float(learner.learn(1e-3).sum()) for _ in range(100)]
    assert losses[-1] < 0.7 * losses[0]


class ToyTraffic(ToyEnvironment):
    """The toy as far as a baseline reads an `Environment`."""

    network = SimpleNamespace(name="toy")

    def __init__(self, phases: tuple[int, ...], seed: int = 0) -> None:
        super().__init__(phases, n_decisions=30, seed=seed)
        self.intersections = tuple(  # type: ignore[assignment]
            SimpleNamespace(id=each.id, phases=each.phases, action_count=len(each.phases)) for each in self.intersections
        )


def test_training_on_the_toy_environment_shortens_its_queues() -> None:
    """A random path over the toy's features; of eight seeds most draw the queues."""
    baseline = dataclasses.replace(BASELINES["TLRP"], features=ToyEnvironment.feature_names)
    waited: list[tuple[float, ...]] = []
    losses: list[tuple[float, ...]] = []

    def on_progress(state: Any) -> None:
        waited.append(state.average_travel_times_s)
        losses.append(state.losses)

    environments: list[Any] = [ToyTraffic((3, 2), seed) for seed in range(8)]
    train_baseline(baseline, environments, list(range(8)), BaselineConfig(episodes=40), on_progress)
    assert np.mean(waited[-5:]) < 0.7 * np.mean(waited[:2])
    assert np.nanmean(losses[-5:]) < 0.5 * np.nanmean(losses[:5])


@pytest.mark.parametrize("name", ["EcoLight", "FRAP", "MPLight", "CoLight", "TLRP"])
def test_side_by_side_equals_alone(name: str) -> None:
    config = BaselineConfig(episodes=1)

    def trained(flows: list[int]) -> ValueGraph:
        environments = [Environment("arterial", flow, features=BASELINES[name].features, horizon_s=900) for flow in flows]
        return train_baseline(BASELINES[name], environments, [flow + 10 for flow in flows], config)

    both, alone = trained([0, 1]), trained([1])
    ours, single = replica_arrays(both, 1, 2), replica_arrays(alone, 0, 1)
    assert ours.keys() == single.keys()
    for key, array in ours.items():
        np.testing.assert_allclose(array, single[key], atol=1e-5, err_msg=key)


def test_features_are_scaled_to_their_units() -> None:
    assert feature_scale([1, 256], 2).tolist() == [1.0, 1.0, 1 / 256, 1 / 256]
