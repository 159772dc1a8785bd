"""Policies whose branches are joined: layer 1 is that of an ordinary network, one ReLU of all features' sum."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from model.policy.file import ACCUMULATOR_LIMIT, INPUT_MAX, IntersectionPolicy, load_policy
from model.policy.float_policy import FloatPolicy, GroupWeights
from model.policy.integer import IntegerPolicy
from model.policy.synthetic import random_intersection
from model.quantise.calibration import agreement_and_regret, calibrate
from model.quantise.quantise import KeptFeature
from tests.helpers.arithmetic_page import decide
from tests.helpers.places import ROOT


def test_the_sum_of_all_branches_has_the_relu() -> None:
    """Against the arithmetic written out, and against the reference that follows docs/arithmetic.md alone."""
    part = random_intersection(3, widths=(5, 3, 1), hidden=(7, 6), n_phases=4, joined=True)
    plain = random_intersection(3, widths=(5, 3, 1), hidden=(7, 6), n_phases=4)
    x = np.random.default_rng(0).integers(-60, 400, (300, 9))
    q = IntegerPolicy(part).activations(x).q
    w1, b1 = np.concatenate(part.layer1.weights, axis=1), np.sum(part.layer1.biases, axis=0)
    sums = np.maximum(q @ w1.T + b1, 0)
    m, sh = np.array(part.layer1.multipliers), np.array(part.layer1.shifts)
    expected = np.minimum((sums * m + (1 << (sh - 1))) >> sh, 255)
    assert np.array_equal(IntegerPolicy(part).activations(x).h1, expected)
    assert not np.array_equal(IntegerPolicy(plain).activations(x).h1, expected)
    logits = IntegerPolicy(part).logits(x)
    for row, values in enumerate(x.tolist()):
        assert decide(part.model_dump(mode="json"), values).logits == logits[row].tolist()


def test_files_of_before_stay_as_they_were() -> None:
    assert '"joined":true' in random_intersection(0, joined=True).model_dump_json()
    policy = load_policy(ROOT / "model/pretrained/crossing.json")
    assert "joined" not in policy.model_dump_json()
    assert policy.compute_sha256() == policy.sha256 and not policy.intersections[0].layer1.joined


@pytest.mark.parametrize(
    ("biases", "fits"), [([0, 0], True), ([-1, 1], True), ([1, 0], False), ([0, 1], False), ([0, -1], False)]
)
def test_a_sum_of_all_that_could_leave_its_accumulator_is_refused(biases: list[int], fits: bool) -> None:
    """Half of the weights are negative: a feature's own sum fits, and so does the greatest of both."""
    part = random_intersection(0, widths=(129, 129), hidden=(2, 2))
    fields = part.model_dump()
    row = [127, -127] * 64 + [127]
    more = ACCUMULATOR_LIMIT - 1 - INPUT_MAX * 127 * 258
    fields["layer1"] |= {"weights": [[row] * 2] * 2, "multipliers": [1, 1], "shifts": [20, 20]}
    fields["layer1"]["biases"] = [[more + biases[0]] * 2, [biases[1]] * 2]
    assert not IntersectionPolicy(**fields).layer1.joined
    fields["layer1"]["joined"] = True
    if fits:
        assert IntersectionPolicy(**fields).layer1.joined
        return
    with pytest.raises(ValidationError, match=r"layer1.weights\[0\]\[0\]: sums can reach"):
        IntersectionPolicy(**fields)


def test_quantising_an_ordinary_network_keeps_its_decisions() -> None:
    rng = np.random.default_rng(1)
    widths, hidden, actions = (8, 12, 8), (20, 16), 8

    def drawn(*shape: int) -> np.ndarray:
        return rng.normal(0, 1 / np.sqrt(shape[-1]), shape).astype(np.float32)

    weights = GroupWeights(
        [drawn(hidden[0], width) for width in widths], [drawn(hidden[0]), *(np.zeros(hidden[0], np.float32),) * 2],
        drawn(hidden[1], hidden[0]), drawn(hidden[1]), drawn(actions, hidden[1]), drawn(actions), joined=True,
    )  # fmt: skip
    features = [KeptFeature(name, width, lsb) for name, width, lsb in zip("abc", widths, (1, 256, 20), strict=True)]
    states = np.concatenate(
        [rng.integers(0, 40, (500, 8)), rng.integers(0, 257, (500, 12)), rng.integers(0, 900, (500, 8))], axis=1
    )
    part = calibrate("light", list(range(actions)), features, weights, states).part
    values = states / np.repeat([1, 256, 20], widths)
    h1 = np.maximum(values @ np.concatenate(weights.layer1_weights, axis=1).T + np.sum(weights.layer1_biases, axis=0), 0)
    h2 = np.maximum(h1 @ weights.layer2_weights.T + weights.layer2_biases, 0)
    expected = h2 @ weights.layer3_weights.T + weights.layer3_biases
    assert np.allclose(FloatPolicy(part).logits(states), expected, atol=1e-3)
    assert agreement_and_regret(part, states)[0] > 0.93
