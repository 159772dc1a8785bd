"""Shared set-up of the test suite. The harness itself is a pytest plugin: `hil/pytest_plugin.py`."""

import os
import signal
import sys
from pathlib import Path

import pytest

# Data sets and recordings beside the checkout are used without being named; where there are none, their tests are skipped.
_SHARED = Path(__file__).resolve().parent.parent / "shared"
for _variable, _folder in (("TINYLIGHT_DATA", _SHARED / "datasets"), ("TINYLIGHT_SHARED", _SHARED)):
    if _folder.is_dir():
        os.environ.setdefault(_variable, str(_folder))

# The tests start hundreds of processes of Python: each would otherwise compile our modules, and each build all of SCons.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False

# A shell's background job ignores Ctrl-C, and so would every process that it starts: some tests interrupt theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("data sets")
    group.addoption("--note-data-use", metavar="FILE", help="note in FILE which tests make no use of data sets")
    group.addoption("--with-data", metavar="FILE", help="leave out the tests that made no use of data sets, as FILE notes")


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("--note-data-use"):
        from tests.helpers.data_use import Notes

        config.pluginmanager.register(Notes(Path(file).absolute()))


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    if config.getoption("numprocesses", None) and not config.option.collectonly:
        from tests.helpers.compiled_kernels import compile_first

        compile_first(config.get_terminal_writer().line)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if file := config.getoption("--with-data"):
        from tests.helpers.data_use import left_out

        without = set(left_out(items, Path(file)))
        config.hook.pytest_deselected(items=list(without))
        items[:] = [item for item in items if item not in without]
