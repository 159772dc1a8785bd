"""A real board, or anything else that pyserial opens: /dev/ttyUSB0, COM3, rfc2217://host:port, socket://host:port.

Opening the port resets an Arduino, whose bootloader then swallows bytes for a second or two. No sleep here waits for that: the
link repeats HELLO until the firmware answers. Times include the USB bridge's share (up to 16 ms with an FTDI).
"""

import contextlib
import errno
import os
import time
from pathlib import Path
from typing import ClassVar, Literal

import serial
from serial.tools import list_ports

from hil.boards.base import Board, ExchangeTiming
from hil.boards.wall_clock import WallClockTiming, wall_clock_us
from hil.faults import BoardDied
from streetflow.errors import InputError

POLL_S = 0.005  # longest single wait in pyserial; changing it per read would renegotiate rfc2217 ports
WRITE_PATIENCE_S = 1.0
RESET_PULSE_S = 0.05  # DTR released this long before it falls: the capacitor on the reset line must recharge
CHUNK_BYTES = 4096
DRAIN_LIMIT_BYTES = 65_536  # an endless stream is not the drain's to end


class SerialBoard(Board):
    """The firmware behind a serial port. It is not flashed from here.

    Opening drops what the driver still holds.
    """

    clock: ClassVar[Literal["cycles", "wall"]] = "wall"
    settle_us: float = 20_000  # an FTDI bridge holds bytes back for 16 ms
    boot_us: ClassVar[float] = 5_000_000  # bootloaders wait 1 to 2.5 s, then the firmware starts

    def __init__(self, url: str, *, baud: int) -> None:
        self.name = url
        self.description = f"board at {url}, {baud} baud"
        self.url = url
        self.baud = baud
        self.byte_us = 10e6 / baud
        self._port: serial.SerialBase | None = None
        self._timing = WallClockTiming()
        self._held = b""

    def open(self) -> None:
        self.close()
        self._timing = WallClockTiming(byte_us=10e6 / self.baud)
        self._held = b""
        port: serial.SerialBase | None = None
        try:
            port = serial.serial_for_url(self.url, do_not_open=True)
            port.baudrate = self.baud
            port.timeout = POLL_S
            if "://" not in self.url:  # URLs know neither a lock nor, some of them, a timeout for writing
                port.exclusive = True
                port.write_timeout = WRITE_PATIENCE_S
            port.open()
        except (ValueError, OSError) as fault:  # SerialException is an OSError
            if port is not None:
                with contextlib.suppress(OSError):
                    port.close()
            raise InputError(self.url, "", _remedy(self.url, fault)) from fault
        self._port = port
        self.drain()

    @property
    def is_open(self) -> bool:
        return self._port is not None

    def close(self) -> None:
        port, self._port = self._port, None
        if port is not None:
            with contextlib.suppress(OSError):
                port.close()

    def write(self, data: bytes) -> None:
        port = self._open()
        self._timing.write_starts()
        try:
            port.write(data)
        except OSError as fault:
            raise self._gone(fault) from fault
        self._timing.request_ended(len(data))

    def read(self, deadline_us: float) -> bytes:
        port = self._open()
        while not self._held:
            try:
                self._held = port.read(1)
                while self._held and len(self._held) < CHUNK_BYTES and (ready := port.in_waiting):
                    self._held += port.read(ready)
            except OSError as fault:
                if not self._held:  # what came before the fault is delivered first
                    raise self._gone(fault) from fault
            if not self._held and self.now_us() >= deadline_us:
                return b""
        cut = self._held.find(b"\0") + 1 or len(self._held)
        data, self._held = self._held[:cut], self._held[cut:]
        self._timing.received(data)
        return data

    def now_us(self) -> float:
        return wall_clock_us()

    def drain(self) -> int:
        """Reads what has arrived away. pyserial's own purge is a request over the net on rfc2217 ports, which some servers
        leave unanswered."""
        port = self._open()
        dropped = len(self._held)
        self._held = b""
        self._timing.forget_frame()
        try:
            while dropped < DRAIN_LIMIT_BYTES and (ready := port.in_waiting):
                dropped += len(port.read(ready))
        except OSError as fault:
            raise self._gone(fault) from fault
        return dropped

    def reset(self) -> None:
        """The Arduino's reset: DTR falls. A port without modem lines (a pseudo-terminal) is closed and opened again instead."""
        port = self._open()
        try:
            port.dtr = False
            time.sleep(RESET_PULSE_S)
            port.dtr = True
        except OSError:
            if "://" not in self.url:
                self.close()
                time.sleep(RESET_PULSE_S)
                try:
                    self.open()
                except InputError as fault:
                    raise self._gone(fault) from fault
        self.drain()

    def timing(self) -> ExchangeTiming:
        return self._timing.exchange()

    def diagnosis(self) -> str:
        return (
            "is the firmware on the board, built for this baud rate, and no other program at the port? "
            "An Arduino needs up to 3 s after the port was opened"
        )

    def _open(self) -> serial.SerialBase:
        if self._port is None:
            raise RuntimeError("the board is not open")
        return self._port

    def _gone(self, fault: Exception) -> BoardDied:
        return BoardDied(f"{self.url}: the port failed ({fault}): was the cable pulled?{_held_by(self.url)}")


def _remedy(url: str, fault: Exception) -> str:
    """What went wrong when opening, and what to do about it."""
    number = getattr(fault, "errno", None)
    text = str(fault)
    if number == errno.EACCES or "Permission denied" in text:
        return "permission denied: add yourself to the group dialout (sudo usermod -aG dialout $USER) and log in again"
    if number in (errno.EBUSY, errno.EAGAIN) or "exclusively lock" in text or "busy" in text:
        return f"is in use by another program: close it{_held_by(url)}"
    if "://" in url and isinstance(fault, ValueError):
        return f"pyserial doesn't know this kind of URL ({text})"
    if "://" in url:
        return f"can't be reached: is the server running there? ({text})"
    if number == errno.ENOENT or "No such file" in text or "FileNotFoundError" in text:
        return f"there is no such port: {_ports_present()}"
    return f"can't be opened as a serial port: {text}"


def _ports_present() -> str:
    ports = [f"{port.device} ({port.description})" for port in list_ports.comports()]
    if not ports:
        return "no serial port is present; is the board plugged in?"
    return "present are " + ", ".join(ports)


def _held_by(url: str) -> str:
    """ "Who has the port, where /proc tells, as the end of a message; else ""."""
    if not Path(url).exists():
        return ""
    target = os.path.realpath(url)
    holders = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.name != str(os.getpid()) and any(
                os.path.realpath(handle) == target for handle in (process / "fd").iterdir()
            ):
                holders.append(f"{(process / 'comm').read_text().strip()} (process {process.name})")
    return f"; held by {', '.join(holders)}" if holders else ""
