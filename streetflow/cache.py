"""Files that can be made again from code and inputs: where they lie and how they get there.

Everything here is written under ``${XDG_CACHE_HOME:-~/.cache}/tinylight-hil`` and may be deleted at any time.
Writers build aside and rename, so that processes side by side never see half a folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path


def cache_folder() -> Path:
    """The folder of everything that this project caches (not created here)."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "tinylight-hil"


def publish_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Make ``folder`` hold ``files`` (name -> content) in one atomic step and return it.

    ``folder`` must be named after its content (a hash): if it exists, another process has published
    the same bytes, and they are kept.
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
