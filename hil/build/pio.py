"""PlatformIO as the harness uses it: the `platformio` installed by pip, quiet, and never waiting for a network.

Builds of our own platform (firmware/platform_system) keep PlatformIO's core folder beside their results, apart from
the user's own in ~/.platformio. That platform lays out the one package that PlatformIO needs, tool-scons, itself.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from streetflow.errors import InputError

QUIET = {
    "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no",
    "PLATFORMIO_DISABLE_UPGRADE_CHECK": "true",
    "PLATFORMIO_NO_ANSI": "true",
}


# The user's own variables for PlatformIO that say where it keeps its files and how it reaches the network. The others set
# options of a project (src_dir, build_flags): of one of the user's projects, not of this one.
USERS_OWN = ("PLATFORMIO_CORE_DIR", "PLATFORMIO_PACKAGES_DIR", "PLATFORMIO_PLATFORMS_DIR", "PLATFORMIO_CACHE_DIR")
USERS_SETTINGS = ("PLATFORMIO_SETTING_", "PLATFORMIO_AUTH_")


def environment(state_dir: Path | None, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment variables for PlatformIO. It keeps its state in `state_dir`, or, without one, in the user's own folder."""
    result = {name: value for name, value in os.environ.items() if _passes(name)} | QUIET
    if state_dir is not None:
        result["PLATFORMIO_CORE_DIR"] = str(state_dir / "core")
        result["PLATFORMIO_WORKSPACE_DIR"] = str(state_dir / "workspace")
    return result | dict(variables or {})


def _passes(name: str) -> bool:
    return not name.startswith("PLATFORMIO_") or name in USERS_OWN or name.startswith(USERS_SETTINGS)


@contextmanager
def _first_alone(state_dir: Path | None) -> Iterator[None]:
    """Holds a lock while `state_dir` is new: PlatformIO sets its folder up as if no other process were reading it."""
    if state_dir is None or (state_dir / "set_up").is_file():
        yield
        return
    state_dir.mkdir(parents=True, exist_ok=True)
    with (state_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
        (state_dir / "set_up").touch()


def run(
    arguments: Sequence[str],
    *,
    project: Path,
    state_dir: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs `pio ARGUMENTS` for the project; output is captured. InputError if PlatformIO is not installed."""
    if find_spec("platformio") is None:
        raise InputError("platformio", "", "not installed for this Python; install it: pip install 'tinylight-hil[firmware]'")
    command = [sys.executable, "-m", "platformio", *arguments]
    with _first_alone(state_dir):
        return subprocess.run(
            command,
            cwd=project,
            env=environment(state_dir, variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
