"""Python's garbage collection, put off while many objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """No search for unreachable cycles meanwhile: among a large network's objects it takes long and finds none.

    It comes back on where it was on before, also if threads do this at one time: one of them, or none, then has it back early.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
