"""Converts the arguments of an engine's methods: they accept and refuse the same values as CityFlow's binding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real


def road_names(roads: Sequence[str]) -> list[str]:
    """A list of road ids. TypeError for a single string, which is a sequence of strings as well."""
    if isinstance(roads, str):
        raise TypeError(f"needs a list of road ids, not the string {roads!r}")
    names = list(roads)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a road id is a string, not {name!r}")
    return names


def plain_number(value: object) -> object:
    """A Python float for any real number, numpy's included; anything else is returned unchanged, for the check that follows."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf


def is_finite(value: float) -> bool:
    """`math.isfinite`, which raises for a whole number beyond all floats."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
