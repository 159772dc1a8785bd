"""Compiles the engine before the workers of pytest-xdist start: each would do it for itself, as would commands that tests run.

One process compiles the plain engine and the planner's rollouts, another the engine that changes lanes; the rest compiles where
it is first used.

    python -m tests.helpers.compiled_kernels [lanes]
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from streetflow.kernels.jit import source_fingerprint
from tests.helpers.places import ROOT

_KEPT = ("step.step_many", "lane_step.step_many")  # whose code is looked for on disk


def compile_first(say: Callable[[str], None]) -> None:
    """Compiles what isn't on disk yet, and says so. A fault is left to the tests to tell."""
    if _are_on_disk():
        return
    started_s = time.monotonic()
    say("compiling the engine, once for all workers; this takes a minute or two")
    command = [sys.executable, "-m", "tests.helpers.compiled_kernels"]
    processes = [subprocess.Popen([*command, *part], cwd=ROOT) for part in ([], ["lanes"])]
    failed = any([process.wait() for process in processes])
    say(f"{'failed' if failed else 'compiled'} after {time.monotonic() - started_s:.0f} s")


def _are_on_disk() -> bool:
    """Whether numba has the code beside its source, where it usually keeps it. Otherwise it looks elsewhere, in seconds."""
    folder = ROOT / "streetflow" / "kernels"
    of_these_sources = f"{source_fingerprint(folder):08x}-*.nbi"
    return all(any((folder / "__pycache__").glob(f"{name}.{of_these_sources}")) for name in _KEPT)


def _run_an_engine(lane_change: bool) -> None:
    from model.planning.planner import Planner
    from streetflow import Engine
    from streetflow.control.controllers import run
    from streetflow.control.environment import Environment
    from tests.helpers.small_network import demand, grid, write

    with tempfile.TemporaryDirectory() as folder:
        roadnet = grid()
        engine = Engine(write(Path(folder), roadnet, demand(roadnet, 12, 60), laneChange=lane_change))
        engine.step_many(5)
    if not lane_change:
        planner = Planner()
        run(Environment("crossing", 0, features=planner.features, horizon_s=20), planner)


if __name__ == "__main__":
    _run_an_engine(lane_change="lanes" in sys.argv[1:])
