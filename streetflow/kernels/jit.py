"""How this package compiles its kernels.

All kernels are numba functions without fast-math: every formula is evaluated in the order in which it is written.
``error_model="numpy"`` makes a division by zero give inf or NaN, as in C.

Kernels hold no Python objects and create no arrays, so numba's reference counting (``_nrt``) is off: with it each use
of a field of a record of arrays costs two atomic operations, ten times a step's work. A compiled function that needs
to allocate would fail to compile rather than leak.

Compiling takes some ten seconds on the first run; a line on the terminal says so. Programs whose output goes elsewhere
see nothing of it.

Numba's disk cache looks only at the file of the cached function, not at the helpers it calls. Entry points therefore
close over `SOURCE_FINGERPRINT` (a closure's values are part of the cache key), and carry it in their names, from which
the cache forms file names: two versions that run at the same time never write to one file.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core import event

_F = TypeVar("_F", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
# Without the wrappers, which unpack every field of a record, compiling takes a third of the time.
_HELPER_OPTIONS: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _fingerprint() -> int:
    crc = 0
    for path in sorted(Path(__file__).parent.glob("*.py")):
        crc = zlib.crc32(path.read_bytes(), crc)
    return crc


SOURCE_FINGERPRINT = _fingerprint()


class _CompileNotice(event.Listener):
    """Says once, and only on a terminal, that an entry point is being compiled (not: loaded from disk)."""

    def __init__(self) -> None:
        self.entry_points: set[Any] = set()
        self.is_told = False

    def on_start(self, event: event.Event) -> None:
        if self.is_told or event.data["dispatcher"] not in self.entry_points or not sys.stderr.isatty():
            return
        self.is_told = True
        print("streetflow: compiling the engine; this takes up to half a minute, once", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        pass


_notice = _CompileNotice()
event.register("numba:compile", _notice)


def helper(function: _F) -> _F:
    """Compile a function that is part of the kernels which call it (always inlined by LLVM)."""
    compiled: _F = njit(**_HELPER_OPTIONS, **_OPTIONS)(function)
    return compiled


def entry_point(function: _F) -> _F:
    """Compile a function that Python calls; the machine code is kept on disk, if there is a place for it."""
    function.__qualname__ += f".{SOURCE_FINGERPRINT:08x}"
    try:
        compiled: _F = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # numba found no folder that it can write to
        compiled = njit(**_OPTIONS)(function)
    _notice.entry_points.add(compiled)
    return compiled
