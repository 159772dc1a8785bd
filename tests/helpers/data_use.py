"""Which tests can differ between a machine without data sets and one with them: noted by a run without, read by one with them.

`pytest --note-data-use=FILE` notes each test that runs to its end and, itself or in a fixture that it uses or in a process that
either starts, never asks where data sets are: one function reads TINYLIGHT_DATA. `pytest --with-data=FILE` leaves these out. It
runs the tests that asked, those that were skipped, and those that the first run had not at all.

What a test has set the variable to itself is no data set of the machine's. A process is watched through PYTHONPATH (`noting`);
one that has the variable, but may not come to be watched, counts as if it had asked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.noting import sitecustomize as noting

FOLDER = str(Path(noting.__file__).parent)
UNWATCHED = {"-S", "-E", "-I"}  # Python's options without which it imports what PYTHONPATH brings


class Notes:
    """A pytest plugin that writes the file, one test a line; workers of pytest-xdist append to the same one."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._uses = file.with_name(f"{file.name}.{os.getpid()}")  # grows whenever this process, or one below it, asks
        self._uses.touch()
        self._fixtures: set[tuple[str, str]] = set()  # those that used data: where defined, name
        self._is_whole = False
        self._outer = os.environ.setdefault(noting.VARIABLE, "")
        os.environ[noting.NOTES] = f"{self._uses}{os.pathsep}{self._outer}"
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FOLDER, os.environ.get("PYTHONPATH")]))
        noting.watch(str(self._uses), self._outer)
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            _, command, _, environment = arguments
            if self._may_ask_unseen(command, os.environ if environment is None else environment):
                noting.note(str(self._uses))

    def _may_ask_unseen(self, command: object, environment: Mapping[Any, Any]) -> bool:
        variables = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
        if variables.get(noting.VARIABLE) != self._outer or not _is_python(command):
            return False
        is_watched = noting.NOTES in variables and FOLDER in variables.get("PYTHONPATH", "").split(os.pathsep)
        return not is_watched or bool(UNWATCHED & set(_words(command)))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        before = self._size()
        try:
            return (yield)
        finally:
            if self._size() > before:
                self._fixtures.add((fixturedef.baseid, fixturedef.argname))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        self._is_whole = self._is_whole and report.passed
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before, self._is_whole = self._size(), True
        try:
            return (yield)
        finally:
            uses = self._size() > before or any(
                (definition.baseid, name) in self._fixtures
                for name, definitions in getattr(item, "_fixtureinfo").name2fixturedefs.items()  # noqa: B009
                for definition in definitions
            )
            if self._is_whole and not uses:
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(f"{item.nodeid}\n")

    def _size(self) -> int:
        return self._uses.stat().st_size


def _words(command: object) -> list[str]:
    return [os.fsdecode(word) for word in command] if isinstance(command, list | tuple) else str(command).split()


def _is_python(command: object) -> bool:
    """Whether it may come to be Python, perhaps by way of a shell or `setpriv`: a compiler or git don't."""
    return any("python" in word or "tinylight" in word for word in _words(command)[:6])


def left_out(items: list[pytest.Item], file: Path) -> list[pytest.Item]:
    """Tests that ran without data sets to their end and asked for none."""
    alike = set(file.read_text(encoding="utf-8").splitlines())
    return [item for item in items if item.nodeid in alike]
