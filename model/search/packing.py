"""Features of different widths side by side in one row, without the padding of a rectangle.

An image has 144 numbers and an indicator one: padded to the widest, 37 features would be nine tenths zeros. So features of
equal width form a class, a row holds class after class, and a layer is one batched matrix product a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class WidthClass:
    """Features of one width; their numbers lie at start .. end of a packed row, feature after feature."""

    features: tuple[int, ...]
    width: int
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.features) * self.width


class Packing:
    """The layout of packed rows for features of these widths. `size` numbers a row; `starts` int64[F]: where each begins."""

    def __init__(self, widths: Sequence[int]) -> None:
        self.widths = tuple(int(width) for width in widths)
        self.classes: list[WidthClass] = []
        self.starts = np.zeros(len(self.widths), np.int64)
        start = 0
        for width in sorted(set(self.widths)):
            features = tuple(f for f, other in enumerate(self.widths) if other == width)
            self.classes.append(WidthClass(features, width, start))
            self.starts[list(features)] = start + width * np.arange(len(features))
            start = self.classes[-1].end
        self.size = start

    @lru_cache(maxsize=2)  # noqa: B019 - a handful of layouts, as long-lived as the process
    def columns(self, padded_width: int) -> npt.NDArray[np.int64]:
        """int64[size]: where each number of a packed row lies in a padded row [F * padded_width]."""
        order = [f for each in self.classes for f in each.features]
        return np.concatenate([np.arange(self.widths[f]) + f * padded_width for f in order]).astype(np.int64)

    def repeat(self, values: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """[..., size] of one value a feature [..., F]: each as often as the feature has numbers."""
        order = [f for each in self.classes for f in each.features]
        return np.repeat(values[..., order], [self.widths[f] for f in order], axis=-1)

    def pack(self, padded: npt.NDArray) -> npt.NDArray:
        """[..., size] of a padded array [..., F, W]."""
        return padded.reshape(*padded.shape[:-2], -1)[..., self.columns(padded.shape[-1])]
