"""Typed access to parsed JSON that knows its path, so that each fault names its place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streetflow.errors import InputError

_MISSING = object()


def _kind(value: object) -> str:
    if value is None:
        return "null"
    for types, name in ((bool, "a boolean"), (int, "an integer"), (float, "a number"), (str, "a string"),
                        (list, "an array"), (dict, "an object")):  # fmt: skip
        if isinstance(value, types):
            return name
    return type(value).__name__


class Cursor:
    """One JSON value with its file and path. Every check raises InputError naming both."""

    __slots__ = ("file", "place", "value")

    def __init__(self, value: Any, file: str | Path, place: str = "") -> None:
        self.value = value
        self.file = file
        self.place = place

    def fault(self, text: str) -> InputError:
        return InputError(self.file, self.place, text)

    def wrong(self, wanted: str) -> InputError:
        return self.fault(f"must be {wanted}, not {_kind(self.value)}")

    def has(self, name: str) -> bool:
        return name in self.members()

    def members(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return self.value

    def __getitem__(self, name: str) -> Cursor:
        """The member ``name`` of an object. InputError if it is missing."""
        value = self.members().get(name, _MISSING)
        place = f"{self.place}.{name}" if self.place else name
        if value is _MISSING:
            raise InputError(self.file, place, "is missing")
        return Cursor(value, self.file, place)

    def items(self, least: int = 0) -> Iterator[Cursor]:
        """The elements of an array of at least ``least`` elements."""
        if not isinstance(self.value, list):
            raise self.wrong("an array")
        if len(self.value) < least:
            raise self.fault(f"must hold at least {least} element{'s' * (least != 1)}, holds {len(self.value)}")
        return (Cursor(value, self.file, f"{self.place}[{i}]") for i, value in enumerate(self.value))

    def number(self, least: float | None = None, above: float | None = None) -> float:
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong("a number")
        if not math.isfinite(value):
            raise self.fault(f"must be finite, is {value:g}")
        if least is not None and not value >= least:
            raise self.fault(f"must be at least {least:g}, is {value:g}")
        if above is not None and not value > above:
            raise self.fault(f"must be above {above:g}, is {value:g}")
        return float(value)

    def integer(self, least: int | None = None, most: int | None = None) -> int:
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong("an integer")
        if least is not None and value < least:
            raise self.fault(f"must be at least {least}, is {value}")
        if most is not None and value > most:
            raise self.fault(f"must be at most {most}, is {value}")
        return value

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        try:
            self.value.encode()
        except UnicodeEncodeError:
            raise self.fault("holds half of a surrogate pair, which is no text") from None
        return self.value

    def file_name(self) -> str:
        name = self.text()
        if "\0" in name:
            raise self.fault("holds a NUL, which no file name can")
        return name

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value
