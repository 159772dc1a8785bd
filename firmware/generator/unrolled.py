"""The kernel `unrolled`: straight-line assembly for one policy, its weights as immediates.

Per network one piece of code, for all intersections with that network. A layer's inputs lie in registers (or, without room,
in RAM). Each row is summed by itself (`sums`), in 16 bits where no input can take it further. A branch that no input can wake
isn't computed, and one that is always awake isn't tested.

Meaning as in model/policy/integer.py. What surrounds it is firmware/src/avr/unrolled.S.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from firmware.generator.assembly import Assembly, r
from firmware.generator.grouping import INPUT_MAX, Term
from firmware.generator.narrow_row import bounds, is_narrow
from firmware.generator.narrowing import narrow, needed_bytes
from firmware.generator.policy import is_joined
from firmware.generator.scaling import SPARE, ZERO, Scaling, load, store
from firmware.generator.sums import BRANCH, LEAST_IMMEDIATE, PARTIAL, TOTAL, WEIGHT, Accumulator, Sum, Sums

FILES = range(3, 23)  # registers that hold a layer's inputs; one input more lies in the spare byte
THROUGH_RAM_CYCLES = 3  # STS and LDS instead of MOV
INPUTS, HIDDEN1, HIDDEN2 = "kernel_even", "kernel_odd", "kernel_even"  # in RAM
ACTION, LOGITS = "inferred", "inferred+1"  # struct decision
HIGHEST = (TOTAL.high, BRANCH.high)  # free where all sums of a layer are narrow
MULTIPLIER = BRANCH.middle  # free while a sum is requantised


class Unit(NamedTuple):
    """A row of a hidden layer: the sums whose ReLUs are added, and their greatest total. ``is_awake``: the second sum, or the
    only one, can't be negative, and so needs no ReLU."""

    sums: list[Sum]
    is_awake: bool
    high: int


