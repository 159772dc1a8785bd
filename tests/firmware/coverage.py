"""Which of the firmware's instructions the tests execute on the emulated chip, and which they don't.

    TINYLIGHT_EXECUTED=FOLDER python -m pytest --hil=simavr tests/hil -k 'latency_and_footprint or behaves'
    python -m tests.firmware.coverage FOLDER          # writes docs/results/coverage.md and .json

For each kernel the program that was run through most. What is not executed is listed, each piece with its reason (REASONS).
"""

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile

from hil.build.firmware import KERNELS

ROOT = Path(__file__).resolve().parents[2]
STEM = ROOT / "docs/results/coverage"
SELF = "firmware_self"
KERNEL_OFFSET = 2  # in what HELLO tells
LEAST = 0.97
COMMANDS = (
    "TINYLIGHT_EXECUTED=FOLDER python -m pytest --hil=simavr tests/hil -k 'latency_and_footprint or behaves'",
    "python -m tests.firmware.coverage FOLDER",
)
DATA = ("__trampolines_start", "__trampolines_end", "flash_patch")  # symbols of what is no code: tables, and the CRC's bytes
LINE = re.compile(r"^\s*([0-9a-f]+):\t(?:[0-9a-f]{2} )+\s*\t(\S+)(?:\t(.*))?$")
SYMBOL = re.compile(r"^([0-9a-f]+) <(\S+)>:$")
# Why instructions of these functions are not executed: a pattern of `symbol: instruction`, and the reason.
REASONS: list[tuple[str, str]] = [
    (r"^__stop_program", "an endless loop that nothing leads to: hangs on purpose are thrown into it"),
    (r"^(__vectors|__vector_\d+|__do_clear_bss|board_rest)", "padding"),
    (
        r"^received: (lds|inc|breq|sts|rjmp)",
        "a receive ring that is full, line errors: stop and wait leaves room",
    ),
    (r"^count_boot: dec", "the 256th boot since power came: the count stops"),
    (r"^main: (sbrs|subi)", "a decision of more than 65,536 cycles, whose timer overflows as it is read"),
    (r"^(layers_|kernel_)", "a clip, or a sum's sign, that no input of sweep and traffic asks of this policy"),
    (r"^(columns_|narrow_window)", "block sizes and windows that this policy doesn't have"),
    (r"^frame_reader_push", "a frame of 255 bytes or more"),
    (r"^is_last", "the last decision was another intersection's: with one there is none"),
]


class Instruction(NamedTuple):
    address: int
    symbol: str
    text: str


class Coverage(NamedTuple):
    """Of one program: how many instructions, and those not executed."""

    total: int
    missed: list[Instruction]

    @property
    def share(self) -> float:
        return 1 - len(self.missed) / self.total


def instructions(elf: Path) -> list[Instruction]:
    """Of the program's code, data in flash left out."""
    listing = subprocess.check_output(["avr-objdump", "-d", "-z", str(elf)], text=True)
    data = _data_ranges(elf)
    found, symbol = [], ""
    for line in listing.splitlines():
        if match := SYMBOL.match(line):
            symbol = match[2]
        elif match := LINE.match(line):
            address = int(match[1], 16)
            if symbol not in DATA and not any(begin <= address < end for begin, end in data):
                found.append(Instruction(address, symbol, re.sub(r"\s*;.*", "", f"{match[2]} {match[3] or ''}").strip()))
    return found


def _data_ranges(elf: Path) -> list[tuple[int, int]]:
    """What lies in flash and is no code: objects, and symbols that the generator marks as data."""
    with elf.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        symbols = [(each.name, each["st_value"], each["st_size"], each["st_info"]["type"]) for each in table.iter_symbols()]
    return [(value, value + size) for _, value, size, kind in symbols if kind == "STT_OBJECT" and value < 0x800000]


def kernel_of(elf: Path) -> str:
    with elf.open("rb") as stream:
        file = ELFFile(stream)
        (symbol,) = file.get_section_by_name(".symtab").get_symbol_by_name(SELF)
        section = file.get_section(symbol["st_shndx"])
        return KERNELS[section.data()[symbol["st_value"] - section["sh_addr"] + KERNEL_OFFSET]]


def coverage_of(elf: Path, marks: bytes) -> Coverage:
    code = instructions(elf)
    return Coverage(len(code), [each for each in code if not marks[each.address // 2]])


def best_of(folder: Path) -> dict[str, Coverage]:
    """By kernel: of the program that was run through most."""
    best: dict[str, Coverage] = {}
    for marks in sorted(folder.glob("*.marks")):
        elf = marks.with_suffix(".elf")
        kernel, coverage = kernel_of(elf), coverage_of(elf, marks.read_bytes())
        if kernel not in best or coverage.share > best[kernel].share:
            best[kernel] = coverage
    return best


def reason_for(instruction: Instruction) -> str:
    text = f"{instruction.symbol}: {instruction.text}"
    return next((reason for pattern, reason in REASONS if re.search(pattern, text)), "")


def pieces(missed: list[Instruction]) -> dict[tuple[str, str], list[Instruction]]:
    """By symbol and reason."""
    found: dict[tuple[str, str], list[Instruction]] = defaultdict(list)
    for each in missed:
        found[each.symbol, reason_for(each)].append(each)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Instructions of the firmware that the tests execute.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="that TINYLIGHT_EXECUTED named")
    arguments = parser.parse_args()
    best = best_of(arguments.folder)
    lines = ["# Instructions executed", "", "Of each kernel's firmware, by the tests on the emulated chip:", ""]
    lines += [*(f"    {command}" for command in COMMANDS), ""]
    lines += ["| kernel | instructions | executed |", "| --- | ---: | ---: |"]
    lines += [f"| {kernel} | {each.total:,} | {each.share:.2%} |" for kernel, each in sorted(best.items())]
    record: dict[str, Any] = {}
    for kernel, coverage in sorted(best.items()):
        lines += ["", f"## Not executed: {kernel}", "", "| where | instructions | why |", "| --- | --- | --- |"]
        for (symbol, reason), each in pieces(coverage.missed).items():
            shown = "; ".join(dict.fromkeys(one.text for one in each))
            lines.append(f"| `{symbol}` | {len(each)}: {shown[:120]} | {reason} |")
        record[kernel] = {"instructions": coverage.total, "executed": coverage.share}
    STEM.with_suffix(".md").write_text("\n".join(lines) + "\n")
    STEM.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join(lines))
    return 0 if best and all(each.share >= LEAST for each in best.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
