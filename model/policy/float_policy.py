"""The sub-graph as trained, in numpy float32, from the policy file's `float_weights`: the reference that the
integers are measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from model.policy.file import IntersectionPolicy

Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class GroupWeights:
    """One intersection's sub-graph, float32, rows = outputs; it acts on feature values, i.e. integer /
    lsb_per_unit."""

    layer1_weights: list[Float32]  # per kept feature [H1, width]
    layer1_biases: list[Float32]  # per kept feature [H1]
    layer2_weights: Float32  # [H2, H1]
    layer2_biases: Float32  # [H2]
    layer3_weights: Float32  # [A, H2]
    layer3_biases: Float32  # [A]
    joined: bool = False  # layer 1 has one ReLU of all features' sum, instead of one of each


class FloatPolicy:
    """One intersection's policy in float32, with `IntegerPolicy`'s interface: x is int[n_inputs] or int[B,
    n_inputs], unscaled."""

    def __init__(self, part: IntersectionPolicy) -> None:
        """ValueError if the policy file carries no float weights."""
        floats = part.float_weights
        if floats is None:
            raise ValueError(f"the policy of {part.id} holds no float weights")
        widths = [feature.width for feature in part.features]
        self.n_inputs = part.n_inputs
        self.n_actions = len(part.phases)
        self._lsb_per_unit = np.repeat([feature.lsb_per_unit for feature in part.features], widths).astype(np.float32)
        ends = np.cumsum(widths)
        self._slices = [slice(int(end - width), int(end)) for end, width in zip(ends, widths, strict=True)]
        self._joined = part.layer1.joined
        self._w1 = [np.array(branch, dtype=np.float32) for branch in floats.layer1_weights]
        self._b1 = [np.array(branch, dtype=np.float32) for branch in floats.layer1_biases]
        self._w2, self._b2 = (
            np.array(floats.layer2_weights, np.float32),
            np.array(floats.layer2_biases, np.float32),
        )
        self._w3, self._b3 = (
            np.array(floats.layer3_weights, np.float32),
            np.array(floats.layer3_biases, np.float32),
        )

    def logits(self, x: npt.ArrayLike) -> Float32:
        """float32[A] (or [B, A]): the expected return of each action."""
        values = np.asarray(x, dtype=np.float32)
        if values.ndim not in (1, 2) or values.shape[-1] != self.n_inputs:
            raise ValueError(f"expected {self.n_inputs} feature values, got shape {values.shape}")
        values = values / self._lsb_per_unit
        h1 = np.zeros((*values.shape[:-1], self._w2.shape[1]), dtype=np.float32)
        for columns, weights, biases in zip(self._slices, self._w1, self._b1, strict=True):
            sums = values[..., columns] @ weights.T + biases
            h1 += sums if self._joined else np.maximum(sums, 0)
        h1 = np.maximum(h1, 0)
        h2 = np.maximum(h1 @ self._w2.T + self._b2, 0)
        return np.asarray(h2 @ self._w3.T + self._b3, dtype=np.float32)

    def act(self, x: npt.ArrayLike) -> int:
        """The action for x int[n_inputs]: the lowest index of the greatest logit."""
        return int(np.argmax(self.logits(x)))

    def act_batch(self, x: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The actions int64[B] for x int[B, n_inputs]."""
        return np.argmax(self.logits(x), axis=-1)
