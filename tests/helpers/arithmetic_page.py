"""A second reference beside `model/policy/integer.py`: it follows docs/arithmetic.md alone, and imports nothing of the product.

It works on the policy file's own JSON, one number at a time, and names everything as the page does. Where the two differ,
the page, this or the product is wrong. Also what the page's example says, for tests to recompute.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NamedTuple

from tests.helpers.places import ROOT

Json = dict[str, Any]

PAGE = ROOT / "docs" / "arithmetic.md"


class Decision(NamedTuple):
    """All that the page computes for one request."""

    q: list[list[int]]  # [f][j]
    s1: list[int]
    h1: list[int]
    s2: list[int]
    h2: list[int]
    logits: list[int]
    action: int
    phase: int
    beyond: bool
    at_limit: bool


def decide(part: Json, x: list[int], *, in_force: int = 0, seconds: int = 255, minimum_green_s: int = 0) -> Decision:
    """The decision of an intersection, as the policy file has it, on a request's values (and, if told, the light's state)."""
    branches = _features_values(part, x)
    features = list(zip(part["features"], branches, strict=True))
    q = [[_scaled(feature, value) for value in values] for feature, values in features]
    layer1, layer2, layer3 = part["layer1"], part["layer2"], part["layer3"]
    s1 = [0] * part["hidden"][0]
    for f, inputs in enumerate(q):
        for o, total in enumerate(_sums(layer1["weights"][f], layer1["biases"][f], inputs)):
            s1[o] += total if layer1.get("joined") else max(0, total)
    s1 = [max(0, total) for total in s1]
    h1 = _requantised(layer1, s1)
    s2 = [max(0, total) for total in _sums(layer2["weights"], layer2["biases"], h1)]
    h2 = _requantised(layer2, s2)
    logits = _sums(layer3["weights"], layer3["biases"], h2)
    action = logits.index(max(logits))
    if seconds < minimum_green_s:
        action = in_force
    beyond = any(
        not least_within(feature) <= value <= greatest_within(feature) for feature, values in features for value in values
    )
    return Decision(q, s1, h1, s2, h2, logits, action, part["phases"][action], beyond, 255 in h1 or 255 in h2)


def _features_values(part: Json, x: list[int]) -> list[list[int]]:
    left = iter(x)
    values = [[next(left) for _ in range(feature["width"])] for feature in part["features"]]
    assert next(left, None) is None, "more values than inputs"
    return values


def _half(shift: int) -> int:
    return 0 if shift == 0 else 1 << (shift - 1)


def _scaled(feature: Json, value: int) -> int:
    return min(255, (max(0, value - feature["offset"]) * feature["multiplier"] + _half(feature["shift"])) >> feature["shift"])


def _sums(weights: list[list[int]], biases: list[int], inputs: list[int]) -> list[int]:
    products = [sum(weight * value for weight, value in zip(row, inputs, strict=True)) for row in weights]
    return [bias + total for bias, total in zip(biases, products, strict=True)]


def _requantised(layer: Json, sums: list[int]) -> list[int]:
    rows = zip(sums, layer["multipliers"], layer["shifts"], strict=True)
    return [min(255, (s * multiplier + _half(shift)) >> shift) for s, multiplier, shift in rows]


def least_within(feature: Json) -> int:
    """The least value that isn't beyond a feature's range."""
    return int(feature["offset"])


def greatest_within(feature: Json) -> int:
    """The greatest value that isn't beyond a feature's range."""
    top = (256 << feature["shift"]) - 1 - _half(feature["shift"])
    return min(32767, int(feature["offset"] + top // feature["multiplier"]))


def content_hash(policy: Json) -> str:
    """What a policy file's `sha256` must be."""
    content = {key: value for key, value in policy.items() if key != "sha256"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


class Example(NamedTuple):
    """The example at the page's end."""

    part: Json  # an intersection, as a policy file has it
    values: list[int]
    logits: list[int]
    action: int
    phase: int
    ends: list[int]  # of each feature: the greatest value within its range
    minimum_green_s: int
    in_force: int
    seconds: int
    kept_action: int
    kept_phase: int
    steps: list[tuple[str, str, int]]  # (name, computation, result)


def read_example() -> Example:
    section = PAGE.read_text(encoding="utf-8").partition("## An example")[2]
    _, part, prose, steps, _ = re.split(r"```(?:json)?\n", section)
    text = " ".join(prose.split())
    values, logits, action, phase = _match(r"`x` = ([-\d, ]+) the logits are ([-\d, ]+): action (\d+), phase (\d+)\.", text)
    ends = _match(r"end at (\d+) in feature a and at (\d+) in b\.", text)
    green = _match(
        r"minimum green of (\d+) s, and action (\d+) in force for (\d+) s, the answer is action (\d+), phase (\d+)\.", text
    )
    lines = [re.fullmatch(r"(\S+) += (.+?) += (-?\d+)(?: {3,}.*)?", line) for line in steps.splitlines()]
    found = [(line[1], line[2], int(line[3])) for line in lines if line is not None]
    assert len(found) == len(lines), "a line of the example that isn't NAME = COMPUTATION = RESULT"
    return Example(
        json.loads(part),
        [int(each) for each in values.split(",")],
        [int(each) for each in logits.split(",")],
        int(action),
        int(phase),
        [int(each) for each in ends],
        *(int(each) for each in green),
        found,
    )


def _match(pattern: str, text: str) -> tuple[str, ...]:
    found = re.search(pattern, text)
    assert found is not None, f"the example doesn't say: {pattern}"
    return found.groups()
