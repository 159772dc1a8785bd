"""Doubles that compiled code writes are what Python's `repr` writes, byte for byte."""

import os

import numpy as np
import pytest
from numpy.typing import NDArray

from streetflow.kernels.decimal_text import LONGEST_DOUBLE
from tests.helpers.decimal_kernel import decimal_texts

COUNT = 200_000 if "NUMBA_DISABLE_JIT" not in os.environ else 200
WHOLE = 2**53


def neighbours(values: list[float]) -> NDArray[np.float64]:
    """The values, and the doubles just below and above each."""
    here = np.array(values)
    return np.concatenate([here, np.nextafter(here, -np.inf), np.nextafter(here, np.inf)])


def drawn(name: str) -> NDArray[np.float64]:
    rng = np.random.default_rng(list(name.encode()))
    match name:
        case "any bits":  # all exponents, NaNs and infinities too
            return rng.integers(0, 2**64, 5 * COUNT, np.uint64).view(np.float64)
        case "subnormal":
            return rng.integers(0, 2**52, COUNT, np.uint64).view(np.float64)
        case "coordinates":
            return rng.uniform(-3000, 3000, 5 * COUNT)
        case "angles":
            return rng.uniform(-np.pi, np.pi, COUNT)
        case "halves":
            return rng.integers(-(10**6), 10**6, COUNT) / 2
        case "thousandths":
            return rng.integers(-(10**9), 10**9, COUNT) / 1000
        case "small whole numbers":
            return np.arange(-COUNT / 2, COUNT / 2)
        case "whole numbers":
            return rng.integers(-(2**63), 2**63 - 1, COUNT).astype(np.float64)
        case "whole numbers about 2**53":
            return (WHOLE + rng.integers(-1000, 1000, COUNT)).astype(np.float64)
        case "few digits, all powers of ten":
            digits, powers = rng.integers(1, 10**4, COUNT).tolist(), rng.integers(-327, 304, COUNT).tolist()
            return np.array([float(f"{digit}e{power}") for digit, power in zip(digits, powers, strict=True)])
        case "where the exponent's form begins":
            return np.concatenate([1e16 + 2.0 * np.arange(-2000, 2000), 1e-4 * (1 + rng.normal(size=COUNT) * 1e-9)])
    raise AssertionError(name)


DRAWN = [
    "any bits", "subnormal", "coordinates", "angles", "halves", "thousandths", "small whole numbers", "whole numbers",
    "whole numbers about 2**53", "few digits, all powers of ten", "where the exponent's form begins",
]  # fmt: skip
LISTED = {
    "special": [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.225073858507201e-308, 1.7976931348623157e308],
    "powers of ten": neighbours([float(f"1e{k}") for k in range(-323, 309)]),
    "powers of two": neighbours([2.0**k for k in range(-1074, 1024)]),
    "halfway between two doubles": [2e23, 1e23, 9e22, 9007199254740993.0, 2.0**-44, 8.41e21, 9.5367431640625e-07],
    "where the exponent's form begins": neighbours([1e-5, 1e-4, 0.001, 1e15, 1e16, 1e17, 123456789012345678.0]),
}


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_doubles_are_written_as_python_does(name: str) -> None:
    values = drawn(name)
    assert decimal_texts(values) == [repr(value) for value in values.tolist()]


@pytest.mark.parametrize("name", LISTED)
def test_doubles_at_the_edges_are_written_as_python_does(name: str) -> None:
    values = np.array(LISTED[name], np.float64)
    assert decimal_texts(values) == [repr(value) for value in values.tolist()]


def test_no_double_is_longer_than_the_room_that_is_kept_for_it() -> None:
    longest = decimal_texts(np.array([-1.2345678901234567e-300, -2.2250738585072014e-308]))
    assert {len(text) for text in longest} == {LONGEST_DOUBLE}
