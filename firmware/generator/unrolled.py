"""The kernel `unrolled`: straight-line assembly for one policy, its weights as immediates.

Per intersection one piece of code. A layer's inputs lie in registers (or, without room, in RAM). Each row is summed by itself:
exactly, in 24 bits, with partial sums of 16 bits where `grouping` proves that they suffice. A product is that of |w| and an
activation, both unsigned, and is added or subtracted by the sign of w; zero weights cost nothing.

Meaning as in model/policy/integer.py. What surrounds it is firmware/src/avr/unrolled.S.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from firmware.generator.assembly import Assembly, byte, r
from firmware.generator.grouping import INPUT_MAX, Row, Term, group, has_room
from firmware.generator.narrowing import narrow, needed_bytes
from firmware.generator.scaling import SPARE, ZERO, load, scale, store

FILES = range(3, 23)  # registers that hold a layer's inputs; one input more lies in the spare byte
WEIGHT = 23
LEAST_IMMEDIATE = 16  # LDI takes the registers from here on
THROUGH_RAM_CYCLES = 3  # STS and LDS instead of MOV
INPUTS, HIDDEN1, HIDDEN2 = "kernel_even", "kernel_odd", "kernel_even"  # in RAM
ACTION, LOGITS = "inferred", "inferred+1"  # struct decision


class Accumulator(NamedTuple):
    """Three registers, the lower two a pair."""

    low: int
    middle: int
    high: int


TOTAL = Accumulator(24, 25, 26)
BRANCH = Accumulator(28, 29, 27)
PARTIAL = (30, 31)
MULTIPLIER = BRANCH.middle  # free while a sum is requantised


class Summand(NamedTuple):
    """Products of one sign: a single one, or several and a constant (at least 0) that fit 16 bits together."""

    terms: list[Term]
    constant: int = 0


class Unrolled:
    """Writes the code of one intersection, from the policy file's object."""

    def __init__(self, number: int, part: dict[str, Any]) -> None:
        self.number = number
        self.code = Assembly(str(number))
        self.part = part
        self._loaded: int | None = None  # what WEIGHT holds
        self._held: dict[int, int] = {}  # |weights| that have a register of their own for a while: |weight| to register
        self._rows: deque[Row] = deque()  # the sums to come

    def write(self) -> Assembly:
        part, code = self.part, self.code
        code.op("movw", r(30), r(26))
        inputs = _places(INPUTS, sum(feature["width"] for feature in part["features"]), 0)
        scale(code, part["features"], inputs)
        code.place(f"layers_{self.number}")  # for tests that count cycles from here on
        h1, h2 = part["hidden"]
        hidden1, hidden2 = _places(HIDDEN1, h1), _places(HIDDEN2, h2)
        layer1, layer2, layer3 = part["layer1"], part["layer2"], part["layer3"]
        for rows in zip(*layer1["weights"], strict=True):
            begin = 0
            for weights in rows:
                self._plan(weights, inputs[begin : begin + len(weights)])
                begin += len(weights)
        for layer, places in ((layer2, hidden1), (layer3, hidden2)):
            for weights in layer["weights"]:
                self._plan(weights, places)
        code.note("layer 1")
        targets = _targets(HIDDEN1, hidden1, inputs)
        for row in range(h1):
            self._layer1_row(row, targets[row])
            self._keep(HIDDEN1, row, targets[row])
        code.note("layer 2")
        self._fetch(targets, hidden1)
        free = [BRANCH.high, *(register for register in FILES if register not in hidden1 and register >= LEAST_IMMEDIATE)]
        self._hold(layer2["weights"], free, hidden2)
        targets = _targets(HIDDEN2, hidden2, [*hidden1, *self._held.values()])
        for row, (weights, bias) in enumerate(zip(layer2["weights"], layer2["biases"], strict=True)):
            zero_flag = self._sum(bias, TOTAL)
            high = bias + INPUT_MAX * sum(w for w in weights if w > 0)
            self._activate(targets[row], high, (layer2["multipliers"][row], layer2["shifts"][row]), zero_flag=zero_flag)
            self._keep(HIDDEN2, row, targets[row])
        self._held = {}
        code.note("layer 3")
        self._fetch(targets, hidden2)
        self._layer3()
        code.op("ret")
        return code

    def _plan(self, weights: Sequence[int], places: Sequence[int | str]) -> None:
        self._rows.append(group([Term(w, place) for w, place in zip(weights, places, strict=True) if w]))

    def _hold(self, weights: Sequence[Sequence[int]], registers: Sequence[int], outputs: Sequence[int | str]) -> None:
        """Puts the most frequent |weights| of a layer into registers that it leaves free, where that saves cycles: an output
        that loses its register goes through RAM, except the last."""
        counts = Counter(abs(w) for row in weights for w in row if abs(w) > 1)
        for register, (size, count) in zip(registers, counts.most_common(), strict=False):
            if count > 1 + (THROUGH_RAM_CYCLES if register in outputs[:-1] else 0):
                self.code.op("ldi", r(register), size)
                self._held[size] = register

    def _keep(self, array: str, unit: int, target: int | str) -> None:
        """The activation's byte in RAM, for range.S, where it isn't there anyway."""
        if target == SPARE:
            load(self.code, target := PARTIAL[0], SPARE)
        if isinstance(target, int):
            store(self.code, f"{array}+{unit}", target)

    # Between layers

    def _fetch(self, sources: Sequence[int | str], places: Sequence[int | str]) -> None:
        """Brings a layer's outputs to where they are needed as inputs."""
        for source, place in zip(sources, places, strict=True):
            if source == place:
                continue
            register = place if isinstance(place, int) else PARTIAL[0]
            assert isinstance(source, str)  # an output with a register has it as the next layer's input
            load(self.code, register, source)
            if place == SPARE:
                store(self.code, place, register)

    # Sums

    def _sum(self, bias: int, into: Accumulator) -> bool:
        """into = bias + the next row's sum of weight * input, exact; the sign flag is that of the sum. True: the zero flag is
        that of its highest byte."""
        code = self.code
        row = self._rows.popleft()
        summands = [Summand(terms) for terms in (*row.partial, *([term] for term in row.single))]
        constant = bias if row.lead and has_room(row.lead, bias) else 0
        if row.lead and not constant:
            bias -= _take_in(summands, bias)
        negative = [each for each in summands if each.terms[0].weight < 0]
        positive = [each for each in summands if each.terms[0].weight > 0]
        has_sign = ends_positive = False
        if row.lead:
            self._partial_sum(row.lead, (into.low, into.middle), [*negative, *positive])
            self._add_constant(constant, (into.low, into.middle))
            if negative:  # its borrow begins the highest byte
                self._add(negative, positive, into, fresh=True)
                has_sign = True
            else:
                code.op("ldi", r(into.high), 0)
            has_sign |= self._add_constant(bias - constant, into)
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

    def _add_constant(self, constant: int, into: Sequence[int]) -> bool:
        """into += constant; False if the constant is 0."""
        for number, register in enumerate(into if constant else ()):
            self.code.op("sbci" if number else "subi", r(register), byte(-constant, number))
        return constant != 0

    def _add(self, waiting: list[Summand], later: list[Summand], into: Accumulator, *, fresh: bool = False) -> None:
        """Takes one of the waiting summands of a sign, if possible one that begins with the weight loaded, and adds it.
        `fresh`: the highest byte is 0 and not yet set."""
        code = self.code
        summand = min(waiting, key=lambda each: self._loaded not in _sizes(each.terms))
        waiting.remove(summand)
        terms = summand.terms
        positive = terms[0].weight > 0
        if len(terms) == 1:
            self._accumulate(terms[0], into[:2])
        else:
            self._partial_sum(terms, PARTIAL, [*waiting, *later])
            self._add_constant(summand.constant, PARTIAL)
            code.op("add" if positive else "sub", r(into.low), r(PARTIAL[0]))
            code.op("adc" if positive else "sbc", r(into.middle), r(PARTIAL[1]))
        code.op("adc" if positive else "sbc", r(into.high), r(into.high if fresh else ZERO))

    def _partial_sum(self, terms: Sequence[Term], into: Sequence[int], later: Sequence[Summand]) -> None:
        """into = sum of |weight| * input, in 16 bits. It begins with the weight loaded and ends with one needed `later`, or by
        the next row if nothing is left: a weight that is loaded already saves a cycle."""
        sizes = {size for each in later for size in _sizes(each.terms)}
        if not later and self._rows:
            sizes = _sizes(self._rows[0].lead)
        first, *others = sorted(terms, key=lambda term: (term.size != self._loaded, term.size in sizes, term.size))
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
        weight = self._held.get(term.size, WEIGHT)
        if weight == WEIGHT and self._loaded != term.size:
            self.code.op("ldi", r(WEIGHT), term.size)
            self._loaded = term.size
        self.code.op("mul", r(register), r(weight))

    def _register(self, term: Term) -> int:
        """Where the term's input is, fetched from RAM if it lies there."""
        if isinstance(term.source, int):
            return term.source
        load(self.code, PARTIAL[0], term.source)
        return PARTIAL[0]

    # Layers

    def _layer1_row(self, row: int, target: int | str) -> None:
        """The branches' ReLUs, summed, to a byte."""
        code, layer = self.code, self.part["layer1"]
        branches = [(weights[row], biases[row]) for weights, biases in zip(layer["weights"], layer["biases"], strict=True)]
        high = sum(max(0, bias + INPUT_MAX * sum(w for w in weights if w > 0)) for weights, bias in branches)
        scale = layer["multipliers"][row], layer["shifts"][row]
        if len(branches) == 1:
            zero_flag = self._sum(branches[0][1], TOTAL)
            self._activate(target, high, scale, zero_flag=zero_flag)
            return
        for number, (_, bias) in enumerate(branches):
            self._sum(bias, BRANCH if number else TOTAL)
            if number == len(branches) - 1:
                self._activate(target, high, scale, add=BRANCH)
                break
            done = code.label()
            code.op("brmi" if number else "brpl", done)
            if number:
                self._add_branch()
            else:
                for register in TOTAL:
                    code.op("mov", r(register), r(ZERO))
            code.place(done)

    def _add_branch(self) -> None:
        for add, to, of in zip(("add", "adc", "adc"), TOTAL, BRANCH, strict=True):
            self.code.op(add, r(to), r(of))

    def _activate(
        self,
        target: int | str,
        high: int,
        scale: tuple[int, int],
        *,
        zero_flag: bool = False,
        add: Accumulator | None = None,
    ) -> None:
        """target = min(255, (max(0, TOTAL) * multiplier + half) >> shift), TOTAL being at most `high`. The sign flag is its
        own, and if `zero_flag`, the zero flag that of its highest byte. With `add`, TOTAL is not negative, the sign flag is
        that of `add`, and that is added before unless it is negative.

        What is neither 0 nor 255 runs straight through: it takes longest. The others' code lies where that jumps anyway."""
        code = self.code
        multiplier, shift = _aligned(*scale)
        half = 1 << (shift - 1)
        least_255 = -(-((INPUT_MAX << shift) - half) // multiplier)
        two_bytes = min(high, least_255 - 1) <= 0xFFFF
        positive, summed, end = code.label(), code.label(), code.label()
        saturated = code.label() if high >= least_255 else None
        code.op("brpl", positive)
        if add is None:
            store(code, target, ZERO)
            code.op("rjmp", end)
        else:
            code.op("rjmp", summed)
        if saturated is not None:
            code.place(saturated)
            code.op("ldi", r(MULTIPLIER), INPUT_MAX)
            store(code, target, MULTIPLIER)
            code.op("rjmp", end)
        code.place(positive)
        if add is not None:
            self._add_branch()
        code.place(summed)
        if two_bytes and high > 0xFFFF:
            if not zero_flag:
                code.op("tst", r(TOTAL.high))
            code.op("brne", saturated)
        product = self._multiply_total(multiplier, needed_bytes(shift), two_bytes)
        length = (max(high, 0) * multiplier).bit_length()
        product = [register if length > 8 * number else None for number, register in enumerate(product)]
        store(code, target, narrow(code, product, shift, ZERO, saturated))
        code.place(end)

    def _multiply_total(self, multiplier: int, lowest: int, two_bytes: bool) -> list[int | None]:
        """TOTAL * multiplier; bytes below `lowest` may be wrong."""
        code = self.code
        factor = WEIGHT
        if self._loaded != multiplier:
            factor = MULTIPLIER  # what is loaded stays
            code.op("ldi", r(factor), multiplier)
        low_byte, second, upper = TOTAL.low, BRANCH.low, PARTIAL
        if two_bytes:
            code.op("mul", r(TOTAL.middle), r(factor))
            code.op("movw", r(upper[0]), r(0))
            code.op("mul", r(TOTAL.low), r(factor))
            if lowest == 0:
                code.op("mov", r(low_byte), r(0))
            code.op("add", r(upper[0]), r(1))
            code.op("adc", r(upper[1]), r(ZERO))
            return [low_byte, upper[0], upper[1]]
        code.op("mul", r(TOTAL.high), r(factor))
        code.op("movw", r(upper[0]), r(0))
        code.op("mul", r(TOTAL.low), r(factor))
        code.op("mov", r(second), r(1))
        if lowest == 0:
            code.op("mov", r(low_byte), r(0))
        code.op("mul", r(TOTAL.middle), r(factor))
        code.op("add", r(second), r(0))
        code.op("adc", r(upper[0]), r(1))
        code.op("adc", r(upper[1]), r(ZERO))
        return [low_byte, second, upper[0], upper[1]]

    def _layer3(self) -> None:
        """The logits, and the first of the greatest; BRANCH holds the greatest so far."""
        code = self.code
        for action, bias in enumerate(self.part["layer3"]["biases"]):
            self._sum(bias, TOTAL)
            for number, register in enumerate(TOTAL):
                code.op("sts", f"{LOGITS}+{3 * action + number}", r(register))
            lower = code.label()
            if action:
                for number, (best, here) in enumerate(zip(BRANCH, TOTAL, strict=True)):
                    code.op("cpc" if number else "cp", r(best), r(here))
                code.op("brge", lower)
            code.op("movw", r(BRANCH.low), r(TOTAL.low))
            code.op("mov", r(BRANCH.high), r(TOTAL.high))
            if action:
                code.op("ldi", r(PARTIAL[0]), action)
            code.op("sts", ACTION, r(PARTIAL[0] if action else ZERO))
            code.place(lower)


FAST: list[int | str] = [*FILES, SPARE]


def _places(array: str, count: int, first: int = len(FAST)) -> list[int | str]:
    """Where a layer's inputs are while it is computed: registers, the spare byte, then bytes of `array` from `first` on."""
    return [*FAST[:count], *(f"{array}+{first + number}" for number in range(count - len(FAST)))]


def _targets(array: str, places: Sequence[int | str], inputs: Sequence[int | str]) -> list[int | str]:
    """Where a layer's outputs go: to their places if no input is there any more, else to `array` for now."""
    last = len(places) - 1
    return [place if number == last or place not in inputs else f"{array}+{number}" for number, place in enumerate(places)]


def _take_in(summands: list[Summand], constant: int) -> int:
    """The constant, once it is part of a partial sum of its sign; 0 if none has room."""
    for number, (terms, _) in enumerate(summands):
        if len(terms) > 1 and (terms[0].weight > 0) == (constant > 0) and has_room(terms, abs(constant)):
            summands[number] = Summand(terms, abs(constant))
            return constant
    return 0


def _sizes(terms: Sequence[Term]) -> set[int]:
    return {term.size for term in terms}


def registers_for_inputs() -> int:
    """How many inputs of a layer lie in registers or the spare byte; more need RAM (`kernel_even`)."""
    return len(FAST)


def _aligned(multiplier: int, shift: int) -> tuple[int, int]:
    """The same scale with the shift that costs least: nearest above a whole byte, or at one."""
    scales = [(multiplier, shift)]
    while scales[-1][0] <= INPUT_MAX // 2 and scales[-1][1] < 31:
        scales.append((2 * scales[-1][0], scales[-1][1] + 1))
    multiplier, shift = scales[0]
    while multiplier % 2 == 0 and shift > 1:
        multiplier, shift = multiplier // 2, shift - 1
        scales.append((multiplier, shift))
    return min(scales, key=lambda scale: min(-scale[1] % 8, 2 + scale[1] % 8))
