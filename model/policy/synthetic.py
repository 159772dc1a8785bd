"""Seeded random policies for tests and benchmarks: not trained, but of any dimensions and with weights up to
the extremes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from model.policy.file import (
    BranchLayer,
    FeatureInput,
    HiddenLayer,
    IntersectionPolicy,
    OutputLayer,
    Policy,
    Provenance,
    row_bounds,
)


def random_intersection(
    seed: int,
    *,
    intersection_id: str = "synthetic",
    n_phases: int = 8,
    widths: Sequence[int] = (12, 9),
    hidden: tuple[int, int] = (18, 20),
    bias_size: int = 4000,
    joined: bool = False,
) -> IntersectionPolicy:
    """One intersection's random integer policy; the requantisation keeps hidden activations spread over
    0..255."""
    rng = np.random.default_rng(seed)
    h1, h2 = hidden
    w1 = [rng.integers(-127, 128, (h1, width)).tolist() for width in widths]
    b1 = [rng.integers(-bias_size, bias_size + 1, h1).tolist() for _ in widths]
    w2, b2 = rng.integers(-127, 128, (h2, h1)).tolist(), rng.integers(-bias_size, bias_size + 1, h2).tolist()
    w3, b3 = (
        rng.integers(-127, 128, (n_phases, h2)).tolist(),
        rng.integers(-bias_size, bias_size + 1, n_phases).tolist(),
    )
    highs1 = np.sum([[max(0, high) for _, high, _ in row_bounds(b, w)] for b, w in zip(b1, w1, strict=True)], axis=0)
    highs2 = [max(0, high) for _, high, _ in row_bounds(b2, w2)]
    m1, sh1 = zip(*(_spread(rng, int(high)) for high in highs1), strict=True)
    m2, sh2 = zip(*(_spread(rng, high) for high in highs2), strict=True)
    features = [
        FeatureInput(
            name=f"feature_{f}",
            width=width,
            lsb_per_unit=1,
            offset=int(rng.integers(-40, 40)),
            multiplier=int(rng.integers(1, 32768)),
            shift=int(rng.integers(0, 17)),
        )
        for f, width in enumerate(widths)
    ]
    return IntersectionPolicy(
        id=intersection_id,
        phases=list(range(n_phases)),
        features=features,
        hidden=[h1, h2],
        layer1=BranchLayer(weights=w1, biases=b1, multipliers=list(m1), shifts=list(sh1), joined=joined),
        layer2=HiddenLayer(weights=w2, biases=b2, multipliers=list(m2), shifts=list(sh2)),
        layer3=OutputLayer(weights=w3, biases=b3),
    )


def random_policy(parts: Sequence[IntersectionPolicy], *, network: str = "synthetic") -> Policy:
    """A sealed policy around such intersections, with a provenance that says that nothing was trained."""
    provenance = Provenance(
        command="model.policy.synthetic.random_policy",
        tool_version="0",
        torch_version="none",
        numpy_version=np.__version__,
        network=network,
        flow=0,
        engine="none",
        engine_seed=0,
        train_seed=0,
        search_episodes=0,
        refine_episodes=0,
        roadnet_sha256="0" * 64,
        flow_sha256="0" * 64,
        feature_preset="none",
        settings={},
        notes=["random weights, for tests"],
    )
    return Policy.sealed(
        network=network,
        decision_interval_s=20,
        clearance="hold",
        provenance=provenance,
        measured=[],
        intersections=list(parts),
    )


def _spread(rng: np.random.Generator, high: int) -> tuple[int, int]:
    """(multiplier, shift) that map sums of about a quarter of `high` to 255."""
    multiplier = int(rng.integers(1, 256))
    shift = max(1, int(high * multiplier // 4 // 255).bit_length())
    return multiplier, min(shift, 31)
