"""Intel HEX files with gaps and all record types, and the bootloader that is found and made to fit."""

from pathlib import Path

import pytest

from hil.boards.bootloader import find_bootloader, read_bootloader
from hil.boards.intel_hex import read_intel_hex
from streetflow.errors import InputError

END = ":00000001FF"


def record(address: int, data: bytes, kind: int = 0) -> str:
    content = bytes((len(data), *address.to_bytes(2, "big"), kind)) + data
    return ":" + (content + bytes((-sum(content) % 256,))).hex().upper()


def written(folder: Path, *records: str) -> Path:
    file = folder / "image.hex"
    file.write_text("\n".join(records) + "\n")
    return file


def test_chunks_are_joined_and_gaps_kept(tmp_path: Path) -> None:
    image = read_intel_hex(
        written(
            tmp_path, record(0x7E00, b"ab"), record(0x7E02, b"c"), record(0x7FFE, b"\x04\x04"), record(0, b"\0\0\x7e\0", 3), END
        )
    )
    assert image.chunks == ((0x7E00, b"abc"), (0x7FFE, b"\x04\x04"))
    assert image.start == 0x7E00


def test_extended_addresses(tmp_path: Path) -> None:
    segment = read_intel_hex(written(tmp_path, record(0, b"\x07\xe0", 2), record(4, b"x"), END))
    assert segment.chunks == ((0x7E04, b"x"),) and segment.start is None
    linear = read_intel_hex(written(tmp_path, record(0, b"\0\1", 4), record(4, b"x"), record(0, b"\0\1\0\4", 5), END))
    assert linear.chunks == ((0x10004, b"x"),) and linear.start == 0x10004


@pytest.mark.parametrize(
    ("records", "fault"),
    [
        (["hello"], "line 1.*not an Intel HEX record"),
        ([":0100000041BF", END], "line 1.*wrong checksum"),
        ([":02000000410D"], "line 1.*not an Intel HEX record"),
        ([record(0, b"x")], "end record is missing"),
        ([END], "no data"),
        ([record(0, b"x", 9), END], "line 1.*unknown record type 9"),
    ],
)
def test_damaged_files(tmp_path: Path, records: list[str], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        read_intel_hex(written(tmp_path, *records))


def test_files_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "binary.hex").write_bytes(b"\xff\xfe")
    for name in ("missing.hex", "binary.hex"):
        with pytest.raises(InputError, match=r"hex: there is no such file|hex: byte 0: the file isn't UTF-8 text"):
            read_intel_hex(tmp_path / name)


def test_a_bootloader_that_fits_stays_where_it_is(tmp_path: Path) -> None:
    start, image = read_bootloader(
        written(tmp_path, record(0x7E00, b"code"), record(0x7FFE, b"\4\4"), record(0, b"\0\0\x7e\0", 3), END)
    )
    assert start == 0x7E00
    assert image.chunks == ((0x7E00, b"code"), (0x7FFE, b"\4\4"))


def test_a_bootloader_that_reaches_beyond_the_flash_gets_a_larger_section(tmp_path: Path) -> None:
    code = bytes(range(20)) * 26  # 520 bytes
    records = [record(0x7E00 + at, code[at : at + 20]) for at in range(0, len(code), 20)]
    start, image = read_bootloader(written(tmp_path, *records, record(0x7FFE, b"\4\4"), record(0, b"\0\0\x7e\0", 3), END))
    assert start == 0x7C00
    assert image.chunks == ((0x7C00, code), (0x7FFE, b"\4\4"))


def test_bootloaders_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing at its own start"):
        read_bootloader(written(tmp_path, record(0x7E00, b"code"), record(0, b"\0\0\x7c\0", 3), END))
    huge = [record(0x7800 + at, bytes(range(200))) for at in range(0, 6000, 200)]
    with pytest.raises(InputError, match="more than any boot section"):
        read_bootloader(written(tmp_path, *huge, END))


def test_the_distributions_bootloader_is_found_and_fits() -> None:
    start, image = read_bootloader(find_bootloader())
    assert start in (0x7C00, 0x7E00)
    assert max(address + len(data) for address, data in image.chunks) <= 32_768


def test_where_there_is_none_the_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "is_file", lambda self: False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError, match="apt install arduino-core-avr"):
        find_bootloader()
