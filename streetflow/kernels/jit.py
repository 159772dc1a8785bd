"""How this package compiles its kernels.

All kernels are numba functions without fast-math: every formula is evaluated in the order in which it is written.
``error_model="numpy"`` makes a division by zero give inf or NaN, as in C.

Kernels hold no Python objects and create no arrays, so numba's reference counting (``_nrt``) is off: with it each use
of a field of a record of arrays costs two atomic operations, ten times a step's work. A compiled function that needs
to allocate would fail to compile rather than leak.

Compiling takes some ten seconds on the first run; a line on the terminal says so. It isn't printed where the output goes
elsewhere.

All compiled code of `streetflow` and `model` goes through `helper` and `entry_point`, and is in folders of kernels.
Numba's disk cache looks only at the file of the cached function, not at the helpers that it calls nor at the constants
that other files define, both of which are frozen into the code. So each entry point carries in its name, from which the
cache forms file names, a fingerprint of all kernels: of those in this folder and of those in its own. Therefore kernels
use nothing from outside of such folders but numpy. Two versions that run at the same time never write to one file.

Numba keeps the code beside its source, or in a cache of its own in the user's home folder. Where neither can be written to, it
is kept where all else of this project is cached.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core import config, event

from streetflow.cache import cache_folder

_F = TypeVar("_F", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
# Without the wrappers, which unpack every field of a record, compiling takes a third of the time.
_HELPER_OPTIONS: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def source_fingerprint(folder: Path) -> int:
    """CRC-32 of everything that may be frozen into an entry point of ``folder``: its own files and those of this folder."""
    crc = 0
    for place in dict.fromkeys((Path(__file__).parent, folder)):
        for path in sorted(place.glob("*.py")):
            crc = zlib.crc32(path.read_bytes(), crc)
    return crc


class _CompileNotice(event.Listener):
    """Reports once, and only on a terminal, that an entry point is being compiled (not: loaded from disk)."""

    def __init__(self) -> None:
        self.entry_points: set[Any] = set()
        self.is_shown = False

    def on_start(self, event: event.Event) -> None:
        if self.is_shown or event.data["dispatcher"] not in self.entry_points or not sys.stderr.isatty():
            return
        self.is_shown = True
        print("streetflow: compiling the engine; this takes up to half a minute, once", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        pass


_notice = _CompileNotice()
event.register("numba:compile", _notice)


def helper(function: _F) -> _F:
    """Compile a function that is part of the kernels which call it (always inlined by LLVM)."""
    compiled: _F = njit(**_HELPER_OPTIONS, **_OPTIONS)(function)
    return compiled


def subroutine(function: _F) -> _F:
    """Compile a function that kernels call, without copying it into each: for large ones that are called seldom."""
    options = {name: value for name, value in _HELPER_OPTIONS.items() if name != "forceinline"}
    compiled: _F = njit(**options, **_OPTIONS)(function)
    return compiled


def entry_point(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that Python calls; the machine code is kept on disk, if a folder for it can be written to."""
    folder = Path(function.__code__.co_filename).parent
    function.__qualname__ += f".{source_fingerprint(folder):08x}"
    compiled = _kept_on_disk(function)
    if compiled is None:
        config.CACHE_DIR = str(cache_folder() / "kernels")  # type: ignore[attr-defined]  # numba makes it at run time
        compiled = _kept_on_disk(function)
    if compiled is None:  # a cache that the user has named, and that can't be written to: each process compiles anew
        compiled = njit(**_OPTIONS)(function)
    _notice.entry_points.add(compiled)
    return compiled


def _kept_on_disk(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """None where numba finds no folder that it can write to."""
    try:
        compiled: Callable[..., Any] = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:
        return None
    return compiled
