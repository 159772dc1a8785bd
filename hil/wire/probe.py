"""The handshake with a board, and the diagnosis of one that does not answer as it should."""

import contextlib

from hil.boards.faults import BoardDied, GarbageAnswer, LinkError, NoAnswer
from hil.boards.serial import SerialBoard
from hil.wire.expected_firmware import Setting
from hil.wire.link import Link

COMMON_BAUDS = (115_200, 500_000, 1_000_000, 250_000, 57_600, 38_400, 19_200, 9_600)
PATIENCE_S = 0.6  # two HELLOs; the board has booted by then


def handshake_fault(link: Link, policy_sha256: str, setting: Setting) -> str | None:
    """Does the handshake. What is wrong with the board, and the remedy where one is known; None for the expected board.

    Where a real board is silent or sends garbage, the remedy is the baud rate at which it answers. Fields of
    `hil.loop.job.Job` stand in backticks.
    """
    try:
        link.hello(policy_sha256, setting)
    except LinkError as fault:
        text = f"{type(fault).__name__}: {fault}"
        board = link.board
        if isinstance(fault, NoAnswer | GarbageAnswer) and isinstance(board, SerialBoard) and (baud := answering_baud(board)):
            text += f"; not at {board.baud} baud, but at {baud} the board answers: use `baud` {baud}"
        return text
    return None


def answering_baud(board: SerialBoard) -> int | None:
    """The first of the common rates at which HELLO is answered; None if there is none, or if the board dies meanwhile. The
    board is left at its own rate."""
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
            with contextlib.suppress(LinkError):
                Link(board).hello(patience_s=PATIENCE_S)
                return baud
        return None
    finally:
        board.set_line_rate(own)
