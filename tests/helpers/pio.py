"""`pio run` as a user types it, but without a network, and apart from the user's own PlatformIO."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hil.build.firmware import default_build_dir
from hil.build.project import project_root
from tests.helpers.processes import PATIENCE_S

NOWHERE = "http://127.0.0.1:9"
PROXIES = {name: NOWHERE for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")}


def pio_run(arguments: Sequence[str], home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`pio run ARGUMENTS` for this project, built in `home`/build, with nothing in the environment but `variables`.
    PlatformIO's packages are laid out once for all tests."""
    core = default_build_dir() / "platformio"
    own = {"HOME": str(home), "PLATFORMIO_CORE_DIR": str(core), "PLATFORMIO_WORKSPACE_DIR": str(home)}
    with _first_alone(core):
        return subprocess.run(
            [sys.executable, "-m", "platformio", "run", *arguments],
            cwd=project_root(),
            env={"PATH": os.environ["PATH"]} | PROXIES | own | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
        )


@contextmanager
def _first_alone(core: Path) -> Iterator[None]:
    """Holds a lock while the folder is new: PlatformIO fills it as if no other process were reading it."""
    if (core / "filled").is_file():
        yield
        return
    core.mkdir(parents=True, exist_ok=True)
    with (core / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
        (core / "filled").touch()
