"""The kernel `unrolled`: code that takes a request's values to bytes, and the registers that it shares with the layers.

q = min(255, (max(0, x - offset) * multiplier + half) >> shift), as in model/policy/integer.py. What is below the offset, or
would give 255, jumps over the multiplication.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firmware.generator.assembly import Assembly, byte, low, r
from firmware.generator.grouping import INPUT_MAX
from firmware.generator.narrowing import narrow

ZERO, RESULT = 2, 27
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


def scale(code: Assembly, features: Sequence[dict[str, Any]], places: Sequence[int | str]) -> None:
    """Code that takes all values to bytes at these places, those in registers first."""
    code.note("scaling")
    code.op("ldi", r(RESULT), INPUT_MAX)
    waiting = iter(places)
    for feature in features:
        code.op("ldi", r(FACTOR[0]), low(feature["multiplier"]))
        if feature["multiplier"] > INPUT_MAX:
            code.op("ldi", r(FACTOR[1]), byte(feature["multiplier"], 1))
        for _ in range(feature["width"]):
            _scale_value(code, feature, next(waiting))


def _scale_value(code: Assembly, feature: dict[str, Any], place: int | str) -> None:
    """One value. RESULT holds 255 until the first that does not go to a register."""
    done = code.label()
    multiplier, shift, offset = feature["multiplier"], feature["shift"], feature["offset"]
    target = place if isinstance(place, int) else RESULT
    lower, upper = VALUE
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
        if target == RESULT:
            code.op("ldi", r(target), INPUT_MAX)
        else:
            code.op("mov", r(target), r(RESULT))
        code.op("cpi", r(lower), low(least_255))
        if least_255 > INPUT_MAX:
            code.op("ldi", r(PRODUCT[0]), byte(least_255, 1))
        code.op("cpc", r(upper), r(PRODUCT[0] if least_255 > INPUT_MAX else ZERO))
        code.op("brsh", done)
    product = _multiply(code, multiplier > INPUT_MAX, least_255 <= INPUT_MAX + 1)
    result = narrow(code, product, shift, ZERO, None)
    if result != target:
        code.op("mov", r(target), r(result))
    code.place(done)
    if isinstance(place, str):
        store(code, place, RESULT)


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
