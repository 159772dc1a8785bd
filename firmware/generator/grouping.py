"""Which products of a row share a 16-bit partial sum.

A product of a weight w and an activation 0..255 lies in 0..255 * |w|. Products of one sign whose |w| add up to at most
257 can therefore be summed in 16 bits, whatever the inputs: 257 * 255 = 65535. Such a sum costs 5 cycles a product (load the
weight, multiply, add two bytes), where adding into the exact 24-bit sum costs 6; adding it to the exact sum costs 3 and its
first product saves 1. The row's leading partial sum is the exact sum's own lower 16 bits, which cost nothing to add.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

INPUT_MAX = 255
CAPACITY = 65535 // INPUT_MAX


class Term(NamedTuple):
    """A weight (not 0) and where its input lies: a register number, or the name of a byte in RAM."""

    weight: int
    source: int | str

    @property
    def size(self) -> int:
        return abs(self.weight)


class Row(NamedTuple):
    """How a row is summed: all of `lead` are positive; each partial sum has one sign; the rest is added one by one."""

    lead: list[Term]
    partial: list[list[Term]]
    single: list[Term]


def group(terms: Sequence[Term]) -> Row:
    """The cheapest of the groupings that best-fit packing gives, for terms with weights other than 0."""
    positive = sorted((t for t in terms if t.weight > 0), key=lambda t: t.size)
    negative = sorted((t for t in terms if t.weight < 0), key=lambda t: t.size)
    packed = [_best(positive, leads=True), _best(negative, leads=False)]
    row = Row(packed[0][0], packed[0][1] + packed[1][1], packed[0][2] + packed[1][2])
    prove(row)
    return row


def prove(row: Row) -> None:
    """AssertionError unless no input can make a partial sum leave 16 bits."""
    for terms in (row.lead, *row.partial):
        assert INPUT_MAX * _size(terms) <= 65535
        assert len({term.weight > 0 for term in terms}) <= 1
    assert all(term.weight > 0 for term in row.lead)


def has_room(terms: Sequence[Term], constant: int) -> bool:
    """Whether the terms' sum and a constant from 0 on fit 16 bits, whatever the inputs."""
    return 0 <= constant <= 65535 - INPUT_MAX * _size(terms)


def _best(terms: list[Term], *, leads: bool) -> tuple[list[Term], list[list[Term]], list[Term]]:
    """(lead, partial sums, single terms) of one sign, sorted by size; the largest ones are left single."""
    best: tuple[int, tuple[list[Term], list[list[Term]], list[Term]]] | None = None
    for packed in range(len(terms) + 1):
        bins, left_over = _pack(terms[:packed], leads)
        lead = bins.pop(0) if leads else []
        single = terms[packed:] + left_over + [term for part in bins if len(part) < 3 for term in part]
        partial = [part for part in bins if len(part) >= 3]
        saved = len(lead) + sum(len(part) - 2 for part in partial)
        if best is None or saved > best[0]:
            best = saved, (lead, partial, single)
    assert best is not None
    return best[1]


def _pack(terms: list[Term], leads: bool) -> tuple[list[list[Term]], list[Term]]:
    """Best-fit bins of at most CAPACITY, the leading one first, and the terms with inputs in RAM that it has no room for:
    the register that fetches them is taken while a partial sum is made."""
    bins: list[list[Term]] = [[]] if leads else []
    left_over: list[Term] = []
    for term in reversed(terms):
        in_ram = isinstance(term.source, str)
        open_bins = bins[:1] if in_ram and leads else [] if in_ram else bins
        room = [part for part in open_bins if _size(part) + term.size <= CAPACITY]
        if room:
            max(room, key=_size).append(term)
        elif in_ram:
            left_over.append(term)
        else:
            bins.append([term])
    return bins, left_over


def _size(terms: Sequence[Term]) -> int:
    return sum(term.size for term in terms)
