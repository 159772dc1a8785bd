"""Fits `model/search/chip_model.json` to the firmware as it is: builds it with policies of many dimensions and runs each.

A budget of cycles must hold for any weights and inputs. So each policy is the costliest of its dimensions: no activation is 0
or saturates, which would save time, and none has the kernel's usual scale.

python -m hil.loop.fit_chip_model"""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hil.boards import open_board
from hil.build.firmware import build_firmware
from hil.build.footprint import measure
from hil.wire.link import Link
from model.policy.file import INPUT_MAX, IntersectionPolicy, row_bounds, save_policy
from model.policy.synthetic import random_intersection, random_policy
from model.search.chip_model import MODEL_FILE, TERMS, terms
from streetflow.files import write_whole

F_CPU_HZ, BAUD, KERNEL = 16_000_000, 115_200, "table"
INPUTS_TRIED = 25
SHAPES = 36


class Shape(NamedTuple):
    widths: tuple[int, ...]
    layer2: int
    layer3: int
    n_actions: int


def drawn_shapes(count: int, seed: int = 0) -> list[Shape]:
    """Dimensions across everything that a search can end in, and beyond."""
    rng = np.random.default_rng(seed)
    shapes = []
    for _ in range(count):
        widths = tuple(int(each) for each in rng.choice([1, 2, 4, 8, 9, 12, 16, 24], rng.integers(1, 4)))
        layer2, layer3, n_actions = (int(rng.integers(low, high)) for low, high in ((6, 25), (6, 25), (2, 10)))
        shapes.append(Shape(widths, layer2, layer3, n_actions))
    return shapes


def costliest(shape: Shape) -> IntersectionPolicy:
    """Positive weights and biases, and scales with which no sum gives more than 255."""
    rng = np.random.default_rng(1)
    drawn = random_intersection(1, n_phases=shape.n_actions, widths=shape.widths, hidden=(shape.layer2, shape.layer3))
    part = drawn.model_dump()
    for feature in part["features"]:
        feature.update(offset=0, multiplier=255, shift=8)
    layers = part["layer1"], part["layer2"], part["layer3"]
    for layer in layers:
        layer["weights"], layer["biases"] = _positive(layer["weights"]), _positive(layer["biases"])
    for layer, branches in (
        (layers[0], list(zip(layers[0]["biases"], layers[0]["weights"], strict=True))),
        (layers[1], [(layers[1]["biases"], layers[1]["weights"])]),
    ):
        highs = np.sum([[high for _, high, _ in row_bounds(biases, weights)] for biases, weights in branches], axis=0)
        layer["multipliers"] = rng.integers(128, 256, len(highs)).tolist()
        layer["shifts"] = [(int(h) * m // INPUT_MAX).bit_length() for h, m in zip(highs, layer["multipliers"], strict=True)]
    return IntersectionPolicy(**part)


def _positive(numbers: Any) -> Any:
    return [_positive(each) for each in numbers] if isinstance(numbers, list) else max(1, abs(numbers))


def measured(shape: Shape, folder: Path) -> tuple[int, int]:
    """(most cycles of a decision over some drawn inputs, bytes of flash of the whole firmware), of the costliest policy."""
    policy = random_policy([costliest(shape)])
    save_policy(policy, folder / "policy.json")
    firmware = build_firmware(folder / "policy.json", f_cpu_hz=F_CPU_HZ, baud=BAUD, kernel=KERNEL)
    rng = np.random.default_rng(0)
    with open_board("simavr", firmware, f_cpu_hz=F_CPU_HZ, baud=BAUD) as board:
        link = Link(board)
        link.hello(policy.sha256)
        states = rng.integers(1, INPUT_MAX, (INPUTS_TRIED, sum(shape.widths))).tolist()
        cycles = max(link.decide(0, state, logits=False).compute_cycles for state in states)
    return cycles, measure(firmware).flash_bytes


def fit(shapes: Sequence[Shape]) -> dict[str, object]:
    """The content of the model's file."""
    with tempfile.TemporaryDirectory() as folder:
        figures = np.array([measured(shape, Path(folder)) for shape in shapes], np.float64)
    rows = np.array([terms(shape.widths, shape.layer2, shape.layer3, shape.n_actions) for shape in shapes])
    content: dict[str, object] = {
        "kernel": f"kernel {KERNEL}, the costliest policies of {len(shapes)} shapes, {F_CPU_HZ // 1_000_000} MHz"
    }
    errors = {}
    for column, name in enumerate(("cycles", "flash_bytes")):
        weights = 1.0 / figures[:, column]  # relative errors count
        coefficients = least_squares(rows * weights[:, None], np.ones(len(shapes)))
        content[name] = {term: round(float(each), 4) for term, each in zip(TERMS, coefficients, strict=True)}
        errors[name] = round(float(np.abs(rows @ coefficients * weights - 1.0).max()), 5)
    return content | {"largest_error": errors}


def least_squares(matrix: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The coefficients of least squared error among those that aren't negative: no loop of the kernel gives time back."""
    scale = np.linalg.norm(matrix, axis=0)
    products, right = (matrix / scale).T @ (matrix / scale), (matrix / scale).T @ values
    solution = np.zeros(len(right))
    for _ in range(100_000):  # coordinate by coordinate
        before = solution.copy()
        for k in range(len(solution)):
            solution[k] = max(0.0, solution[k] + right[k] - products[k] @ solution)
        if np.abs(solution - before).max() < 1e-12:
            break
    return np.asarray(solution / scale)


def main() -> None:
    content = fit(drawn_shapes(SHAPES))
    write_whole(MODEL_FILE, json.dumps(content, indent=1) + "\n")
    sys.stdout.write(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
