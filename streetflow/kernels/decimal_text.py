"""Doubles as text, as Python's `repr` writes them: the shortest decimal that reads back as the same double.

The shortest decimal is found with the algorithm of Raffaello Giulietti, "The Schubfach way to render doubles" (2022): one
128-bit power of ten, three products, no loop. Names of its figures 4 and 7 are kept where they are letters.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from streetflow.kernels.jit import helper

LONGEST_DOUBLE = 24  # bytes, as -1.2345678901234567e-300
_LEAST_POWER, _MOST_POWER = -292, 324
_BIAS = 1075  # a double is its significand times 2**(exponent - 1075)
_FRACTION_BITS = 52
_EIGHT_DIGITS = 10**8
_HIDDEN_BIT = 1 << _FRACTION_BITS
_NOT_FINITE = 2047
_MOST_PLAIN_DIGITS, _MOST_PLAIN_ZEROS = 16, 3  # before the point; after it: beyond them repr writes an exponent
_MINUS, _POINT, _ZERO, _E, _PLUS, _N, _A, _I, _F = (ord(c) for c in "-.0e+naif")


def _power_words(power: int) -> tuple[int, int]:
    """The upper and lower 64 bits of 10**power, scaled by a power of two to 128 bits and rounded up."""
    if power >= 0:
        shift = (10**power).bit_length() - 128
        value = -(-(10**power) >> shift) if shift > 0 else 10**power << -shift
    else:
        divisor = 10**-power
        value = -(-(1 << divisor.bit_length() + 127) // divisor)
    return value >> 64, value & (1 << 64) - 1


def powers_of_ten() -> np.ndarray:
    """uint64[powers * 2], for `write_double`."""
    words = [word for power in range(_LEAST_POWER, _MOST_POWER + 1) for word in _power_words(power)]
    return np.array(words, np.uint64)


@intrinsic
def _double_bits(_context: Any, value: Any) -> Any:
    """The 64 bits of a double, as a signed integer."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return (types.int64(value), generate) if value == types.float64 else None


