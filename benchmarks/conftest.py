"""Prints the figures that a user asks for (microseconds a step ...) after pytest-benchmark's tables."""

from collections.abc import Callable

import pytest

_figures: list[str] = []


@pytest.fixture
def say() -> Callable[[str], None]:
    """Takes a line to print at the end of the run."""
    return _figures.append


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter) -> None:
    if _figures:
        terminalreporter.section("figures (medians)")
        for line in _figures:
            terminalreporter.write_line(line)
