"""The command line in this process, for tests."""

import sys

import pytest

from tinylight import cli


def tinylight(*arguments: str) -> int:
    """Runs the command in this process and returns its exit code."""
    argv = sys.argv
    sys.argv = ["tinylight", *arguments]
    try:
        with pytest.raises(SystemExit) as left:
            cli.main()
    finally:
        sys.argv = argv
    code = left.value.code
    assert isinstance(code, int)
    return code
