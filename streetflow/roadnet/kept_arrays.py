"""Arrays that take long to make from a file, kept on disk for the next process.

Each entry is one file below ``parsed`` in the cache's folder (`streetflow.cache`), named after a SHA-256 of all that it was
made from: the content of its input, this package's version and sources, the versions of numpy and Python. So an entry is never
out of date, and versions that run side by side share nothing. It is written under another name and renamed: no process sees
half of one. It starts with a SHA-256 of what follows: a damaged one isn't used, but made anew.

The variable STREETFLOW_CACHE_MIB bounds the folder: 256 MiB unless it says otherwise; what wasn't used for longest goes first.
With 0 nothing is read from the folder nor written to it. Where it can't be written to, nothing is kept, and nothing is said.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import platform
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streetflow.cache import cache_folder
from streetflow.errors import InputError
from streetflow.kernels.jit import source_fingerprint

VARIABLE = "STREETFLOW_CACHE_MIB"
USUAL_MIB = 256
LEAST_BYTES = 2**20  # of an input: less is read in a tenth of a second
_FORMAT = 1
_PACKAGE = Path(__file__).parent.parent / "__init__.py"  # says the version
_DIGEST_BYTES = 32


def key_of(what: str, size: int, *inputs: bytes | memoryview) -> str:
    """The name of an entry, or "" where it isn't to be kept.

    Args:
        what: its kind.
        size: of what it is made from, bytes.
        inputs: all that it depends on, or digests of that.

    Raises:
        InputError: the variable that bounds the folder isn't a number.
    """
    if size < LEAST_BYTES or _limit_bytes() == 0:
        return ""
    versions = (_FORMAT, np.__version__, platform.python_version(), platform.machine())
    sources = source_fingerprint(Path(__file__).parent)
    try:
        package = _PACKAGE.read_bytes()
    except OSError:
        return ""
    digest = hashlib.sha256(repr((what, versions, sources, [len(each) for each in (package, *inputs)])).encode())
    for each in (package, *inputs):
        digest.update(each)
    return f"{what}-{digest.hexdigest()[:40]}"


def _limit_bytes() -> int:
    text = os.environ.get(VARIABLE, "").strip() or str(USUAL_MIB)
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InputError(VARIABLE, "", f"must be a whole number of MiB, 0 to keep no parsed files, is {text!r}")
    return int(text) * 2**20


def _folder() -> Path:
    return cache_folder() / "parsed"


def find_kept(key: str) -> dict[str, NDArray[Any]] | None:
    """The arrays of an entry by name; None if there is none, or it is damaged."""
    if not key:
        return None
    file = _folder() / key
    try:
        content = file.read_bytes()
    except OSError:
        return None
    payload = memoryview(content)[_DIGEST_BYTES:]
    if content[:_DIGEST_BYTES] != _digest(key, payload):
        return None
    with contextlib.suppress(OSError):
        os.utime(file)
    with np.load(io.BytesIO(payload), allow_pickle=False) as stored:
        return dict(stored)


def keep(key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Make an entry of arrays, and room for it by deleting others."""
    if not key:
        return
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    payload, limit_bytes, folder = buffer.getbuffer(), _limit_bytes(), _folder()
    if len(payload) + _DIGEST_BYTES > limit_bytes:
        return
    aside = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as file:
            aside = Path(file.name)
            file.write(_digest(key, payload))
            file.write(payload)
        aside.replace(folder / key)
        _make_room(folder, limit_bytes)
    except OSError:
        if aside is not None:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)


def _digest(key: str, payload: memoryview) -> bytes:
    digest = hashlib.sha256(key.encode())
    digest.update(payload)
    return digest.digest()


def _make_room(folder: Path, limit_bytes: int) -> None:
    """Delete what wasn't used for longest, half-written files of stopped processes too, until the rest fits."""
    found = []
    for file in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process was first
            stat = file.stat()
            found.append((stat.st_mtime_ns, stat.st_size, file))
    total = 0
    for _, size, file in sorted(found, reverse=True):
        total += size
        if total > limit_bytes:
            file.unlink(missing_ok=True)
