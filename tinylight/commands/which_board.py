"""The board that `--board auto` stands for: one rule for all commands."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from tinylight.console import say

if TYPE_CHECKING:
    from hil.boards.find_port import Candidate


def port_of(board: str) -> str:
    """For `auto`, finds and prints the port, asking the user where there are several; any other name is returned as it is."""
    from hil.boards.find_port import AUTO, find_port

    if board != AUTO:
        return board
    found = find_port(_choose if sys.stdin.isatty() else None)
    say(f"board: {found}")
    return found.port


def _choose(found: "Sequence[Candidate]") -> "Candidate":
    for number, candidate in enumerate(found, 1):
        say(f"{number}: {candidate}")
    while True:
        number = typer.prompt("which board", type=int)
        if 1 <= number <= len(found):
            return found[number - 1]
