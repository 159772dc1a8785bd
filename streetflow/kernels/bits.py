"""Sets of numbers as bits of int32 words, so that a step visits only the lanes and lane links in use, in ascending order."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from streetflow.kernels.jit import helper
from streetflow.kernels.tables import WORD_BITS


@intrinsic
def _lowest_bit(_context: Any, word: Any) -> Any:
    """The position of the lowest bit set in an integer other than 0: one machine instruction."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        zero_is_undefined = ir.Constant(ir.IntType(1), 1)
        return builder.cttz(arguments[0], zero_is_undefined)

    return (word(word), generate) if isinstance(word, types.Integer) else None


def _lowest_bit_uncompiled(word: int) -> int:
    return (int(word) & -int(word)).bit_length() - 1


@intrinsic
def _count_bits(_context: Any, word: Any) -> Any:
    """How many bits of a non-negative integer are set: one machine instruction."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return (word(word), generate) if isinstance(word, types.Integer) else None


def _count_bits_uncompiled(word: int) -> int:
    return int(word).bit_count()


_uncompiled = getattr(config, "DISABLE_JIT", 0)
lowest_bit: Any = _lowest_bit_uncompiled if _uncompiled else _lowest_bit
count_bits: Any = _count_bits_uncompiled if _uncompiled else _count_bits


@helper
def set_bit(words, number):  # type: ignore[no-untyped-def]
    words[number // WORD_BITS] |= 1 << number % WORD_BITS


@helper
def clear_bit(words, number):  # type: ignore[no-untyped-def]
    words[number // WORD_BITS] &= ~(1 << number % WORD_BITS)


@helper
def list_set_bits(words, numbers):  # type: ignore[no-untyped-def]
    """Write the members of a set to ``numbers``, ascending, and return how many there are."""
    n = 0
    for w in range(words.size):
        bits = words[w]
        while bits != 0:
            numbers[n] = w * WORD_BITS + lowest_bit(bits)
            n += 1
            bits &= bits - 1
    return n
