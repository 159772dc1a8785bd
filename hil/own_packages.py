"""Whether the names of this project's packages lead to these packages, not to a user's file that Python finds first.

Needs only the standard library: it runs before anything else is imported.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

MARKS = {"streetflow": "errors.py", "model": "policy", "firmware": "generator", "hil": "own_packages.py"}  # what each holds


def shadowed() -> str | None:
    """A file that hides one of the packages, and the remedy; None if there is none. Nothing is imported."""
    for name, mark in MARKS.items():
        module = sys.modules.get(name)
        spec = find_spec(name) if module is None else module.__spec__
        if spec is None:
            continue  # missing altogether: the import's own error is clear enough
        folders = list(spec.submodule_search_locations or ())
        if not any((Path(folder) / mark).exists() for folder in folders):
            return in_the_way(spec.origin or folders[0], name)
    return None


def in_the_way(file: str, name: str) -> str:
    """The message about a file that is found in place of the package `name`."""
    return f"{file}: is found in place of tinylight-hil's package {name!r}: rename it, or run where it isn't on Python's path"
