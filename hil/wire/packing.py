"""Feature values of a DECIDE request, packed: a byte each where that is enough (docs/protocol.md, "DECIDE")."""

import struct
from collections.abc import Sequence

WIDE = 255  # in place of a value's byte: it follows as int16


def pack(values: Sequence[int]) -> bytes:
    """The base, int8: the least value, as far as it can be told; then a byte for each value above it, or a 255 and int16."""
    base = max(-128, min(127, *values)) if values else 0
    bytes_of = (bytes((v - base,)) if 0 <= v - base < WIDE else struct.pack("<Bh", WIDE, v) for v in values)
    return struct.pack("<b", base) + b"".join(bytes_of)


def unpack(packed: bytes, count: int) -> bytes:
    """So many values as int16, as they are without packing. ValueError unless they are just these bytes."""
    (base,) = struct.unpack_from("<b", packed)
    values, rest = bytearray(), packed[1:]
    for _ in range(count):
        wide = rest[:1] == bytes((WIDE,))
        values += rest[1:3] if wide else b"".join(struct.pack("<h", base + byte) for byte in rest[:1])
        rest = rest[3 if wide else 1 :]
    if rest:
        raise ValueError(f"{len(rest)} bytes behind {count} packed values")
    return bytes(values)
