"""Boards: the emulated chip, the firmware built for this machine, and anything that pyserial can open."""

from pathlib import Path
from typing import Protocol

from hil.boards.base import Board, ExchangeTiming
from hil.boards.find_port import AUTO
from hil.boards.host import HostBoard
from hil.boards.port_trouble import require_port
from hil.boards.serial import SerialBoard
from hil.boards.simavr import SimavrBoard
from streetflow.errors import InputError

__all__ = ["Board", "ExchangeTiming", "HostBoard", "SerialBoard", "SimavrBoard", "open_board", "require_board"]

EMULATED = ("simavr", "host")  # boards that need no port


class BuiltFirmware(Protocol):
    """The part of `hil.build.firmware.Firmware` that a board needs: the ELF file, or the native program."""

    @property
    def elf(self) -> Path: ...


def require_board(name_or_url: str) -> None:
    """InputError for a name that can't be a board's; the board isn't opened."""
    if name_or_url not in (*EMULATED, AUTO):
        require_port(name_or_url)


def open_board(name_or_url: str, firmware: BuiltFirmware | None, *, f_cpu_hz: int, baud: int) -> Board:
    """The board of that name, open: `simavr`, `host`, or a serial port or pyserial URL.

    A real board is not flashed here: it must already run the firmware (the handshake checks that). InputError where the
    board can't be opened.
    """
    board: Board
    if name_or_url == "simavr":
        board = SimavrBoard(_needed(firmware, name_or_url).elf, f_cpu_hz=f_cpu_hz, baud=baud)
    elif name_or_url == "host":
        board = HostBoard(_needed(firmware, name_or_url).elf)
    else:
        board = SerialBoard(name_or_url, baud=baud)
    board.open()
    return board


def _needed(firmware: BuiltFirmware | None, name: str) -> BuiltFirmware:
    if firmware is None:
        raise InputError(name, "", "this board runs a firmware file, and none was given")
    return firmware
