"""Where a verdict comes from: which firmware, which policy, which traffic, on which board."""

import hashlib
import subprocess
from importlib import metadata
from pathlib import Path


def tool_version() -> str:
    """Version of this package, or "unknown" when it runs from a folder that was never installed."""
    try:
        return metadata.version("tinylight-hil")
    except metadata.PackageNotFoundError:
        return "unknown"


def firmware_commit(project: Path) -> str:
    """Git commit of the firmware's sources, `-dirty` when they differ from it; "unknown" outside a checkout."""
    try:
        commit = _git(project, "rev-parse", "--short=12", "HEAD")
        changed = _git(project, "status", "--porcelain", "--", "firmware", "platformio.ini")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("-dirty" if changed else "")


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(folder: Path, *arguments: str) -> str:
    answer = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True, timeout=10)
    return answer.stdout.strip()
