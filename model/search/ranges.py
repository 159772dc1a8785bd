"""Settings as fields of a dataclass, each with the range of its values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from streetflow.errors import FieldError

MOST = 1_000_000_000  # of any number that has no natural bound


@dataclass(frozen=True)
class Range:
    """Range of a number: from least to most, or with `above` anything above least."""

    least: int
    most: int = MOST
    above: bool = False

    def __contains__(self, value: float) -> bool:
        return (value > self.least if self.above else value >= self.least) and value <= self.most

    def __str__(self) -> str:
        return f"above {self.least} and at most {self.most:,}" if self.above else f"from {self.least} to {self.most:,}"


def setting(default: Any, least: int, most: int = MOST, *, above: bool = False) -> Any:
    """A field of numbers within a range; its default says which kind (None: a whole number, or none)."""
    return dataclasses.field(default=default, metadata={"range": Range(least, most, above)})


def require_possible(settings: Any) -> None:
    """FieldError unless every value of a dataclass of settings is of its default's kind and within its range."""
    for each in dataclasses.fields(settings):
        _require_possible(each, getattr(settings, each.name))


def _require_possible(field: dataclasses.Field[Any], value: object) -> None:
    usual, within = field.default, field.metadata.get("range")
    if isinstance(usual, bool):
        possible, wanted = isinstance(value, bool), "True or False"
    elif isinstance(usual, tuple):
        held = value if isinstance(value, tuple) else (None,)
        possible = all(_is(each, Integral, within) for each in held) and len(held) >= min(len(usual), 1)
        wanted = f"a tuple of whole numbers {within}"
    elif isinstance(usual, float):
        possible, wanted = _is(value, Real, within), f"a number {within}"
    else:
        possible = _is(value, Integral, within) or value is usual is None
        wanted = f"a whole number {within}"
    if not possible:
        raise FieldError(field.name, f"must be {wanted}, is {repr(value)[:60]}")


def _is(value: Any, kind: type, within: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and value in within
