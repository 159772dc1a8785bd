"""Results as JSON files."""

import json
from pathlib import Path

from streetflow.files import write_whole


def write_json(content: object, path: Path) -> None:
    """Write JSON; InputError where the path can't be written."""
    write_whole(path, json.dumps(content, indent=1, default=str) + "\n")
