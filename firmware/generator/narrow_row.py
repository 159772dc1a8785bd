"""How a row is summed whose sum can't leave 16 bits, whatever the inputs: modulo 2^16, so that no partial sum needs a proof.

A weight is a sum of powers of two with signs, as few as possible (15 = 16 - 1). Horner's scheme adds inputs at the greatest
power, doubles the sum, and so on down: each power of a weight costs 2 cycles, where a product costs 4 and loading its weight
1, once for all products of a size in the row. A doubling costs 2. The plan takes for each size of the row whatever costs less.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from firmware.generator.grouping import INPUT_MAX, Term

LEAST, GREATEST = -(1 << 15), (1 << 15) - 1
LEVELS = 8  # |weights| are below 2^7; the sum of powers may begin one above
ADD_CYCLES, PRODUCT_CYCLES, LOAD_CYCLES, FETCH_CYCLES, DOUBLE_CYCLES = 2, 4, 1, 2, 2


class NarrowRow(NamedTuple):
    """``levels[k]``: inputs to add (weight 1) or subtract (-1) before the sum is doubled k times; ``products``: the others."""

    levels: list[list[Term]]
    products: list[Term]


def bounds(weights: Sequence[int], bias: int) -> tuple[int, int]:
    """The least and the greatest sum over any inputs."""
    return bias + INPUT_MAX * sum(w for w in weights if w < 0), bias + INPUT_MAX * sum(w for w in weights if w > 0)


def is_narrow(weights: Sequence[int], bias: int) -> bool:
    low, high = bounds(weights, bias)
    return low >= LEAST and high <= GREATEST


def plan(terms: Sequence[Term], held: Collection[int] = (), top: int = LEVELS - 1) -> NarrowRow:
    """The cheapest way with at most `top` doublings; `held`: |weights| that lie in registers."""
    sizes: dict[int, list[Term]] = {}
    for term in terms:
        sizes.setdefault(term.size, []).append(term)
    best: tuple[int, list[int]] | None = None
    for level in range(top + 1):
        cost, multiplied = DOUBLE_CYCLES * level, []
        for size, group in sizes.items():
            powers = digits(size)
            fetched = FETCH_CYCLES * sum(isinstance(term.source, str) for term in group)
            product = PRODUCT_CYCLES * len(group) + LOAD_CYCLES * (size not in held)
            added = ADD_CYCLES * len(powers) * len(group) + fetched * (len(powers) - 1)
            if added < product and powers[0][0] <= level:
                cost += added
            elif size == 1:
                cost += added  # a weight of 1 needs no product
            else:
                cost += product
                multiplied.append(size)
        if best is None or cost < best[0]:
            best = cost, multiplied
    assert best is not None
    row = NarrowRow([[] for _ in range(LEVELS)], [term for term in terms if term.size in best[1]])
    for term in terms:
        if term.size not in best[1]:
            for level, sign in digits(term.size):
                row.levels[level].append(Term(sign if term.weight > 0 else -sign, term.source))
    prove(row, terms)
    return row


def digits(size: int) -> list[tuple[int, int]]:
    """(exponent, sign) of the fewest powers of two that add up to it, the greatest first."""
    found, level = [], 0
    while size:
        if size & 1:
            sign = 2 - size % 4
            found.append((level, sign))
            size -= sign
        size >>= 1
        level += 1
    return found[::-1]


def prove(row: NarrowRow, terms: Sequence[Term]) -> None:
    """AssertionError unless each input comes to its weight."""
    weights: dict[int | str, int] = {}
    for level, added in enumerate(row.levels):
        for source, weight in ((term.source, term.weight << level) for term in added):
            weights[source] = weights.get(source, 0) + weight
    for term in row.products:
        weights[term.source] = weights.get(term.source, 0) + term.weight
    assert weights == {term.source: term.weight for term in terms}
