"""The cost of a sub-graph on the chip, predicted from its dimensions: the constraint of a search within a budget.

Cycles of a decision and bytes of flash are sums over the loops of the kernel, so they are linear in the numbers of inputs, rows
and products. The coefficients in `chip_model.json` are fitted to measured firmware (`python -m hil.loop.fit_chip_model`, which
also writes the largest error); they are valid for the kernel named there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
MODEL_FILE = Path(__file__).resolve().with_name("chip_model.json")
TERMS = (
    "firmware",
    "features",
    "inputs",
    "branch rows",
    "products 1",
    "rows 1",
    "products 2",
    "rows 2",
    "products 3",
    "rows 3",
)


def terms(widths: npt.ArrayLike, layer2: npt.ArrayLike, layer3: npt.ArrayLike, n_actions: npt.ArrayLike) -> Float64:
    """float64[..., len(TERMS)] for kept features of widths[..., K]; the other arguments broadcast against [...]."""
    w = np.asarray(widths, np.float64)
    inputs, count = w.sum(axis=-1), np.float64(w.shape[-1])
    h1, h2, a = (np.asarray(each, np.float64) for each in (layer2, layer3, n_actions))
    parts = np.broadcast_arrays(1.0, count, inputs, count * h1, inputs * h1, h1, h1 * h2, h2, h2 * a, a)
    return np.stack(parts, axis=-1)


@dataclass(frozen=True)
class ChipModel:
    """Coefficients by term, and how far they were off where they were fitted."""

    kernel: str
    cycles: Float64  # [len(TERMS)]
    flash_bytes: Float64  # whole firmware with one intersection
    largest_error_cycles: float  # a share
    largest_error_flash_bytes: float  # a share


@cache
def chip_model() -> ChipModel:
    content = json.loads(MODEL_FILE.read_text(encoding="utf-8"))
    by_term = {name: np.array([content[name][term] for term in TERMS]) for name in ("cycles", "flash_bytes")}
    errors = content["largest_error"]
    return ChipModel(content["kernel"], by_term["cycles"], by_term["flash_bytes"], errors["cycles"], errors["flash_bytes"])
