"""The learned baselines: networks against plain loops, rewards and actions by hand, training, files, refusals."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from model.baselines.agent import BaselineAgent  # noqa: E402
from model.baselines.file import BaselineFile, load_baseline, save_baseline  # noqa: E402
from model.baselines.frap import Layout  # noqa: E402
from model.baselines.random_path import random_choice  # noqa: E402
from model.baselines.registry import BASELINES, build_graph  # noqa: E402
from model.baselines.train_baseline import train_baseline_files  # noqa: E402
from model.baselines.training import (  # noqa: E402
    BaselineEnvironment,
    feature_scale,
    load_arrays,
    replica_arrays,
    train_baseline,
    waiting_weights,
)
from model.dqn.learner import BaselineConfig, ValueLearner  # noqa: E402
from model.dqn.value_graph import ValueGraph  # noqa: E402
from model.evaluate import evaluate  # noqa: E402
from model.report.cost import Geometry, costs  # noqa: E402
from model.report.tasks import plan  # noqa: E402
from streetflow.control.environment import Environment  # noqa: E402
from streetflow.control.intersection import (  # noqa: E402
    Intersection,
    neighbours,
    signalled_intersections,
)
from streetflow.errors import InputError  # noqa: E402
from streetflow.networks.catalogue import find_network  # noqa: E402
from tests.helpers.shared_data import needs_data_set  # noqa: E402
from tests.helpers.toy_environment import ToyEnvironment  # noqa: E402

Array = np.ndarray


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """As in training: threads of such small matrices only wait for each other."""
    torch.set_num_threads(1)


def different_pair() -> list[Intersection]:
    """Two intersections that differ in everything: 3 phases, 4 in-lanes, 3 out-lanes, 5 links; and 2, 2, 2, 3."""
    first = Intersection(
        id="a", number=0, phase_count=3, phases=(0, 1, 2), in_roads=("r0", "r1"), out_roads=("r2",),
        in_lanes=(10, 11, 12, 13), out_lanes=(20, 21, 22), lane_links=((10, 20), (11, 21), (12, 22), (13, 20), (13, 21)),
        phase_lane_links=((0, 1, 4), (1, 2, 4), (3, 4)), **_more(3, 5),
    )  # fmt: skip
    second = Intersection(
        id="b", number=1, phase_count=2, phases=(0, 1), in_roads=("r2",), out_roads=("r3",),
        in_lanes=(20, 21), out_lanes=(30, 31), lane_links=((20, 30), (21, 31), (20, 31)), phase_lane_links=((0, 1), (1, 2)),
        **_more(2, 3),
    )  # fmt: skip
    return [first, second]


def _more(phases: int, links: int) -> dict[str, Any]:
    """Fields that baselines don't read."""
    known = {"id", "number", "phase_count", "phases", "in_roads", "out_roads", "in_lanes", "out_lanes", "lane_links",
             "phase_lane_links"}  # fmt: skip
    return {field.name: () for field in dataclasses.fields(Intersection) if field.name not in known}


def graph_of(name: str, intersections: list[Intersection], seeds: list[int]) -> tuple[ValueGraph, Array]:
    """The baseline's graph and its features' widths [N, F]."""
    widths = {
        "inlane_2_num_vehicle": [len(each.in_lanes) for each in intersections],
        "outlane_2_num_vehicle": [len(each.out_lanes) for each in intersections],
    }
    phases = [each.action_count for each in intersections]
    table = np.array([widths.get(feature, phases) for feature in BASELINES[name].features]).T
    return build_graph(BASELINES[name], intersections, table, int(table.max()), seeds), table


def inputs(intersections: list[Intersection], widths: Array, replicas: int, batch: int = 3) -> Any:
    """float32[G, B, F, W]: random features, zero padded; the current phase one-hot."""
    rng = np.random.default_rng(7)
    x = np.zeros((len(intersections) * replicas, batch, widths.shape[1], widths.max()), np.float32)
    for g in range(len(x)):
        n = g % len(intersections)
        for f, width in enumerate(widths[n]):
            x[g, :, f, :width] = rng.integers(0, 9, (batch, width))
        for b in range(batch):
            x[g, b, -1] = 0.0
            x[g, b, -1, rng.integers(intersections[n].action_count)] = 1.0
    return torch.from_numpy(x)


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
    intersections = list(signalled_intersections(find_network("arterial").roadnet_file))
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
    intersections = list(signalled_intersections(find_network("arterial").roadnet_file))
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


def arterial(name: str, **options: Any) -> Environment:
    return Environment("arterial", 1, features=BASELINES[name].features, **options)


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
    intersections = list(signalled_intersections(find_network("arterial").roadnet_file))
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

    def told(state: Any) -> None:
        waited.append(state.average_travel_times_s)
        losses.append(state.losses)

    environments: list[Any] = [ToyTraffic((3, 2), seed) for seed in range(8)]
    train_baseline(baseline, environments, list(range(8)), BaselineConfig(episodes=40), told)
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


