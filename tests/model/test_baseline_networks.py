"""The baselines' networks against plain loops, and the numbers of their parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from model.baselines.frap import Layout  # noqa: E402
from model.baselines.random_path import random_choice  # noqa: E402
from model.baselines.registry import BASELINES  # noqa: E402
from model.dqn.value_graph import ValueGraph  # noqa: E402
from model.report.cost import Geometry, costs  # noqa: E402
from streetflow.control.intersection import Intersection, neighbours, signalled_intersections  # noqa: E402
from streetflow.networks.catalogue import find_network  # noqa: E402
from streetflow.roadnet.reader import read_roadnet  # noqa: E402
from tests.helpers.baselines import Array, different_pair, graph_of, inputs  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """As in training: threads of such small matrices only wait for each other."""
    torch.set_num_threads(1)


def layer(graph: ValueGraph, name: str, s: int) -> Callable[[Array], Array]:
    """One Linear of network s as a plain function."""
    state = graph.state_dict()
    weights, biases = state[f"{name}.weights"][s].numpy(), state[f"{name}.biases"][s, 0].numpy()
    return lambda v: np.array([sum(v[i] * weights[i, o] for i in range(len(v))) + biases[o] for o in range(len(biases))])


def relu(v: Array) -> Array:
    return np.maximum(v, 0.0)


def naive_ecolight(graph: ValueGraph, s: int, each: Intersection, x: Array) -> Array:
    """x [F, W] of one state."""
    current = int(x[2].argmax())
    green = float(x[1, current])
    red = float(sum(x[0])) - green
    v = relu(layer(graph, "layers.1", s)(relu(layer(graph, "layers.0", s)(np.array([green, red])))))
    return layer(graph, "layers.2", s)(v)


def naive_frap(graph: ValueGraph, s: int, each: Intersection, x: Array, sign: int) -> Array:
    current = int(x[2].argmax())
    opened = [set(links) for links in each.phase_lane_links]
    links = []
    for number, (lane_in, lane_out) in enumerate(each.lane_links):
        count = x[0, each.in_lanes.index(lane_in)] + sign * x[1, each.out_lanes.index(lane_out)]
        green = 1.0 if number in opened[current] else 0.0
        seen = [
            *relu(layer(graph, "phase_embedding", s)(np.array([green]))),
            *relu(layer(graph, "vehicle_embedding", s)(np.array([count]))),
        ]
        links.append(relu(layer(graph, "link_embedding", s)(np.array(seen))))
    phases = [sum(links[number] for number in numbers) for numbers in opened]
    values = np.zeros(len(phases))
    for i, own in enumerate(opened):
        for j, other in enumerate(opened):
            if i == j:
                continue
            shared = [k for k in own & other if not all(k in each for each in opened)]
            relation = relu(layer(graph, "relation_embedding", s)(np.array([1.0 if shared else 0.0])))
            pair = layer(graph, "pair_conv", s)(np.concatenate([phases[i], phases[j]]))
            cube = pair * layer(graph, "relation_conv", s)(relation)
            values[i] += layer(graph, "value_out", s)(relu(layer(graph, "value_hidden", s)(cube)))[0]
    return values


def naive_colight(graph: ValueGraph, s: int, n: int, near: list[list[int]], x: Array, widths: Array) -> Array:
    """x [N, F, W]: one state of all intersections."""
    h = []
    for m in range(len(x)):
        seen = np.concatenate([x[m, f, : widths[m, f]] for f in range(3)])
        h.append(relu(layer(graph, "embed2", s)(relu(layer(graph, "embed1", s)(seen)))))
    total = np.zeros(32)
    for head in range(5):
        part = slice(32 * head, 32 * head + 32)
        target = relu(layer(graph, "target", s)(h[n]))[part]
        scores = np.array([target @ relu(layer(graph, "source", s)(h[m]))[part] for m in near[n]])
        weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        for weight, m in zip(weights, near[n], strict=True):
            total += weight * relu(layer(graph, "value", s)(h[m]))[part] / 5
    return layer(graph, "out2", s)(relu(layer(graph, "out1", s)(total)))


def test_ecolight_equals_plain_loops() -> None:
    intersections = different_pair()
    graph, widths = graph_of("EcoLight", intersections, [3, 4])
    x = inputs(intersections, widths, 2)
    values = graph(x.flatten(2)).detach().numpy()
    for g in range(4):
        for b in range(3):
            expected = naive_ecolight(graph, g, intersections[g % 2], x[g, b].numpy())
            np.testing.assert_allclose(values[g, b], expected, rtol=1e-4, atol=1e-4)


def test_frap_equals_plain_loops_at_intersections_that_differ() -> None:
    intersections = different_pair()
    graph, widths = graph_of("FRAP", intersections, [3, 4])
    x = inputs(intersections, widths, 2)
    values = graph(x.flatten(2)).detach().numpy()
    for g in range(4):
        each = intersections[g % 2]
        for b in range(3):
            expected = naive_frap(graph, g, each, x[g, b].numpy(), sign=1)
            np.testing.assert_allclose(values[g, b, : each.action_count], expected, rtol=1e-4, atol=1e-4)
    assert (graph.best_actions(x.flatten(2))[[1, 3]] < 2).all()  # the missing third phase is never chosen


def test_mplight_is_frap_on_pressure_with_shared_weights() -> None:
    intersections = [different_pair()[0]] * 2
    graph, widths = graph_of("MPLight", intersections, [3, 4])
    x = inputs(intersections, widths, 2)
    values = graph(x.flatten(2)).detach().numpy()
    for g in range(4):
        for b in range(3):
            expected = naive_frap(graph, g // 2, intersections[0], x[g, b].numpy(), sign=-1)
            np.testing.assert_allclose(values[g, b], expected, rtol=1e-4, atol=1e-4)


def test_colight_equals_plain_loops() -> None:
    intersections = list(signalled_intersections(read_roadnet(find_network("arterial").roadnet_file)))
    graph, widths = graph_of("CoLight", intersections, [3, 4])
    x = inputs(intersections, widths, 2)
    values = graph(x.flatten(2)).detach().numpy()
    near = [[n, *neighbours(intersections, n)] for n in range(3)]
    assert near == [[0, 1], [1, 0, 2], [2, 1]]
    for g in range(6):
        replica, n = divmod(g, 3)
        for b in range(3):
            state = x[3 * replica : 3 * replica + 3, b].numpy()
            expected = naive_colight(graph, replica, n, near, state, widths)
            np.testing.assert_allclose(values[g, b], expected, rtol=1e-4, atol=1e-4)


def test_random_path_equals_plain_loops() -> None:
    intersections = different_pair()
    graph, widths = graph_of("TLRP", intersections, [3])
    x = inputs(intersections, widths, 1)
    values = graph(x.flatten(2)).detach().numpy()
    state = {name.removeprefix("subgraph."): tensor.numpy() for name, tensor in graph.state_dict().items()}
    for g, each in enumerate(intersections):
        for b in range(3):
            h1 = np.zeros(state["w1"].shape[3])
            for k, feature in enumerate(state["kept"][g]):
                h1 += relu(x[g, b, feature].numpy() @ state["w1"][g, k] + state["b1"][g, k, 0])
            h2 = relu(h1 @ state["w2"][g] + state["b2"][g, 0])
            expected = h2 @ state["w3"][g] + state["b3"][g, 0]
            np.testing.assert_allclose(values[g, b, : each.action_count], expected[: each.action_count], rtol=1e-4, atol=1e-4)
        assert (h1 != 0).sum() <= state["hidden"][g, 0] and (h2 != 0).sum() <= state["hidden"][g, 1]


def test_random_paths_are_uniform_and_independent_of_the_batch() -> None:
    choice = random_choice(11, [(seed, 0) for seed in range(2000)])
    assert (choice.features[:, 0] < choice.features[:, 1]).all()
    counts = np.bincount(choice.features.ravel(), minlength=11)  # 4000 draws, 364 expected, standard deviation 17
    assert counts.min() > 364 - 4 * 18 and counts.max() < 364 + 4 * 18
    assert np.bincount(choice.layer2, minlength=5).min() > 400 - 4 * 18
    assert np.array_equal(random_choice(11, [(5, 0)]).features[0], choice.features[5])


@pytest.mark.parametrize(("name", "parameters"), [("EcoLight", 162), ("FRAP", 1_369), ("MPLight", 1_369), ("CoLight", None)])
def test_networks_have_the_counted_parameters(name: str, parameters: int | None) -> None:
    intersections = list(signalled_intersections(read_roadnet(find_network("arterial").roadnet_file)))
    graph, _ = graph_of(name, intersections, [1])
    count = sum(parameter.numel() for parameter in graph.parameters())
    sets = 1 if BASELINES[name].shared else len(intersections)
    (counted,) = (each for each in costs(Geometry(12, 12, 8, 36, 3)) if each.model == name)
    assert count == sets * counted.parameters
    assert parameters is None or counted.parameters == parameters


def test_related_phases_share_a_link_that_not_all_open() -> None:
    layout = Layout.of(different_pair(), out_weight=1.0)
    assert layout.related[0].tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]  # link 4 is open in all three
    assert layout.related[1].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
