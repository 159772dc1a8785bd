"""What the firmware takes of the chip: limits, and nothing that isn't used."""

import re
import subprocess
from pathlib import Path

import pytest

from hil.build.firmware import build_firmware
from hil.build.footprint import measure
from streetflow.errors import InputError
from tests.helpers.random_policy import write_random_policy


@pytest.mark.parametrize("bias_size", [60_000, 400_000])
def test_wide_biases_take_more_bytes(policy_file: Path, tmp_path: Path, bias_size: int) -> None:
    """As docs/firmware.md says: the limit of 4,330 B holds for biases of 16 bits."""
    wide = tmp_path / "wide.json"
    write_random_policy(wide, bias_size=bias_size)
    plain, more = (measure(build_firmware(file, kernel="table")).flash_bytes for file in (policy_file, wide))
    assert plain + 60 <= more <= plain + 130


@pytest.mark.parametrize("kernel", ["table", "c"])
def test_each_function_of_the_firmware_is_called(policy_file: Path, kernel: str) -> None:
    """The linker leaves out what C doesn't use, but nothing that stands in assembly beside something used."""
    elf = build_firmware(policy_file, kernel=kernel).elf
    symbols, code = (
        subprocess.check_output(["avr-objdump", option, "--no-show-raw-insn", str(elf)], text=True) for option in ("-t", "-d")
    )
    functions = set(re.findall(r" F \.text\s+\w+ (\S+)", symbols))
    called = set(re.findall(r"<([^+>]+)>$", code, re.MULTILINE))
    assert {name for name in functions - called if not re.fullmatch(r"__vectors|__vector_\d+", name)} == set()


def test_a_policy_of_the_papers_size_meets_the_limits(policy_file: Path) -> None:
    """At most 4,330 B of flash; static RAM and the proven stack at most 400 B together."""
    footprint = measure(build_firmware(policy_file, kernel="table"))
    assert 4_200 < footprint.flash_bytes <= 4_330
    assert footprint.stack is not None
    assert 330 < footprint.static_ram_bytes + footprint.stack.total_bytes <= 400


def test_the_unrolled_kernel_is_taken_where_it_fits(tmp_path: Path) -> None:
    """The generator's estimate for the rest of the firmware is enough, and not far too much."""
    for count, kernel in ((1, "unrolled"), (2, "unrolled"), (3, "table"), (12, "table")):
        file = tmp_path / f"{count}.json"
        write_random_policy(file, shapes=[((12, 9), (18, 20), 9)] * count)
        firmware = build_firmware(file)
        assert firmware.kernel == kernel
        if kernel == "unrolled":
            footprint = measure(firmware)
            code = sum(size.flash_bytes for name, size in footprint.per_symbol.items() if "unrolled.o:kernel_" in name)
            assert 1_800 < footprint.flash_bytes - code <= 2_500 + 64 * count
    with pytest.raises(InputError, match=rf"^kernel: {re.escape(str(file))}: unrolled takes 1\d{{5}} bytes, .*; take table$"):
        build_firmware(file, kernel="unrolled")
    district = measure(build_firmware(file))
    assert district.stack is not None
    assert district.flash_bytes <= 30_000 and district.static_ram_bytes + district.stack.total_bytes <= 640
