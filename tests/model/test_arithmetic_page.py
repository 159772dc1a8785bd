"""docs/arithmetic.md is enough: a reference that follows it alone gives what the product does, and its example is right."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from pydantic import BaseModel, JsonValue

from model.policy import file as policy_file
from model.policy.file import IntersectionPolicy, Measured, load_policy, save_policy
from model.policy.integer import IntegerPolicy
from model.policy.synthetic import random_intersection, random_policy
from streetflow.control.features import FEATURES
from tests.helpers.arithmetic_page import PAGE, Example, Json, content_hash, decide, greatest_within, least_within, read_example
from tests.helpers.places import ROOT

PRETRAINED = sorted((ROOT / "model" / "pretrained").glob("*.json"))
INPUTS = 300  # a policy


@pytest.fixture(scope="module")
def example() -> Example:
    return read_example()


def drawn_inputs(part: IntersectionPolicy, count: int, seed: int) -> npt.NDArray[np.int64]:
    """Values within the features' ranges (few vehicles and many), at the borders of the ranges and of int16, and anywhere in
    int16; an input's values are of one kind, or mixed."""
    rng = np.random.default_rng(seed)
    columns = []
    for feature in part.features:
        least, greatest = feature.covered
        borders = np.clip([least - 1, least, greatest, greatest + 1, 32767, -32767, -32768], -32768, 32767)
        for _ in range(feature.width):
            within = rng.integers(least, greatest + 1, count)
            low = rng.integers(least, least + (greatest - least) // 8 + 1, count)
            columns.append([within, low, rng.choice(borders, count), rng.integers(-32768, 32768, count)])
    kinds = rng.choice(4, (count, 1)) + rng.choice([0, 1, 2, 3], (count, part.n_inputs)) * (rng.random((count, 1)) < 0.3)
    return np.take_along_axis(np.array(columns).transpose(2, 0, 1), kinds[..., None] % 4, axis=2)[..., 0]


def assert_equal(content: Json, part: IntersectionPolicy, count: int, seed: int) -> set[tuple[str, bool]]:
    """Returns what was met: whether inputs were beyond their range, and units at their limit."""
    x = drawn_inputs(part, count, seed)
    product = IntegerPolicy(part)
    activations = product.activations(x)
    beyond, at_limit = product.saturation(x, activations)
    actions = product.act_batch(x)
    for n, values in enumerate(x.tolist()):
        page = decide(content, values)
        assert [value for values in page.q for value in values] == activations.q[n].tolist()
        assert (page.h1, page.h2) == (activations.h1[n].tolist(), activations.h2[n].tolist())
        assert page.logits == activations.logits[n].tolist()
        assert (page.action, page.phase) == (actions[n], part.phases[actions[n]])
        assert (page.beyond, page.at_limit) == (beyond[n], at_limit[n])
    return {("beyond", each) for each in beyond.tolist()} | {("at limit", each) for each in at_limit.tolist()}


@pytest.mark.parametrize("path", PRETRAINED, ids=lambda path: path.stem)
def test_the_page_decides_as_the_product_does(path: Path) -> None:
    content, policy = json.loads(path.read_text(encoding="utf-8")), load_policy(path)
    met: set[tuple[str, bool]] = set()
    for number, part in enumerate(policy.intersections):
        met |= assert_equal(content["intersections"][number], part, INPUTS // len(policy.intersections), number)
    assert len(met) == 4, "each of the two is met, and missed"


@pytest.mark.parametrize("seed", range(12))
def test_and_with_any_weights_and_scaling(seed: int) -> None:
    part = random_intersection(seed, widths=(5, 1, 3)[: 1 + seed % 3], hidden=(6, 4), n_phases=3)
    assert_equal(part.model_dump(mode="json"), part, 100, seed)


def test_the_hash_is_that_of_the_page(tmp_path: Path) -> None:
    for path in PRETRAINED:
        content = json.loads(path.read_text(encoding="utf-8"))
        assert content_hash(content) == content["sha256"] == load_policy(path).sha256


def test_the_hash_takes_any_text_and_whole_numbers_that_are_no_integers(tmp_path: Path) -> None:
    policy = random_policy([random_intersection(1)], network='the "old" town')
    settings: dict[str, JsonValue] = {"b": 1e-5, "a": 100.0, "C": 2, "ä": 1e22}
    provenance = policy.provenance.model_copy(update={"notes": ["µ, \u2028, 😀, \x7f\n"], "settings": settings})
    numbers = {"float_average_travel_time_s": 100, "integer_average_travel_time_s": 1.5}
    rates = {"float_throughput_veh_per_min": 1e-7, "integer_throughput_veh_per_min": 0}
    measured = [Measured(flow=0, seed=1, **numbers, **rates)]
    changed = policy.model_copy(update={"provenance": provenance, "measured": measured})
    sealed = changed.model_copy(update={"sha256": changed.compute_sha256()})
    save_policy(sealed, tmp_path / "a.json")
    assert content_hash(json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))) == sealed.sha256
    assert load_policy(tmp_path / "a.json") == sealed


