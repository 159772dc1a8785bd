"""The integer reference against a plain loop over Python's unbounded integers; the quantiser against the float sub-graph."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.policy.file import ACCUMULATOR_LIMIT, PRODUCT_LIMIT, FeatureInput, IntersectionPolicy
from model.policy.float_policy import FloatPolicy, GroupWeights
from model.policy.integer import IntegerPolicy
from model.policy.synthetic import random_intersection
from model.quantise.quantise import Grid, Headroom, KeptFeature, quantise, with_own_floats


def naive_logits(part: IntersectionPolicy, x: list[int]) -> list[int]:
    """The contract's formulas, one number at a time, asserting every bound."""

    def accumulator(value: int) -> int:
        assert -ACCUMULATOR_LIMIT <= value < ACCUMULATOR_LIMIT
        return value

    def requantised(s: int, multiplier: int, shift: int) -> int:
        product = s * multiplier + (1 << (shift - 1))
        assert 0 <= product < PRODUCT_LIMIT
        return min(255, product >> shift)

    h1_sums = [0] * part.hidden[0]
    position = 0
    for f, feature in enumerate(part.features):
        rounding = (1 << (feature.shift - 1)) if feature.shift else 0
        q = []
        for value in x[position : position + feature.width]:
            product = max(0, value - feature.offset) * feature.multiplier + rounding
            assert 0 <= product < PRODUCT_LIMIT
            q.append(min(255, product >> feature.shift))
        position += feature.width
        for o in range(part.hidden[0]):
            acc = part.layer1.biases[f][o]
            for j, activation in enumerate(q):
                acc = accumulator(acc + part.layer1.weights[f][o][j] * activation)
            h1_sums[o] = accumulator(h1_sums[o] + max(0, acc))
    h1 = [requantised(s, m, shift) for s, m, shift in zip(h1_sums, part.layer1.multipliers, part.layer1.shifts, strict=True)]
    h2 = []
    for o in range(part.hidden[1]):
        acc = part.layer2.biases[o]
        for j, activation in enumerate(h1):
            acc = accumulator(acc + part.layer2.weights[o][j] * activation)
        h2.append(requantised(max(0, acc), part.layer2.multipliers[o], part.layer2.shifts[o]))
    logits = []
    for a in range(len(part.phases)):
        acc = part.layer3.biases[a]
        for j, activation in enumerate(h2):
            acc = accumulator(acc + part.layer3.weights[a][j] * activation)
        logits.append(acc)
    return logits


