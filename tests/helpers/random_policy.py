"""Random policies as files, for tests of firmware, boards and link: schema-valid, seeded, any dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from model.policy.file import Policy, save_policy
from model.policy.synthetic import random_intersection, random_policy

PAPER_WIDTHS = (12, 9)
PAPER_HIDDEN = (18, 20)
PAPER_PHASES = 9


def make_random_policy(
    seed: int = 1,
    *,
    shapes: Sequence[tuple[Sequence[int], tuple[int, int], int]] = ((PAPER_WIDTHS, PAPER_HIDDEN, PAPER_PHASES),),
    **options: Any,
) -> Policy:
    """A policy with one intersection per shape (feature widths, hidden widths, number of phases); the default is
    the paper's 12+9 -> 18 -> 20 -> 9. `options` go to `model.policy.synthetic.random_intersection`."""
    parts = [
        random_intersection(
            seed + 1000 * number,
            intersection_id=f"crossing_{number}",
            widths=widths,
            hidden=hidden,
            n_phases=n_phases,
            **options,
        )
        for number, (widths, hidden, n_phases) in enumerate(shapes)
    ]
    return random_policy(parts)


def write_random_policy(path: Path, seed: int = 1, **options: Any) -> Policy:
    """The same, saved to `path`; returns the policy."""
    policy = make_random_policy(seed, **options)
    save_policy(policy, path)
    return policy
