"""Feature values of a DECIDE request, packed: half a byte each where that is enough (docs/protocol.md, "DECIDE")."""

import struct
from collections.abc import Iterator, Sequence

WIDE_HALF, WIDE_BYTE = 15, 255  # a whole byte follows; an int16 follows
HALVES = (1, 3, 7)  # that a value takes: above the base by less than 15, by less than 255, or as it is


def pack(values: Sequence[int]) -> bytes:
    """The base, int8, with which the values take the fewest bytes; then the values, lower half of a byte first."""
    bases = sorted({max(-128, min(127, value)) for value in values}) or [0]
    base = min(bases, key=lambda each: sum(_halves(value - each) for value in values))
    halves = [half for value in values for half in _packed(value, base)]
    halves += [0] * (len(halves) % 2)
    return struct.pack("<b", base) + bytes(low | high << 4 for low, high in zip(halves[::2], halves[1::2], strict=True))


def unpack(packed: bytes, count: int) -> bytes:
    """So many values as int16, as they are without packing. ValueError unless they are just these bytes."""
    (base,) = struct.unpack_from("<b", packed)
    halves = iter([half for byte in packed[1:] for half in (byte & 15, byte >> 4)])
    try:
        values = [_unpacked(halves, base) for _ in range(count)]
    except StopIteration:
        raise ValueError(f"{len(packed)} bytes are too few for {count} packed values") from None
    if len(list(halves)) > 1:
        raise ValueError(f"{len(packed)} bytes are too many for {count} packed values")
    return struct.pack(f"<{count}h", *values)


def _halves(above: int) -> int:
    return HALVES[0] if 0 <= above < WIDE_HALF else HALVES[1] if 0 <= above < WIDE_BYTE else HALVES[2]


def _packed(value: int, base: int) -> list[int]:
    above, halves = value - base, _halves(value - base)
    if halves == HALVES[0]:
        return [above]
    if halves == HALVES[1]:
        return [WIDE_HALF, above & 15, above >> 4]
    return [WIDE_HALF, 15, 15, *(value >> shift & 15 for shift in (0, 4, 8, 12))]


def _unpacked(halves: Iterator[int], base: int) -> int:
    def byte() -> int:
        low = next(halves)
        return low | next(halves) << 4

    above = next(halves)
    if above == WIDE_HALF:
        above = byte()
    if above == WIDE_BYTE:
        low = byte()
        return int.from_bytes(bytes((low, byte())), "little", signed=True)
    return base + above
