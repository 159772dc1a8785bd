"""How large an intersection's sub-graph may be: weights and biases, or cycles and flash of the chip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from model.search.chip_model import chip_model, terms

Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Budget:
    """None: no limit. Cycles are of one decision, flash that of the whole firmware with the one intersection, both as predicted
    by the fitted model of the chip (`model/search/chip_model.py`) plus its largest error."""

    max_parameters: int | None = None
    max_cycles: int | None = None
    max_flash_bytes: int | None = None
    max_inputs: int | None = None  # numbers that the kept features have together: a request to the chip carries so many

    @property
    def is_free(self) -> bool:
        return self == Budget()

    def allows(self, widths: npt.ArrayLike, layer2: npt.ArrayLike, layer3: npt.ArrayLike, n_actions: npt.ArrayLike) -> Bool:
        """bool[...] for kept features of widths[..., K]; the other arguments broadcast against [...]."""
        w = np.asarray(widths)
        d2, d3, a = (np.asarray(each) for each in (layer2, layer3, n_actions))
        allowed = np.ones(np.broadcast_shapes(w.shape[:-1], d2.shape, d3.shape, a.shape), np.bool_)
        if self.max_parameters is not None:
            allowed &= parameter_count(w, d2, d3, a) <= self.max_parameters
        if self.max_inputs is not None:
            allowed &= w.sum(axis=-1) <= self.max_inputs
        if self.max_cycles is not None or self.max_flash_bytes is not None:
            chip, parts = chip_model(), terms(w, d2, d3, a)
            if self.max_cycles is not None:
                allowed &= parts @ chip.cycles * (1.0 + chip.largest_error_cycles) <= self.max_cycles
            if self.max_flash_bytes is not None:
                allowed &= parts @ chip.flash_bytes * (1.0 + chip.largest_error_flash_bytes) <= self.max_flash_bytes
        return allowed


def parameter_count(
    widths: npt.ArrayLike, layer2: npt.ArrayLike, layer3: npt.ArrayLike, n_actions: npt.ArrayLike
) -> npt.NDArray[np.int64]:
    """Weights and biases (paper, Appendix C); arguments as in `Budget.allows`."""
    inputs = (np.asarray(widths, np.int64) + 1).sum(axis=-1)
    d2, d3, a = (np.asarray(each, np.int64) for each in (layer2, layer3, n_actions))
    return np.asarray(inputs * d2 + (d2 + 1) * d3 + (d3 + 1) * a, np.int64)
