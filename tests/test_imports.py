"""Which package may import which (.importlinter), and that a breach is seen."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.places import ROOT
from tests.helpers.processes import with_path

PACKAGES = ("streetflow", "model", "hil", "tinylight", "firmware")


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import importlinter.cli as c; c.lint_imports_command()", "--no-cache"]
    environment = with_path(folder) | {"COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The packages' sources and the rules, to be changed."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=lambda _, names: [n for n in names if n.endswith((".json", "cache__"))]
        )
    shutil.copy(ROOT / ".importlinter", tmp_path)
    return tmp_path


def test_imports_go_inwards_only(copy: Path) -> None:
    result = lint(copy)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("streetflow/errors.py", "import model.evaluate", "streetflow.errors -> model.evaluate"),
        (
            "streetflow/kernels/bits.py",
            "from streetflow.engine import core",
            "streetflow.kernels.bits -> streetflow.engine.core",
        ),
        ("model/policy/file.py", "import hil.words", "model.policy.file -> hil.words"),
        ("hil/words.py", "import torch", "hil.words -> torch"),
        ("hil/words.py", "import tinylight.cli", "hil.words -> tinylight.cli"),
        ("streetflow/roadnet/cursor.py", "import streetflow.roadnet.reader", "No cycles are allowed in streetflow.roadnet"),
        ("streetflow/new.py", "", "streetflow.new"),
    ],
)
def test_a_breach_is_seen(copy: Path, file: str, line: str, broken: str) -> None:
    with (copy / file).open("a", encoding="utf-8") as source:
        source.write(f"\n{line}\n")
    result = lint(copy)
    assert result.returncode == 1, result.stdout + result.stderr
    assert broken in result.stdout


@pytest.mark.parametrize("module", ["streetflow", "tinylight.cli", "hil.pytest_plugin", "hil.build.firmware"])
def test_what_does_not_simulate_starts_without_the_engine(module: str) -> None:
    """Its compiler takes a second to import: for a page of help, or in each run of pytest where this project is installed."""
    code = f"import sys, {module}; print(*{{'numba', 'numpy', 'torch'}} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "\n"
