"""The policy file as the firmware needs it: read, and checked for what the generated data and code rely on."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MAX_PAYLOAD_BYTES = 200  # of any frame (docs/protocol.md)
HELLO_REPLY_BYTES = 55
LIGHT_HELLO_BYTES = 64  # in modes light and alone
DECIDE_REQUEST_BYTES = 4  # beside the values: flags, count, and the light's state
LOGIT_BYTES = 3
INPUT_MAX = 255  # activations are uint8
INT16_MAX = (1 << 15) - 1
SUM_LIMIT = 1 << 23  # every sum fits 24-bit two's complement
PRODUCT_LIMIT = 1 << 32  # sum * multiplier + half fits 32 bits
COUNT_LIMIT = 255  # the kernels count in bytes

JsonObject = dict[str, Any]


class PolicyError(ValueError):
    """A policy file that can't become firmware; the message names the place and the fault."""


def _require_own_model() -> None:
    """PolicyError where Python finds a user's own module in place of the package `model`; that module isn't run."""
    spec = None if "model" in sys.modules else find_spec("model")
    if spec is not None and not any((Path(folder) / "policy").is_dir() for folder in spec.submodule_search_locations or ()):
        raise PolicyError(f"can't be checked: {spec.origin} is found in place of tinylight-hil's package 'model': rename it")


def read_policy(path: Path, is_checked: bool = False) -> JsonObject:
    """The policy file's content, checked for what the generated C relies on, and before that by model.policy.file: unless that
    has been done (`is_checked`) or it can't be imported, as in a PlatformIO outside our environment. PolicyError otherwise."""
    if not is_checked:
        _check_by_model(path)
    try:
        policy = json.loads(path.read_text(encoding="utf-8"))
        check(policy)
    except OSError as error:
        raise PolicyError(f"can't be read: {error.strerror or error}") from None
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise PolicyError(f"not a policy file ({type(error).__name__}: {error})") from None
    except json.JSONDecodeError as error:
        raise PolicyError(f"not JSON: {error}") from None
    return policy


def _check_by_model(path: Path) -> None:
    _require_own_model()
    try:
        from model.policy.file import load_policy
    except ImportError:
        return
    try:
        load_policy(path)
    except ValueError as error:  # InputError: FILE: PLACE: FAULT
        raise PolicyError(str(error).removeprefix(f"{path}: ")) from None


