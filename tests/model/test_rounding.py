"""Refinement through the chip's rounding: it is the integers' rounding, it learns, and it resumes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.toy_environment import ToyEnvironment

torch = pytest.importorskip("torch", reason="torch is not installed (extra: train)")

from model.policy.integer import IntegerPolicy  # noqa: E402
from model.quantise.quantise import FULL_GRID, Grid, Headroom, KeptFeature, quantise  # noqa: E402
from model.search.gradients import Minibatch, subgraph_gradients  # noqa: E402
from model.search.rounding import RoundedSubGraph  # noqa: E402
from model.search.subgraph import SubGraph, strongest, trimmed  # noqa: E402
from model.search.supergraph import GraphShape, SuperGraph  # noqa: E402
from model.train.search_and_refine import Execution, Trained, TrainingConfig, train  # noqa: E402
from streetflow.errors import InputError  # noqa: E402

WIDTHS, LSB = (12, 9), (1, 4)  # of the two features; the second's numbers reach beyond 255, so they are rounded
SHAPE = GraphShape(np.array([WIDTHS, WIDTHS]), np.array([9, 7]), layer2_dims=(18,), layer3_dims=(20,))
CONFIG = TrainingConfig(
    search_episodes=3, refine_episodes=4, rounded_episodes=2, layer2_dims=(4, 6), layer3_dims=(5, 3), batch=8, kept_episodes=2
)


def graph_and_integers(seed: int, count: int = 400) -> tuple[SubGraph, np.ndarray]:
    """A sub-graph with two groups, and visited integers int64[G, T, 12 + 9]."""
    supergraph = SuperGraph(SHAPE, [(seed, 0), (seed, 1)])
    rng = np.random.default_rng(seed)
    integers = np.concatenate([rng.integers(0, 40, (2, count, 12)), rng.integers(-200, 900, (2, count, 9))], axis=2)
    return SubGraph(supergraph, strongest(supergraph)), integers


def packed(integers: np.ndarray) -> torch.Tensor:
    """float32[G, T, 2 * 12]: the feature values, padded to equal widths."""
    x = np.zeros((*integers.shape[:2], 24), np.float32)
    x[:, :, :12], x[:, :, 12:21] = integers[:, :, :12] / LSB[0], integers[:, :, 12:] / LSB[1]
    return torch.from_numpy(x)


def rounded_graph(exact: SubGraph, x: torch.Tensor, grid: Grid = FULL_GRID) -> RoundedSubGraph:
    rounded = RoundedSubGraph(exact, torch.tensor([[1 / LSB[0], 1 / LSB[1]]] * 2), grid=grid)
    rounded.fit(x)
    return rounded


def integer_values(exact: SubGraph, integers: np.ndarray, group: int, grid: Grid) -> np.ndarray:
    """int64[T, A]: the logits of the integer policy that is made of the exact weights."""
    theta = [weights[group].detach().numpy() for weights in exact.theta()]
    weights = trimmed(theta, np.array([18, 20]), WIDTHS, int(SHAPE.n_actions[group]))
    features = [KeptFeature(f"feature_{k}", *each) for k, each in enumerate(zip(WIDTHS, LSB, strict=True))]
    phases = range(1, 1 + int(SHAPE.n_actions[group]))
    policy = IntegerPolicy(quantise("x", phases, features, weights, integers[group], Headroom(), grid))
    return np.array([policy.logits(state) for state in integers[group]])


def differences(values: np.ndarray) -> np.ndarray:
    """Of the actions, in units of their spread: what the choice between them goes by."""
    centred = values - values.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean())


GRIDS = (Grid(), Grid(15), Grid(15, shifts_only=True), Grid(shifts_only=True, narrow_sums=True))


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_it_rounds_as_the_integers_do(seed: int, grid: Grid) -> None:
    exact, integers = graph_and_integers(seed)
    x = packed(integers)
    rounded = rounded_graph(exact, x, grid)
    with torch.no_grad():
        by_exact, by_rounding = exact.values(x).numpy(), rounded.values(x).numpy()
    for group, n_actions in enumerate(SHAPE.n_actions):
        theirs = differences(integer_values(exact, integers, group, grid).astype(np.float64))
        apart_exact, apart_rounded = (
            np.sqrt(((differences(values[group, :, :n_actions]) - theirs) ** 2).mean()) for values in (by_exact, by_rounding)
        )
        assert apart_rounded < 0.35 * apart_exact  # what is left: multipliers of 8 bits, corrected biases


def test_weights_lie_on_127_steps_a_row() -> None:
    exact, integers = graph_and_integers(0)
    rounded = rounded_graph(exact, packed(integers))
    steps = (rounded.w1 * rounded._step[:, :, None, None]).detach().numpy()
    rows = np.abs(steps).max(axis=(1, 2), keepdims=True) / 127
    assert np.abs(steps / rows - np.rint(steps / rows)).max() < 1e-3
    assert not np.allclose(rounded.w1.detach(), exact.w1.detach(), rtol=1e-4)


def test_the_gradients_see_the_rounding_and_move_the_exact_weights() -> None:
    exact, integers = graph_and_integers(1)
    x = packed(integers)
    rounded = rounded_graph(exact, x)
    batch = Minibatch(x[:, :32], torch.zeros(2, 32, dtype=torch.int64), torch.full((2, 32), -3.0))
    with torch.no_grad():
        losses, gradients = subgraph_gradients(rounded, batch)
        expected = (rounded.values(batch.states)[:, :, 0] + 3.0).square().mean(dim=1)
        torch.testing.assert_close(losses, expected)
        for weights, gradient in zip(exact.theta(), gradients, strict=True):
            weights -= 1e-5 * gradient
        rounded.follow()
        assert (subgraph_gradients(rounded, batch)[0] < losses).all()


def test_autograd_sees_the_rounding_and_moves_the_exact_weights() -> None:
    """As distillation learns: its loss is no squared error."""
    exact, integers = graph_and_integers(1)
    x = packed(integers)
    rounded = rounded_graph(exact, x, Grid(7, shifts_only=True, narrow_sums=True))
    rounded.requires_grad_(True)

    def loss() -> torch.Tensor:
        return (rounded(x)[:, :, 0] + 3.0).square().mean()

    before = loss()
    before.backward()
    rounded.hand_over()
    assert all(weights.grad is None for weights in rounded.theta())
    with torch.no_grad():
        for weights in exact.theta():
            assert weights.grad is not None and weights.grad.any()
            weights -= 1e-5 * weights.grad
        rounded.follow()
        assert loss() < before


def toys(count: int) -> list[ToyEnvironment]:
    return [ToyEnvironment((3, 2), seed=seed) for seed in range(count)]


def weights_of(trained: Trained | None) -> list[np.ndarray]:
    assert trained is not None
    return [array for kept in trained.snapshots for each in kept for theta in each.theta for array in theta]


def test_only_the_last_episodes_round() -> None:
    plain, rounding = (
        train(toys(1), [5], ToyEnvironment.lsb_per_unit, dataclasses.replace(CONFIG, rounded_episodes=count))
        for count in (0, 2)
    )
    assert plain is not None and rounding is not None
    losses = [[row.loss for row in trained.rows] for trained in (plain, rounding)]
    assert losses[0][:5] == losses[1][:5]
    assert losses[0][5:] != losses[1][5:]


@pytest.mark.parametrize("killed_after", [4, 5, 6])  # before it rounds, as it begins to, within
def test_resumed_equals_uninterrupted(tmp_path: Path, killed_after: int) -> None:
    lsb = ToyEnvironment.lsb_per_unit
    whole = train(toys(2), [1, 2], lsb, CONFIG)
    checkpoint = tmp_path / "checkpoint.pt"
    assert train(toys(2), [1, 2], lsb, CONFIG, execution=Execution(checkpoint=checkpoint, stop_after=killed_after)) is None
    resumed = train(toys(2), [1, 2], lsb, CONFIG, execution=Execution(resume_from=checkpoint))
    assert all(np.array_equal(a, b) for a, b in zip(weights_of(whole), weights_of(resumed), strict=True))


def test_more_rounding_than_refinement_is_refused() -> None:
    with pytest.raises(InputError, match="5, of 4 to refine"):
        train(toys(1), [1], ToyEnvironment.lsb_per_unit, dataclasses.replace(CONFIG, rounded_episodes=5))
