"""Indices that are known not to be negative.

numba gives a negative index numpy's meaning (from the end), which costs three instructions an access unless the
compiler sees that the index can't be negative. It sees that of a counter, not of a number read from a table.
"""

from __future__ import annotations

from streetflow.kernels.jit import helper
from streetflow.kernels.tables import KIND_SIZE, State

_LARGEST = 2147483647


@helper
def index(number):  # type: ignore[no-untyped-def]
    """The number itself, which must be 0 or more."""
    return number & _LARGEST


@helper
def kind_at(s: State, v: int) -> int:
    """Where the parameters of vehicle v's kind start in kinds."""
    return (s.kind[v] & _LARGEST) * KIND_SIZE
