"""The compiled half of drawing a minibatch: frames of the replay become states."""

from __future__ import annotations

from streetflow.kernels.jit import entry_point


@entry_point
def gather_frames(frames, numbers, scale, out):  # type: ignore[no-untyped-def]
    """out[g, b] = frames[numbers[g, b], g] * scale[g]."""
    for g in range(numbers.shape[0]):
        for b in range(numbers.shape[1]):
            for j in range(scale.shape[1]):
                out[g, b, j] = frames[numbers[g, b], g, j] * scale[g, j]
