"""On PYTHONPATH while `pytest --note-data-use` runs: each Python that a test starts notes when it asks where data sets are.

Python imports this file by itself as it starts. It imports next to nothing: some tests start a Python that has little else.
"""

import os
import sys

NOTES = "TINYLIGHT_NOTED_IN"  # the notes' file, and what the machine has set the variable to
VARIABLE = "TINYLIGHT_DATA"


def watch(notes: str, outer: str) -> None:
    """From now on this process, and each that it forks, appends a line to `notes` when it reads `outer` from the variable."""
    read = os.environ.get

    def noting_read(key: str, default: object = None) -> object:
        found = read(key, default)
        if key == VARIABLE and found == outer and sys._getframe(1).f_globals.get("__name__") != "_pytest.monkeypatch":
            note(notes)
        return found

    os.environ.get = noting_read  # type: ignore[method-assign, assignment]  # the one way in which this project reads it


def note(notes: str) -> None:
    with open(notes, "a", encoding="ascii") as file:
        file.write("used\n")


if NOTES in os.environ:
    watch(*os.environ[NOTES].split(os.pathsep, 1))
