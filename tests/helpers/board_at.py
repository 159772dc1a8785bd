"""A firmware on the emulated chip: reached at once, through a pseudo-terminal, or through that over RFC 2217."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Protocol

from hil.boards import Board, SerialBoard, SimavrBoard
from hil.boards.emulated_uno import EmulatedUno
from hil.boards.port_server import PortServer
from hil.boards.pseudo_terminal import PseudoTerminal
from hil.build.firmware import Firmware


class Runs(Protocol):
    def run(self) -> None: ...
    def stop(self) -> None: ...


@contextlib.contextmanager
def board_at(where: str, firmware: Firmware) -> Iterator[Board]:
    """`where`: simavr, pty or rfc2217."""
    with contextlib.ExitStack() as stack:
        chip = stack.enter_context(SimavrBoard(firmware.elf, f_cpu_hz=firmware.f_cpu_hz, baud=firmware.baud))
        if where == "simavr":
            yield chip
            return
        port = PseudoTerminal()
        stack.callback(port.close)
        stack.enter_context(running(EmulatedUno(chip, port)))
        name = port.name
        if where == "rfc2217":
            server = PortServer(name, "127.0.0.1", 0)
            stack.enter_context(running(server))
            name = server.url
        yield stack.enter_context(SerialBoard(name, baud=firmware.baud))


@contextlib.contextmanager
def running(what: Runs) -> Iterator[None]:
    """In a thread, to the block's end."""
    thread = threading.Thread(target=what.run)
    thread.start()
    try:
        yield
    finally:
        what.stop()
        thread.join()
