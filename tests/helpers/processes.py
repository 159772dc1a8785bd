"""Processes that tests start: how long they may take, and where their Python finds packages."""

import os
from pathlib import Path

from tests.helpers.places import ROOT

PATIENCE_S = 600.0  # for a process that may have to compile the engine first, on a machine with other work to do


def with_path(*folders: Path) -> dict[str, str]:
    """This process's environment, the folders and this repository in front of what is on Python's path."""
    old = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, folders), str(ROOT), *([old] if old else [])])}
