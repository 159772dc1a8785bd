"""What an AVR ELF file puts into flash, and where its statics end."""

from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from streetflow.errors import InputError

RAM_BASE = 0x800000  # avr-gcc's ELF addresses of data memory start here,
EEPROM_BASE = 0x810000  # those of the EEPROM here, fuses and lock bits above it
MACHINE_AVR = "EM_AVR"


@dataclass(frozen=True)
class ElfImage:
    """`chunks` are (flash byte address, bytes), in ascending order; `symbols` maps names to ELF addresses."""

    chunks: tuple[tuple[int, bytes], ...]
    symbols: dict[str, int]

    @property
    def heap_start(self) -> int | None:
        """RAM address of the first byte after the statics; None without such a symbol."""
        for name in ("__heap_start", "_end"):
            if name in self.symbols:
                return self.symbols[name] - RAM_BASE
        return None


def read_elf(file: Path) -> ElfImage:
    """Read an AVR program. InputError where the file is missing, is not an AVR ELF file, or sets EEPROM contents."""
    try:
        with file.open("rb") as stream:
            elf = ELFFile(stream)
            if elf["e_machine"] != MACHINE_AVR:
                raise InputError(file, "", f"is a program for {elf['e_machine']}, not for an AVR")
            segments = [
                (segment["p_paddr"], segment.data()) for segment in elf.iter_segments("PT_LOAD") if segment["p_filesz"] > 0
            ]
            symbols = {
                symbol.name: symbol["st_value"]
                for section in elf.iter_sections()
                if isinstance(section, SymbolTableSection)
                for symbol in section.iter_symbols()
                if symbol.name
            }
    except OSError as fault:
        raise InputError(file, "", f"can't be read: {fault.strerror}") from fault
    except ELFError as fault:
        raise InputError(file, "", f"is not an ELF file: {fault}") from fault
    if any(EEPROM_BASE <= address < EEPROM_BASE + 0x10000 for address, _ in segments):
        raise InputError(file, ".eeprom", "EEPROM contents are not supported by the emulated board")
    chunks = tuple(sorted((address, content) for address, content in segments if address < RAM_BASE))
    if not chunks:
        raise InputError(file, "", "holds nothing to load into flash")
    return ElfImage(chunks, symbols)
