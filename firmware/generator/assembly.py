"""Lines of AVR assembly, counted as they are written."""

from __future__ import annotations

LONG = frozenset({"lds", "sts", "jmp", "call"})  # instructions of two words


class Assembly:
    """The text of one piece of code and its size."""

    def __init__(self, prefix: str) -> None:
        """`prefix` keeps the local labels of several pieces apart."""
        self.lines: list[str] = []
        self.code_bytes = 0
        self._prefix = prefix
        self._labels = 0

    def op(self, name: str, *operands: object) -> None:
        """One instruction; register numbers are written by `r`."""
        self.lines.append(f"    {name} {', '.join(str(operand) for operand in operands)}".rstrip())
        self.code_bytes += 4 if name in LONG else 2

    def label(self) -> str:
        """A new label; `place` puts it down."""
        self._labels += 1
        return f".L{self._prefix}_{self._labels}"

    def place(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def note(self, text: str) -> None:
        self.lines.append(f"    ; {text}")

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def r(number: int) -> str:
    return f"r{number}"


def low(value: int) -> int:
    return value & 0xFF


def byte(value: int, number: int) -> int:
    """Byte `number` of the two's complement."""
    return value >> 8 * number & 0xFF
