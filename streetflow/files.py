"""Whether a result can be written, found out before the work that makes it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from streetflow.errors import InputError, cannot_be


def require_writable(file: Path) -> None:
    """InputError unless a regular file can be written there. Anything else that has the name (a folder, a device, a pipe)
    stays as it is: results are written aside and take the name's place."""
    try:
        if not file.parent.is_dir():
            exists = os.path.exists(file.parent)
            why = f"{file.parent} is not a folder" if exists else f"there is no folder {file.parent}"
            raise InputError(file, "", f"can't be written: {why}")
        if file.exists() and not file.is_file():
            raise InputError(file, "", f"can't be written: it is {'a folder' if file.is_dir() else 'not a regular file'}")
        if file.exists() and not os.access(file, os.W_OK):
            raise InputError(file, "", "can't be written: it is read-only")
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", suffix=".tmp"):
            pass
    except OSError as fault:
        raise cannot_be("written", file, fault) from None


def require_folder(folder: Path) -> None:
    """InputError unless it is a folder, or the first of its parents that exists is one, so that it may be made."""
    for place in (folder, *folder.parents):
        if os.path.exists(place):
            if not place.is_dir():
                why = "is not a folder"
                raise InputError(folder, "", why if place == folder else f"can't be made: {place} {why}")
            return
