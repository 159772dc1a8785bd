"""Ctrl-C is one line and exit code 130, whenever it comes: as a command, in a process of its own."""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CTRL_C = "os.kill(os.getpid(), signal.SIGINT)"


def tinylight(*arguments: str, before: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs what the installed script runs; `before` is Python that comes first."""
    module, function = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["tinylight"].split(":")
    program = f"import atexit, os, signal, sys\n{before}\nfrom {module} import {function}\nsys.exit({function}())"
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)


def test_while_python_imports(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(f"import os, signal\n{CTRL_C}\n")
    run = tinylight("networks", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert (run.returncode, run.stderr) == (130, "tinylight: stopped\n")


def test_in_a_command() -> None:
    """Where its first traffic is loaded."""
    before = f"import streetflow.network\nstreetflow.network.list_networks = lambda: {CTRL_C}"
    run = tinylight("networks", before=before)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "tinylight: stopped\n")


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
    before = "import streetflow.network\nlisted = streetflow.network.list_networks\n"
    before += f"def last():\n    {late}\n    return listed()\nstreetflow.network.list_networks = last"
    run = tinylight("networks", before=before)
    assert "crossing" in run.stdout and (run.returncode, run.stderr) == ending


@pytest.mark.parametrize(("number", "ending"), [(signal.SIGINT, (130, "tinylight: stopped\n")), (signal.SIGTERM, (0, ""))])
@pytest.mark.parametrize("command", ["board", "share"])
def test_what_runs_until_it_is_stopped(command: str, number: int, ending: tuple[int, str]) -> None:
    """It lets go of its port before it leaves."""
    master, slave = os.openpty()
    arguments = ["board"] if command == "board" else ["share", os.ttyname(slave), "--listen", "127.0.0.1:0"]
    run = [sys.executable, "-c", "from hil.entry import main; main()", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert "Ctrl-C ends it." in process.stdout.readline()
        process.send_signal(number)
        told = process.communicate(timeout=60)[1]
    for handle in (master, slave):
        os.close(handle)
    assert (process.returncode, told) == ending


def test_ignored_in_a_shells_background() -> None:
    before = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nimport streetflow.network\n"
    before += f"streetflow.network.list_networks = lambda: {CTRL_C} or []"
    assert tinylight("networks", before=before).returncode == 0
