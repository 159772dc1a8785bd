"""Files of results: checked before the work starts, so that they can be written, and written whole or not at all."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streetflow.errors import InputError, cannot_be


def write_whole(file: str | Path, content: str | bytes) -> None:
    """Write a file in one atomic step: a reader, even after the process was killed, sees all of it or what was there before.

    Args:
        file: the file to write; a link stays one, and its target is written.
        content: text is written in UTF-8, with its line ends as they are.

    Raises:
        InputError: the file can't be written. What was there before stays.
    """
    with written_aside(file) as aside, cannot_write(file):
        aside.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def written_aside(file: str | Path) -> Iterator[Path]:
    """For a file that a library's function writes: gives the name of a new file to write, beside ``file``.

    At the end of the ``with`` block the new file replaces ``file`` and takes its permissions; it is removed if the block
    raises. What isn't a regular file (a device, a pipe) can't be replaced and is written directly.

    Raises:
        InputError: the new file can't take its place, or can't be made.
    """
    with cannot_write(file):
        target = Path(os.path.realpath(file))
        if target.exists() and not target.is_file():
            aside = target
        else:
            aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
            aside.touch(exist_ok=False)
    try:
        yield aside
        if aside != target:
            with cannot_write(file):
                if target.exists():
                    aside.chmod(target.stat().st_mode & 0o7777)
                aside.replace(target)
    finally:
        if aside != target:
            aside.unlink(missing_ok=True)


@contextmanager
def cannot_write(file: str | Path) -> Iterator[None]:
    """Turns the system's errors in the ``with`` block into an InputError for this file. ValueError: a NUL in its name."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError) as fault:
        raise cannot_be("written", file, fault) from fault


def require_writable(file: Path) -> None:
    """InputError unless a regular file can be written there. Nothing else of that name (a folder, a device, a pipe) is ever
    replaced by results, which are written under another name and then renamed."""
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
