"""A board on a bad line, for tests: the bytes that pass are changed on purpose."""

from collections.abc import Callable

from hil.boards import Board, ExchangeTiming

Change = Callable[[bytes], bytes]


class Meddler(Board):
    """A board on a bad line: what is written and read passes through two functions first."""

    clock = "cycles"
    boot_us = 5e6

    def __init__(self, board: Board, on_write: Change = bytes, on_read: Change = bytes) -> None:
        self.name, self.description = board.name, board.description
        self._board, self._on_write, self._on_read = board, on_write, on_read

    def open(self) -> None:
        self._board.open()

    @property
    def is_open(self) -> bool:
        return self._board.is_open

    def close(self) -> None:
        self._board.close()

    def write(self, data: bytes) -> None:
        self._board.write(self._on_write(data))

    def read(self, deadline_us: float) -> bytes:
        """b"" means that the deadline has passed: bytes lost on the line must not look like it."""
        while data := self._board.read(deadline_us):
            if left := self._on_read(data):
                return left
        return b""

    def now_us(self) -> float:
        return self._board.now_us()

    def drain(self) -> int:
        return self._board.drain()

    def reset(self) -> None:
        self._board.reset()

    def timing(self) -> ExchangeTiming:
        return self._board.timing()


def once(change: Change, when: int = 0) -> Change:
    """Applies `change` to the call number `when` only."""
    calls = 0

    def meddle(data: bytes) -> bytes:
        nonlocal calls
        calls += 1
        return change(data) if calls == when + 1 else data

    return meddle


def damaged(data: bytes) -> bytes:
    """One bit flipped in the last value of a request (or logit of a reply) without zero bytes."""
    position = len(data) - 5
    assert data[position] not in (0, 0x40)
    return data[:position] + bytes((data[position] ^ 0x40,)) + data[position + 1 :]
