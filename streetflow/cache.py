"""Files that can be made again from code and inputs: where they lie and how they get there.

Everything here is written under ``${XDG_CACHE_HOME:-~/.cache}/tinylight-hil`` and may be deleted at any time.
Writers build aside and rename, so that processes side by side never see half a folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from streetflow.errors import InputError

VARIABLE = "XDG_CACHE_HOME"


def cache_folder() -> Path:
    """The folder of everything that this project caches (not created here)."""
    base = os.environ.get(VARIABLE, "").strip() or os.path.join("~", ".cache")
    return Path(os.path.expanduser(base)) / "tinylight-hil"


def cannot_cache(place: Path, fault: OSError) -> InputError:
    """The InputError for something of the cache that can't be written."""
    hint = f"{VARIABLE} can name another folder for what is cached"
    return InputError(fault.filename or place, "", f"can't be written: {fault.strerror}; {hint}")


def publish_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Make ``folder`` hold ``files`` (name -> content) in one atomic step and return it.

    ``folder`` must be named after its content (a hash): if it exists, another process has published
    the same bytes, and they are kept. OSError where it can't be written.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, content in files.items():
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
