"""Compiles the engine before the workers of pytest-xdist start: each would do it for itself, as would commands that tests run.

One process compiles the plain engine and the planner's rollouts, another the engine that changes lanes and a team's steps: both
take as long. The rest compiles where it is first used.

    python -m tests.helpers.compiled_kernels [plain|others]
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streetflow import Engine
from streetflow.kernels.jit import source_fingerprint
from tests.helpers.places import ROOT
from tests.helpers.small_network import demand, grid, write

_KEPT = ("step.step_many", "lane_step.step_many")  # whose code is looked for on disk


def compile_first(say: Callable[[str], None]) -> None:
    """Compiles what isn't on disk yet, and says so. A fault is left to the tests to tell."""
    if _are_on_disk():
        return
    started_s = time.monotonic()
    say("compiling the engine, once for all workers; this takes a minute or two")
    command = [sys.executable, "-m", "tests.helpers.compiled_kernels"]
    processes = [subprocess.Popen([*command, part], cwd=ROOT) for part in ("plain", "others")]
    failed = any([process.wait() for process in processes])
    say(f"{'failed' if failed else 'compiled'} after {time.monotonic() - started_s:.0f} s")


def _are_on_disk() -> bool:
    """Whether numba has the code beside its source, where it usually keeps it. Otherwise it looks elsewhere, in seconds."""
    folder = ROOT / "streetflow" / "kernels"
    of_these_sources = f"{source_fingerprint(folder):08x}-*.nbi"
    return all(any((folder / "__pycache__").glob(f"{name}.{of_these_sources}")) for name in _KEPT)


def _compile_plain(folder: Path) -> None:
    from model.planning.planner import Planner
    from streetflow.control.controllers import run
    from streetflow.control.environment import Environment

    _engine(folder).step_many(5)
    planner = Planner()
    run(Environment("crossing", 0, features=planner.features, horizon_s=20), planner)


def _compile_others(folder: Path) -> None:
    from streetflow.engine import team

    _engine(folder, laneChange=True).step_many(5)
    team.LEAST_VEHICLES = 0
    engine = _engine(folder)
    team.TeamSteps(engine._step_kernel, 2)(*engine.memory, 1)


def _engine(folder: Path, **settings: Any) -> Engine:
    roadnet = grid()
    return Engine(write(folder, roadnet, demand(roadnet, 12, 60), **settings))


if __name__ == "__main__":
    if not sys.argv[1:]:
        compile_first(print)
    with tempfile.TemporaryDirectory() as made:
        for part in sys.argv[1:]:
            {"plain": _compile_plain, "others": _compile_others}[part](Path(made))
