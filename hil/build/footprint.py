"""What the firmware takes of the chip, per object and per symbol, from the linker map, checked against the ELF; and its stack.

Flash is .text and .data (its initial values lie in flash), static RAM is .data, .bss and .noinit. The firmware is
compiled with one section per function and per object, so that a section's name gives the symbol.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from hil.build.firmware import Firmware
from hil.build.stack_bound import StackBound, stack_bound
from streetflow.errors import InputError

FLASH_SECTIONS = (".text", ".data")
RAM_SECTIONS = (".data", ".bss", ".noinit")
PADDING = "(padding)"

_OUTPUT = re.compile(r"^(\.\w+)(?:\s+0x[0-9a-f]+\s+0x[0-9a-f]+.*)?$")
_PART = re.compile(r"^ (\S+)?\s+0x(?P<address>[0-9a-f]+)\s+0x(?P<size>[0-9a-f]+)(?: (?P<file>\S.*))?\s*$")
_LONG_NAME = re.compile(r"^ ([.\w$*]\S*)$")
_KIND = re.compile(r"^\.(?:progmem\.data|progmem\.gcc\w*|text\.startup|text|rodata|data|bss|noinit)(?:\.|$)")
_ARCHIVE = re.compile(r"(?P<archive>[^/]+\.a)\((?P<member>[^)]+)\)$")


@dataclass
class Size:
    """Bytes of flash and of static RAM."""

    flash_bytes: int = 0
    static_ram_bytes: int = 0

    def as_dict(self) -> dict[str, int]:
        return {"flash_bytes": self.flash_bytes, "static_ram_bytes": self.static_ram_bytes}


@dataclass
class Footprint:
    """The whole and its parts; the parts add up to the whole. Symbols are named `object:symbol`."""

    flash_bytes: int
    static_ram_bytes: int
    per_object: dict[str, Size] = field(default_factory=dict)
    per_symbol: dict[str, Size] = field(default_factory=dict)
    stack: StackBound | None = None  # the deepest that the stack can be

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Footprint":
        """What `as_dict` has given."""
        objects, symbols = ({name: Size(**size) for name, size in content[key].items()} for key in ("per_object", "per_symbol"))
        stack = None
        if content["stack"] is not None:
            program, interrupt = (tuple(content["stack"][key].items()) for key in ("program", "interrupt"))
            stack = StackBound(content["stack_bound_bytes"], program, interrupt)
        return cls(content["flash_bytes"], content["static_ram_bytes"], objects, symbols, stack)

    def as_dict(self) -> dict[str, Any]:
        return {
            "flash_bytes": self.flash_bytes,
            "static_ram_bytes": self.static_ram_bytes,
            "stack_bound_bytes": self.stack.total_bytes if self.stack else None,
            "stack": self.stack.as_dict() if self.stack else None,
            "per_object": {name: size.as_dict() for name, size in self.per_object.items()},
            "per_symbol": {name: size.as_dict() for name, size in self.per_symbol.items()},
        }


class MapPart(NamedTuple):
    """One input section as the linker placed it."""

    output: str  # section of the ELF file
    name: str  # input section, or *fill*
    size: int  # bytes
    file: str  # object file, or archive(member); empty for padding


def measure(firmware: Firmware) -> Footprint:
    """The footprint of an AVR firmware. InputError if map or ELF can't be read, or do not agree."""
    if firmware.map is None:
        raise InputError(firmware.elf, "", "a host program has no linker map")
    footprint = measure_files(firmware.map, firmware.elf)
    footprint.stack = stack_bound(firmware.elf)
    return footprint


def larger(one: Footprint | None, other: Footprint | None) -> Footprint | None:
    """The larger of each figure; the parts of the one with more flash."""
    if one is None or other is None:
        return one or other
    most = max(one, other, key=lambda footprint: footprint.flash_bytes)
    return replace(most, static_ram_bytes=max(one.static_ram_bytes, other.static_ram_bytes))


def measure_files(map_file: Path, elf_file: Path) -> Footprint:
    """The same from the two files."""
    try:
        text = map_file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(map_file, "", f"can't be read: {error.strerror or error}") from None
    footprint = Footprint(0, 0)
    sums = dict.fromkeys((*FLASH_SECTIONS, *RAM_SECTIONS), 0)
    for part in parse_map(text):
        if part.output not in sums:
            continue
        sums[part.output] += part.size
        owner = _object_name(part.file)
        symbol = f"{owner}:{_symbol_name(part.name)}" if part.file else PADDING
        for table, name in ((footprint.per_object, owner), (footprint.per_symbol, symbol)):
            size = table.setdefault(name, Size())
            size.flash_bytes += part.size * (part.output in FLASH_SECTIONS)
            size.static_ram_bytes += part.size * (part.output in RAM_SECTIONS)
    for section, in_elf in section_sizes(elf_file).items():
        if sums[section] != in_elf:
            fault = f"parts add up to {sums[section]} bytes, but the ELF file has {in_elf}"
            raise InputError(map_file, section, fault)
    footprint.flash_bytes = sum(sums[section] for section in FLASH_SECTIONS)
    footprint.static_ram_bytes = sum(sums[section] for section in RAM_SECTIONS)
    return footprint


def section_sizes(elf_file: Path) -> dict[str, int]:
    """Bytes of .text, .data, .bss and .noinit in an ELF file; 0 for missing ones."""
    try:
        with elf_file.open("rb") as stream:
            elf = ELFFile(stream)
            sizes = {section.name: int(section["sh_size"]) for section in elf.iter_sections()}
    except OSError as error:
        raise InputError(elf_file, "", f"can't be read: {error.strerror or error}") from None
    except ELFError as error:
        raise InputError(elf_file, "", f"not an ELF file: {error}") from None
    return {name: sizes.get(name, 0) for name in (*FLASH_SECTIONS, *RAM_SECTIONS)}


def parse_map(text: str) -> Iterator[MapPart]:
    """The placed input sections of a GNU ld map, in order, padding included."""
    _, _, memory_map = text.partition("Linker script and memory map")
    output, pending = "", ""
    for line in memory_map.splitlines():
        if match := _OUTPUT.match(line):
            output, pending = match[1], ""
        elif match := _LONG_NAME.match(line):
            pending = match[1]  # the rest of such a line is on the next one
        elif output and (match := _PART.match(line)):
            name, size = match[1] or pending, int(match["size"], 16)
            if name == "*fill*" and size:  # what may follow is the pattern filled in
                yield MapPart(output, name, size, "")
            elif name and size and match["file"]:
                yield MapPart(output, name, size, match["file"])
            pending = ""
        elif not line.startswith(" "):
            pending = ""


def _object_name(file: str) -> str:
    """build/.../src/avr/uart.o is avr/uart.o; .../libgcc.a(_mulsi3.o) is libgcc.a(_mulsi3.o)."""
    if not file:
        return PADDING
    if match := _ARCHIVE.search(file):
        return f"{match['archive']}({match['member']})"
    _, marker, inside = file.replace("\\", "/").rpartition("/src/")
    return inside if marker else Path(file).name


def _symbol_name(section: str) -> str:
    """.text.infer is infer, .bss.counters.1234 is counters; a section with no name of its own keeps its own."""
    name = _KIND.sub("", section)
    return re.sub(r"\.\d+$", "", name) or section
