"""Code that takes a product down to a byte: q = min(255, (product + half) >> shift).

The product lies byte by byte in registers. Only the byte that the shift selects and its neighbours matter: nothing below
the rounding bit can carry into it, since rounding half up adds just that bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from firmware.generator.assembly import Assembly, r

Bytes = Sequence[int | None]  # registers of a product's bytes, lowest first; None: known to be 0, or not needed


def needed_bytes(shift: int) -> int:
    """The lowest byte of the product that the result depends on."""
    return shift // 8 if shift % 8 else max(shift // 8 - 1, 0)


def narrow(code: Assembly, product: Bytes, shift: int, zero: int, saturated: str | None, most: int | None = None) -> int:
    """The register that holds the byte. Branches to `saturated` where 255 is exceeded; None: it can't be. `most`: the greatest
    product, where that is known.

    Registers of the product are used up.
    """
    at, left = divmod(shift, 8)

    def part(number: int) -> int | None:
        return product[number] if number < len(product) else None

    for number in range(at + (2 if left else 1), len(product)):
        register = part(number)
        if register is not None and saturated is not None:
            code.op("tst", r(register))
            code.op("brne", saturated)
    if left == 0:
        return _whole_byte(code, part(at), part(at - 1) if shift else None, zero, saturated)
    window = None if most is None or most >> (8 * at + 16) else most >> 8 * at  # of the two bytes that are shifted
    return _shifted(code, part(at), part(at + 1), left, zero, saturated, 0xFFFF if window is None else window)


def _whole_byte(code: Assembly, result: int | None, fraction: int | None, zero: int, saturated: str | None) -> int:
    if fraction is None:
        return zero if result is None else result
    code.op("lsl", r(fraction))  # its top bit is the half
    if result is None:
        code.op("mov", r(fraction), r(zero))
        code.op("adc", r(fraction), r(zero))
        return fraction
    code.op("adc", r(result), r(zero))
    if saturated is not None:
        code.op("brcs", saturated)
    return result


def _shifted(
    code: Assembly, lower: int | None, upper: int | None, shift: int, zero: int, saturated: str | None, most: int
) -> int:
    """`most`: the greatest value of the two bytes."""
    if lower is None:
        return zero
    if upper is None:
        for _ in range(shift):
            code.op("lsr", r(lower))
        code.op("adc", r(lower), r(zero))
        return lower
    if shift <= 4:
        for _ in range(shift):
            code.op("lsr", r(upper))
            code.op("ror", r(lower))
        code.op("adc", r(lower), r(zero))
        if saturated is not None:
            code.op("brcs", saturated)
            code.op("tst", r(upper))
            code.op("brne", saturated)
        return lower
    at_once = shift == 5  # cheaper from three steps on
    if saturated is not None and at_once:
        code.op("cpi", r(upper), 1 << shift)
        code.op("brsh", saturated)
    for step in range(8 - shift):
        code.op("lsl", r(lower))
        code.op("rol", r(upper))
        if saturated is not None and not at_once and most << (step + 1) > 0xFFFF:
            code.op("brcs", saturated)
    code.op("lsl", r(lower))
    code.op("adc", r(upper), r(zero))
    if saturated is not None:
        code.op("brcs", saturated)
    return upper
