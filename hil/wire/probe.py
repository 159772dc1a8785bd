"""At which baud rate a silent board answers after all."""

import contextlib

from hil.boards.faults import BoardDied, LinkError
from hil.boards.serial import SerialBoard
from hil.wire.link import Link

COMMON_BAUDS = (115_200, 500_000, 1_000_000, 250_000, 57_600, 38_400, 19_200, 9_600)
PATIENCE_S = 0.6  # two HELLOs; the board has booted by then


def answering_baud(board: SerialBoard) -> int | None:
    """The first of the common rates at which HELLO is answered; None if none, or if the board dies over it. The board is left
    at its own rate."""
    with contextlib.suppress(BoardDied):
        return _answering_baud(board)
    return None


def _answering_baud(board: SerialBoard) -> int | None:
    own = board.baud
    try:
        for baud in COMMON_BAUDS:
            if baud == own:
                continue
            board.set_line_rate(baud)
            try:
                Link(board).hello(patience_s=PATIENCE_S)
            except LinkError:
                continue
            return baud
        return None
    finally:
        board.set_line_rate(own)
