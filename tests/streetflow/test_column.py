"""A column of the state is read and written as the numpy array that it stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit, types
from numpy.typing import NDArray

from streetflow.kernels.column import Column, _column_uncompiled, column


@njit
def compiled(block: NDArray[Any], start: int, end: int, at: Any, by: Any) -> tuple[float, int]:
    """What the last element is, and how many there are, once `by` is added to the one at `at` and the first is 7."""
    fields = column(block, start, end)
    fields[at] += by
    fields[0] = 7
    return fields[-1], fields.size


@pytest.mark.parametrize("at", [np.int32(2), np.int64(-2), 3, -4])
@pytest.mark.parametrize(("kind", "by"), [(np.int32, 5), (np.float64, 0.25), (np.int32, np.int64(2**32 + 3))])
def test_it_is_read_and_written_as_an_array(kind: Any, by: Any, at: Any) -> None:
    mine, numpys = np.arange(10, 20, dtype=kind), np.arange(10, 20, dtype=kind)
    numpys[3:8][at] += np.array(by).astype(kind)
    numpys[3] = 7
    assert compiled(mine, 3, 8, at, by) == (numpys[7], 5)
    assert mine.tolist() == numpys.tolist()


def test_without_a_compiler_it_is_an_array() -> None:
    block = np.arange(6.0)
    fields = _column_uncompiled(block, 1, 4)
    fields[-1] = 7
    assert (fields[0], fields.size, block.tolist()) == (1, 3, [0, 1, 2, 7, 4, 5])


def test_columns_of_one_kind_are_one_type() -> None:
    """Kernels choose between two of them: the current and the next speeds, say."""
    assert Column(types.float64) == Column(types.float64) != Column(types.int32)