@given(
    seed=st.integers(0, 2**32 - 1),
    widths=st.lists(st.integers(1, 16), min_size=1, max_size=3),
    hidden=st.tuples(st.integers(1, 24), st.integers(1, 24)),
    n_phases=st.integers(1, 12),
    extreme=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_reference_equals_the_plain_loop(
    seed: int, widths: list[int], hidden: tuple[int, int], n_phases: int, extreme: bool
) -> None:
    part = random_intersection(seed, n_phases=n_phases, widths=widths, hidden=hidden)
    rng = np.random.default_rng(seed)
    low, high = (-32768, 32768) if extreme else (-60, 300)
    x = rng.integers(low, high, (5, part.n_inputs))
    policy = IntegerPolicy(part)
    expected = [naive_logits(part, row.tolist()) for row in x]
    assert policy.logits(x).tolist() == expected
    assert [policy.logits(row).tolist() for row in x] == expected
    assert [policy.act(row) for row in x] == [max(range(n_phases), key=lambda a: row[a]) for row in expected]
    assert policy.act_batch(x).tolist() == [policy.act(row) for row in x]


def test_a_tie_goes_to_the_lowest_action() -> None:
    part = random_intersection(3, n_phases=4)
    flat = part.layer3.model_copy(update={"weights": [[0] * part.hidden[1]] * 4, "biases": [5, 7, 7, 6]})
    assert IntegerPolicy(part.model_copy(update={"layer3": flat})).act([0] * part.n_inputs) == 1


@pytest.mark.parametrize(
    ("x", "fault"),
    [([0] * 20, "expected 21"), ([0] * 20 + [40000], "int16"), ([0.5] * 21, "integers"), ([[[0] * 21]], "expected 21")],
)
def test_wrong_inputs_are_refused(x: list, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        IntegerPolicy(random_intersection(0)).logits(x)


# --- what leaves its range ---

ALL_INT16 = np.arange(-(1 << 15), 1 << 15)
SCALES = [(0, 1, 0), (-39, 2, 0), (0, 255, 8), (5, 32767, 16), (-32768, 1, 8), (-300, 20_000, 16), (32767, 3, 1), (0, 1, 16)]


def is_beyond(x: int, offset: int, multiplier: int, shift: int) -> bool:
    """As the definition has it, one value at a time."""
    return x < offset or ((x - offset) * multiplier + ((1 << shift) >> 1)) >> shift > 255


@pytest.mark.parametrize("scale", SCALES)
def test_what_a_feature_covers_is_what_is_not_clipped(scale: tuple[int, int, int]) -> None:
    offset, multiplier, shift = scale
    feature = FeatureInput(name="f", width=1, lsb_per_unit=1, offset=offset, multiplier=multiplier, shift=shift)
    least, greatest = feature.covered
    inside = [x for x in ALL_INT16.tolist() if not is_beyond(x, *scale)]
    assert inside == list(range(least, greatest + 1))


@pytest.mark.parametrize("seed", range(4))
def test_saturation_is_told_of_every_inference(seed: int) -> None:
    part = random_intersection(seed, widths=(5, 3), hidden=(4, 3))
    scaled = {"offset": -20, "multiplier": 1, "shift": 0}
    part = part.model_copy(update={"features": [feature.model_copy(update=scaled) for feature in part.features]})
    policy, rng = IntegerPolicy(part), np.random.default_rng(seed)
    x = np.concatenate([rng.integers(-20, high, (100, 8)) for high in (0, 236, 240)])
    activations = policy.activations(x)
    saturation = policy.saturation(x, activations)
    scales = [(f.offset, f.multiplier, f.shift) for f in part.features for _ in range(f.width)]
    beyond = [any(is_beyond(value, *scale) for value, scale in zip(row, scales, strict=True)) for row in x.tolist()]
    at_limit = [255 in (*h1, *h2) for h1, h2 in zip(activations.h1.tolist(), activations.h2.tolist(), strict=True)]
    assert saturation.inputs.tolist() == beyond and saturation.units.tolist() == at_limit
    assert len(set(beyond)) == len(set(at_limit)) == 2
    for row, *expected in zip(x, beyond, at_limit, strict=True):
        assert list(policy.saturation(row, policy.activations(row))) == expected


# --- quantiser ---

FEATURES = [KeptFeature("waiting_time", 6, 1), KeptFeature("delay", 4, 256), KeptFeature("pressure", 3, 1)]


def float_weights(seed: int, hidden: tuple[int, int] = (18, 20), n_actions: int = 5) -> GroupWeights:
    rng = np.random.default_rng(seed)
    sizes = (300.0, 1.0, 20.0)  # of the feature values: weights are inversely large, so that every feature matters

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(0, 1, shape).astype(np.float32)

    return GroupWeights(
        layer1_weights=[normal(hidden[0], f.width) / np.float32(s) for f, s in zip(FEATURES, sizes, strict=True)],
        layer1_biases=[normal(hidden[0]) * np.float32(0.3) for _ in FEATURES],
        layer2_weights=normal(hidden[1], hidden[0]) / np.float32(4),
        layer2_biases=normal(hidden[1]) * np.float32(0.3),
        layer3_weights=normal(n_actions, hidden[1]) * np.float32(3) - np.float32(20),  # a large common part
        layer3_biases=normal(n_actions) - np.float32(100),
    )


def visited(seed: int, count: int = 400) -> np.ndarray:
    rng = np.random.default_rng(seed)
    waiting, delay = rng.gamma(1.0, 200.0, (count, 6)).astype(int), rng.integers(0, 257, (count, 4))
    return np.concatenate([waiting, delay, rng.integers(-30, 40, (count, 3))], axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_quantised_decisions_follow_the_float_ones(seed: int) -> None:
    """On states that it was not calibrated on, the integers mostly choose alike, and where not, it costs little."""
    weights = float_weights(seed)
    part = quantise("x", range(5), FEATURES, weights, visited(seed), Headroom())
    states = visited(seed + 1000)
    values = FloatPolicy(part).logits(states)
    chosen = IntegerPolicy(part).act_batch(states)
    rows = np.arange(len(states))
    assert (chosen == values.argmax(axis=1)).mean() > 0.95
    loss = values.max(axis=1) - values[rows, chosen]
    spread = values.max(axis=1) - values.min(axis=1)
    assert loss.mean() < 0.005 * spread.mean()


def rows_of(part: IntersectionPolicy) -> list[tuple[list[int], int]]:
    """Weights and bias of every row of every branch."""
    layers = [*zip(part.layer1.weights, part.layer1.biases, strict=True)]
    layers += [(part.layer2.weights, part.layer2.biases), (part.layer3.weights, part.layer3.biases)]
    return [row for weights, biases in layers for row in zip(weights, biases, strict=True)]


@pytest.mark.parametrize("limit", [1, 7, 31])
def test_weights_keep_their_limit(limit: int) -> None:
    part = quantise("x", range(5), FEATURES, float_weights(3), visited(3), Headroom(), Grid(weight_limit=limit))
    sizes = [max(map(abs, weights)) for weights, _ in rows_of(part)]
    assert max(sizes) == limit
    assert sizes.count(limit) >= part.hidden[0] + part.hidden[1]  # each row but those of layer 3 uses it


def quantised(grid: Grid) -> IntersectionPolicy:
    return quantise("x", range(5), FEATURES, float_weights(3), visited(3), Headroom(), grid)


def agreement(one: IntersectionPolicy, other: IntersectionPolicy) -> float:
    """On states that neither was calibrated on."""
    return float((IntegerPolicy(one).act_batch(visited(4)) == IntegerPolicy(other).act_batch(visited(4))).mean())


def test_multipliers_may_be_powers_of_two_alone() -> None:
    full, shifts = quantised(Grid()), quantised(Grid(shifts_only=True))
    assert all(m & (m - 1) == 0 for layer in (shifts.layer1, shifts.layer2) for m in layer.multipliers)
    assert any(m & (m - 1) for m in full.layer1.multipliers)
    assert agreement(full, shifts) > 0.95


def test_narrow_sums_fit_16_bits() -> None:
    wide, narrow = quantised(Grid()), quantised(Grid(narrow_sums=True))

    def reach(part: IntersectionPolicy) -> int:
        sides = [sign * bias + 255 * sum(max(sign * w, 0) for w in row) for row, bias in rows_of(part) for sign in (1, -1)]
        return max(sides)

    assert reach(narrow) <= 32_767 < reach(wide)
    layer = narrow.layer1
    for unit in range(narrow.hidden[0]):
        highs = [
            b[unit] + 255 * sum(max(w, 0) for w in rows[unit]) for rows, b in zip(layer.weights, layer.biases, strict=True)
        ]
        assert sum(max(0, high) for high in highs) <= 65_535
    assert agreement(wide, narrow) > 0.85


def test_the_floats_that_integers_stand_for_differ_by_rounding_alone() -> None:
    part = with_own_floats(quantised(Grid(15, shifts_only=True)))
    states = visited(3)
    values, logits = FloatPolicy(part).logits(states).astype(float), IntegerPolicy(part).logits(states).astype(float)
    assert np.corrcoef(values.ravel(), logits.ravel())[0, 1] > 0.999
    assert np.abs(values - logits).mean() < 0.02 * np.ptp(logits)
    assert (values.argmax(axis=1) == logits.argmax(axis=1)).mean() > 0.97


def test_logits_are_the_float_ones_up_to_scale_and_a_common_part() -> None:
    weights, states = float_weights(7), visited(7)
    part = quantise("x", range(5), FEATURES, weights, states, Headroom())
    values = FloatPolicy(part).logits(states).astype(float)
    values -= values.mean(axis=1, keepdims=True)
    logits = IntegerPolicy(part).logits(states).astype(float)
    logits -= logits.mean(axis=1, keepdims=True)
    assert np.corrcoef(values.ravel(), logits.ravel())[0, 1] > 0.999


def test_float_weights_survive_the_file_bit_for_bit() -> None:
    weights = float_weights(1)
    part = quantise("x", range(5), FEATURES, weights, visited(1), Headroom())
    assert part.float_weights is not None
    again = IntersectionPolicy.model_validate_json(part.model_dump_json()).float_weights
    assert again is not None
    assert np.array_equal(np.array(again.layer2_weights, np.float32), weights.layer2_weights)
    assert np.array_equal(np.array(again.layer1_weights[0], np.float32), weights.layer1_weights[0])


def test_a_small_range_is_scaled_without_rounding() -> None:
    part = quantise("x", range(5), FEATURES, float_weights(1), visited(1), Headroom())
    pressure = part.features[2]
    assert (pressure.offset, pressure.shift) == (-30, 0)
    assert pressure.multiplier == 255 // 69


def test_huge_biases_and_dead_units_still_give_a_valid_policy() -> None:
    """The scale grows where int8 weights would need a bias that leaves the accumulator."""
    weights = float_weights(2)
    weights.layer1_biases[0][:] = 1e6
    weights.layer2_weights[3] = 0.0
    weights.layer2_biases[3] = -1.0
    part = quantise("x", range(5), FEATURES, weights, visited(2), Headroom())  # validated on construction
    assert naive_logits(part, visited(2)[0].tolist()) == IntegerPolicy(part).logits(visited(2)[0]).tolist()
