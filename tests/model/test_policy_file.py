"""The policy file: what is written is read back, and everything that the chip could not compute exactly is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.policy.file import Policy, load_policy, row_bounds, save_policy
from model.policy.synthetic import random_intersection, random_policy
from streetflow.errors import InputError

Content = dict[str, Any]


@pytest.fixture
def policy() -> Policy:
    return random_policy([random_intersection(seed, intersection_id=f"crossing_{seed}") for seed in (1, 2)])


def resealed(content: Content) -> Content:
    """The same document with the hash of its present content: what is left to refuse is then the content itself."""
    unsealed = {name: value for name, value in content.items() if name != "sha256"}
    canonical = json.dumps(unsealed, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return {**unsealed, "sha256": hashlib.sha256(canonical.encode()).hexdigest()}


def test_written_and_read_back_is_equal_and_byte_stable(policy: Policy, tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    save_policy(policy, first)
    again = load_policy(first)
    save_policy(again, second)
    assert again == policy
    assert first.read_bytes() == second.read_bytes()
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".tmp"] == []


def test_the_hash_is_over_the_canonical_json_of_the_file(policy: Policy, tmp_path: Path) -> None:
    save_policy(policy, tmp_path / "a.json")
    content = json.loads((tmp_path / "a.json").read_text())
    assert resealed(content)["sha256"] == content["sha256"] == policy.sha256


def test_parameters_are_counted_as_in_appendix_c() -> None:
    part = random_intersection(0, n_phases=9, widths=(12, 10), hidden=(18, 20))
    assert part.n_parameters == 1001  # the paper's total: it counts the 9-wide feature as 10 wide


def test_a_policy_changed_after_sealing_is_not_written(policy: Policy, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sha256"):
        save_policy(policy.model_copy(update={"network": "other"}), tmp_path / "a.json")


def _weight(content: Content) -> list[Any]:
    return content["intersections"][0]["layer1"]["weights"][0][0]


def _set(path: str, value: Any) -> Callable[[Content], None]:
    """Sets intersections[0].PATH to value."""

    def change(content: Content) -> None:
        *steps, last = path.split(".")
        part = content["intersections"][0]
        for step in steps:
            part = part[int(step)] if step.isdigit() else part[step]
        part[int(last) if last.isdigit() else last] = value

    return change


@pytest.mark.parametrize(
    ("change", "place", "fault"),
    [
        (lambda c: _weight(c).__setitem__(0, 128), "intersections[0].layer1.weights[0][0][0]", "127"),
        (lambda c: _weight(c).__setitem__(0, 1.5), "intersections[0].layer1.weights[0][0][0]", "integer"),
        (lambda c: _weight(c).__setitem__(0, True), "intersections[0].layer1.weights[0][0][0]", "integer"),
        (lambda c: _weight(c).pop(), "intersections[0]", "layer1.weights[0][0]: 11 entries, expected 12"),
        (lambda c: _weight(c).append(1), "intersections[0]", "layer1.weights[0][0]: 13 entries, expected 12"),
        (_set("hidden", [18, 21]), "intersections[0]", "layer2.weights: 20 entries, expected 21"),
        (_set("hidden", [18]), "intersections[0].hidden", "2 items"),
        (_set("phases", [0, 1]), "intersections[0]", "layer3.weights: 8 entries, expected 2"),
        (_set("phases", []), "intersections[0].phases", "1 item"),
        (_set("layer2.shifts.3", 0), "intersections[0].layer2.shifts[3]", "greater than or equal to 1"),
        (_set("layer2.multipliers.3", 256), "intersections[0].layer2.multipliers[3]", "255"),
        (_set("features.0.multiplier", 32768), "intersections[0].features[0].multiplier", "32767"),
        (_set("features.0.shift", 17), "intersections[0].features[0].shift", "16"),
        (_set("features.0.offset", -32769), "intersections[0].features[0].offset", "-32768"),
        (_set("layer2.biases.4", 1 << 23), "intersections[0]", "layer2.weights[4]: sums can reach"),
        (_set("layer3.biases.4", -(1 << 23)), "intersections[0]", "layer3.weights[4]: sums can reach"),
        (_set("layer1.biases.1.2", (1 << 22) + (1 << 21)), None, None),  # alone within bounds
        (lambda c: c.pop("provenance"), "provenance", "required"),
        (lambda c: c.update(unknown=1), "unknown", "Extra"),
        (lambda c: c.update(format="other"), "format", "not a policy file"),
        (lambda c: c.update(version=2), "version", "reads version 1"),
        (lambda c: c.update(clearance="blink"), "clearance", "hold"),
        (lambda c: c.update(intersections=[]), "intersections", "1 item"),
    ],
)
def test_faulty_content_is_refused_with_its_place(
    policy: Policy, tmp_path: Path, change: Callable[[Content], None], place: str | None, fault: str | None
) -> None:
    file = tmp_path / "policy.json"
    content = json.loads(policy.model_dump_json())
    change(content)
    file.write_text(json.dumps(resealed(content)))
    if place is None:
        load_policy(file)
        return
    with pytest.raises(InputError) as caught:
        load_policy(file)
    assert str(caught.value).startswith(f"{file}: {place}: ")
    assert str(fault) in str(caught.value)


def test_the_sum_of_two_branches_must_fit_too(policy: Policy, tmp_path: Path) -> None:
    """Each branch of a row stays below 2^23, their sum does not."""
    file = tmp_path / "policy.json"
    content = json.loads(policy.model_dump_json())
    for branch in content["intersections"][0]["layer1"]["biases"]:
        branch[2] = (1 << 22) + (1 << 21)
    file.write_text(json.dumps(resealed(content)))
    with pytest.raises(InputError, match="layer1: row 2 can reach"):
        load_policy(file)


def test_one_changed_weight_breaks_the_hash(policy: Policy, tmp_path: Path) -> None:
    content = json.loads(policy.model_dump_json())
    _weight(content)[0] = 1 if _weight(content)[0] != 1 else 2
    (tmp_path / "policy.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="sha256: content has hash"):
        load_policy(tmp_path / "policy.json")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (None, "there is no such file"),
        (b"", "not JSON"),
        (b'{"format": "tinylight-policy", ', "not JSON"),
        (b"[1, 2]", "not a policy file"),
        (b"\xff\xfe", "isn't UTF-8"),
        (b'{"version": 1' + b"0" * 5000 + b"}", "not JSON: a number is too large"),
        (b'{"version": 1e999}', "not JSON: a number is too large"),
        (b'{"version": NaN}', "not JSON: NaN is not a JSON number"),
        (b'{"version": 1, "version": 1}', "an object holds the key 'version' twice"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_policy_file(tmp_path: Path, data: bytes | None, fault: str) -> None:
    file = tmp_path / "policy.json"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(InputError, match=fault):
        load_policy(file)


def test_row_bounds_are_reached_by_the_worst_inputs() -> None:
    biases, weights = [10, -7], [[1, -2, 3], [-4, 5, 0]]
    sums = {
        row: [bias + w[0] * a + w[1] * b + w[2] * c for a in (0, 255) for b in (0, 255) for c in (0, 255)]
        for row, (bias, w) in enumerate(zip(biases, weights, strict=True))
    }
    for row, (low, high, reach) in enumerate(row_bounds(biases, weights)):
        assert (low, high) == (min(sums[row]), max(sums[row]))
        assert reach >= max(abs(low), abs(high))
