"""After linking: tells the program which build it is, and makes the CRC over the whole of it 0.

The symbol `firmware_self`, from which HELLO is answered, ends with the build's id (a hash of all other bytes, 4 bytes) and its
length (2); the CRC is made 0 by the two bytes at `flash_patch`.

    python -m firmware.generator.flash_crc FIRMWARE.elf

A CRC is linear: each bit of the two bytes flips a fixed pattern of the result. Solving 16 equations over bits gives the bits to
set.
"""

from __future__ import annotations

import hashlib
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PATCH, SELF = "flash_patch", "firmware_self"
BUILD_LAYOUT = struct.Struct("<IH")  # id, length of the program
VECTOR = re.compile(r"__vector_(\d+|default)")
VECTOR_BYTES = 4
CRC_INITIAL = 0xFFFF
RAM_BASE = 0x800000  # avr-gcc's ELF addresses of data memory start here
TABLE: list[int] = []
for number in range(256):
    value = number
    for _ in range(8):
        value = value >> 1 ^ (0x8408 if value & 1 else 0)
    TABLE.append(value)


def crc(data: bytes, start: int = CRC_INITIAL) -> int:
    """CRC-16/MCRF4XX, as firmware/include/crc.h."""
    for byte in data:
        start = start >> 8 ^ TABLE[(start ^ byte) & 0xFF]
    return start


def patch(elf_file: Path) -> None:
    """Rewrites the file. ValueError if it has no such symbol, does not lie in flash from address 0 without a gap, or has
    what start.S doesn't support: statics with initial values, which nothing would set, or an interrupt without a vector."""
    content = elf_file.read_bytes()
    elf, image, places = bytearray(content), bytearray(), list[int]()
    for offset, address, size in sorted(_segments(content), key=lambda segment: segment[1]):
        if address != len(image):
            raise ValueError(f"{elf_file}: a gap in flash at {len(image)}")
        places += range(offset, offset + size)
        image += elf[offset : offset + size]
    symbols = _symbols(content)
    _check_vectors(elf_file, symbols)
    for name in (SELF, PATCH):
        if name not in symbols:
            raise ValueError(f"{elf_file}: no {name} in the program")
    end, at = sum(symbols[SELF]), symbols[PATCH].address
    build = slice(end - BUILD_LAYOUT.size, end)
    image[build] = bytes(BUILD_LAYOUT.size)
    image[at : at + 2] = bytes(2)
    build_id = int.from_bytes(hashlib.sha256(image).digest()[:4], "little")
    image[build] = BUILD_LAYOUT.pack(build_id, len(image) & 0xFFFF)
    image[at : at + 2] = solution(bytes(image), at)
    for number, place in enumerate(places):
        elf[place] = image[number]
    elf_file.write_bytes(elf)


def solution(image: bytes, at: int) -> bytes:
    """The two bytes at `at` with which the CRC of the whole is 0."""
    before, behind = crc(image[:at]), image[at + 2 :]
    constant = crc(bytes(2) + behind, before)
    rows = [(crc((1 << bit).to_bytes(2, "little") + behind, before) ^ constant, 1 << bit) for bit in range(16)]
    wanted, bits = constant, 0
    for column in range(16):  # Gauss: one row per column, the others cleared of it
        pivot = next(number for number in range(column, 16) if rows[number][0] >> column & 1)
        rows[column], rows[pivot] = rows[pivot], rows[column]
        pattern, chosen = rows[column]
        rows = [
            (row[0] ^ pattern, row[1] ^ chosen) if number != column and row[0] >> column & 1 else row
            for number, row in enumerate(rows)
        ]
    for column in range(16):
        if wanted >> column & 1:
            bits ^= rows[column][1]
    return bits.to_bytes(2, "little")


def _segments(elf: bytes) -> Iterator[tuple[int, int, int]]:
    """(file offset, flash address, bytes) of what is loaded into flash; an ELF32 file, low byte first."""
    start, entry_bytes, count = struct.unpack_from("<I", elf, 28)[0], *struct.unpack_from("<HH", elf, 42)
    for number in range(count):
        kind, offset, virtual, address, size = struct.unpack_from("<IIIII", elf, start + number * entry_bytes)
        if kind == 1 and size and address < RAM_BASE:
            if virtual >= RAM_BASE:
                raise ValueError(f"{size} bytes of initial values for statics: the firmware's start sets all of them to 0")
            yield offset, address, size


class Symbol(NamedTuple):
    """Where it is, and its size in bytes: 0 for what assembly gives none."""

    address: int
    size: int


def _symbols(elf: bytes) -> dict[str, Symbol]:
    """All that the program defines."""
    start, entry_bytes, count = struct.unpack_from("<I", elf, 32)[0], *struct.unpack_from("<HH", elf, 46)
    sections = [struct.unpack_from("<IIIIIIIIII", elf, start + number * entry_bytes) for number in range(count)]
    found = {}
    for _, kind, _, _, offset, size, link, _, _, each in sections:
        if kind != 2:  # a symbol table
            continue
        names = sections[link][4]
        for at in range(offset, offset + size, each):
            name, value, extent, _, _, section = struct.unpack_from("<IIIBBH", elf, at)
            if name and section:  # 0: undefined
                found[elf[names + name : elf.index(0, names + name)].decode()] = Symbol(value, extent)
    return found


def _check_vectors(elf_file: Path, symbols: dict[str, Symbol]) -> None:
    """Every interrupt lies where the hardware jumps to: what C adds elsewhere needs a jump in start.S."""
    for name, (address, _) in symbols.items():
        if (vector := VECTOR.fullmatch(name)) and (vector[1] == "default" or address != VECTOR_BYTES * int(vector[1])):
            raise ValueError(f"{elf_file}: the interrupt {name} would never run: start.S has no vector that leads to it")


if __name__ == "__main__":
    try:
        patch(Path(sys.argv[1]))
    except ValueError as fault:
        sys.exit(f"Error: {fault}")
