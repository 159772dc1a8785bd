"""Many polylines as flat arrays, and as the list of points of each where one is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from streetflow.kernels.shapes import polyline_lengths
from streetflow.roadnet.reader import Point


class Polylines(Sequence[list[Point]]):
    """Polyline i has the points first[i] .. first[i + 1] - 1, at least two. ``polylines[i]`` is a new list of them.

    Attributes:
        first: int64[polylines + 1].
        x, y: float64[points], m.
    """

    def __init__(self, first: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        self.first, self.x, self.y = first, x, y

    @classmethod
    def of(cls, shapes: Iterable[Sequence[Point]]) -> Polylines:
        """From the points of each."""
        shapes = list(shapes)
        first = np.zeros(len(shapes) + 1, np.int64)
        np.cumsum([len(shape) for shape in shapes], out=first[1:])
        points = np.array([point for shape in shapes for point in shape], np.float64).reshape(-1, 2)
        return cls(first, np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1]))

    def __add__(self, other: Polylines) -> Polylines:
        """These, then the others."""
        first = np.concatenate((self.first, self.first[-1] + other.first[1:]))
        return Polylines(first, np.concatenate((self.x, other.x)), np.concatenate((self.y, other.y)))

    def __len__(self) -> int:
        return self.first.size - 1

    @overload
    def __getitem__(self, which: int) -> list[Point]: ...

    @overload
    def __getitem__(self, which: slice) -> Polylines: ...

    def __getitem__(self, which: int | slice) -> list[Point] | Polylines:
        """The points of one, or some neighbours (a slice without a step)."""
        if isinstance(which, slice):
            start, stop, _ = which.indices(len(self))
            first = self.first[start : max(start, stop) + 1]
            points = slice(first[0], first[-1])
            return Polylines(first - first[0], self.x[points], self.y[points])
        number = range(len(self))[which]  # IndexError where there is none
        points = slice(self.first[number], self.first[number + 1])
        return list(zip(self.x[points].tolist(), self.y[points].tolist(), strict=True))

    @cached_property
    def length_m(self) -> NDArray[np.float64]:
        """float64[polylines]: the sum of each one's segments, from its first point on."""
        length = np.empty(len(self))
        polyline_lengths(self.first, self.x, self.y, length)
        return length

    @cached_property
    def segment_m(self) -> NDArray[np.float64]:
        """float64[points]: the length of the segment that ends at each point; nothing of use at a polyline's first point."""
        x, y = self._differences()
        return np.sqrt(x * x + y * y)

    @cached_property
    def angle_rad(self) -> NDArray[np.float64]:
        """float64[points]: the direction of the segment that ends at each point; 0 where its length is 0."""
        x, y = self._differences()
        length = np.where(self.segment_m > 0.0, self.segment_m, 1.0)
        angles = map(math.atan2, (y / length).tolist(), (x / length).tolist())  # numpy's arctan2 may differ in the last bit
        return np.where(self.segment_m > 0.0, np.fromiter(angles, np.float64, x.size), 0.0)

    def _differences(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.diff(self.x, prepend=self.x[:1]), np.diff(self.y, prepend=self.y[:1])
