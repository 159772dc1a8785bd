"""Dropping what no traffic moves: every logit stays, the policy gets smaller, and the float weights go the same way."""

from __future__ import annotations

import numpy as np
import pytest

from model.policy.file import IntersectionPolicy
from model.policy.float_policy import FloatPolicy, GroupWeights
from model.policy.integer import IntegerPolicy
from model.quantise.quantise import Headroom, KeptFeature, quantise
from model.quantise.silent import without_silent

FEATURES = [KeptFeature("a", 5, 1), KeptFeature("b", 3, 16)]
SILENT1, CONSTANT1, SILENT2, BRANCH = 2, 4, 3, 6  # units, and one whose branch of feature b sleeps


def states(seed: int = 0, count: int = 300) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.integers(0, 40, (count, 5)), rng.integers(-60, 900, (count, 3))], axis=1)


def part(seed: int) -> IntersectionPolicy:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(0, 1, shape).astype(np.float32)

    weights = GroupWeights(
        [normal(8, 5), normal(8, 3)], [normal(8), normal(8)], normal(7, 8), normal(7), normal(4, 7), normal(4)
    )
    for branch, biases in zip(weights.layer1_weights, weights.layer1_biases, strict=True):
        branch[SILENT1], biases[SILENT1] = 0, -1
        branch[CONSTANT1], biases[CONSTANT1] = 0, 3
    weights.layer1_weights[1][BRANCH], weights.layer1_biases[1][BRANCH] = -abs(normal(3)), -1000
    weights.layer2_weights[SILENT2], weights.layer2_biases[SILENT2] = 0, -2
    return quantise("x", range(4), FEATURES, weights, states(), Headroom())


@pytest.mark.parametrize("seed", range(4))
def test_every_logit_stays_as_it_is(seed: int) -> None:
    before = part(seed)
    after = without_silent(before, states())
    assert after.hidden[0] <= 6 and after.hidden[1] <= 6 and after.n_parameters < before.n_parameters
    assert np.array_equal(IntegerPolicy(after).logits(states()), IntegerPolicy(before).logits(states()))
    assert np.allclose(FloatPolicy(after).logits(states()), FloatPolicy(before).logits(states()), rtol=1e-3, atol=0.05)


def test_a_branch_that_sleeps_gets_no_weights() -> None:
    after = without_silent(part(0), states())
    rows = [not any(row) for row in after.layer1.weights[1]]
    assert any(rows) and all(bias == 0 for bias, is_zero in zip(after.layer1.biases[1], rows, strict=True) if is_zero)


def test_what_some_state_moves_stays() -> None:
    """The same units, awake in one state of hard traffic."""
    before = part(0)
    calm = states()
    unit = int(np.flatnonzero(IntegerPolicy(before).activations(calm).h2.max(axis=0) > 0)[0])
    busiest = int(IntegerPolicy(before).activations(calm).h2[:, unit].argmax())
    quiet = np.repeat(calm[:1], 5, axis=0)
    assert without_silent(before, quiet).hidden == [1, 1]  # all is constant; one unit of each layer stays
    woken = without_silent(before, np.concatenate([quiet, calm[busiest : busiest + 1]]))
    assert woken.hidden > [1, 1]
    assert np.array_equal(IntegerPolicy(woken).logits(calm[busiest]), IntegerPolicy(before).logits(calm[busiest]))


def test_a_policy_without_float_weights_loses_its_silent_units_too() -> None:
    before = part(1).model_copy(update={"float_weights": None})
    after = without_silent(before, states())
    assert after.float_weights is None and after.hidden[0] <= 6
    assert np.array_equal(IntegerPolicy(after).logits(states()), IntegerPolicy(before).logits(states()))
