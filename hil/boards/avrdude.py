"""Puts a firmware on an Arduino: avrdude talks to the bootloader, which listens for about a second after a reset."""

import re
import shutil
import subprocess
from pathlib import Path

from hil.boards.serial import SerialBoard
from streetflow.errors import InputError

BOOTLOADER_BAUD = 115_200  # of the Uno's optiboot; the older one of many Nanos has 57,600
ATTEMPTS = 2  # of avrdude to reach the bootloader, 6 s each; its own default is 10
NOT_IN_SYNC = re.compile(r"attempt (\d+) of \d+: not in sync")
NO_ANSWER = (
    "the bootloader doesn't answer. Usual causes: it has another speed (--upload-baud 57600 for many Nanos); the board is at "
    "another port; another program reads this one; the chip has no bootloader (then it needs a programmer); or nothing "
    "resets it: press reset as the upload begins"
)


def require_upload(port: str, bootloader_baud: int = BOOTLOADER_BAUD) -> None:
    """InputError with the remedy if avrdude is missing or the port can't be opened. Resets the board, as each opening does."""
    if "://" in port:
        raise InputError(port, "", "a bootloader can't be reached across a network: flash on the machine that has the board")
    if shutil.which("avrdude") is None:
        raise InputError("avrdude", "", "not on PATH; install it: apt install avrdude")
    with SerialBoard(port, baud=bootloader_baud):
        pass


def upload(hex_file: Path, port: str, *, bootloader_baud: int = BOOTLOADER_BAUD) -> None:
    """Writes an Intel HEX file to the ATmega328P's flash through its bootloader, and reads it back.

    Args:
        hex_file: The program.
        port: Name of a serial port of this machine.
        bootloader_baud: The bootloader's line rate, which is not the firmware's.

    Raises:
        InputError: nothing answers, or the upload failed; the message quotes avrdude. See `require_upload` for other causes.
    """
    command = ["avrdude", "-q", "-p", "atmega328p", "-c", "arduino", "-P", port, "-b", str(bootloader_baud), "-D"]
    command += ["-U", f"flash:w:{hex_file}:i"]
    lines: list[str] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as run:
        assert run.stderr is not None
        try:
            for line in run.stderr:
                lines.append(line.strip())
                if (attempt := NOT_IN_SYNC.search(line)) and int(attempt[1]) >= ATTEMPTS:
                    raise InputError(port, "", NO_ANSWER)
        except BaseException:  # Ctrl-C as well
            run.terminate()
            raise
    if run.returncode != 0:
        raise InputError(port, "", f"avrdude failed: {_reason(lines)}")


def _reason(lines: list[str]) -> str:
    """The first error that avrdude named, else its last line."""
    said = [line for line in lines if line and "Thank you" not in line] or ["no reason given"]
    return next((line for line in said if "error" in line.lower() and "ioctl" not in line), said[-1])
