"""The kernel `unrolled`: code that takes a request's values to bytes, and the registers that it shares with the layers.

q = min(255, (max(0, x - offset) * multiplier + half) >> shift), as in model/policy/integer.py. What is below the offset, or
would give 255, is not multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from firmware.generator.assembly import Assembly, byte, low, r
from firmware.generator.grouping import INPUT_MAX
from firmware.generator.narrowing import narrow

ZERO, TOP = 2, 27  # hold 0 and, while values are scaled, 255
GROUP_BYTES = 60  # of the values' code before what is aside
SPARE = "0x1e"  # GPIOR0, a byte that is read in one cycle
VALUES = "Z"  # pointer to the request's values
VALUE, FACTOR, PRODUCT = (24, 25), (23, 26), (28, 29)


def load(code: Assembly, register: int, place: str) -> None:
    """The byte at a place outside of the registers."""
    code.op(*(("in", r(register), SPARE) if place == SPARE else ("lds", r(register), place)))


def store(code: Assembly, place: int | str, register: int) -> None:
    """To a place: a register, the spare byte, or a byte of RAM."""
    if isinstance(place, int):
        code.op("mov", r(place), r(register))
    elif place == SPARE:
        code.op("out", SPARE, r(register))
    else:
        code.op("sts", place, r(register))


class Aside(NamedTuple):
    """How a value that needs no multiplication gets its byte, and where: labels of the code for either, for 0, for 255, and of
    what follows the value's own code. ``is_mixed``: either may come; ``is_tested``: the flags tell which it is."""

    mixed: str
    zero: str
    top: str
    done: str
    is_mixed: bool
    is_tested: bool
    place: int | str


class Scaling:
    """Code that takes all values to bytes. What is 0 or 255 without a multiplication is out of the way of the others, behind a
    few values at a time: a branch reaches no further."""

    def __init__(self, code: Assembly) -> None:
        self._code = code
        self._asides: list[Aside] = []  # to be written yet
        self._begin = 0

    def write(self, features: Sequence[dict[str, Any]], places: Sequence[int | str | None]) -> None:
        """The values of all features to these places; None: not needed."""
        code, waiting = self._code, iter(places)
        code.note("scaling")
        code.op("ldi", r(TOP), INPUT_MAX)
        self._begin = code.code_bytes
        for feature in features:
            code.op("ldi", r(FACTOR[0]), low(feature["multiplier"]))
            if feature["multiplier"] > INPUT_MAX:
                code.op("ldi", r(FACTOR[1]), byte(feature["multiplier"], 1))
            for _ in range(feature["width"]):
                self._value(feature, next(waiting))
                if code.code_bytes - self._begin >= GROUP_BYTES:
                    self._flush()
        self._flush()

    def _value(self, feature: dict[str, Any], place: int | str | None) -> None:
        code = self._code
        if place is None:
            code.op("adiw", r(30), 2)
            return
        multiplier, shift, offset = feature["multiplier"], feature["shift"], feature["offset"]
        lower, upper = VALUE
        half = (1 << shift) >> 1
        least_255 = -(-((INPUT_MAX << shift) - half) // multiplier)  # the least x - offset that gives 255
        one_byte = least_255 <= INPUT_MAX + 1  # what has a second byte is 0 or 255
        aside = Aside(code.label(), code.label(), code.label(), code.label(), one_byte, bool(offset), place)
        code.op("ld", r(lower), f"{VALUES}+")
        code.op("ld", r(upper), f"{VALUES}+")
        if offset:
            code.op("subi", r(lower), low(offset))
            code.op("sbci", r(upper), byte(offset, 1))
        if one_byte:
            code.op("cpse", r(upper), r(ZERO))
            code.op("rjmp", aside.mixed)
            if least_255 <= INPUT_MAX:
                code.op("cpi", r(lower), least_255)
                code.op("brsh", aside.top)
        else:
            if not offset:
                code.op("tst", r(upper))
            code.op("brlt", aside.zero)
            if least_255 <= 65535:
                code.op("ldi", r(PRODUCT[0]), byte(least_255, 1))
                code.op("cpi", r(lower), low(least_255))
                code.op("cpc", r(upper), r(PRODUCT[0]))
                code.op("brsh", aside.top)
        product = _multiply(code, multiplier > INPUT_MAX, one_byte)
        store(code, place, narrow(code, product, shift, ZERO, None))
        code.place(aside.done)
        self._asides.append(aside)

    def _flush(self) -> None:
        code, behind = self._code, self._code.label()
        if self._asides:
            code.op("rjmp", behind)
        for aside in self._asides:
            if aside.is_mixed:
                code.place(aside.mixed)
                if not aside.is_tested:
                    code.op("tst", r(VALUE[1]))
                code.op("brge", aside.top)
            code.place(aside.zero)
            store(code, aside.place, ZERO)
            code.op("rjmp", aside.done)
            code.place(aside.top)
            store(code, aside.place, TOP)
            code.op("rjmp", aside.done)
        code.place(behind)
        self._asides, self._begin = [], code.code_bytes


def _multiply(code: Assembly, two_factors: bool, one_byte: bool) -> list[int | None]:
    """VALUE * FACTOR, three bytes (it fits: what gives 255 has been left out), of a value of one byte or two."""
    (lower, upper), (low_factor, high_factor) = VALUE, FACTOR
    if one_byte and not two_factors:
        code.op("mul", r(lower), r(low_factor))
        return [0, 1, None]
    first, second = (lower, high_factor) if two_factors else (upper, low_factor)
    code.op("mul", r(first), r(second))
    code.op("movw", r(PRODUCT[0]), r(0))
    if two_factors and not one_byte:
        code.op("mul", r(upper), r(low_factor))
        code.op("add", r(PRODUCT[0]), r(0))
        code.op("adc", r(PRODUCT[1]), r(1))
        code.op("mul", r(upper), r(high_factor))
        code.op("add", r(PRODUCT[1]), r(0))
    code.op("mul", r(lower), r(low_factor))
    code.op("add", r(PRODUCT[0]), r(1))
    code.op("adc", r(PRODUCT[1]), r(ZERO))
    return [0, *PRODUCT]