def check(policy: JsonObject) -> None:
    """PolicyError unless the firmware can hold the policy and compute it exactly."""
    content = {key: value for key, value in policy.items() if key != "sha256"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    if hashlib.sha256(canonical.encode()).hexdigest() != policy["sha256"]:
        raise PolicyError("sha256: not the hash of the content")
    if not 1 <= len(policy["intersections"]) <= COUNT_LIMIT:
        raise PolicyError(f"intersections: {len(policy['intersections'])}, the firmware holds 1 to {COUNT_LIMIT}")
    for number, part in enumerate(policy["intersections"]):
        _check_intersection(part, f"intersections[{number}]")
    if max_payload(policy) > MAX_PAYLOAD_BYTES:
        raise PolicyError(
            f"intersections: a request or reply of {max_payload(policy)} bytes, a frame carries {MAX_PAYLOAD_BYTES}"
            " (at most 98 feature values and 66 phases)"
        )


def _check_intersection(part: JsonObject, place: str) -> None:
    widths = [feature["width"] for feature in part["features"]]
    h1, h2 = part["hidden"]
    for name, value in (("features", len(widths)), ("hidden[0]", h1), ("hidden[1]", h2), ("phases", len(part["phases"]))):
        if not 1 <= value <= COUNT_LIMIT:
            raise PolicyError(f"{place}.{name}: {value}, the firmware takes 1 to {COUNT_LIMIT}")
    layer1, layer2, layer3 = part["layer1"], part["layer2"], part["layer3"]
    if len(layer1["weights"]) != len(widths):
        raise PolicyError(f"{place}.layer1.weights: {len(layer1['weights'])} branches, expected {len(widths)}")
    sums = [0] * h1
    for f, width in enumerate(widths):
        highs = _check_rows(layer1["weights"][f], layer1["biases"][f], h1, width, f"{place}.layer1.weights[{f}]")
        sums = [total + max(0, high) for total, high in zip(sums, highs, strict=True)]
    if is_joined(part):
        _check_joined(layer1, place)
    _check_requantisation(layer1, sums, f"{place}.layer1")
    highs = _check_rows(layer2["weights"], layer2["biases"], h2, h1, f"{place}.layer2.weights")
    _check_requantisation(layer2, highs, f"{place}.layer2")
    _check_rows(layer3["weights"], layer3["biases"], len(part["phases"]), h2, f"{place}.layer3.weights")


def _check_rows(weights: Sequence[Sequence[int]], biases: Sequence[int], height: int, width: int, place: str) -> list[int]:
    """The greatest sum of each row; PolicyError on wrong dimensions or a sum that could leave 24 bits."""
    if len(weights) != height or len(biases) != height or any(len(row) != width for row in weights):
        raise PolicyError(f"{place}: not {height} rows of {width} weights with a bias each")
    highs = []
    for row, bias in zip(weights, biases, strict=True):
        if any(not -127 <= w <= 127 for w in row):
            raise PolicyError(f"{place}: a weight outside -127..127")
        if abs(bias) + 255 * sum(abs(w) for w in row) >= SUM_LIMIT:
            raise PolicyError(f"{place}: a sum could leave 24 bits")
        highs.append(bias + 255 * sum(w for w in row if w > 0))
    return highs


def _check_joined(layer: JsonObject, place: str) -> None:
    """PolicyError if a partial sum over all branches could leave 24 bits."""
    for row, biases in enumerate(zip(*layer["biases"], strict=True)):
        weights = [w for rows in layer["weights"] for w in rows[row]]
        if sum(map(abs, biases)) + INPUT_MAX * sum(map(abs, weights)) >= SUM_LIMIT:
            raise PolicyError(f"{place}.layer1: row {row}'s sum over all features could leave 24 bits")


def _check_requantisation(layer: JsonObject, highs: list[int], place: str) -> None:
    rows = list(zip(layer["multipliers"], layer["shifts"], strict=False))
    if len(rows) != len(highs) or len(layer["shifts"]) != len(layer["multipliers"]):
        raise PolicyError(f"{place}: not {len(highs)} multipliers and shifts")
    for (multiplier, shift), high in zip(rows, highs, strict=True):
        if not (1 <= multiplier <= 255 and 1 <= shift <= 31):
            raise PolicyError(f"{place}: multiplier {multiplier} or shift {shift} out of range")
        if high >= SUM_LIMIT or high * multiplier + (1 << (shift - 1)) >= PRODUCT_LIMIT:
            raise PolicyError(f"{place}: a sum of {high} can't be requantised in 32 bits")


def is_joined(part: JsonObject) -> bool:
    """Whether layer 1 has one ReLU of all branches' sum, instead of one of each."""
    return bool(part["layer1"].get("joined", False)) and len(part["features"]) > 1


def n_inputs(part: JsonObject) -> int:
    """Feature values that a request for this intersection carries."""
    return sum(feature["width"] for feature in part["features"])


def span(feature: JsonObject) -> int:
    """How far above the feature's offset its values may lie; what is further away, or below the offset, is beyond its range."""
    half = (1 << feature["shift"]) >> 1
    greatest = (((INPUT_MAX + 1) << feature["shift"]) - 1 - half) // feature["multiplier"]
    return min(greatest, INT16_MAX - feature["offset"])


def max_payload(policy: JsonObject) -> int:
    """Longest payload of any frame in bytes (docs/protocol.md, "Frame")."""
    parts = policy["intersections"]
    requests = [DECIDE_REQUEST_BYTES + 2 * n_inputs(part) for part in parts]
    replies = [LOGIT_BYTES * len(part["phases"]) for part in parts]
    return max(HELLO_REPLY_BYTES, *requests, *replies)


def dimensions(policy: JsonObject, least_payload: int = HELLO_REPLY_BYTES) -> dict[str, int]:
    """The widest of all intersections, as constants of policy_dimensions.h; frames carry at least `least_payload` bytes."""
    parts = policy["intersections"]
    return {
        "POLICY_INTERSECTIONS": len(parts),
        "POLICY_FEATURES_MAX": max(len(part["features"]) for part in parts),
        "POLICY_WIDTH_MAX": max(feature["width"] for part in parts for feature in part["features"]),
        "POLICY_INPUTS_MAX": max(n_inputs(part) for part in parts),
        "POLICY_HIDDEN1_MAX": max(part["hidden"][0] for part in parts),
        "POLICY_HIDDEN2_MAX": max(part["hidden"][1] for part in parts),
        "POLICY_ACTIONS_MAX": max(len(part["phases"]) for part in parts),
        "POLICY_ROWS_MAX": max(max(*part["hidden"], len(part["phases"])) for part in parts),
        "POLICY_MAX_PAYLOAD": max(max_payload(policy), least_payload),
    }


def flip_weight(policy: JsonObject, number: int) -> None:
    """Flips bit 6 of weight + 128, the weight being number `number` of the first intersection's layer 3, row by row: what
    one flipped bit in flash would do."""
    rows = policy["intersections"][0]["layer3"]["weights"]
    row, column = divmod(number, len(rows[0]))
    rows[row][column] = (rows[row][column] + 128 ^ 0x40) - 128
