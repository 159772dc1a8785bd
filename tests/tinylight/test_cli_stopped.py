"""Ctrl-C is one line and exit code 130, SIGTERM with 143, whenever it comes: as a command, in a process of its own."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from tests.helpers.places import ROOT
from tests.helpers.processes import PATIENCE_S, with_path
from tests.helpers.short_network import write_short_crossing

CTRL_C = "os.kill(os.getpid(), signal.SIGINT)"
BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])


def program(before: str = "") -> list[str]:
    """What the installed script runs; `before` is Python that comes first."""
    module, function = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["tinylight"].split(":")
    text = f"import atexit, os, signal, sys\n{before}\nfrom {module} import {function}\nsys.exit({function}())"
    return [sys.executable, "-c", text]


def tinylight(*arguments: str, before: str = "", path: tuple[Path, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*program(before), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=with_path(*path), timeout=PATIENCE_S)


@BOTH
def test_while_python_imports(number: int, tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(f"import os\nos.kill(os.getpid(), {number})\n")
    run = tinylight("networks", path=(tmp_path,))
    assert (run.returncode, run.stderr) == (128 + number, "tinylight: stopped\n")


@BOTH
def test_in_a_command(number: int) -> None:
    """Where its first traffic is loaded."""
    before = "import streetflow.networks.catalogue\n"
    before += f"streetflow.networks.catalogue.list_networks = lambda: os.kill(os.getpid(), {int(number)})"
    run = tinylight("networks", before=before)
    assert (run.returncode, run.stdout, run.stderr) == (128 + number, "", "tinylight: stopped\n")


@BOTH
@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ("train --network short --features inlane_2_num_vehicle,phase_2_delay --out p.json", "p.json.checkpoint"),
        ("table --models FixedTime,SOTL --networks crossing,arterial --processes 1 --work w", "w/*/*/flow_9.json"),
    ],
    ids=["train", "table"],
)
def test_a_long_run_keeps_what_it_has(
    number: int, arguments: str, kept: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """And nothing beside it: no half-written file, no word of the processes' own."""
    if arguments.startswith("train"):
        pytest.importorskip("torch", reason="torch is not installed (extra: train)")
    data = tmp_path_factory.mktemp("data")
    write_short_crossing(data, horizon_s=400)
    environment = with_path() | {"TINYLIGHT_DATA": str(data)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*program(), *arguments.split()], cwd=tmp_path, env=environment, **pipes) as process:  # type: ignore[call-overload]
        deadline_s = time.monotonic() + PATIENCE_S
        while not list(tmp_path.glob(kept)) and process.poll() is None and time.monotonic() < deadline_s:
            time.sleep(0.02)
        process.send_signal(number)
        out, error = process.communicate(timeout=PATIENCE_S)
    *finished, last = error.splitlines()
    assert (process.returncode, out, last) == (128 + number, "", "tinylight: stopped")
    assert all(" flows 0, 1" in line for line in finished)  # of the table's finished jobs
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files and not [file for file in files if file.name.endswith(".tmp")]
    assert not (tmp_path / "w" / "crossing" / "SOTL" / "flow_9.json").exists()


@pytest.mark.parametrize(
    ("late", "ending"),
    [
        (f"sys.modules['hil.late'] = type('Late', (), {{'__del__': lambda self: {CTRL_C}}})()", (0, "")),
        (f"atexit.register(lambda: {CTRL_C})", (130, "tinylight: stopped\n")),
    ],
    ids=["when modules are torn down", "in an exit function"],
)
def test_after_the_verdict(late: str, ending: tuple[int, str]) -> None:
    """Modules are not torn down at all: Ctrl-C would kill the process there."""
    before = "import streetflow.networks.catalogue\nlisted = streetflow.networks.catalogue.list_networks\n"
    before += f"def last():\n    {late}\n    return listed()\nstreetflow.networks.catalogue.list_networks = last"
    run = tinylight("networks", before=before)
    assert "crossing" in run.stdout and (run.returncode, run.stderr) == ending


@pytest.mark.parametrize(("number", "ending"), [(signal.SIGINT, (130, "tinylight: stopped\n")), (signal.SIGTERM, (0, ""))])
@pytest.mark.parametrize("command", ["board", "share"])
def test_what_runs_until_it_is_stopped(command: str, number: int, ending: tuple[int, str]) -> None:
    """It lets go of its port before it leaves."""
    master, slave = os.openpty()
    arguments = ["board"] if command == "board" else ["share", os.ttyname(slave), "--listen", "127.0.0.1:0"]
    run = [sys.executable, "-c", "from tinylight.entry import main; main()", *arguments]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=with_path()) as process:
        assert process.stdout is not None
        assert "Ctrl-C ends it." in process.stdout.readline()
        process.send_signal(number)
        error = process.communicate(timeout=PATIENCE_S)[1]
    for handle in (master, slave):
        os.close(handle)
    assert (process.returncode, error) == ending


def test_ignored_in_a_shells_background() -> None:
    before = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nimport streetflow.networks.catalogue\n"
    before += f"streetflow.networks.catalogue.list_networks = lambda: {CTRL_C} or []"
    assert tinylight("networks", before=before).returncode == 0
