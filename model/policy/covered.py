"""What the integers of a policy's inputs cover, in each feature's unit."""

from __future__ import annotations

from dataclasses import dataclass

from model.policy.file import Policy
from streetflow.control.features import find_feature
from streetflow.errors import InputError


@dataclass(frozen=True)
class CoveredRange:
    """One feature as some intersections scale it: values from `least` to `greatest`, in its unit, aren't clipped."""

    feature: str
    unit: str  # "" for a feature that only the policy knows
    least: float
    greatest: float
    intersections: tuple[str, ...]  # ids


def covered_ranges(policy: Policy) -> list[CoveredRange]:
    """One row for each feature and range, features in order of appearance, the narrowest range first."""
    found: dict[str, dict[tuple[float, float], list[str]]] = {}
    for part in policy.intersections:
        for feature in part.features:
            least, greatest = (limit / feature.lsb_per_unit for limit in feature.covered)
            found.setdefault(feature.name, {}).setdefault((least, greatest), []).append(part.id)
    return [
        CoveredRange(name, _unit(name), *limits, tuple(ranges[limits]))
        for name, ranges in found.items()
        for limits in sorted(ranges, key=lambda limits: limits[1] - limits[0])
    ]


def _unit(name: str) -> str:
    try:
        return find_feature(name).unit
    except InputError:
        return ""
