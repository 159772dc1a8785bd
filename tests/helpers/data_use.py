"""Which tests can differ between a machine with data sets and one without: noted by a run with them, read by one without.

`pytest --note-data-use=FILE` notes each test that, itself or in a fixture that it uses, asks for the folders of data sets (one
function reads TINYLIGHT_DATA), opens or lists a file of the reference data, or starts a process that may do either: a fork, or
Python with anything but PlatformIO. `pytest --stranger=FILE` then runs these, and those that the first run had not at all.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from streetflow.networks import catalogue

SEEN, USES = "seen", "uses"  # what a line of the file says of a test, before its id
PLACES = [os.environ.get("TINYLIGHT_SHARED", ""), *os.environ.get("TINYLIGHT_DATA", "").split(os.pathsep)]
FOLDERS = tuple(f"{Path(place).resolve()}{os.sep}" for place in PLACES if place)


class Notes:
    """A pytest plugin that writes the file, one line a fact; workers of pytest-xdist append to the same one."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._used = False
        self._fixtures: set[tuple[str, str]] = set()  # those that used data: where defined, name
        sys.addaudithook(self._audit)
        self._watch(catalogue, "_listed_folders")
        self._watch(multiprocessing.process.BaseProcess, "start")

    def _watch(self, owner: Any, name: str) -> None:
        watched = getattr(owner, name)

        def noting(*arguments: Any, **options: Any) -> Any:
            self._used = True
            return watched(*arguments, **options)

        setattr(owner, name, noting)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir"):
            self._used = self._used or (isinstance(arguments[0], str | os.PathLike) and _is_of_data(os.fspath(arguments[0])))
        elif event == "os.fork" or (event == "subprocess.Popen" and _may_read(arguments[1])):
            self._used = True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        before, self._used = self._used, False
        try:
            return (yield)
        finally:
            if self._used:
                self._fixtures.add((fixturedef.baseid, fixturedef.argname))
            self._used |= before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._used = False
        try:
            return (yield)
        finally:
            uses = self._used or any(
                (definition.baseid, name) in self._fixtures
                for name, definitions in getattr(item, "_fixtureinfo").name2fixturedefs.items()  # noqa: B009
                for definition in definitions
            )
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{SEEN} {item.nodeid}\n" + (f"{USES} {item.nodeid}\n" if uses else ""))


def _is_of_data(path: str | bytes) -> bool:
    return f"{os.path.realpath(os.fsdecode(path))}{os.sep}".startswith(FOLDERS)


def _may_read(command: object) -> bool:
    """Whether a process may come to data: Python, or this project's command. PlatformIO, a compiler or git don't."""
    words = [os.fsdecode(word) for word in command] if isinstance(command, list | tuple) else str(command).split()
    return "platformio" not in words and any(Path(word).name.startswith(("python", "tinylight")) for word in words[:4])


def left_out(items: list[pytest.Item], file: Path) -> list[pytest.Item]:
    """Tests that ran with data and made no use of it."""
    notes: dict[str, set[str]] = {SEEN: set(), USES: set()}
    for line in file.read_text(encoding="utf-8").splitlines():
        fact, _, test = line.partition(" ")
        notes[fact].add(test)
    return [item for item in items if item.nodeid in notes[SEEN] - notes[USES]]
