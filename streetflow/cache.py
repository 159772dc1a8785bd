"""The cache: files that can be made again from code and inputs, where they are and how they are written.

Everything here is written under ``${XDG_CACHE_HOME:-~/.cache}/tinylight-hil`` and may be deleted at any time. A user without
a home folder that can be written to gets a temporary folder instead.
Writers build a folder under another name and rename it, so that concurrent processes never see half a folder.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from streetflow.errors import InputError

VARIABLE = "XDG_CACHE_HOME"
NAME = "tinylight-hil"


def cache_folder() -> Path:
    """The folder of everything that this project caches.

    A folder that the variable names is used as it is (and not created here): a user who can't write to it gets an error.
    """
    base = os.environ.get(VARIABLE, "").strip()
    if base:
        return Path(os.path.expanduser(base)) / NAME
    folder = Path(os.path.expanduser("~")) / ".cache" / NAME
    return folder if _can_be_written(folder) else _temporary_folder()


def _can_be_written(folder: Path) -> bool:
    if not folder.is_absolute():  # no home folder is known, and "~" would be one in the current folder
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@functools.cache
def _temporary_folder() -> Path:
    """The same one for all processes of this user, unless something of another user has that name."""
    folder = Path(tempfile.gettempdir()) / f"{NAME}-{os.getuid()}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
            return folder
    own = tempfile.mkdtemp(prefix=f"{NAME}-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return Path(own)


def cannot_cache(place: Path, fault: OSError) -> InputError:
    """The InputError for a part of the cache that can't be written."""
    hint = f"{VARIABLE} can name another folder for what is cached"
    return InputError(fault.filename or place, "", f"can't be written: {fault.strerror}; {hint}")


def publish_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Make ``folder`` hold ``files`` (name, may be below a folder -> content) in one atomic step and return it.

    ``folder`` must be named after its content (a hash): if it exists, another process has published
    the same bytes, and they are kept. OSError where it can't be written.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, content in files.items():
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).write_bytes(content)
        aside.chmod(0o755)
        try:
            aside.rename(folder)
        except OSError:
            if not folder.is_dir():  # not a lost race but a real fault
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def cached_folder(folder: Path, files: Callable[[], Mapping[str, bytes]]) -> Path:
    """``folder`` of the cache, made with ``files()`` unless it is there. InputError where it can't be written."""
    try:
        return folder if folder.is_dir() else publish_folder(folder, files())
    except OSError as fault:
        raise cannot_cache(folder, fault) from None
