"""One update of the learners against the equations of DQN, worked out from the transitions that the test itself has kept."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: train)")

from model.baselines.ecolight import EcoLight  # noqa: E402
from model.dqn.learner import BaselineConfig, ValueLearner  # noqa: E402
from model.dqn.replay import group_seed  # noqa: E402
from model.search.config import TrainingConfig  # noqa: E402
from model.search.learner import Learner  # noqa: E402
from model.search.subgraph import kept_columns  # noqa: E402
from model.search.supergraph import GraphShape  # noqa: E402

WIDTHS = np.array([[3, 2, 3], [2, 2, 3]])  # of the features of two groups
N_ACTIONS = np.array([3, 2])
SHAPE = GraphShape(WIDTHS, N_ACTIONS, layer2_dims=(3, 4), layer3_dims=(2, 3))
NUMBERS = [(5, 0), (5, 1)]  # training seed and intersection
SEEDS = np.array([group_seed(*pair) for pair in NUMBERS], np.uint64)
SCALE = np.array([1.0, 0.5, 2.0], np.float32)
BATCH, GAMMA, TAU, REWARD_SCALE = 6, 0.7, 0.25, 0.1  # none a default
CONFIG = TrainingConfig(
    search_episodes=4, refine_episodes=4, batch=BATCH, gamma=GAMMA, tau=TAU, beta=0.5, reward_scale=REWARD_SCALE
)
EPISODE = BATCH - 1  # decisions, so that the second episode's first brings the first update


class Transition(NamedTuple):
    state: np.ndarray  # [G, F, W]
    actions: np.ndarray  # [G]
    rewards: np.ndarray  # [G]
    following: np.ndarray  # [G, F, W]


class Traffic:
    """Random transitions that a learner observes, and that are kept."""

    def __init__(self, learner: Any, n_actions: np.ndarray = N_ACTIONS) -> None:
        self.learner, self.n_actions = learner, n_actions
        self.seen: list[Transition] = []
        self._rng = np.random.default_rng(3)

    def start_episode(self) -> None:
        self._last = self._frame()
        self.learner.start_episode(self._last)

    def decide(self, learning_rate: float = 0.0) -> np.ndarray:
        """One more transition; the losses that the learner reports."""
        last, self._last = self._last, self._frame()
        actions = np.array([self._rng.integers(n) for n in self.n_actions])
        self.seen.append(Transition(last, actions, self._rng.uniform(-9, 0, 2), self._last))
        losses: np.ndarray = self.learner.observe(actions, self.seen[-1].rewards, self._last, learning_rate)
        return losses

    def _frame(self) -> np.ndarray:
        present = np.arange(3) < WIDTHS[:, :, None]
        return self._rng.integers(0, 9, present.shape) * present


def ready(traffic: Traffic, refine: bool = False) -> Traffic:
    """After one episode, too short to learn from, and at the start of the next; to the target network the best actions are the
    worst."""
    learner = traffic.learner
    traffic.start_episode()
    for _ in range(EPISODE):
        assert np.isnan(traffic.decide()).all()
    if refine:
        learner.extract()
    target = learner.target
    with torch.no_grad():
        for weights in target.layers[-1].parameters() if isinstance(target, EcoLight) else (target.w3, target.b3):
            weights.neg_()
    traffic.start_episode()
    return traffic


def tinylight(**changes: Any) -> Traffic:
    return Traffic(Learner(SHAPE, NUMBERS, SCALE, EPISODE, dataclasses.replace(CONFIG, **changes)))


def baseline() -> Traffic:
    two = np.array([2, 2])
    config = BaselineConfig(batch=BATCH, gamma=GAMMA, tau=TAU)
    learner = ValueLearner(EcoLight(two, NUMBERS), SEEDS, SEEDS, two, np.repeat(SCALE, 3), EPISODE, config)
    return Traffic(learner, two)


def inputs(learner: Any, frames: np.ndarray) -> torch.Tensor:
    """What the learner's graph sees of frames [G, B, F, W]."""
    x = (frames * SCALE[:, None]).astype(np.float32)
    if isinstance(learner, ValueLearner):
        return torch.from_numpy(x.reshape(*x.shape[:2], -1))
    packed = SHAPE.packing.pack(x)
    if learner.choice is not None:
        columns = kept_columns(SHAPE, learner.choice)
        packed = np.stack([packed[g][:, columns[g]] * (columns[g] >= 0) for g in range(2)]).astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray(packed))


