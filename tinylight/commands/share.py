"""`tinylight share`: a board on this machine for the whole network."""

from typing import Annotated

import typer

from streetflow.errors import InputError
from tinylight.console import run_until_stopped


def share(
    port: Annotated[str, typer.Argument(metavar="PORT", help="The board's serial port, such as /dev/ttyACM0.")],
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where to listen.")] = "127.0.0.1:4000",
) -> None:
    """Give a serial port to the network by RFC 2217, one client at a time, until Ctrl-C.

    On the other machine: `tinylight hil --board rfc2217://THIS_HOST:4000`. Anyone with access to the address can use the board:
    there is no password, so listen on 0.0.0.0 only in a network that you trust.
    """
    from hil.boards.port_server import PortServer
    from hil.boards.port_trouble import NO_PORT, is_no_port

    host, colon, number = listen.rpartition(":")
    if not colon or not number.isdecimal() or len(number) > 5 or int(number) > 65_535:
        raise InputError("--listen", "", f"{listen!r} is not HOST:PORT")
    if is_no_port(port) or "://" in port:
        raise InputError(port, "", f"{NO_PORT} of this machine" if "://" in port else NO_PORT)
    server = PortServer(port, host, int(number))
    run_until_stopped(f"{port} is at {server.url}. Ctrl-C ends it.", server.run, server.stop)
