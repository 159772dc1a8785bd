"""Whether the names of this project's packages lead to these packages, and not to a file of the user's that Python finds first.

Needs the standard library alone: it is asked before anything else is imported.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

MARKS = {"streetflow": "errors.py", "model": "policy", "firmware": "generator", "hil": "own_packages.py"}  # what each holds


def shadowed() -> str | None:
    """What stands in the way of one of the packages, and the remedy; None if nothing does. Nothing is imported."""
    for name, mark in MARKS.items():
        module = sys.modules.get(name)
        spec = find_spec(name) if module is None else module.__spec__
        if spec is None:
            continue  # not there at all, which an import says well enough
        folders = list(spec.submodule_search_locations or ())
        if not any((Path(folder) / mark).exists() for folder in folders):
            return in_the_way(spec.origin or folders[0], name)
    return None


def in_the_way(file: str, name: str) -> str:
    """The message about a file that is found in place of the package `name`."""
    return f"{file}: is found in place of tinylight-hil's package {name!r}: rename it, or run where it isn't on Python's path"
