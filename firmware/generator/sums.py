"""The kernel `unrolled`: code that sums a row, bias + sum of weight * input, and the registers that it needs.

A sum that can't leave 16 bits is made in 16 bits (`narrow_row`). Any other is made exactly, in 24 bits, with partial sums of
16 bits where `grouping` proves that they suffice. A product is that of |w| and an activation, both unsigned, and is added or
subtracted by the sign of w. Zero weights cost nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from firmware.generator import narrow_row
from firmware.generator.assembly import Assembly, byte, r
from firmware.generator.grouping import Row, Term, group, has_room
from firmware.generator.scaling import ZERO, load

WEIGHT = 23
LEAST_IMMEDIATE = 16  # LDI takes the registers from here on


class Accumulator(NamedTuple):
    """Three registers, the lower two a pair."""

    low: int
    middle: int
    high: int


TOTAL = Accumulator(24, 25, 26)
BRANCH = Accumulator(28, 29, 27)
PARTIAL = (30, 31)


class Summand(NamedTuple):
    """Products of one sign: a single one, or several and a constant (at least 0) that fit 16 bits together."""

    terms: list[Term]
    constant: int = 0


@dataclass(frozen=True)
class Sum:
    """A sum to come: ``narrow`` if it is made modulo 2^16, in the lower two registers; ``onto`` what is in them already."""

    terms: list[Term]
    bias: int
    narrow: bool
    onto: bool = False

    def first_sizes(self, held: Collection[int]) -> set[int]:
        """|weights| with one of which its products may begin."""
        if self.narrow:
            return {term.size for term in self.plan(held).products}
        return _sizes(self.row().lead)

    def plan(self, held: Collection[int]) -> narrow_row.NarrowRow:
        return narrow_row.plan(self.terms, held, 0 if self.onto else narrow_row.LEVELS - 1)

    def row(self) -> Row:
        return group(self.terms)

    def loads(self) -> Counter[int]:
        """How often each |weight| above 1 would be loaded, at most."""
        sizes = (term.size for term in self.terms if term.size > 1)
        return Counter({term.size for term in self.plan(()).products}) if self.narrow else Counter(sizes)


class Sums:
    """Writes sums one after the other, each planned beforehand: a weight that is loaded already, or that the next sum needs,
    saves a cycle."""

    def __init__(self, code: Assembly) -> None:
        self.code = code
        self.loaded: int | None = None  # what WEIGHT holds
        self.held: dict[int, int] = {}  # |weights| that have a register of their own for a while: |weight| to register
        self._ahead: deque[Sum] = deque()

    def plan(self, sums: Sequence[Sum]) -> None:
        self._ahead.extend(sums)

    def write(self, into: Accumulator) -> bool:
        """The next sum, into the accumulator; the sign flag is its own. True: the zero flag is that of its highest byte."""
        each = self._ahead.popleft()
        return self._narrow(each, into[:2]) if each.narrow else self._wide(each, into)

    def _later_sizes(self) -> set[int]:
        return self._ahead[0].first_sizes(self.held) if self._ahead else set()

    # In 16 bits

    def _narrow(self, each: Sum, into: Sequence[int]) -> bool:
        code, row = self.code, each.plan(self.held)
        is_empty, has_sign = not each.onto, False
        for level in range(narrow_row.LEVELS - 1, -1, -1):
            for term in sorted(row.levels[level], key=lambda term: term.weight < 0):
                has_sign = self._add_input(term, into, is_empty)
                is_empty = False
            if level and not (is_empty or each.onto):
                code.op("lsl", r(into[0]))
                code.op("rol", r(into[1]))
                has_sign = True
        products = self._in_order(row.products)
        bias = each.bias
        if is_empty:
            first = next((term for term in products if term.weight > 0 and term.size == products[0].size), None)
            if first is not None:
                products.remove(first)
                self._multiply(first)
                code.op("movw", r(into[0]), r(0))
            else:
                for number, register in enumerate(into):
                    code.op("ldi", r(register), byte(bias, number))
                bias = 0
        has_sign |= self.add_constant(bias, into)
        for term in products:
            self._accumulate(term, into)
            has_sign = True
        if not has_sign:
            code.op("tst", r(into[1]))
        return False

    def _in_order(self, products: Sequence[Term]) -> list[Term]:
        """One size after the other: first the one that is loaded, last one that the next sum needs."""
        later = self._later_sizes()

        def rank(term: Term) -> tuple[bool, bool, int, bool]:
            return term.size != self.loaded and term.size not in self.held, term.size in later, term.size, term.weight < 0

        return sorted(products, key=rank)

    def _add_input(self, term: Term, into: Sequence[int], is_empty: bool) -> bool:
        """An input, added or subtracted; True if the sign flag is that of the sum."""
        code, register = self.code, self._register(term)
        if is_empty:
            code.op("mov", r(into[0]), r(register if term.weight > 0 else ZERO))
        if is_empty and term.weight > 0:
            code.op("mov", r(into[1]), r(ZERO))
            return False
        code.op("add" if term.weight > 0 else "sub", r(into[0]), r(register))
        if is_empty:
            code.op("sbc", r(into[1]), r(into[1]))
        else:
            code.op("adc" if term.weight > 0 else "sbc", r(into[1]), r(ZERO))
        return True

    # In 24 bits

    def _wide(self, each: Sum, into: Accumulator) -> bool:
        code, bias, row = self.code, each.bias, each.row()
        summands = [Summand(terms) for terms in (*row.partial, *([term] for term in row.single))]
        constant = bias if row.lead and has_room(row.lead, bias) else 0
        if row.lead and not constant:
            bias -= _take_in(summands, bias)
        negative = [each for each in summands if each.terms[0].weight < 0]
        positive = [each for each in summands if each.terms[0].weight > 0]
        has_sign = ends_positive = False
        if row.lead:
            self._partial_sum(row.lead, (into.low, into.middle), [*negative, *positive])
            self.add_constant(constant, (into.low, into.middle))
            if negative:  # its borrow begins the highest byte
                self._add(negative, positive, into, fresh=True)
                has_sign = True
            else:
                code.op("ldi", r(into.high), 0)
            has_sign |= self.add_constant(bias - constant, into)
        else:
            for number, register in enumerate(into):
                code.op("ldi", r(register), byte(bias, number))
        while negative:
            self._add(negative, positive, into)
            has_sign = True
        while positive:
            self._add(positive, [], into)
            has_sign = ends_positive = True
        if not has_sign:
            code.op("tst", r(into.high))
        return ends_positive or not has_sign  # ADC sets the zero flag by its own byte, SBC by all

    def add_constant(self, constant: int, into: Sequence[int]) -> bool:
        """into += constant; False if the constant is 0."""
        for number, register in enumerate(into if constant else ()):
            self.code.op("sbci" if number else "subi", r(register), byte(-constant, number))
        return constant != 0

    def _add(self, waiting: list[Summand], later: list[Summand], into: Accumulator, *, fresh: bool = False) -> None:
        """Takes one of the waiting summands of a sign, if possible one that begins with the weight loaded, and adds it.
        `fresh`: the highest byte is 0 and not yet set."""
        code = self.code
        summand = min(waiting, key=lambda each: self.loaded not in _sizes(each.terms))
        waiting.remove(summand)
        terms = summand.terms
        positive = terms[0].weight > 0
        if len(terms) == 1:
            self._accumulate(terms[0], into[:2])
        else:
            self._partial_sum(terms, PARTIAL, [*waiting, *later])
            self.add_constant(summand.constant, PARTIAL)
            code.op("add" if positive else "sub", r(into.low), r(PARTIAL[0]))
            code.op("adc" if positive else "sbc", r(into.middle), r(PARTIAL[1]))
        code.op("adc" if positive else "sbc", r(into.high), r(into.high if fresh else ZERO))

    def _partial_sum(self, terms: Sequence[Term], into: Sequence[int], later: Sequence[Summand]) -> None:
        """into = sum of |weight| * input, in 16 bits. It begins with the weight loaded and ends with one needed `later`, or by
        the next row if nothing is left."""
        sizes = {size for each in later for size in _sizes(each.terms)} if later else self._later_sizes()
        first, *others = sorted(terms, key=lambda term: (term.size != self.loaded, term.size in sizes, term.size))
        if first.size == 1:
            self.code.op("mov", r(into[0]), r(self._register(first)))
            self.code.op("mov", r(into[1]), r(ZERO))
        else:
            self._multiply(first)
            self.code.op("movw", r(into[0]), r(0))
        for term in others:
            self._accumulate(term._replace(weight=term.size), into)

    def _accumulate(self, term: Term, into: Sequence[int]) -> None:
        """Adds (or subtracts) a product to two bytes; leaves the carry."""
        add, carry = ("add", "adc") if term.weight > 0 else ("sub", "sbc")
        if term.size == 1:
            product = (self._register(term), ZERO)
        else:
            self._multiply(term)
            product = (0, 1)
        self.code.op(add, r(into[0]), r(product[0]))
        self.code.op(carry, r(into[1]), r(product[1]))

    def _multiply(self, term: Term) -> None:
        """r1:r0 = |weight| * input"""
        register = self._register(term)
        weight = self.held.get(term.size, WEIGHT)
        if weight == WEIGHT and self.loaded != term.size:
            self.code.op("ldi", r(WEIGHT), term.size)
            self.loaded = term.size
        self.code.op("mul", r(register), r(weight))

    def _register(self, term: Term) -> int:
        """Where the term's input is, fetched from RAM if it lies there."""
        if isinstance(term.source, int):
            return term.source
        load(self.code, PARTIAL[0], term.source)
        return PARTIAL[0]


def _take_in(summands: list[Summand], constant: int) -> int:
    """The constant, once it is part of a partial sum of its sign; 0 if none has room."""
    for number, (terms, _) in enumerate(summands):
        if len(terms) > 1 and (terms[0].weight > 0) == (constant > 0) and has_room(terms, abs(constant)):
            summands[number] = Summand(terms, abs(constant))
            return constant
    return 0


def _sizes(terms: Sequence[Term]) -> set[int]:
    return {term.size for term in terms}