class Unrolled:
    """Writes the code of one intersection, from the policy file's object."""

    def __init__(self, number: int, part: dict[str, Any]) -> None:
        self.number = number
        self.code = Assembly(str(number))
        self.part = part
        self._sums = Sums(self.code)

    def write(self) -> Assembly:
        part, code = self.part, self.code
        code.op("movw", r(30), r(26))
        h1, h2 = part["hidden"]
        layer1, layer2, layer3 = part["layer1"], part["layer2"], part["layer3"]
        scaled = _input_places(self._uses())
        Scaling(code).write(part["features"], scaled)
        code.place(f"layers_{self.number}")  # for tests that count cycles from here on
        inputs = [place or ZERO for place in scaled]
        units1 = [_unit(self._branches(row, inputs)) for row in range(h1)]
        if _are_narrow(units1):
            inputs = self._with_high_registers(inputs)
            units1 = [_unit(self._branches(row, inputs)) for row in range(h1)]
        hidden1, hidden2 = _places(HIDDEN1, h1), _places(HIDDEN2, h2)
        units2 = [_unit([(_terms(w, hidden1), b)]) for w, b in zip(layer2["weights"], layer2["biases"], strict=True)]
        logits = [_sum(_terms(w, hidden2), b) for w, b in zip(layer3["weights"], layer3["biases"], strict=True)]
        for unit in (*units1, *units2):
            self._sums.plan(unit.sums)
        self._sums.plan(logits)
        code.note("layer 1")
        targets = _targets(HIDDEN1, hidden1, inputs)
        self._layer(units1, HIDDEN1, targets, layer1)
        code.note("layer 2")
        self._fetch(targets, hidden1)
        free = [BRANCH.high, *(register for register in FILES if register not in hidden1 and register >= LEAST_IMMEDIATE)]
        if _are_narrow(units2):
            free.append(TOTAL.high)
        self._hold(units2, free, hidden2)
        targets = _targets(HIDDEN2, hidden2, [*hidden1, *self._sums.held.values()])
        self._layer(units2, HIDDEN2, targets, layer2)
        self._sums.held = {}
        code.note("layer 3")
        self._fetch(targets, hidden2)
        self._layer3(logits)
        code.op("ret")
        return code

    def _with_high_registers(self, inputs: Sequence[int | str]) -> list[int | str]:
        """Brings the two inputs in RAM that are used most to the registers of the sums' highest bytes, which aren't needed."""
        registers = dict(zip((f"{INPUTS}+{number}" for number in range(len(HIGHEST))), HIGHEST, strict=True))
        for place, register in registers.items():
            if place in inputs:
                load(self.code, register, place)
        return [registers.get(place, place) if isinstance(place, str) else place for place in inputs]

    def _uses(self) -> list[int]:
        """Of each input, with how many weights it is multiplied in layer 1."""
        branches = self.part["layer1"]["weights"]
        columns = [column for rows in branches for column in zip(*rows, strict=True)]
        return [sum(weight != 0 for weight in column) for column in columns]

    def _branches(self, row: int, inputs: Sequence[int | str]) -> list[tuple[list[Term], int]]:
        """Terms and bias of each of layer 1's branches in a row."""
        layer, begin, branches = self.part["layer1"], 0, []
        for weights, biases in zip(layer["weights"], layer["biases"], strict=True):
            branches.append((_terms(weights[row], inputs[begin : begin + len(weights[row])]), biases[row]))
            begin += len(weights[row])
        if is_joined(self.part):
            return [([term for terms, _ in branches for term in terms], sum(bias for _, bias in branches))]
        return branches

    def _hold(self, units: Sequence[Unit], registers: Sequence[int], outputs: Sequence[int | str]) -> None:
        """Puts the most frequent |weights| of a layer into registers that it leaves free, where that saves cycles: an output
        that loses its register goes through RAM, except the last."""
        counts: Counter[int] = Counter()
        for unit in units:
            for each in unit.sums:
                counts += each.loads()
        for register, (size, count) in zip(registers, counts.most_common(), strict=False):
            if count > 1 + (THROUGH_RAM_CYCLES if register in outputs[:-1] else 0):
                self.code.op("ldi", r(register), size)
                self._sums.held[size] = register

    def _layer(self, units: Sequence[Unit], array: str, targets: Sequence[int | str], scales: dict[str, Sequence[int]]) -> None:
        for row, (unit, target) in enumerate(zip(units, targets, strict=True)):
            self._unit(unit, target, (scales["multipliers"][row], scales["shifts"][row]))
            if target == SPARE:  # the byte must be in RAM, too, for range.S
                load(self.code, target := PARTIAL[0], SPARE)
            if isinstance(target, int):
                store(self.code, f"{array}+{row}", target)

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

    # Layers

    def _unit(self, unit: Unit, target: int | str, scale: tuple[int, int]) -> None:
        """The branches' ReLUs, summed, to a byte."""
        code, sums = self.code, unit.sums
        if not sums:
            store(code, target, ZERO)
            return
        zero_flag = self._sums.write(TOTAL)
        if len(sums) == 1:
            self._activate(target, unit.high, scale, test=None if unit.is_awake else TOTAL, zero_flag=zero_flag)
            return
        size = 2 if sums[0].narrow else 3
        awake = code.label()
        code.op("brpl", awake)
        for register in TOTAL[:size]:
            code.op("mov", r(register), r(ZERO))
        code.place(awake)
        later = sums[1:]
        if unit.is_awake:
            later = later[1:]
            self._sums.write(TOTAL)
        for _ in later[:-1]:
            self._sums.write(BRANCH)
            asleep = code.label()
            code.op("brmi", asleep)
            self._add_branch(size)
            code.place(asleep)
        if later:
            self._sums.write(BRANCH)
        self._activate(target, unit.high, scale, test=BRANCH if later else None, size=size)

    def _add_branch(self, size: int) -> None:
        for add, to, of in list(zip(("add", "adc", "adc"), TOTAL, BRANCH, strict=True))[:size]:
            self.code.op(add, r(to), r(of))

    def _activate(
        self,
        target: int | str,
        high: int,
        scale: tuple[int, int],
        *,
        test: Accumulator | None,
        zero_flag: bool = False,
        size: int = 3,
    ) -> None:
        """target = min(255, (max(0, TOTAL) * multiplier + half) >> shift), TOTAL being at most `high`. The sign flag is that of
        `test`; if `zero_flag`, the zero flag is that of its highest byte. None: TOTAL is not negative. BRANCH: nor then, and
        that (its lower `size` bytes) is added before unless it is negative.

        What is neither 0 nor 255 runs straight through: it takes longest. The others' code lies where that jumps anyway."""
        code = self.code
        multiplier, shift = _aligned(*scale, high)
        half = 1 << (shift - 1)
        least_255 = -(-((INPUT_MAX << shift) - half) // multiplier)
        two_bytes = min(high, least_255 - 1) <= 0xFFFF
        positive, summed, end = code.label(), code.label(), code.label()
        saturated = code.label() if high >= least_255 else None
        if test is not None:
            code.op("brpl", positive)
        elif saturated is not None:
            code.op("rjmp", summed)
        if test is TOTAL:
            store(code, target, ZERO)
            code.op("rjmp", end)
        elif test is BRANCH:
            code.op("rjmp", summed)
        if saturated is not None:
            code.place(saturated)
            code.op("ldi", r(MULTIPLIER), INPUT_MAX)
            store(code, target, MULTIPLIER)
            code.op("rjmp", end)
        code.place(positive)
        if test is BRANCH:
            self._add_branch(size)
        code.place(summed)
        if two_bytes and high > 0xFFFF:
            if not zero_flag:
                code.op("tst", r(TOTAL.high))
            code.op("brne", saturated)
        product = self._multiply_total(multiplier, needed_bytes(shift), two_bytes)
        most = max(min(high, 0xFFFF if two_bytes else high), 0) * multiplier
        product = [register if most.bit_length() > 8 * number else None for number, register in enumerate(product)]
        store(code, target, narrow(code, product, shift, ZERO, saturated, most))
        code.place(end)

    def _multiply_total(self, multiplier: int, lowest: int, two_bytes: bool) -> list[int | None]:
        """TOTAL * multiplier; bytes below `lowest` may be wrong."""
        code = self.code
        if multiplier == 1:
            return list(TOTAL[: 2 if two_bytes else 3])
        factor = WEIGHT
        if self._sums.loaded != multiplier:
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

    def _layer3(self, logits: Sequence[Sum]) -> None:
        """The logits, and the first of the greatest; BRANCH holds the greatest so far."""
        code = self.code
        size = 2 if all(each.narrow for each in logits) else 3  # that are compared
        for action, each in enumerate(logits):
            self._sums.write(TOTAL)
            if each.narrow:
                code.op("mov", r(TOTAL.high), r(TOTAL.middle))
                code.op("lsl", r(TOTAL.high))
                code.op("sbc", r(TOTAL.high), r(TOTAL.high))
            for number, register in enumerate(TOTAL):
                code.op("sts", f"{LOGITS}+{3 * action + number}", r(register))
            lower = code.label()
            if action:
                for number, (best, here) in enumerate(list(zip(BRANCH, TOTAL, strict=True))[:size]):
                    code.op("cpc" if number else "cp", r(best), r(here))
                code.op("brge", lower)
            code.op("movw", r(BRANCH.low), r(TOTAL.low))
            if size > 2:
                code.op("mov", r(BRANCH.high), r(TOTAL.high))
            if action:
                code.op("ldi", r(PARTIAL[0]), action)
            code.op("sts", ACTION, r(PARTIAL[0] if action else ZERO))
            code.place(lower)


FAST: list[int | str] = [*FILES, SPARE]


def _are_narrow(units: Sequence[Unit]) -> bool:
    return all(each.narrow for unit in units for each in unit.sums)


def _terms(weights: Sequence[int], places: Sequence[int | str]) -> list[Term]:
    return [Term(w, place) for w, place in zip(weights, places, strict=True) if w]


def _sum(terms: list[Term], bias: int) -> Sum:
    return Sum(terms, bias, is_narrow([term.weight for term in terms], bias))


def _unit(branches: Sequence[tuple[list[Term], int]]) -> Unit:
    """What is to be computed of branches that have a ReLU each."""
    by_bounds = [(bounds([term.weight for term in terms], bias), terms, bias) for terms, bias in branches]
    awake = [each for each in by_bounds if each[0][1] > 0]
    total = sum(high for (_, high), _, _ in awake)
    fits = total <= 0xFFFF and all(is_narrow([term.weight for term in terms], bias) for _, terms, bias in awake)
    if not fits:
        sums = [Sum(terms, bias, narrow=False) for _, terms, bias in awake]
        return Unit(sums, len(awake) == 1 and awake[0][0][0] >= 0, total)
    sums = [Sum(terms, bias, narrow=True) for (low, _), terms, bias in awake if low < 0]
    always = [each for each in awake if each[0][0] >= 0]
    if always:
        terms = [term for _, part, _ in always for term in part]
        sums.insert(1, Sum(terms, sum(bias for _, _, bias in always), narrow=True, onto=bool(sums)))
    return Unit(sums, bool(always), total)


def _places(array: str, count: int) -> list[int | str]:
    """Where a layer's inputs are while it is computed: registers, the spare byte, then the further bytes of `array`."""
    return [*FAST[:count], *(f"{array}+{number}" for number in range(len(FAST), count))]


def _input_places(uses: Sequence[int]) -> list[int | str | None]:
    """Where the policy's inputs are: those that are used most in registers, then the spare byte, then RAM; None: not used."""
    order = sorted((number for number, count in enumerate(uses) if count), key=lambda number: -uses[number])
    places = [*FAST, *(f"{INPUTS}+{number}" for number in range(len(order)))]
    by_number = dict(zip(order, places, strict=False))
    return [by_number.get(number) for number in range(len(uses))]


def _targets(array: str, places: Sequence[int | str], inputs: Sequence[int | str]) -> list[int | str]:
    """Where a layer's outputs go: to their places if no input is there any more, else to `array` for now."""
    last = len(places) - 1
    return [place if number == last or place not in inputs else f"{array}+{number}" for number, place in enumerate(places)]


def registers_for_inputs() -> int:
    """How many inputs of a layer lie in registers or the spare byte; more need RAM (`kernel_even`)."""
    return len(FAST)


def _aligned(multiplier: int, shift: int, high: int) -> tuple[int, int]:
    """The same scale with the shift that costs least: nearest above a whole byte, or at one; without a multiplier where it is a
    power of two and the sum (at most `high`) has two bytes."""
    scales = [(multiplier, shift)]
    while scales[-1][0] <= INPUT_MAX // 2 and scales[-1][1] < 31:
        scales.append((2 * scales[-1][0], scales[-1][1] + 1))
    multiplier, shift = scales[0]
    while multiplier % 2 == 0 and shift > 1:
        multiplier, shift = multiplier // 2, shift - 1
        scales.append((multiplier, shift))
    if multiplier == 1 and high <= 0xFFFF:
        return multiplier, shift
    return min(scales, key=lambda scale: min(-scale[1] % 8, 2 + scale[1] % 8))
