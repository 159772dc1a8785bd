"""Which serial port has the board: by the USB ids of the Arduino Uno and Nano, and of the bridges that their clones carry."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from serial.tools import list_ports

from hil.boards.port_trouble import ports_present
from streetflow.errors import InputError

AUTO = "auto"
BOARDS = {
    (0x2341, 0x0043): "Arduino Uno",
    (0x2341, 0x0001): "Arduino Uno",
    (0x2341, 0x0243): "Arduino Uno",
    (0x2341, 0x006A): "Arduino Uno",
    (0x2A03, 0x0043): "Arduino Uno",
    (0x1A86, 0x7523): "CH340, as on clones of Uno and Nano",
    (0x1A86, 0x5523): "CH341, as on clones of Uno and Nano",
    (0x1A86, 0x55D4): "CH9102, as on clones of Nano",
    (0x10C4, 0xEA60): "CP210x, as on clones of Nano",
    (0x0403, 0x6001): "FTDI FT232R, as on the Nano",
    (0x0403, 0x6015): "FTDI FT231X",
    (0x067B, 0x2303): "PL2303 adapter",
}  # (vendor, product): name


@dataclass(frozen=True)
class Candidate:
    """A port that may have the board."""

    port: str
    board: str

    def __str__(self) -> str:
        return f"{self.port} ({self.board})"


Choose = Callable[[Sequence[Candidate]], Candidate]


def candidates() -> list[Candidate]:
    """All ports with a known USB id, sorted by name."""
    found = [
        Candidate(port.device, BOARDS[(port.vid, port.pid)]) for port in list_ports.comports() if (port.vid, port.pid) in BOARDS
    ]
    return sorted(found, key=lambda candidate: candidate.port)


def find_port(choose: Choose | None = None) -> Candidate:
    """The board's port. Where there are several, `choose` picks one; InputError without `choose`, and without any board."""
    found = candidates()
    if not found:
        raise InputError(AUTO, "", f"no port looks like a board: {ports_present()}")
    if len(found) == 1:
        return found[0]
    if choose is None:
        raise InputError(AUTO, "", f"there are several boards, so name one: {', '.join(map(str, found))}")
    return choose(found)
