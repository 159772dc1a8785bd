"""Which state of the firmware's sources a verdict applies to."""

import os
import subprocess
from pathlib import Path

SOURCES = ("platformio.ini", "firmware")


def firmware_commit(project: Path) -> str:
    """Git commit of the firmware's sources, `-dirty` when they differ from it; "unknown" outside a checkout, also where an
    installed package lies inside another project's checkout."""
    try:
        _git(project, "ls-files", "--error-unmatch", "--", *SOURCES)
        commit = _git(project, "rev-parse", "--short=12", "HEAD")
        changed = _git(project, "status", "--porcelain", "--", *SOURCES)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return commit + ("-dirty" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    """Git's output for the folder, whatever repository the caller's environment (a hook's, say) names."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10, env=environment).stdout.strip()