def test_shared_models_refuse_intersections_that_differ(tmp_path: Path) -> None:
    intersections = list(signalled_intersections(find_network("arterial").roadnet_file))
    odd = dataclasses.replace(intersections[1], phases=intersections[1].phases[:5])
    for name in ("MPLight", "CoLight"):
        assert BASELINES[name].refusal(intersections) is None
        why = BASELINES[name].refusal([intersections[0], odd, intersections[2]])
        assert why is not None and "must be alike" in why and "8 phases" in why and "5 phases" in why
    for name in ("EcoLight", "FRAP", "TLRP"):
        assert BASELINES[name].refusal([intersections[0], odd]) is None
    assert "only one" in (BASELINES["CoLight"].refusal(intersections[:1]) or "")
    assert BASELINES["MPLight"].refusal(intersections[:1]) is None


@pytest.mark.parametrize("network", [pytest.param(n, marks=needs_data_set(n)) for n in ("Atlanta", "LosAngeles")])
def test_the_papers_dashes(network: str, tmp_path: Path) -> None:
    jobs, dashes = plan([network], list(BASELINES), [0, 1])
    assert set(dashes) == {(network, "MPLight"), (network, "CoLight")}
    assert {job.model for job in jobs} == {"EcoLight", "FRAP", "TLRP"}
    with pytest.raises(InputError, match=f"{network}: intersections: MPLight shares its weights"):
        train_baseline_files("MPLight", find_network(network), [(0, 0, tmp_path / "x.npz")])
    command = [sys.executable, "-m", "tinylight.cli", "train", "--model", "MPLight", "--network", network, "--out"]
    run = subprocess.run([*command, str(tmp_path / "x.npz")], capture_output=True, text=True)
    assert run.returncode == 2 and "must be alike" in run.stderr


@pytest.fixture(scope="module")
def trained_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("baseline") / "frap.npz"
    train_baseline_files("FRAP", find_network("arterial"), [(0, 5, file)], config=BaselineConfig(episodes=1))
    return file


def test_a_file_decides_as_the_network_that_it_was_made_from(trained_file: Path) -> None:
    content = load_baseline(trained_file)
    assert (content.model, content.network, content.provenance["train_seed"]) == ("FRAP", "arterial", 5)
    environment = arterial("FRAP")
    agent = BaselineAgent(content, "frap.npz")
    frame = environment.reset()
    agent.reset(environment)
    graph, _ = graph_of("FRAP", list(environment.intersections), [0])
    load_arrays(graph, content.arrays, "frap.npz")
    for _ in range(20):
        x = torch.from_numpy(frame.astype(np.float32).reshape(3, 1, -1))
        actions = agent.act(frame)
        assert np.array_equal(actions, graph.best_actions(x)[:, 0].numpy())
        frame, _, _ = environment.step(actions)
    (row,) = evaluate("arterial", trained_file, [1])
    assert (row.arithmetic, row.policy_sha256, row.agent) == ("float", content.sha256, "frap.npz")


def test_the_same_training_gives_the_same_file(trained_file: Path, tmp_path: Path) -> None:
    again = tmp_path / "frap.npz"
    train_baseline_files("FRAP", find_network("arterial"), [(0, 5, again)], config=BaselineConfig(episodes=1))
    assert load_baseline(again).sha256 == load_baseline(trained_file).sha256


def test_faulty_files_are_refused(trained_file: Path, tmp_path: Path) -> None:
    content = load_baseline(trained_file)
    name = "value_out.weights"
    file = tmp_path / "x.npz"

    def refused(fault: str, changed: BaselineFile | None = None, data: bytes | None = None) -> None:
        if changed is not None:
            save_baseline(changed, file)
        elif data is not None:
            file.write_bytes(data)
        with pytest.raises(InputError, match=fault):
            evaluate("arterial", file, [0])

    arrays = dict(content.arrays)
    refused("missing", dataclasses.replace(content, arrays={k: v for k, v in arrays.items() if k != name}))
    refused("not an array of this model", dataclasses.replace(content, arrays=arrays | {"more": arrays[name]}))
    refused(r"value_out.weights: float32\[3, 20\]", dataclasses.replace(content, arrays=arrays | {name: arrays[name][..., 0]}))
    refused("not finite", dataclasses.replace(content, arrays=arrays | {name: arrays[name] * np.nan}))
    refused("unknown model 'X'", dataclasses.replace(content, model="X"))
    refused("trained on crossing", dataclasses.replace(content, network="crossing"))
    np.savez(file, a=np.zeros(1))
    refused("header")
    np.savez(file, header=np.array("{}"))
    refused("header")
    with np.load(trained_file) as archive:
        changed = {key: archive[key] for key in archive.files}
    changed[name] = changed[name] + 1
    np.savez(file, **changed)
    refused("changed or damaged")
    whole = trained_file.read_bytes()
    refused("not a weights file", data=whole[: len(whole) // 2])
    with pytest.raises(InputError, match="no integer form"):
        evaluate("arterial", trained_file, [0], integer=True)


def test_an_option_without_effect_and_an_unknown_model_are_refused(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tinylight.cli",
        "train",
        "--network",
        "crossing",
        "--out",
        str(tmp_path / "x.npz"),
        "--model",
    ]
    for more, fault in ((["FRAP", "--kept-features", "3"], "--kept-features"), (["FRUP"], "unknown model 'FRUP'")):
        run = subprocess.run([*command, *more], capture_output=True, text=True)
        assert run.returncode == 2 and fault in run.stderr


def test_features_are_scaled_to_their_units() -> None:
    assert feature_scale([1, 256], 2).tolist() == [1.0, 1.0, 1 / 256, 1 / 256]
