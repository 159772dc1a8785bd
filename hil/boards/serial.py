"""A real board, or anything else that pyserial opens: /dev/ttyUSB0, COM3, rfc2217://host:port, socket://host:port.

Opening the port resets an Arduino; its bootloader then swallows bytes for a second or two. No sleep here waits for that: the
link repeats HELLO until the firmware answers. Times include the USB bridge's share (up to 16 ms with an FTDI).
"""

import contextlib
import time
from typing import ClassVar, Literal

import serial

from hil.boards.base import Board, ExchangeTiming
from hil.boards.faults import BoardDied
from hil.boards.port_trouble import held_by, is_network, remedy, require_port
from hil.boards.wall_clock import WallClockTiming, wall_clock_us
from streetflow.errors import InputError

POLL_S = 0.005  # longest single wait in pyserial; changing it per read would renegotiate rfc2217 ports
WRITE_PATIENCE_S = 1.0
RESET_PULSE_S = 0.05  # DTR released this long before it falls: the capacitor on the reset line must recharge
REFUSAL_S = 0.1  # a server that takes the connection and ends it, since its port is in use, does so sooner
CHUNK_BYTES = 4096
DRAIN_LIMIT_BYTES = 65_536  # so that an endless stream can't keep the drain going


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
        require_port(self.url)
        self._timing = WallClockTiming(byte_us=10e6 / self.baud)
        self._held = b""
        port: serial.SerialBase | None = None
        try:
            port = serial.serial_for_url(self.url, do_not_open=True)
            port.baudrate = self.baud
            port.timeout = POLL_S
            if "://" not in self.url:  # URLs have no lock and, some of them, no write timeout
                port.exclusive = True
                port.write_timeout = WRITE_PATIENCE_S
            port.open()
            with contextlib.suppress(AttributeError, OSError, ValueError):  # only Linux has it, and not for every driver
                port.set_low_latency_mode(True)
        except Exception as fault:  # pyserial's URL handlers raise any kind of exception for a faulty URL
            if port is not None:
                with contextlib.suppress(OSError):
                    port.close()
            raise InputError(self.url, "", remedy(self.url, fault)) from fault
        self._port = port
        said = bytearray()
        if is_network(self.url):
            time.sleep(REFUSAL_S)
        try:
            self._empty(said)
        except BoardDied:
            self.close()
            words = ascii(said.decode("ascii", "replace").strip())
            raise InputError(
                self.url,
                "",
                f"the port was closed as soon as it was open{f', with {words}' if said else ''}: is it in use there?",
            ) from None

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
        """Reads and discards what has arrived. pyserial's own purge is a network request on rfc2217 ports, which some servers
        leave unanswered."""
        dropped = bytearray()
        self._empty(dropped)
        return len(dropped)

    def _empty(self, into: bytearray) -> None:
        """Moves what has arrived into `into`, where it is kept even if the board dies."""
        port = self._open()
        into += self._held
        self._held = b""
        self._timing.forget_frame()
        try:
            while len(into) < DRAIN_LIMIT_BYTES and (ready := port.in_waiting):
                into += port.read(ready)
        except OSError as fault:
            raise self._gone(fault) from fault

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

    def set_line_rate(self, baud: int) -> None:
        """Another baud rate from now on."""
        port = self._open()
        try:
            port.baudrate = baud
        except OSError as fault:
            raise self._gone(fault) from fault
        self.baud = baud
        self.byte_us = 10e6 / baud
        self.drain()

    def diagnosis(self) -> str:
        return (
            f"usual causes, in order: the firmware was built for another baud rate than {self.baud}; it isn't on the board yet "
            "(tinylight flash --board PORT); another program reads the port as well; an Arduino needs up to 3 s after its port "
            "was opened"
        )

    def _open(self) -> serial.SerialBase:
        if self._port is None:
            raise RuntimeError("the board is not open")
        return self._port

    def _gone(self, fault: Exception) -> BoardDied:
        cause = "was the connection ended there" if is_network(self.url) else "was the cable pulled"
        return BoardDied(f"{self.url}: the port failed ({fault}): {cause}?{held_by(self.url)}")
