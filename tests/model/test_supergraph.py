"""The super-graph against the paper's formulas written as plain loops over components; its objectives; the extraction."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: train)")

from model.dqn.rmsprop import RMSprop  # noqa: E402
from model.search.budget import Budget, parameter_count  # noqa: E402
from model.search.gradients import Minibatch, SuperGraphStep, subgraph_gradients  # noqa: E402
from model.search.subgraph import Choice, SubGraph, kept_columns, kept_width, strongest, trimmed  # noqa: E402
from model.search.supergraph import GraphShape, SuperGraph, entropies  # noqa: E402

SHAPE = GraphShape(
    feature_widths=np.array([[5, 3, 8], [4, 3, 6]]),
    n_actions=np.array([4, 3]),
    layer2_dims=(3, 5, 4),
    layer3_dims=(6, 2),
)


def supergraph(seed: int = 0) -> SuperGraph:
    graph = SuperGraph(SHAPE, [(seed, 0), (seed, 1)])
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for logits in graph.alpha_logits():
            logits.copy_(torch.randn(logits.shape, generator=generator))
    return graph


def padded_states(count: int = 7, seed: int = 0) -> np.ndarray:
    """float32[G, B, F, W], as an environment gives them."""
    x = np.zeros((2, count, 3, int(SHAPE.feature_widths.max())), np.float32)
    rng = np.random.default_rng(seed)
    for g in range(2):
        for f, width in enumerate(SHAPE.feature_widths[g]):
            x[g, :, f, :width] = rng.normal(0, 3, (count, width))
    return x


def states(count: int = 7, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(SHAPE.packing.pack(padded_states(count, seed)))


def kept_states(choice: Choice, count: int, seed: int = 0) -> torch.Tensor:
    """What a sub-graph of this choice sees of `states`."""
    columns = kept_columns(SHAPE, choice)
    x = states(count, seed).numpy()[np.arange(2)[:, None], :, columns].transpose(0, 2, 1)
    return torch.from_numpy(np.ascontiguousarray(x * (columns >= 0)[:, None, :]))


def naive_values(graph: SuperGraph, x: np.ndarray, g: int) -> np.ndarray:
    """o_{j|J} = sum_i alpha_{i|I} ReLU(Linear_ij(o_{i|I})), one component, one state, one link at a time. float64[B, A]"""
    w2, b2, w3, b3 = (p.detach().double().numpy()[g] for p in graph.theta()[-4:])
    first = [[p[g].detach().double().numpy() for p in graph.feature_weights(f)] for f in range(3)]
    alpha = [a.detach().double().numpy()[g] for a in graph.alphas()]
    p2, p3 = max(SHAPE.layer2_dims), max(SHAPE.layer3_dims)
    values = []
    for b in range(len(x[g])):
        layer1 = [x[g, b, f, :width].astype(np.float64) for f, width in enumerate(SHAPE.feature_widths[g])]
        layer2 = [np.zeros(d) for d in SHAPE.layer2_dims]
        for j, d in enumerate(SHAPE.layer2_dims):
            for i, o in enumerate(layer1):
                linear = o @ first[i][0][: len(o), j * p2 : j * p2 + d] + first[i][1][0, j * p2 : j * p2 + d]
                layer2[j] += alpha[0][i] * np.maximum(linear, 0)
        layer3 = [np.zeros(d) for d in SHAPE.layer3_dims]
        for j, d in enumerate(SHAPE.layer3_dims):
            for i, o in enumerate(layer2):
                linear = o @ w2[i, : len(o), j * p3 : j * p3 + d] + b2[i, 0, j * p3 : j * p3 + d]
                layer3[j] += alpha[1][i] * np.maximum(linear, 0)
        q = np.zeros(SHAPE.n_actions[g])
        for i, o in enumerate(layer3):
            q += alpha[2][i] * (o @ w3[i, : len(o), : len(q)] + b3[i, 0, : len(q)])
        values.append(q)
    return np.array(values)


def minibatch(target: SuperGraph | SubGraph, x: torch.Tensor, seed: int = 0) -> Minibatch:
    rng = np.random.default_rng(seed)
    actions = torch.from_numpy(np.stack([rng.integers(0, n, x.shape[1]) for n in SHAPE.n_actions]))
    rewards = torch.from_numpy(rng.normal(-5, 2, (2, x.shape[1])).astype(np.float32))
    return Minibatch(x, actions, rewards + 0.9 * target.best_values(x.flip(1)).detach())


def reference_loss(graph: SuperGraph | SubGraph, batch: Minibatch) -> torch.Tensor:
    """Sum over groups of the mean squared error, for autograd."""
    chosen = graph.values(batch.states).gather(2, batch.actions[:, :, None])[:, :, 0]
    return (batch.targets - chosen).square().mean(dim=1).sum()


@torch.no_grad()
def alpha_step(graph: SuperGraph, batch: Minibatch, optimiser: RMSprop, learning_rate: float = 1e-3) -> SuperGraphStep:
    step = SuperGraphStep(graph, batch)
    optimiser.step(step.alpha_gradients(16.0), learning_rate, copy.deepcopy(graph).alpha_logits(), 0.1)
    return step


def test_batched_equals_the_loop_over_components() -> None:
    graph = supergraph()
    batched = graph(states()).detach().numpy()
    for g, actions in enumerate(SHAPE.n_actions):
        np.testing.assert_allclose(batched[g, :, :actions], naive_values(graph, padded_states(), g), atol=1e-5, rtol=1e-5)


def test_a_group_is_the_same_alone_and_among_others() -> None:
    """Initial weights and values do not depend on the neighbours, nor on the padding that they bring."""
    graph = SuperGraph(SHAPE, [(0, 0), (0, 1)])
    alone_shape = GraphShape(SHAPE.feature_widths[1:], SHAPE.n_actions[1:], SHAPE.layer2_dims, SHAPE.layer3_dims)
    alone = SuperGraph(alone_shape, [(0, 1)])
    x = torch.from_numpy(alone_shape.packing.pack(padded_states()[1:]))
    np.testing.assert_allclose(graph(states())[1, :, :3].detach(), alone(x)[0].detach(), atol=1e-5, rtol=1e-5)


def test_padding_stays_zero_while_weights_learn() -> None:
    graph, x = supergraph(), states(32)
    missing = [parameter.detach() == 0 for parameter in graph.theta()]
    assert sum(int(zeros.sum()) for zeros in missing) > 50
    target = copy.deepcopy(graph)
    optimiser = RMSprop(graph.theta())
    before = [parameter.detach().clone() for parameter in graph.theta()]
    for step in range(5):
        with torch.no_grad():
            gradients = SuperGraphStep(graph, minibatch(target, x, step)).theta_gradients()
        optimiser.step(gradients, 1e-2, target.theta(), 0.1)
    for parameter, zeros, old in zip(graph.theta(), missing, before, strict=True):
        assert bool((parameter.detach()[zeros] == 0).all())
        assert not torch.equal(parameter.detach(), old)


def test_missing_actions_are_never_best() -> None:
    graph = supergraph()
    with torch.no_grad():
        graph.b3 -= 1000.0 * (graph.missing_action[:, None] == 0)  # all real actions worth less than the padded one's 0
    assert int(graph.best_actions(states(50))[1].max()) < 3
    assert float(graph.best_values(states(50))[1].detach().max()) < -100


def test_alphas_are_a_distribution_and_start_even() -> None:
    for alpha, count in zip(SuperGraph(SHAPE, [(0, 0), (0, 1)]).alphas(), (3, 3, 2), strict=True):
        np.testing.assert_allclose(alpha.detach(), np.full((2, count), 1 / count), rtol=1e-6)


def test_entropy_is_least_when_one_alpha_is_left_and_greatest_when_even() -> None:
    """Appendix B.3: zero exactly for one-hot alphas, positive otherwise; log n at the even start."""
    one_hot, even = torch.tensor([[200.0, 0.0, 0.0]]), torch.ones(1, 3)
    assert float(entropies([one_hot])) == 0.0
    assert float(entropies([even])) == pytest.approx(math.log(3), rel=1e-6)
    rng = np.random.default_rng(0)
    for _ in range(100):
        logits = torch.from_numpy(rng.normal(0, 3, (1, 3)))
        assert 0.0 < float(entropies([logits])) <= math.log(3) + 1e-12
    alpha = np.array([0.2, 0.5, 0.3])
    by_hand = -(alpha * np.log(alpha)).sum()
    assert float(entropies([torch.from_numpy(np.log(alpha))[None]])) == pytest.approx(by_hand, rel=1e-12)


def test_the_entropy_objective_alone_drives_alphas_to_one_hot() -> None:
    graph = supergraph(1)
    optimizer = torch.optim.RMSprop(graph.alpha_logits(), lr=0.05)
    favourites = [alpha.argmax(dim=1) for alpha in graph.alphas()]
    for _ in range(400):
        optimizer.zero_grad()
        entropies(graph.alpha_logits()).sum().backward()
        optimizer.step()
    for alpha, favourite in zip(graph.alphas(), favourites, strict=True):
        assert float(alpha.amax(dim=1).min().detach()) > 0.99
        assert torch.equal(alpha.argmax(dim=1), favourite)
    last = graph.alpha_logits1
    assert bool(torch.isfinite(torch.autograd.grad(entropies([last * 1000]).sum(), [last])[0]).all())


def test_each_step_moves_only_its_own_parameters() -> None:
    graph, x = supergraph(), states(32)
    target = copy.deepcopy(graph)
    theta, alpha = ([p.detach().clone() for p in group] for group in (graph.theta(), graph.alpha_logits()))
    step = alpha_step(graph, minibatch(target, x), RMSprop(graph.alpha_logits()))
    assert all(torch.equal(p, old) for p, old in zip(graph.theta(), theta, strict=True))
    assert not any(torch.equal(p, old) for p, old in zip(graph.alpha_logits(), alpha, strict=True))
    alpha = [p.detach().clone() for p in graph.alpha_logits()]
    with torch.no_grad():
        RMSprop(graph.theta()).step(step.theta_gradients(), 1e-3, target.theta(), 0.1)
    assert all(torch.equal(p, old) for p, old in zip(graph.alpha_logits(), alpha, strict=True))
    assert not any(torch.equal(p, old) for p, old in zip(graph.theta(), theta, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_the_gradients_are_autograds(seed: int) -> None:
    """Squared error + 16 * the sum of the three entropies for the alphas; then, at the new alphas, the squared error for the
    weights, layer 1 not taken again."""
    graph, x = supergraph(seed), states(9, seed)
    batch = minibatch(copy.deepcopy(graph), x, seed)
    objective = reference_loss(graph, batch) + 16.0 * entropies(graph.alpha_logits()).sum()
    expected = torch.autograd.grad(objective, graph.alpha_logits())
    with torch.no_grad():
        step = SuperGraphStep(graph, batch)
        for ours, theirs in zip(step.alpha_gradients(16.0), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-4)
        for logits in graph.alpha_logits():
            logits += 0.3 * torch.randn(logits.shape, generator=torch.Generator().manual_seed(seed))
        gradients = step.theta_gradients()
    expected = torch.autograd.grad(reference_loss(graph, batch), graph.theta())
    for ours, theirs in zip(gradients, expected, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-4)
    assert float(step.losses.sum()) == pytest.approx(float(reference_loss(graph, batch).detach()), rel=1e-5)


def test_the_subgraphs_gradients_are_autograds() -> None:
    graph = supergraph()
    choice = strongest(graph)
    subgraph = SubGraph(graph, choice)
    batch = minibatch(copy.deepcopy(subgraph), kept_states(choice, 9))
    with torch.no_grad():
        losses, gradients = subgraph_gradients(subgraph, batch)
    expected = torch.autograd.grad(reference_loss(subgraph, batch), subgraph.theta())
    for ours, theirs in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    assert float(losses.sum()) == pytest.approx(float(reference_loss(subgraph, batch).detach()), rel=1e-5)


def test_rmsprop_is_pytorchs_and_moves_the_target_a_tenth_of_the_way() -> None:
    generator = torch.Generator().manual_seed(0)
    ours, theirs = (torch.nn.Parameter(torch.linspace(-2, 2, 12).view(3, 4).clone()) for _ in range(2))
    target = torch.zeros(3, 4)
    slow = np.zeros((3, 4))
    optimiser, reference = RMSprop([ours]), torch.optim.RMSprop([theirs], lr=1e-2)
    for _ in range(20):
        theirs.grad = torch.randn(3, 4, generator=generator)
        reference.step()
        optimiser.step([theirs.grad], 1e-2, [target], 0.1)
        slow += 0.1 * (theirs.detach().numpy() - slow)
    np.testing.assert_allclose(ours.detach(), theirs.detach(), rtol=1e-5)
    np.testing.assert_allclose(target, slow, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_a_path_from_input_to_output_always_exists(seed: int) -> None:
    """Appendix B.2: whatever the alphas, also all equal, the extraction keeps something real in every layer."""
    graph = supergraph(seed)
    if seed == 0:
        with torch.no_grad():
            for logits in graph.alpha_logits():
                logits.fill_(1.0)
    choice = strongest(graph)
    assert choice.features.shape == (2, 2)
    assert all(len(set(row)) == 2 and row.max() < 3 for row in choice.features.tolist() for row in [np.array(row)])
    assert choice.hidden.tolist() == [
        [SHAPE.layer2_dims[a], SHAPE.layer3_dims[b]] for a, b in zip(choice.layer2, choice.layer3, strict=True)
    ]
    alphas = [alpha.detach().numpy() for alpha in graph.alphas()]
    for g in range(2):
        left_out = [f for f in range(3) if f not in choice.features[g]]
        assert alphas[0][g][left_out].max() <= alphas[0][g][choice.features[g]].min()
        assert alphas[1][g][choice.layer2[g]] == alphas[1][g].max()
        assert alphas[2][g][choice.layer3[g]] == alphas[2][g].max()
    # the path carries: the output depends on both kept features
    assert SubGraph(graph, choice)(kept_states(choice, 4, seed)).shape == (2, 4, 4)


@pytest.mark.parametrize("seed", range(10))
def test_a_parameter_budget_takes_the_strongest_pair_that_fits(seed: int) -> None:
    graph = supergraph(seed)
    free = strongest(graph)
    alphas = [alpha.detach().numpy() for alpha in graph.alphas()]
    for budget in (70, 80, 95, 1000):
        choice = strongest(graph, budget=Budget(budget))
        for g in range(2):
            sums = {pair: alphas[0][g][list(pair)].tolist() for pair in ((0, 1), (0, 2), (1, 2))}
            least = {pair: 3 * (SHAPE.feature_widths[g][list(pair)].sum() + 2) + 8 + 3 * SHAPE.n_actions[g] for pair in sums}
            fits = [pair for pair in sums if least[pair] <= budget]  # with 3 and 2 units
            best_first = max(fits, key=lambda pair: sorted(sums[pair], reverse=True))
            assert choice.features[g].tolist() == list(best_first)
            widths = SHAPE.feature_widths[g][choice.features[g]]
            fitting = {
                (i, j): alphas[1][g][i] * alphas[2][g][j]
                for i, d2 in enumerate(SHAPE.layer2_dims)
                for j, d3 in enumerate(SHAPE.layer3_dims)
                if sum((w + 1) * d2 for w in widths) + (d2 + 1) * d3 + (d3 + 1) * SHAPE.n_actions[g] <= budget
            }
            assert (choice.layer2[g], choice.layer3[g]) == max(fitting, key=lambda pair: fitting[pair])
    assert np.array_equal(strongest(graph, budget=Budget(1000)).hidden, free.hidden)
    with pytest.raises(ValueError, match="no 2 features fit"):
        strongest(graph, budget=Budget(20))


def test_parameters_of_the_papers_jinan_instance() -> None:
    """Appendix C, with the 9-wide feature counted as 10 wide as there: 1,001."""
    assert parameter_count([12, 10], 18, 20, 9) == 1001


@pytest.mark.parametrize("seed", range(3))
def test_subgraph_has_the_supergraphs_weights_and_no_alphas(seed: int) -> None:
    """By hand: h1 = sum_f ReLU(x_f W1 + b1), h2 = ReLU(h1 W2 + b2), Q = h2 W3 + b3."""
    graph = supergraph(seed)
    choice = strongest(graph)
    subgraph = SubGraph(graph, choice)
    x = padded_states(6, seed)
    assert subgraph.width == kept_width(SHAPE, choice)
    values = subgraph(kept_states(choice, 6, seed)).detach().numpy()
    p2, p3 = max(SHAPE.layer2_dims), max(SHAPE.layer3_dims)
    w2, b2, w3, b3 = (p.detach().numpy() for p in graph.theta()[-4:])
    for g, actions in enumerate(SHAPE.n_actions):
        c2, c3, (d2, d3) = choice.layer2[g], choice.layer3[g], choice.hidden[g]
        h1 = np.zeros((6, d2))
        for f in choice.features[g]:
            columns = slice(c2 * p2, c2 * p2 + d2)
            w1, b1 = (p[g].detach().numpy() for p in graph.feature_weights(int(f)))
            h1 += np.maximum(x[g, :, f, : len(w1)] @ w1[:, columns] + b1[0, columns], 0)
        columns = slice(c3 * p3, c3 * p3 + d3)
        h2 = np.maximum(h1 @ w2[g, c2, :d2, columns] + b2[g, c2, 0, columns], 0)
        q = h2 @ w3[g, c3, :d3, :actions] + b3[g, c3, 0, :actions]
        np.testing.assert_allclose(values[g, :, :actions], q, atol=1e-5, rtol=1e-5)
        widths = [int(SHAPE.feature_widths[g, f]) for f in choice.features[g]]
        theta = [parameter[g].detach().numpy() for parameter in subgraph.theta()]
        weights = trimmed(theta, choice.hidden[g], widths, int(actions))
        assert [w.shape for w in weights.layer1_weights] == [(d2, width) for width in widths]
        assert weights.layer2_weights.shape == (d3, d2)
        assert weights.layer3_weights.shape == (actions, d3)


def test_refinement_leaves_the_supergraph_and_its_alphas_alone() -> None:
    graph = supergraph()
    choice = strongest(graph)
    frozen = {name: tensor.clone() for name, tensor in graph.state_dict().items()}
    subgraph, target = SubGraph(graph, choice), SubGraph(graph, choice)
    assert not [name for name, _ in subgraph.named_parameters() if "alpha" in name]
    kept = kept_states(choice, 32)
    optimiser = RMSprop(subgraph.theta())
    before = subgraph(kept).detach().clone()
    for step in range(3):
        with torch.no_grad():
            gradients = subgraph_gradients(subgraph, minibatch(target, kept, step))[1]
        optimiser.step(gradients, 1e-2, target.theta(), 0.1)
    assert not torch.allclose(subgraph(kept).detach(), before)
    assert all(torch.equal(tensor, frozen[name]) for name, tensor in graph.state_dict().items())