def losses_by_hand(learner: Any, traffic: Traffic, reward_scale: float, double_q: bool) -> np.ndarray:
    """Per group the mean of (r + gamma * Q_target(s', a') - Q(s, a))^2 over the first minibatch, where a' is the best action of
    Q_target, or with double Q-learning of Q. learner: as it was before."""
    seen, step = traffic.seen, BATCH
    drawn = learner.replay.draw(SEEDS, step, BATCH)
    states, following = (
        inputs(learner, np.array([[getattr(seen[t], name)[g] for t in drawn[g]] for g in range(2)]))
        for name in ("state", "following")
    )
    with torch.no_grad():
        values, next_values, next_target = (
            each.numpy().astype(float)
            for each in (learner.graph.values(states), learner.graph.values(following), learner.target.values(following))
        )
    losses = []
    for g in range(2):
        errors = []
        for b, t in enumerate(drawn[g]):
            chooser = next_values if double_q else next_target
            best = chooser[g, b, : traffic.n_actions[g]].argmax()
            worth = reward_scale * seen[t].rewards[g] + GAMMA * next_target[g, b, best]
            errors.append(worth - values[g, b, seen[t].actions[g]])
        losses.append(np.mean(np.square(errors)))
    return np.array(losses)


def before_learning(learner: Any) -> Any:
    """The learner with copies of its networks; the replay is the same."""
    before = copy.copy(learner)
    before.graph, before.target = copy.deepcopy(learner.graph), copy.deepcopy(learner.target)
    return before


def assert_followed(learner: Any, before: Any) -> None:
    """All weights have moved, and the target network has moved by a share TAU towards them."""
    networks = (learner.graph, before.graph, learner.target, before.target)
    for weights, old, slow, was in zip(*(each.parameters() for each in networks), strict=True):
        assert not torch.equal(weights, old)
        np.testing.assert_allclose(slow.detach(), (was + TAU * (weights - was)).detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("double_q", [False, True], ids=["plain", "double Q"])
@pytest.mark.parametrize("refine", [False, True], ids=["search", "refinement"])
def test_the_loss_of_one_minibatch_by_hand(refine: bool, double_q: bool) -> None:
    """At learning rate 0: the search reports the loss under the alphas that it has just moved."""
    traffic = ready(tinylight(double_q=double_q), refine)
    before = before_learning(traffic.learner)
    losses = traffic.decide(learning_rate=0.0)
    expected, other = (losses_by_hand(before, traffic, REWARD_SCALE, choice) for choice in (double_q, not double_q))
    assert not np.isclose(expected, other).any()
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


@pytest.mark.parametrize("refine", [False, True], ids=["search", "refinement"])
def test_the_target_network_goes_tau_of_the_way_to_the_new_weights(refine: bool) -> None:
    traffic = ready(tinylight(), refine)
    before = before_learning(traffic.learner)
    traffic.decide(learning_rate=1e-2)
    assert_followed(traffic.learner, before)


def test_a_baselines_loss_and_target_network_by_hand() -> None:
    traffic = ready(baseline())
    before = before_learning(traffic.learner)
    losses = traffic.decide(learning_rate=1e-2)
    np.testing.assert_allclose(losses, losses_by_hand(before, traffic, 1.0, double_q=False), rtol=1e-4)
    assert_followed(traffic.learner, before)


def test_every_update_draws_by_a_number_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    traffic = ready(tinylight(updates_per_decision=3))
    steps: list[int] = []
    replay = traffic.learner.replay
    draw = replay.draw
    monkeypatch.setattr(replay, "draw", lambda seeds, step, batch: (steps.append(step), draw(seeds, step, batch))[1])
    for _ in range(EPISODE):
        traffic.decide()
    assert steps == list(range(3 * BATCH, 3 * (BATCH + EPISODE)))


def test_refinement_moves_the_weights_and_neither_alphas_nor_choice() -> None:
    traffic = ready(tinylight())
    learner = traffic.learner
    for _ in range(EPISODE):
        traffic.decide(learning_rate=1e-2)
    searched, alphas = learner.graph, learner.current_alphas()
    learner.extract()
    frozen = [each.clone() for each in (*searched.state_dict().values(), *learner.state()["alpha_squares"])]
    choice = copy.deepcopy(vars(learner.choice))
    theta = learner.theta(0)
    traffic.start_episode()
    for _ in range(EPISODE):
        traffic.decide(learning_rate=1e-2)
    assert not any(np.array_equal(new, old) for new, old in zip(learner.theta(0), theta, strict=True))
    np.testing.assert_equal(learner.alphas, alphas)
    np.testing.assert_equal(vars(learner.choice), choice)
    kept = (*searched.state_dict().values(), *learner.state()["alpha_squares"])
    assert all(torch.equal(new, old) for new, old in zip(kept, frozen, strict=True))
