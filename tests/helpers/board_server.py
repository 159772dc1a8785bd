"""A board behind a TCP connection (socket://), without hardware."""

import contextlib
import socket
import threading
from collections.abc import Callable

from hil.wire.protocol import FrameSplitter, HelloReply, decode_frame
from tests.helpers.fake_board import HELLO, reply_to

Responder = Callable[[bytes], bytes]


def firmware(hello: HelloReply = HELLO) -> Responder:
    """Answers requests as a working firmware does."""
    splitter = FrameSplitter()
    return lambda data: b"".join(reply_to(decode_frame(frame), hello) for frame in splitter.feed(data))


def booting_firmware(swallowed: int) -> Responder:
    """A bootloader that swallows the first requests and sends some output of its own, then the firmware."""
    answer, seen = firmware(), 0

    def respond(data: bytes) -> bytes:
        nonlocal seen
        seen += 1
        return b"\x14\x10" if seen <= swallowed else answer(data)

    return respond


class Server:
    """One TCP connection, answered by a responder in a thread."""

    def __init__(self, respond: Responder, greeting: bytes = b"") -> None:
        self._respond, self._greeting = respond, greeting
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connection: socket.socket | None = None
        self.url = f"socket://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            self._connection, _ = self._listener.accept()
            self._connection.sendall(self._greeting)
            while data := self._connection.recv(4096):
                self._connection.sendall(self._respond(data))

    def hang_up(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
            self._connection.close()
        self._listener.close()
