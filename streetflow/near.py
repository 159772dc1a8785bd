"""Known names that look like a mistyped one."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

SHOWN = 3
CUTOFF = 0.6  # difflib's share of equal letters


def near_matches(name: object, known: Iterable[str]) -> list[str]:
    """The known names that look like ``name``, whatever their case, the likeliest first."""
    lower = {each.lower(): each for each in known}
    return [lower[hit] for hit in difflib.get_close_matches(str(name).lower(), lower, n=SHOWN, cutoff=CUTOFF)]


def near_files(file: object) -> list[str]:
    """Paths of the files with a name like that of ``file``, in its folder."""
    path = Path(str(file))
    try:
        others = [name for name in os.listdir(path.parent) if name != path.name]
        return [str(path.with_name(name)) for name in near_matches(path.name, others)]
    except (OSError, ValueError):  # no such folder; a name with a NUL
        return []


def did_you_mean(name: object, known: Iterable[str] = (), *, files: bool = False) -> str:
    """``"; did you mean A or B?"`` to end a fault with, or ``""``. files: ``name`` may be a file's as well."""
    near = near_matches(name, known) + (near_files(name) if files else [])
    return f"; did you mean {' or '.join(near)}?" if near else ""


def or_else(name: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the names that look like it, and all that exist."""
    names = list(known)
    hint = did_you_mean(name, names)
    return f"{hint} There are {', '.join(names)}" if hint else f"; there are {', '.join(names)}"
