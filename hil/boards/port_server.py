"""A serial port for the network, by RFC 2217 (pyserial's half of it): baud rate and DTR are the client's to set.

One client at a time. Each connection opens the port anew, so it resets an Arduino, as opening it on the desk does.
"""

import contextlib
import select
import socket
import time

import serial
from serial.rfc2217 import PortManager

from hil.boards.port_trouble import remedy
from streetflow.errors import InputError

CHUNK_BYTES = 4096
RESET_PULSE_S = 0.05
POLL_S = 0.1  # how soon `stop` is noticed


class PortServer:
    """Listens from the start; `run` serves. `address` is where, as host and port."""

    def __init__(self, port: str, host: str, number: int) -> None:
        """InputError where the port can't be opened, or the address can't be listened on."""
        self.port = port
        self._stop = False
        self._open().close()
        try:
            self._listener = socket.create_server((host, number))
        except OSError as fault:
            raise InputError(f"{host}:{number}", "", f"can't be listened on: {fault.strerror}") from fault
        self.address: tuple[str, int] = self._listener.getsockname()[:2]

    @property
    def url(self) -> str:
        return f"rfc2217://{self.address[0]}:{self.address[1]}"

    def run(self) -> None:
        """One client after the other, until `stop`. InputError where the port can't be opened any more."""
        with self._listener:
            while not self._stop:
                if select.select([self._listener], [], [], POLL_S)[0]:
                    connection, _ = self._listener.accept()
                    with connection, contextlib.suppress(ConnectionError):
                        self._serve(connection)

    def stop(self) -> None:
        self._stop = True

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._open() as port:
            manager = PortManager(port, _Sender(connection))
            while not self._stop:
                ready = select.select([connection.fileno(), port.fileno()], [], [], POLL_S)[0]
                if connection.fileno() in ready:
                    data = connection.recv(CHUNK_BYTES)
                    if not data:
                        return
                    port.write(b"".join(manager.filter(data)))
                if port.fileno() in ready:
                    connection.sendall(b"".join(manager.escape(port.read(CHUNK_BYTES))))

    def _open(self) -> "_Port":
        try:
            return _Port(self.port, timeout=0, exclusive=True)
        except OSError as fault:  # SerialException is one
            raise InputError(self.port, "", remedy(self.port, fault)) from fault


class _Sender:
    """Receives PortManager's own messages."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def write(self, data: bytes) -> None:
        self._connection.sendall(data)


class _Port(serial.Serial):
    """A port that a client may ask for modem lines that it doesn't have: a pseudo-terminal has none."""

    dtr_fell = False

    def _update_dtr_state(self) -> None:
        """DTR that falls and rises resets a board; without DTR, closing and opening does."""
        try:
            super()._update_dtr_state()
        except OSError:
            rises, self.dtr_fell = self.dtr_fell and self.dtr, not self.dtr
            if rises:
                self.close()
                time.sleep(RESET_PULSE_S)
                self.open()

    def _update_rts_state(self) -> None:
        with contextlib.suppress(OSError):
            super()._update_rts_state()

    @property
    def cts(self) -> bool:
        return self._line("cts")

    @property
    def dsr(self) -> bool:
        return self._line("dsr")

    @property
    def ri(self) -> bool:
        return self._line("ri")

    @property
    def cd(self) -> bool:
        return self._line("cd")

    def _line(self, name: str) -> bool:
        try:
            return bool(getattr(super(), name))
        except OSError:
            return False