def test_the_example_is_what_both_compute(example: Example) -> None:
    page = decide(example.part, example.values)
    part = IntersectionPolicy.model_validate(example.part)
    product = IntegerPolicy(part)
    activations = product.activations(example.values)
    assert example.logits == page.logits == activations.logits.tolist()
    assert example.action == page.action == product.act(example.values)
    assert example.phase == page.phase == part.phases[example.action]
    assert example.ends == [greatest_within(feature) for feature in example.part["features"]]
    assert example.ends == [feature.covered[1] for feature in part.features]
    features = [feature for feature in example.part["features"] for _ in range(feature["width"])]
    within = [
        least_within(each) <= value <= greatest_within(each) for each, value in zip(features, example.values, strict=True)
    ]
    assert within == [True, False, False, True], "the second and the third value are beyond their range"
    assert [*product.saturation(np.array(example.values), activations)] == [page.beyond, page.at_limit] == [True, True]


def test_each_step_of_the_example_is_right_and_none_is_missing(example: Example) -> None:
    page = decide(example.part, example.values)
    results = {f"q[{f}][{j}]": value for f, values in enumerate(page.q) for j, value in enumerate(values)}
    for name in ("s1", "h1", "s2", "h2", "logits"):
        results |= {f"{name}[{o}]": value for o, value in enumerate(getattr(page, name))}
    assert {name: result for name, _, result in example.steps} == results
    for name, computation, result in example.steps:
        assert re.fullmatch(r"(?:min|max|[-+*>(), \d])+", computation), name
        assert eval(computation) == result, name  # only numbers, operators, min and max: see above


def test_the_example_keeps_a_minimum_green(example: Example) -> None:
    green = {"in_force": example.in_force, "minimum_green_s": example.minimum_green_s}
    kept = decide(example.part, example.values, seconds=example.seconds, **green)
    assert (kept.action, kept.phase, kept.logits) == (example.kept_action, example.kept_phase, example.logits)
    assert example.kept_action == example.in_force != example.action
    assert decide(example.part, example.values, seconds=example.minimum_green_s, **green).action == example.action


def test_the_page_names_every_field_of_the_file() -> None:
    words = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))
    words |= {"layer2_weights", "layer2_biases", "layer3_weights", "layer3_biases"}  # "and so on"
    models = [each for each in vars(policy_file).values() if isinstance(each, type) and issubclass(each, BaseModel)]
    fields = {name for model in models for name in model.model_fields}
    assert len(fields) > 40 and fields - words == set()


def test_the_page_tells_order_and_quantity_of_every_feature() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## The values of a request")[2].partition("\n## ")[0]
    named = {name.strip("._") for name in re.findall(r"`([\w.]+)`", section)}
    for name in FEATURES:
        scope, _, quantity = name.partition("_2_")
        assert scope in named, name
        stem = quantity.removesuffix("_seg_by_k")
        assert {stem, name} & named or any(stem.startswith(f"{each}_") for each in named) or stem.endswith("image"), name
