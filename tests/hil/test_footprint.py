"""The linker map as a table of sizes, on a small map written by hand and on real builds."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hil.build.firmware import Firmware, build_firmware
from hil.build.footprint import MapPart, measure, measure_files, parse_map, section_sizes
from streetflow.errors import InputError
from tests.helpers.random_policy import write_random_policy

MAP = """\
Discarded input sections

 .text.unused   0x0000000000000000       0x40 build/src/infer.o

Linker script and memory map

                0x0000000000020000                __TEXT_REGION_LENGTH__ = 0x20000
LOAD build/src/infer.o

.text           0x0000000000000000      0x15c
 *(.vectors)
 .vectors       0x0000000000000000       0x68 /usr/lib/avr5/crtatmega328p.o
                0x0000000000000000                __vectors
 .progmem.data.policy_sha256
                0x0000000000000068       0x20 build/src/policy.o
                0x0000000000000068                policy_sha256
 *fill*         0x0000000000000088        0x2 ff
 .text.infer    0x000000000000008a      0x0c0 build/src/infer.o
 .text.libgcc.mul
                0x000000000000014a       0x12 /usr/lib/gcc/avr5/libgcc.a(_mulsi3.o)

.data           0x0000000000800100        0x4 load address 0x000000000000015c
 .data.table    0x0000000000800100        0x4 build/src/avr/uart.o

.bss            0x0000000000800104       0x18
 .bss.counters.1234
                0x0000000000800104       0x10 build/src/dispatch.o
 COMMON         0x0000000000800114        0x8 build/src/main.o

.noinit         0x000000000080011c        0x1
 .noinit        0x000000000080011c        0x1 build/src/avr/boot.o

.comment        0x0000000000000000       0x11
 .comment       0x0000000000000000       0x11 build/src/infer.o
"""


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    file = tmp_path_factory.mktemp("footprint") / "policy.json"
    write_random_policy(file)
    return build_firmware(file, kernel="c")


def test_the_parts_of_a_map() -> None:
    assert list(parse_map(MAP)) == [
        MapPart(".text", ".vectors", 0x68, "/usr/lib/avr5/crtatmega328p.o"),
        MapPart(".text", ".progmem.data.policy_sha256", 0x20, "build/src/policy.o"),
        MapPart(".text", "*fill*", 2, ""),
        MapPart(".text", ".text.infer", 0xC0, "build/src/infer.o"),
        MapPart(".text", ".text.libgcc.mul", 0x12, "/usr/lib/gcc/avr5/libgcc.a(_mulsi3.o)"),
        MapPart(".data", ".data.table", 4, "build/src/avr/uart.o"),
        MapPart(".bss", ".bss.counters.1234", 0x10, "build/src/dispatch.o"),
        MapPart(".bss", "COMMON", 8, "build/src/main.o"),
        MapPart(".noinit", ".noinit", 1, "build/src/avr/boot.o"),
        MapPart(".comment", ".comment", 0x11, "build/src/infer.o"),
    ]


def test_sizes_by_object_and_symbol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "firmware.map"
    file.write_text(MAP)
    sizes = {".text": 0x15C, ".data": 4, ".bss": 0x18, ".noinit": 1}
    monkeypatch.setattr("hil.build.footprint.section_sizes", lambda elf: sizes)
    footprint = measure_files(file, tmp_path / "firmware.elf")
    assert (footprint.flash_bytes, footprint.static_ram_bytes) == (0x15C + 4, 4 + 0x18 + 1)
    assert {name: (size.flash_bytes, size.static_ram_bytes) for name, size in footprint.per_symbol.items()} == {
        "crtatmega328p.o:.vectors": (0x68, 0),
        "policy.o:policy_sha256": (0x20, 0),
        "(padding)": (2, 0),
        "infer.o:infer": (0xC0, 0),
        "libgcc.a(_mulsi3.o):libgcc.mul": (0x12, 0),
        "avr/uart.o:table": (4, 4),  # its initial value lies in flash
        "dispatch.o:counters": (0, 0x10),
        "main.o:COMMON": (0, 8),
        "avr/boot.o:.noinit": (0, 1),
    }
    assert footprint.per_object["avr/uart.o"].as_dict() == {"flash_bytes": 4, "static_ram_bytes": 4}
    sizes[".text"] += 2
    with pytest.raises(InputError, match=r"\.text: parts add up to 348 bytes, but the ELF file has 350"):
        measure_files(file, tmp_path / "firmware.elf")


def test_a_real_map_agrees_with_the_elf_and_with_avr_size(firmware: Firmware) -> None:
    footprint = measure(firmware)
    sections = section_sizes(firmware.elf)
    assert footprint.flash_bytes == sections[".text"] + sections[".data"] > 3000
    assert footprint.static_ram_bytes == sections[".data"] + sections[".bss"] + sections[".noinit"] > 200
    for table in (footprint.per_object, footprint.per_symbol):
        assert sum(size.flash_bytes for size in table.values()) == footprint.flash_bytes
        assert sum(size.static_ram_bytes for size in table.values()) == footprint.static_ram_bytes
    printed = subprocess.run(["avr-size", str(firmware.elf)], capture_output=True, text=True, check=True).stdout
    text, data, bss = (int(number) for number in printed.splitlines()[1].split()[:3])
    assert (footprint.flash_bytes, footprint.static_ram_bytes) == (text + data, data + bss)


def test_the_policys_tables_have_the_size_that_they_must_have(firmware: Firmware) -> None:
    """12+9 -> 18 -> 20 -> 9 (in pairs of rows: 10): a byte a weight, three a bias, two a row's scale, eight a feature's scale
    and end of its range."""
    symbols = measure(firmware).per_symbol
    flash = {name.removeprefix("policy.o:policy_0_"): size.flash_bytes for name, size in symbols.items()}
    assert flash["layer1_weights"] == (12 + 9) * 18 and flash["layer1_biases"] == 2 * 18 * 3
    assert flash["layer2_weights"] == 18 * 20 and flash["layer2_requantise"] == 20 * 2
    assert flash["layer3_weights"] == 20 * 10 and flash["layer3_biases"] == 10 * 3
    assert flash["phases"] == 9 and flash["scales"] == 2 * 8
    assert symbols["infer.o:hidden1"].static_ram_bytes == 18


def test_a_further_intersection_costs_its_tables_and_little_else(firmware: Firmware, tmp_path: Path) -> None:
    file = tmp_path / "two.json"
    write_random_policy(file, shapes=[((12, 9), (18, 20), 9)] * 2)
    one, two = measure(firmware), measure(build_firmware(file, kernel="c"))
    tables = sum(size.flash_bytes for name, size in one.per_symbol.items() if name.startswith("policy.o:policy_0_"))
    assert 0 <= two.flash_bytes - one.flash_bytes - tables < 140  # its descriptor of 25 bytes, and a hundred to find it
    assert two.static_ram_bytes == one.static_ram_bytes


def test_what_can_not_be_measured(firmware: Firmware, tmp_path: Path) -> None:
    assert firmware.map is not None
    with pytest.raises(InputError, match="no linker map"):
        measure(replace(firmware, map=None))
    with pytest.raises(InputError, match="can't be read"):
        measure(replace(firmware, map=tmp_path / "none.map"))
    with pytest.raises(InputError, match="not an ELF file"):
        measure(replace(firmware, elf=firmware.map))
    shortened = tmp_path / "short.map"
    shortened.write_text("\n".join(line for line in firmware.map.read_text().splitlines() if ".text.infer" not in line))
    with pytest.raises(InputError, match="parts add up"):
        measure(replace(firmware, map=shortened))
