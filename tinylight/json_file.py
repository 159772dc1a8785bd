"""Results as JSON files."""

import json
from pathlib import Path

from streetflow.errors import InputError


def write_json(content: object, path: Path) -> None:
    """Write JSON; InputError where the path can't be written."""
    try:
        path.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    except OSError as fault:
        raise InputError(path, "", f"can't be written: {fault.strerror}") from fault
