"""Which build a firmware is: its id and length, which the build writes into the program and HELLO tells."""

import struct
from pathlib import Path
from typing import NamedTuple

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from streetflow.errors import InputError

SYMBOL = "firmware_self"  # ends with id and length (firmware/generator/flash_crc.py)
LAYOUT = struct.Struct("<IH")


class BuildId(NamedTuple):
    """``number``: a hash of the program's bytes, never told by hand; ``program_bytes``: how many they are."""

    number: int
    program_bytes: int

    def __str__(self) -> str:
        return f"{self.number:08x}, {self.program_bytes} B"


def read_build_id(elf_file: Path) -> BuildId:
    """From an ELF file for the chip. InputError for one that can't be read, or isn't of this firmware since version 2.2."""
    try:
        with elf_file.open("rb") as stream:
            elf = ELFFile(stream)
            tables = [section for section in elf.iter_sections() if isinstance(section, SymbolTableSection)]
            symbols = [symbol for table in tables for symbol in table.get_symbol_by_name(SYMBOL) or ()]
            for symbol in symbols:
                section = elf.get_section(symbol["st_shndx"])
                end = symbol["st_value"] + symbol["st_size"] - section["sh_addr"]
                return BuildId(*LAYOUT.unpack(section.data()[end - LAYOUT.size : end]))
    except OSError as error:
        raise InputError(elf_file, "", f"can't be read: {error.strerror or error}") from None
    except ELFError as error:
        raise InputError(elf_file, "", f"not an ELF file: {error}") from None
    raise InputError(elf_file, "", f"has no {SYMBOL}: not this firmware, or older than 2.2")
