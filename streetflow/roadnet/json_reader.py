"""JSON as CityFlow reads it: its number conversion, which doesn't round correctly, and strict objects.

Plain ``float(token)`` differs in the last bit for some tokens of the published data sets, and one such bit changes
whole simulations. The rules of `number_from_token` are those of docs/cityflow-semantics.md, section 1.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import isinf
from pathlib import Path
from typing import Any

from streetflow.errors import InputError
from streetflow.input_file import read_input

_POWERS_OF_TEN = tuple(float(f"1e{k}") for k in range(309))
_MAX_EXACT = 2**53 - 1
_MAX_SIGNIFICANT_DIGITS = 17
_MAX_INTEGER_DIGITS = 309  # of the largest double; Python itself refuses to convert more than some thousands


def _scale(value: float, power: int) -> float:
    """value * 10**power, with the reader's rounding. Raises OverflowError where the result isn't finite."""
    if power >= 0:
        if power > 308:
            if value == 0.0:
                return 0.0
            raise OverflowError
        return value * _POWERS_OF_TEN[power]
    if power < -308:
        value = value / _POWERS_OF_TEN[308]
        power += 308
        if power < -308:
            return 0.0
    return value / _POWERS_OF_TEN[-power]


def number_from_token(token: str) -> float:
    """The double for a JSON number token that isn't a 64-bit integer. OverflowError if it isn't finite."""
    negative = token[0] == "-"
    mantissa, _, exponent_text = token[1:].lower().partition("e") if negative else token.lower().partition("e")
    integer_part, _, fraction = mantissa.partition(".")
    exponent = _exponent(exponent_text)

    limit = 2**63 if negative else 2**64 - 1
    whole = 0
    real = 0.0
    is_real = False
    n_significant = 0
    for position, digit in enumerate(integer_part):
        if not is_real and whole * 10 + int(digit) > limit:
            is_real = True
            real = float(whole)
        if is_real:
            real = real * 10.0 + int(digit)
        else:
            whole = whole * 10 + int(digit)
            n_significant += position > 0

    scale = 0
    used = 0
    if fraction and not is_real:
        while used < len(fraction) and whole <= _MAX_EXACT:
            whole = 10 * whole + int(fraction[used])
            used += 1
            scale -= 1
            n_significant += whole != 0
    if not is_real:
        real = float(whole)
    for digit in fraction[used:]:
        if n_significant < _MAX_SIGNIFICANT_DIGITS:
            real = real * 10.0 + int(digit)
            scale -= 1
            n_significant += real > 0.0
    value = _scale(real, scale + exponent)
    if value == float("inf"):
        raise OverflowError
    return -value if negative else value


def _exponent(text: str) -> int:
    """0 for none; as good as infinite where it has more digits than any double could need."""
    digits = text.lstrip("+-").lstrip("0")
    size = int(digits or "0") if len(digits) < 10 else 10**9
    return -size if text.startswith("-") else size


class _Reader:
    """Hooks for the json module; one per file, so that equal tokens are converted once."""

    def __init__(self) -> None:
        self.known: dict[str, float] = {}

    def real(self, token: str) -> float:
        value = self.known.get(token)
        if value is None:
            # Up to 15 digits, what CityFlow does is one exact division: the correctly rounded double.
            short = len(token) <= 16 and "e" not in token and "E" not in token
            value = self.known[token] = float(token) if short else number_from_token(token)
        return value

    def integer(self, token: str) -> int | float:
        if len(token) < 19:
            return int(token)
        if len(token) > 20:  # beyond 64 bits
            return self.real(token)
        value = int(token)
        if -(2**63) <= value < 2**64:
            return value
        return self.real(token)

    @staticmethod
    def exact_real(token: str) -> float:
        value = float(token)
        if isinf(value):
            raise OverflowError
        return value

    @staticmethod
    def exact_integer(token: str) -> int:
        if len(token) > _MAX_INTEGER_DIGITS:
            raise OverflowError
        return int(token)

    @staticmethod
    def constant(token: str) -> float:
        raise ValueError(f"{token} is not a JSON number")

    @staticmethod
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise ValueError(f"an object holds the key {key!r} twice")
                seen.add(key)
        return members


def read_text(path: str | Path) -> str:
    """The content of a text file. InputError if it can't be read."""
    try:
        return read_input(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(path, f"byte {error.start}", "the file isn't UTF-8 text") from None


def read_json(path: str | Path, exact: bool = False) -> Any:
    """The content of a JSON file. InputError if it can't be read or isn't JSON (with line and column).

    exact: numbers are correctly rounded, as Python writes and reads them, not as CityFlow reads them.
    """
    return parse_json(read_text(path), path, exact)


def array_elements(path: str | Path) -> Iterator[Any]:
    """The elements of the array that a JSON file holds, one after the other, so that no more than one needs memory.

    Raises:
        ValueError, OverflowError, RecursionError: it isn't an array, or not JSON; `read_json` says what is wrong.
    """
    text, reader = read_text(path), _Reader()
    decoder = json.JSONDecoder(
        parse_float=reader.real,
        parse_int=reader.integer,
        parse_constant=reader.constant,
        object_pairs_hook=reader.members,
    )
    at = _skip_space(text, 0)
    if text[at : at + 1] != "[":
        raise ValueError("not an array")
    at = _skip_space(text, at + 1)
    separator = ","
    if text[at : at + 1] == "]":
        separator = "]"
        at += 1
    while separator == ",":
        element, at = decoder.raw_decode(text, at)
        yield element
        at = _skip_space(text, at)
        separator = text[at : at + 1]
        at = _skip_space(text, at + 1)
    if separator != "]" or _skip_space(text, at) != len(text):
        raise ValueError("not an array")


_SPACE = re.compile(r"[ \t\n\r]*")


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def parse_json(text: str, path: str | Path, exact: bool = False) -> Any:
    """The content of a JSON text, as `read_json` reads it. path: what errors name."""
    reader = _Reader()
    try:
        return json.loads(
            text,
            parse_float=reader.exact_real if exact else reader.real,
            parse_int=reader.exact_integer if exact else reader.integer,
            parse_constant=reader.constant,
            object_pairs_hook=reader.members,
        )
    except json.JSONDecodeError as fault:
        place = f"line {fault.lineno}, column {fault.colno}"
        raise InputError(path, place, f"not JSON: {fault.msg}") from None
    except OverflowError:
        raise InputError(path, "", "not JSON: a number is too large for a double") from None
    except RecursionError:
        raise InputError(path, "", "not JSON that can be read: nested too deeply") from None
    except ValueError as fault:
        raise InputError(path, "", f"not JSON: {fault}") from None