def _double_bits_uncompiled(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


@intrinsic
def _round_to_odd(_context: Any, upper: Any, lower: Any, factor: Any) -> Any:
    """(upper * 2**64 + lower) * factor / 2**128, rounded down, but odd where the first 63 of the bits below aren't 0."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide, narrow = ir.IntType(128), ir.IntType(64)
        upper, lower, factor = (builder.zext(each, wide) for each in arguments)
        sixty_four = ir.Constant(wide, 64)
        total = builder.add(builder.mul(upper, factor), builder.lshr(builder.mul(lower, factor), sixty_four))
        rest = builder.icmp_unsigned(">", builder.trunc(total, narrow), ir.Constant(narrow, 1))
        return builder.or_(builder.trunc(builder.lshr(total, sixty_four), narrow), builder.zext(rest, narrow))

    wanted = types.uint64
    return (wanted(wanted, wanted, wanted), generate) if (upper, lower, factor) == (wanted,) * 3 else None


def _round_to_odd_uncompiled(upper: int, lower: int, factor: int) -> int:
    total = int(upper) * int(factor) + (int(lower) * int(factor) >> 64)
    return total >> 64 | (total & (1 << 64) - 1 > 1)


_uncompiled = getattr(config, "DISABLE_JIT", 0)
double_bits: Any = _double_bits_uncompiled if _uncompiled else _double_bits
round_to_odd: Any = _round_to_odd_uncompiled if _uncompiled else _round_to_odd


@helper
def _shortest(fraction, exponent, powers):  # type: ignore[no-untyped-def]
    """The shortest decimal of a positive double, as (digits, power of ten); digits may end in zeros."""
    if exponent > 0:
        c, q = _HIDDEN_BIT | fraction, exponent - _BIAS
        if -_FRACTION_BITS <= q <= 0 and c & ((1 << -q) - 1) == 0:
            return c >> -q, 0
    else:
        c, q = fraction, 1 - _BIAS
    lower_is_closer = int(fraction == 0 and exponent > 1)
    odd = c & 1
    k = (q * 1262611 - 524031 * lower_is_closer) >> 22
    h = q + (-k * 1741647 >> 19) + 1
    entry = 2 * (-k - _LEAST_POWER)
    upper, lower = powers[entry], powers[entry + 1]
    low = np.int64(round_to_odd(upper, lower, np.uint64((4 * c - 2 + lower_is_closer) << h))) + odd
    middle = np.int64(round_to_odd(upper, lower, np.uint64(4 * c << h)))
    high = np.int64(round_to_odd(upper, lower, np.uint64((4 * c + 2) << h))) - odd
    s = middle >> 2
    if s >= 10:
        tens = s // 10
        is_below, is_above = low <= 40 * tens, 40 * tens + 40 <= high
        if is_below != is_above:
            return tens + is_above, k + 1
    is_below, is_above = low <= 4 * s, 4 * s + 4 <= high
    if is_below != is_above:
        return s + is_above, k
    half = 4 * s + 2
    return s + int(middle > half or (middle == half and s & 1 != 0)), k


@helper
def _digits(number):  # type: ignore[no-untyped-def]
    """How many digits an integer from 0 on below 10**17 has."""
    count, limit = 1, 10
    while number >= limit:
        limit *= 10
        count += 1
    return count


@helper
def _write_eight(text, at, number):  # type: ignore[no-untyped-def]
    """The eight digits of an integer below 10**8, leading zeros too. Products and shifts stand for its divisions."""
    upper = number * 109951163 >> 40
    for half, place in ((upper, at), (number - 10000 * upper, at + 4)):
        hundreds = half * 5243 >> 19
        rest = half - 100 * hundreds
        a, c = hundreds * 103 >> 10, rest * 103 >> 10
        text[place], text[place + 1] = _ZERO + a, _ZERO + hundreds - 10 * a
        text[place + 2], text[place + 3] = _ZERO + c, _ZERO + rest - 10 * c
    return at + 8


@helper
def _write_few(text, at, number):  # type: ignore[no-untyped-def]
    """An integer from 0 on below 10**8. A product and a shift stand for its division by ten."""
    end = at + _digits(number)
    for place in range(end - 1, at - 1, -1):
        tenth = number * 3435973837 >> 35
        text[place] = _ZERO + number - 10 * tenth
        number = tenth
    return end


@helper
def write_integer(text, at, number):  # type: ignore[no-untyped-def]
    """Write an integer from 0 on at text[at:], 20 bytes at most; returns the index after it."""
    if number < _EIGHT_DIGITS:
        return _write_few(text, at, number)
    upper = number // _EIGHT_DIGITS
    if upper < _EIGHT_DIGITS:
        end = _write_few(text, at, upper)
    else:
        top = upper // _EIGHT_DIGITS
        end = _write_eight(text, _write_few(text, at, top), upper - top * _EIGHT_DIGITS)
    return _write_eight(text, end, number - upper * _EIGHT_DIGITS)


@helper
def _write_zeros(text, at, count):  # type: ignore[no-untyped-def]
    for place in range(at, at + count):
        text[place] = _ZERO
    return at + count


@helper
def _write_word(text, at, a, b, c):  # type: ignore[no-untyped-def]
    text[at], text[at + 1], text[at + 2] = a, b, c
    return at + 3


@helper
def _put_point(text, first, before):  # type: ignore[no-untyped-def]
    """The digits that begin at first + 1 get a point behind the first few: these move one place forward."""
    for place in range(first, first + before):
        text[place] = text[place + 1]
    text[first + before] = _POINT


@helper
def write_double(text, at, value, powers):  # type: ignore[no-untyped-def]
    """Write a double at text[at:], uint8 of at least LONGEST_DOUBLE more bytes; returns the index after it.

    powers: what `powers_of_ten` returns.
    """
    bits = double_bits(value)
    exponent, fraction = bits >> _FRACTION_BITS & _NOT_FINITE, bits & (_HIDDEN_BIT - 1)
    if exponent == _NOT_FINITE and fraction != 0:
        return _write_word(text, at, _N, _A, _N)
    if bits < 0:
        text[at] = _MINUS
        at += 1
    if exponent == _NOT_FINITE:
        return _write_word(text, at, _I, _N, _F)
    if exponent == 0 and fraction == 0:
        return _write_word(text, at, _ZERO, _POINT, _ZERO)
    digits, power = _shortest(fraction, exponent, powers)
    while digits % 10 == 0:
        digits //= 10
        power += 1
    count = _digits(digits)
    before = count + power  # digits before the point
    if -_MOST_PLAIN_ZEROS <= before <= 0:
        text[at], text[at + 1] = _ZERO, _POINT
        return write_integer(text, _write_zeros(text, at + 2, -before), digits)
    if count <= before <= _MOST_PLAIN_DIGITS:
        end = _write_zeros(text, write_integer(text, at, digits), before - count)
        text[end], text[end + 1] = _POINT, _ZERO
        return end + 2
    if 0 < before <= _MOST_PLAIN_DIGITS:
        end = write_integer(text, at + 1, digits)
        _put_point(text, at, before)
        return end
    if count == 1:
        end = write_integer(text, at, digits)
    else:
        end = write_integer(text, at + 1, digits)
        _put_point(text, at, 1)
    tens = before - 1
    text[end], text[end + 1] = _E, _MINUS if tens < 0 else _PLUS
    end += 2
    if -10 < tens < 10:
        end = _write_zeros(text, end, 1)
    return write_integer(text, end, abs(tens))
