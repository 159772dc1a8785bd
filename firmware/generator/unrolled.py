"""The kernel `unrolled`: straight-line assembly for one policy, its weights as immediates.

Per intersection one piece of code. A layer's inputs lie in registers (what has no room, in RAM), and each row is summed by
itself: exactly, in 24 bits, with partial sums of 16 bits where `generator.grouping` proves that they suffice. A product is
that of |w| and an activation, both unsigned, and is added or subtracted by the sign of w; zero weights cost nothing.

Meaning as in model/integer.py. The surroundings (registers saved, the pointer to the values) are firmware/src/avr/unrolled.S.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from generator.assembly import Assembly, byte, low, r
from generator.grouping import INPUT_MAX, Term, group
from generator.narrowing import narrow, needed_bytes

ZERO = 2
FILES = range(3, 23)  # registers that hold a layer's inputs
WEIGHT = 23
RESULT = 27
VALUES = "Z"  # pointer to the request's values while they are scaled
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


class Unrolled:
    """Writes the code of one intersection, from the policy file's object."""

    def __init__(self, number: int, part: dict[str, Any]) -> None:
        self.number = number
        self.code = Assembly(str(number))
        self.part = part
        self._loaded: int | None = None  # what WEIGHT holds

    def write(self) -> Assembly:
        part, code = self.part, self.code
        code.op("movw", r(30), r(26))
        inputs = self._scale()
        code.place(f"layers_{self.number}")  # for who counts the cycles from here
        code.note("layer 1")
        h1 = part["hidden"][0]
        for row in range(h1):
            self._layer1_row(row, inputs)
        code.note("layer 2")
        hidden1 = self._fetch(HIDDEN1, h1)
        layer = part["layer2"]
        for row, (weights, bias) in enumerate(zip(layer["weights"], layer["biases"], strict=True)):
            zero_flag = self._sum(weights, hidden1, bias, TOTAL)
            high = bias + INPUT_MAX * sum(w for w in weights if w > 0)
            self._activate(
                f"{HIDDEN2}+{row}", high, layer["multipliers"][row], layer["shifts"][row], relu=True, zero_flag=zero_flag
            )
        code.note("layer 3")
        self._layer3(self._fetch(HIDDEN2, part["hidden"][1]))
        code.op("ret")
        return code

    # Inputs

    def _scale(self) -> list[int | str]:
        """Code that takes the request's values to bytes, and where each of them then lies."""
        code, places = self.code, _places(INPUTS, sum(f["width"] for f in self.part["features"]), 0)
        code.note("scaling")
        code.op("ldi", r(RESULT), INPUT_MAX)
        done = 0
        for feature in self.part["features"]:
            for _ in range(feature["width"]):
                self._scale_value(feature, places[done])
                done += 1
        return places

    def _scale_value(self, feature: dict[str, Any], place: int | str) -> None:
        """q = min(255, (max(0, x - offset) * multiplier + half) >> shift). RESULT holds 255 until the first value for RAM."""
        code, done = self.code, self.code.label()
        multiplier, shift, offset = feature["multiplier"], feature["shift"], feature["offset"]
        target = place if isinstance(place, int) else RESULT
        lower, upper, factor = 24, 25, WEIGHT
        half = (1 << shift) >> 1
        least_255 = -(-((INPUT_MAX << shift) - half) // multiplier)  # the least x - offset that gives 255
        code.op("ld", r(lower), f"{VALUES}+")
        code.op("ld", r(upper), f"{VALUES}+")
        code.op("mov", r(target), r(ZERO))
        if offset:
            code.op("subi", r(lower), low(offset))
            code.op("sbci", r(upper), byte(offset, 1))
            code.op("brlt", done)
        else:
            code.op("tst", r(upper))
            code.op("brmi", done)
        if least_255 <= 65535:
            if target == RESULT:  # without touching the flags
                code.op("ldi", r(target), INPUT_MAX)
            else:
                code.op("mov", r(target), r(RESULT))
            if least_255 <= INPUT_MAX:
                if offset:
                    code.op("tst", r(upper))
                code.op("brne", done)
                code.op("cpi", r(lower), least_255)
            else:
                code.op("cpi", r(lower), low(least_255))
                code.op("ldi", r(factor), byte(least_255, 1))
                code.op("cpc", r(upper), r(factor))
            code.op("brsh", done)
        product = self._multiply_value(multiplier, least_255 <= 256, lower, upper, factor)
        result = narrow(code, product, shift, ZERO, None)
        if result != target:
            code.op("mov", r(target), r(result))
        code.place(done)
        if isinstance(place, str):
            code.op("sts", place, r(RESULT))
        self._loaded = None

    def _multiply_value(self, multiplier: int, one_byte: bool, lower: int, upper: int, factor: int) -> list[int | None]:
        """The product's three bytes (it fits: what gives 255 has been left out)."""
        code = self.code
        code.op("ldi", r(factor), low(multiplier))
        code.op("mul", r(lower), r(factor))
        code.op("movw", r(28), r(0))
        if multiplier <= INPUT_MAX and one_byte:
            return [28, 29, None]
        code.op("mov", r(26), r(ZERO))
        if not one_byte:
            code.op("mul", r(upper), r(factor))
            code.op("add", r(29), r(0))
            code.op("adc", r(26), r(1))
        if multiplier > INPUT_MAX:
            code.op("ldi", r(factor), byte(multiplier, 1))
            code.op("mul", r(lower), r(factor))
            code.op("add", r(29), r(0))
            code.op("adc", r(26), r(1))
            if not one_byte:
                code.op("mul", r(upper), r(factor))
                code.op("add", r(26), r(0))
        return [28, 29, 26]

    def _fetch(self, array: str, count: int) -> list[int | str]:
        places = _places(array, count, len(FILES))
        for number, place in enumerate(places):
            if isinstance(place, int):
                self.code.op("lds", r(place), f"{array}+{number}")
        return places

    # Sums

    def _sum(self, weights: Sequence[int], inputs: Sequence[int | str], bias: int, into: Accumulator) -> bool:
        """into = bias + sum of weight * input, exact; the sign flag is that of the sum. True: the zero flag is that of its
        highest byte."""
        code = self.code
        row = group([Term(w, place) for w, place in zip(weights, inputs, strict=True) if w])
        negative = [terms for terms in (*row.partial, *([t] for t in row.single)) if terms[0].weight < 0]
        positive = [terms for terms in (*row.partial, *([t] for t in row.single)) if terms[0].weight > 0]
        if row.lead:
            self._partial_sum(row.lead, (into.low, into.middle), [*negative, *positive])
            if negative:  # its borrow begins the highest byte
                self._add(negative, positive, into, fresh=True)
            else:
                code.op("ldi", r(into.high), 0)
            for number, register in enumerate(into):
                code.op("sbci" if number else "subi", r(register), byte(-bias, number))
        else:
            for number, register in enumerate(into):
                code.op("ldi", r(register), byte(bias, number))
            code.op("tst", r(into.high))
        ends_positive = bool(positive)
        while negative:
            self._add(negative, positive, into)
        while positive:
            self._add(positive, [], into)
        return ends_positive  # ADC sets the zero flag by its own byte, SBC by all

    def _add(self, waiting: list[list[Term]], later: list[list[Term]], into: Accumulator, *, fresh: bool = False) -> None:
        """Takes one of the waiting summands of a sign, if possible one that begins with the weight loaded, and adds it: a
        product, or several by way of a partial sum. `fresh`: the highest byte is 0 and not yet set."""
        code = self.code
        terms = next((each for each in waiting if any(term.size == self._loaded for term in each)), waiting[0])
        waiting.remove(terms)
        positive = terms[0].weight > 0
        if len(terms) == 1:
            self._accumulate(terms[0], into[:2])
        else:
            self._partial_sum(terms, PARTIAL, [*waiting, *later])
            code.op("add" if positive else "sub", r(into.low), r(PARTIAL[0]))
            code.op("adc" if positive else "sbc", r(into.middle), r(PARTIAL[1]))
        code.op("adc" if positive else "sbc", r(into.high), r(into.high if fresh else ZERO))

    def _partial_sum(self, terms: Sequence[Term], into: Sequence[int], later: Sequence[Sequence[Term]]) -> None:
        """into = sum of |weight| * input, in 16 bits. It begins with the weight loaded and ends with one needed `later`, if
        there are such: a weight that is loaded already saves a cycle."""
        sizes = {term.size for each in later for term in each}
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
        if self._loaded != term.size:
            self.code.op("ldi", r(WEIGHT), term.size)
            self._loaded = term.size
        self.code.op("mul", r(register), r(WEIGHT))

    def _register(self, term: Term) -> int:
        """Where the term's input is, fetched from RAM if it lies there."""
        if isinstance(term.source, int):
            return term.source
        self.code.op("lds", r(PARTIAL[0]), term.source)
        return PARTIAL[0]

    # Layers

    def _layer1_row(self, row: int, inputs: Sequence[int | str]) -> None:
        """The branches' ReLUs, summed, to a byte."""
        code, layer = self.code, self.part["layer1"]
        begin = high = 0
        zero_flag = False
        for number, feature in enumerate(self.part["features"]):
            end = begin + feature["width"]
            weights, bias = layer["weights"][number][row], layer["biases"][number][row]
            high += max(0, bias + INPUT_MAX * sum(w for w in weights if w > 0))
            zero_flag = self._sum(weights, inputs[begin:end], bias, BRANCH if number else TOTAL)
            begin = end
            if len(self.part["features"]) == 1:
                break
            done = code.label()
            if number == 0:
                code.op("brpl", done)
                for register in TOTAL:
                    code.op("mov", r(register), r(ZERO))
            else:
                code.op("brmi", done)
                for add, to, of in zip(("add", "adc", "adc"), TOTAL, BRANCH, strict=True):
                    code.op(add, r(to), r(of))
            code.place(done)
        relu = len(self.part["features"]) == 1
        self._activate(
            f"{HIDDEN1}+{row}", high, layer["multipliers"][row], layer["shifts"][row], relu=relu, zero_flag=zero_flag and relu
        )

    def _activate(self, target: str, high: int, multiplier: int, shift: int, *, relu: bool, zero_flag: bool) -> None:
        """target = min(255, (max(0, TOTAL) * multiplier + half) >> shift), TOTAL being at most `high`. Where `relu` is False it
        is not negative; otherwise the sign flag is its own, and if `zero_flag`, the zero flag that of its highest byte."""
        code, done = self.code, self.code.label()
        multiplier, shift = _aligned(multiplier, shift)
        half = 1 << (shift - 1)
        least_255 = -(-((INPUT_MAX << shift) - half) // multiplier)
        two_bytes = min(high, least_255 - 1) <= 0xFFFF
        if relu:
            code.op("mov", r(RESULT), r(ZERO))
            code.op("brmi", done)
        saturates = high >= least_255
        if saturates:
            code.op("ldi", r(RESULT), INPUT_MAX)
        if two_bytes and high > 0xFFFF:
            if not zero_flag:
                code.op("tst", r(TOTAL.high))
            code.op("brne", done)
        product = self._multiply_total(multiplier, needed_bytes(shift), two_bytes)
        length = (max(high, 0) * multiplier).bit_length()
        product = [register if length > 8 * number else None for number, register in enumerate(product)]
        result = narrow(code, product, shift, ZERO, done if saturates else None)
        code.op("mov", r(RESULT), r(result))
        code.place(done)
        code.op("sts", target, r(RESULT))
        self._loaded = None  # the branches leave out its loading

    def _multiply_total(self, multiplier: int, lowest: int, two_bytes: bool) -> list[int | None]:
        """TOTAL * multiplier; bytes below `lowest` may be wrong."""
        code = self.code
        if self._loaded != multiplier:
            code.op("ldi", r(WEIGHT), multiplier)
            self._loaded = multiplier
        low_byte, second, upper = TOTAL.low, BRANCH.low, PARTIAL
        if two_bytes:
            code.op("mul", r(TOTAL.middle), r(WEIGHT))
            code.op("movw", r(upper[0]), r(0))
            code.op("mul", r(TOTAL.low), r(WEIGHT))
            if lowest == 0:
                code.op("mov", r(low_byte), r(0))
            code.op("add", r(upper[0]), r(1))
            code.op("adc", r(upper[1]), r(ZERO))
            return [low_byte, upper[0], upper[1]]
        code.op("mul", r(TOTAL.high), r(WEIGHT))
        code.op("movw", r(upper[0]), r(0))
        code.op("mul", r(TOTAL.low), r(WEIGHT))
        code.op("mov", r(second), r(1))
        if lowest == 0:
            code.op("mov", r(low_byte), r(0))
        code.op("mul", r(TOTAL.middle), r(WEIGHT))
        code.op("add", r(second), r(0))
        code.op("adc", r(upper[0]), r(1))
        code.op("adc", r(upper[1]), r(ZERO))
        return [low_byte, second, upper[0], upper[1]]

    def _layer3(self, inputs: Sequence[int | str]) -> None:
        """The logits, and the first of the greatest; BRANCH holds the greatest so far."""
        code, layer = self.code, self.part["layer3"]
        for action, (weights, bias) in enumerate(zip(layer["weights"], layer["biases"], strict=True)):
            self._sum(weights, inputs, bias, TOTAL)
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
                code.op("ldi", r(WEIGHT), action)
            code.op("sts", ACTION, r(WEIGHT if action else ZERO))
            code.place(lower)
            self._loaded = None


def _places(array: str, count: int, first: int) -> list[int | str]:
    """Registers for the first inputs of a layer; for the others bytes of `array` from `first` on."""
    held = min(count, len(FILES))
    return [*FILES[:held], *(f"{array}+{number}" for number in range(first, first + count - held))]


def registers_for_inputs() -> int:
    """How many inputs of a layer lie in registers; more need RAM (`kernel_even`)."""
    return len(FILES)


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
