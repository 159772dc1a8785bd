"""What a loop's wire does."""

from __future__ import annotations

from typing import NamedTuple


class Edge(NamedTuple):
    """A loop's level changes so long after the second's beginning."""

    at_s: float
    loop: int
    level: int
