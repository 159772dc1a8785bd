"""From the environment's observation to a policy's inputs: which numbers of obs[n] (int32[F, W], zero
padded) the policy keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from model.policy.file import IntersectionPolicy

Indices = npt.NDArray[np.int64]


def input_indices(part: IntersectionPolicy, names: Sequence[str], widths: Sequence[int], max_width: int) -> Indices:
    """int64[n_inputs]: positions in obs[n].ravel() of the kept features, in the policy's order.

    names, widths: the environment's features and this intersection's widths of them; max_width: W.
    ValueError if the policy keeps a feature that isn't there or has another width.
    """
    positions: list[int] = []
    for feature in part.features:
        if feature.name not in names:
            raise ValueError(f"the policy needs the feature {feature.name}, which is not among {', '.join(names)}")
        f = list(names).index(feature.name)
        if int(widths[f]) != feature.width:
            raise ValueError(f"{feature.name} has {int(widths[f])} numbers at {part.id}, the policy has {feature.width}")
        positions.extend(range(f * max_width, f * max_width + feature.width))
    return np.array(positions, dtype=np.int64)


def gather_inputs(observation: npt.NDArray[np.integer], indices: Indices) -> npt.NDArray[np.int64]:
    """int64[n_inputs] from one intersection's obs[n] int[F, W]; int64[B, n_inputs] from int[B, F, W]."""
    flat = observation.reshape(*observation.shape[:-2], -1)
    return flat[..., indices].astype(np.int64)
