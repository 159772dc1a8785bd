"""Shared set-up of the test suite. The harness itself is a pytest plugin: `hil/pytest_plugin.py`."""

import os
import signal
from pathlib import Path

import pytest

# Data sets and recordings beside the checkout are used without being named; where there are none, their tests are skipped.
_SHARED = Path(__file__).resolve().parent.parent / "shared"
for _variable, _folder in (("TINYLIGHT_DATA", _SHARED / "datasets"), ("TINYLIGHT_SHARED", _SHARED)):
    if _folder.is_dir():
        os.environ.setdefault(_variable, str(_folder))

# A shell's background job ignores Ctrl-C, and so would every process that it starts: some tests interrupt theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stranger",
        action="store_true",
        help="only the tests that can differ between a machine with data sets and one without (.ci/run runs these twice)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--stranger"):
        return
    from tests.helpers.strangers_tests import strangers_tests

    differing = strangers_tests()
    left_out = [item for item in items if item.getparent(pytest.Module).obj.__name__ not in differing]  # type: ignore[union-attr]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]
