"""Random policies that keep named features of a crossing, of any dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from model.policy.file import save_policy
from model.policy.synthetic import random_intersection, random_policy


def policy_of_features(
    document: dict[str, Any], names: Sequence[str], folder: Path, hidden: tuple[int, int] = (18, 20), seed: int = 1
) -> Path:
    """A policy file for the crossing of a light's document. Widths of features unknown there are 3."""
    actions, known = len(document["phases"]), document["sensing"]["features"]
    widths = []
    for name in names:
        source = known[name]["source"] if name in known else ""
        widths.append({"vehicles": len(known[name]["cells"]) if source else 0, "action": actions, "": 3}.get(source, 1))
    part = random_intersection(seed, intersection_id=document["intersection"], n_phases=actions, widths=widths, hidden=hidden)
    features = [each.model_copy(update={"name": name}) for each, name in zip(part.features, names, strict=True)]
    part = part.model_copy(update={"features": features, "phases": document["phase_numbers"]})
    file = folder / "policy.json"
    save_policy(random_policy([part]), file)
    return file
