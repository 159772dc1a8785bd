"""The student: it learns from regrets, finds the features that matter, and its weights are those of the float policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.search.packing import Packing

torch = pytest.importorskip("torch", reason="torch is not installed (extra: train)")

from model.planning.records import UNPLANNED, Records, Seen  # noqa: E402
from model.planning.settings import PlanConfig  # noqa: E402
from model.planning.student import MOST_REGRET_S, Data, Student  # noqa: E402
from model.policy.file import IntersectionPolicy  # noqa: E402
from model.policy.float_policy import FloatPolicy  # noqa: E402
from model.quantise.quantise import Headroom, KeptFeature, quantise  # noqa: E402
from model.search.supergraph import GraphShape  # noqa: E402

LSB = (1, 20, 1, 256)
WIDTHS = (4, 4, 8, 1)
TELLING = 1  # the feature that the regrets depend on
CONFIG = PlanConfig(search_steps=300, kept_features=2, layer2_dims=(8, 10), layer3_dims=(8, 6), batch=64)


def shape(groups: int = 1) -> GraphShape:
    counts = np.array([4, 3][:groups], np.int64)
    return GraphShape(np.tile(np.array(WIDTHS, np.int64), (groups, 1)), counts, CONFIG.layer2_dims, CONFIG.layer3_dims)


def seen(actions: int = 4, rows: int = 1500, seed: int = 0) -> Seen:
    """Random observations; the best action is the one with the greatest number of the telling feature."""
    rng = np.random.default_rng(seed)
    observation = np.zeros((rows, len(WIDTHS), max(WIDTHS)), np.int32)
    for feature, width in enumerate(WIDTHS):
        observation[:, feature, :width] = rng.integers(0, 12, (rows, width)) * LSB[feature]
    numbers = observation[:, TELLING, :actions] / LSB[TELLING]
    regrets = np.full((rows, 4), UNPLANNED, np.float32)
    regrets[:, :actions] = 40.0 * (numbers.max(axis=1, keepdims=True) - numbers)
    return Seen(Packing(WIDTHS).pack(observation).astype(np.int16), regrets)


def test_records_hold_regrets_of_planned_lights_alone() -> None:
    records = Records(Packing((2,)), [3, 2], share=False)
    costs_s = np.array([[7.0, 5.0, 9.0], [4.0, 6.0, 0.0]])
    records.add(np.array([[[1, 2]], [[3, 4]]], np.int32), costs_s, [0, 1])
    records.add(np.array([[[5, 6]], [[7, 8]]], np.int32), costs_s, [1])
    assert records.seen(0).inputs.tolist() == [[1, 2]] and records.seen(0).regrets.tolist() == [[2, 0, 4]]
    assert records.seen(1).inputs.tolist() == [[3, 4], [7, 8]]
    assert records.seen(1).regrets.tolist() == [[0, 2, UNPLANNED]] * 2


def test_lights_that_share_a_network_share_their_records() -> None:
    records = Records(Packing((2,)), [2, 2], share=True)
    records.add(np.array([[[1, 2]], [[3, 4]]], np.int32), np.array([[1.0, 0.0], [0.0, 3.0]]), [1, 0])
    assert records.groups == 1
    assert records.seen(0).inputs.tolist() == [[3, 4], [1, 2]] and records.seen(0).regrets.tolist() == [[0, 3], [1, 0]]


def test_the_loss_is_the_formula_and_blind_for_missing_actions() -> None:
    data = Data([Seen(np.ones((1, 2), np.int16), np.array([[0.0, 60.0, UNPLANNED]], np.float32))], torch.ones(2), seed=0)
    rows = data.rows(1)
    values = torch.tensor([[[0.5, 1.0, 99.0]]], requires_grad=True)
    loss = data.loss(values, rows, temperature_s=30.0)
    p = np.exp([0.5, 1.0]) / np.exp([0.5, 1.0]).sum()
    target = np.exp([0.0, -2.0]) / np.exp([0.0, -2.0]).sum()
    weight = 0.0 / 100 + 0.1  # the lower middle of 0 and 60
    assert loss.item() == pytest.approx(weight * (-(target * np.log(p)).sum() + p[1] * 2.0), rel=1e-5)
    loss.backward()
    assert values.grad is not None and values.grad[0, 0, 2] == 0.0 and values.grad[0, 0, 1] != 0.0


def test_regrets_are_bounded() -> None:
    data = Data([Seen(np.ones((1, 1), np.int16), np.array([[0.0, 1e6]], np.float32))], torch.ones(1), seed=0)
    assert data.regrets.max() == MOST_REGRET_S


def test_minibatches_take_rows_of_their_own_group() -> None:
    data = Data([seen(rows=10), seen(rows=30, seed=1)], torch.ones(17), seed=3)
    rows = data.rows(500)
    assert rows[0].min() == 0 and rows[0].max() == 9 and rows[1].min() == 10 and rows[1].max() == 39


def test_the_search_finds_the_feature_that_tells_and_the_student_learns_it() -> None:
    student = Student(shape(2), LSB, CONFIG, seed=0)
    records = [seen(4), seen(3, seed=1)]
    student.search(records)
    assert all(TELLING in student.features(group) for group in (0, 1))
    assert all(alpha[TELLING] == alpha.max() for alpha in student.alphas[0])
    before_s = student.refine(records, 1)
    after_s = student.refine(records, 800)
    chance_s = float(np.mean([each.regrets[each.regrets >= 0].mean() for each in records]))
    assert after_s < 0.1 * chance_s and after_s < before_s


def test_weights_act_on_feature_values() -> None:
    """The network in the training's scale and the float policy of its weights choose alike."""
    student, records = Student(shape(), LSB, CONFIG, seed=0), [seen()]
    student.search(records)
    student.refine(records, 300)
    states = records[0].inputs[:, student.columns(0)].astype(np.int64)
    names = ("a", "b", "c", "d")
    kept = [KeptFeature(names[f], w, LSB[f]) for f, w in zip(student.features(0), student.widths(0), strict=True)]
    part: IntersectionPolicy = quantise("x", [1, 2, 3, 4], kept, student.weights(0), states, Headroom(1.25, 1.25))
    chosen = FloatPolicy(part).logits(states).argmax(axis=1)
    regret_s = records[0].regrets[np.arange(len(chosen)), chosen].mean()
    assert regret_s == pytest.approx(student.refine(records, 0), abs=1.0)


def test_a_student_goes_on_where_it_was() -> None:
    records = [seen()]
    straight = Student(shape(), LSB, CONFIG, seed=0)
    straight.search(records)
    straight.refine(records, 50)
    resumed = Student(shape(), LSB, CONFIG, seed=0)
    resumed.restore(straight.state())
    assert straight.refine(records, 50) == resumed.refine(records, 50)
    for one, other in zip(straight.weights(0).layer1_weights, resumed.weights(0).layer1_weights, strict=True):
        assert np.array_equal(one, other)


def test_another_seed_is_another_student() -> None:
    students = [Student(shape(), LSB, replace(CONFIG, search_steps=5), seed=seed) for seed in (0, 0, 1)]
    for student in students:
        student.search([seen()])
    weights = [student.weights(0).layer2_weights for student in students]
    assert np.array_equal(weights[0], weights[1])
    assert weights[0].shape != weights[2].shape or not np.array_equal(weights[0], weights[2])
