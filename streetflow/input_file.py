"""Files that a user names, read whole."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from streetflow.errors import InputError, cannot_be
from streetflow.near import did_you_mean


def read_input(file: str | Path) -> bytes:
    """The content of a file.

    Args:
        file: its name. A pipe may be read; a device may not, since it need have no end.

    Raises:
        InputError: no file is named, there is none of that name, or it can't be read.
    """
    if not str(file):
        raise InputError("", "", "the name of a file is empty")
    try:
        with open(file, "rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                raise InputError(file, "", "can't be read: it is a device, not a file")
            return opened.read()
    except InputError:
        raise
    except FileNotFoundError:
        fault = f"there is no such file (tried {Path(file).absolute()})"
        raise InputError(file, "", fault + did_you_mean(file, files=True)) from None
    except (OSError, ValueError) as fault:
        raise cannot_be("read", file, fault) from None
