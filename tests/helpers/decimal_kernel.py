"""The kernels' `write_double` for many values at once, for comparison with Python's `repr`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streetflow.kernels.decimal_text import LONGEST_DOUBLE, powers_of_ten, write_double
from streetflow.kernels.jit import entry_point


@entry_point
def _write_all(values, powers, text, end):  # type: ignore[no-untyped-def]
    at = 0
    for i in range(values.size):
        at = write_double(text, at, values[i], powers)
        end[i] = at


def decimal_texts(values: NDArray[np.float64]) -> list[str]:
    """The text of each value, as the kernels write it."""
    text, end = np.zeros(values.size * LONGEST_DOUBLE, np.uint8), np.zeros(values.size, np.int64)
    _write_all(values, powers_of_ten(), text, end)
    whole, ends = text.tobytes().decode("ascii"), end.tolist()
    return [whole[first:last] for first, last in zip([0, *ends], ends, strict=False)]
