"""The Arduino Uno's bootloader (optiboot, 115200 baud), found on this machine."""

import os
from pathlib import Path

from hil.boards.intel_hex import HexImage, read_intel_hex
from streetflow.errors import InputError

NAME = "optiboot/optiboot_atmega328.hex"
FLASH_BYTES = 32_768
BOOT_SECTIONS_BYTES = (512, 1024, 2048, 4096)  # that the fuses BOOTSZ can reserve at the end of the flash


def find_bootloader() -> Path:
    """From the Debian package arduino-core-avr, or from PlatformIO's or the Arduino IDE's packages. InputError without any."""
    home = Path(os.path.expanduser("~"))  # which stays "~" where no home folder is known
    core = Path(os.environ.get("PLATFORMIO_CORE_DIR") or home / ".platformio")
    candidates = [
        Path("/usr/share/arduino/hardware/arduino/avr/bootloaders") / NAME,
        core / "packages" / "framework-arduino-avr" / "bootloaders" / NAME,
        *sorted((home / ".arduino15/packages/arduino/hardware/avr").glob(f"*/bootloaders/{NAME}"), reverse=True),
    ]
    for file in candidates:
        if file.is_file():
            return file
    raise InputError("bootloader", "", "optiboot is not on this machine: sudo apt install arduino-core-avr")


def read_bootloader(file: Path) -> tuple[int, HexImage]:
    """(address where a reset starts it, image that fits the flash).

    Debian's own build of optiboot is 20 bytes longer than the Uno's boot section of 512, so its end lies beyond the flash and
    its version word inside its code: no chip could run it. It is moved to the start of a section that holds it; its code jumps
    and calls relative to itself only.
    """
    image = read_intel_hex(file)
    start, code = image.chunks[0] if image.start is None else (image.start, dict(image.chunks).get(image.start, b""))
    if not code:
        raise InputError(file, "", f"has nothing at its own start address 0x{start:04x}")
    if start + len(code) <= FLASH_BYTES:
        return start, image
    section = next((size for size in BOOT_SECTIONS_BYTES if size >= len(code)), None)
    if section is None:
        raise InputError(file, "", f"holds {len(code)} bytes, more than any boot section of the ATmega328P")
    moved = FLASH_BYTES - section
    others = [(address, data) for address, data in image.chunks if address != start]
    return moved, HexImage(((moved, code), *others), moved)
