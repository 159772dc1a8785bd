"""Intel HEX files, gaps included: simavr's own reader takes the first chunk only and complains of record type 03."""

from dataclasses import dataclass
from pathlib import Path

from streetflow.errors import InputError
from streetflow.roadnet.json_reader import read_text

DATA, END, SEGMENT, START, LINEAR, LINEAR_START = range(6)
RECORD_OVERHEAD_BYTES = 5  # length, address (2), type, checksum


@dataclass(frozen=True)
class HexImage:
    """`chunks` are (byte address, bytes) in the file's order, adjacent records joined; `start` is the entry point, if given."""

    chunks: tuple[tuple[int, bytes], ...]
    start: int | None


def read_intel_hex(file: Path) -> HexImage:
    """InputError naming file, line and fault where it can't be read or is damaged."""
    lines = read_text(file).split()
    chunks: list[tuple[int, bytearray]] = []
    base, start, ended = 0, None, False
    for number, line in enumerate(lines, 1):
        kind, address, data = _record(file, number, line)
        if kind == DATA:
            address += base
            if chunks and chunks[-1][0] + len(chunks[-1][1]) == address:
                chunks[-1][1].extend(data)
            else:
                chunks.append((address, bytearray(data)))
        elif kind == SEGMENT:
            base = int.from_bytes(data, "big") * 16
        elif kind == LINEAR:
            base = int.from_bytes(data, "big") << 16
        elif kind == START:
            start = int.from_bytes(data[:2], "big") * 16 + int.from_bytes(data[2:], "big")
        elif kind == LINEAR_START:
            start = int.from_bytes(data, "big")
        else:
            ended = True
            break
    if not ended or not chunks:
        raise InputError(file, "", "is not a whole Intel HEX file: " + ("its end record is missing" if chunks else "no data"))
    return HexImage(tuple((address, bytes(data)) for address, data in chunks), start)


def _record(file: Path, number: int, line: str) -> tuple[int, int, bytes]:
    """(type, address, data) of one line."""
    place = f"line {number}"
    try:
        content = bytes.fromhex(line[1:])
    except ValueError:
        content = b""
    if not line.startswith(":") or len(content) < RECORD_OVERHEAD_BYTES or len(content) != RECORD_OVERHEAD_BYTES + content[0]:
        raise InputError(file, place, "is not an Intel HEX record")
    if sum(content) % 256:
        raise InputError(file, place, "has a wrong checksum")
    if content[3] > LINEAR_START:
        raise InputError(file, place, f"has the unknown record type {content[3]}")
    return content[3], int.from_bytes(content[1:3], "big"), content[4:-1]
