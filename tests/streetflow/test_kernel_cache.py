"""Compiled code on disk: made in one place, made again when anything frozen into it changes, harmless without a cache."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.places import ROOT
from tests.helpers.processes import with_path

PACKAGES = ("streetflow", "model", "hil", "tinylight", "firmware")
COMPILERS = {"njit", "jit", "vectorize", "guvectorize", "cfunc", "jitclass", "stencil"}


@cache
def sources() -> dict[Path, ast.Module]:
    """Every source file, parsed; seconds, which the other tests' workers needn't spend."""
    return {
        file.relative_to(ROOT): ast.parse(file.read_text(encoding="utf-8"))
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
    }


def kernels() -> dict[Path, ast.Module]:
    return {file: tree for file, tree in sources().items() if file.parts[1] == "kernels"}


def imported(tree: ast.AST) -> list[tuple[str, str]]:
    """(module, name) of every import; name "" for a whole module."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found += [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
    return found


def test_only_jit_compiles() -> None:
    """No file but jit.py has a name of numba's that compiles."""
    named = {
        str(file)
        for file, tree in sources().items()
        if any(module.partition(".")[0] == "numba" and name in COMPILERS for module, name in imported(tree))
        or any(isinstance(node, ast.Attribute) and node.attr in COMPILERS for node in ast.walk(tree))
    }
    assert named == {"streetflow/kernels/jit.py"}


def test_functions_are_compiled_in_folders_of_kernels_only() -> None:
    """Elsewhere no fingerprint would cover what is frozen into them."""
    outside = [
        str(file)
        for file, tree in sources().items()
        if file not in kernels()
        and any(module == "streetflow.kernels.jit" and name != "source_fingerprint" for module, name in imported(tree))
    ]
    assert len(kernels()) > 25 and outside == []


def test_nothing_from_outside_is_frozen_into_kernels() -> None:
    """But jit.py: of what it imports nothing is compiled."""
    ours = [(str(file), module) for file, tree in kernels().items() if file.name != "jit.py" for module, _ in imported(tree)]
    foreign = [
        (file, module) for file, module in ours if module.partition(".")[0] in PACKAGES and module.split(".")[1] != "kernels"
    ]
    assert foreign == []
    others = {module.partition(".")[0] for _, module in ours} - set(PACKAGES) - set(sys.stdlib_module_names)
    assert others == {"numpy", "numba", "llvmlite"}


def copy_packages(folder: Path, *names: str) -> None:
    """The packages' files without compiled code, which the copies keep beside themselves."""
    for name in names:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))


def python(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Python on the packages that lie in ``folder``, and in it."""
    usual = {name: value for name, value in with_path(folder).items() if not name.startswith("NUMBA_")}
    environment = usual | {"COLUMNS": "200"} | variables
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def results(folder: Path, part: str) -> Any:
    result = python(folder, str(ROOT / "tests" / "helpers" / "kernel_results.py"), part)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


PROBE = """
from streetflow.kernels.index import index
from streetflow.kernels.jit import entry_point


@entry_point
def masked(number):
    return index(number)
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A copy of the packages with its cache of compiled code, and what the kernels gave."""
    folder = tmp_path_factory.mktemp("warm")
    copy_packages(folder, "streetflow", "model")
    (folder / "streetflow" / "kernels" / "probe.py").write_text(PROBE)
    found = {part: results(folder, part) for part in ("features", "masked", "weights")}
    for place in ("streetflow", "model"):
        assert list((folder / place / "kernels" / "__pycache__").glob("*.nbc"))
    return folder, found


@pytest.fixture
def edited(warm: tuple[Path, dict[str, Any]], tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A copy of the copy with the times of all its files, which numba compares."""
    folder, found = warm
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return tmp_path, found


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_exchanged_sources_exchange_no_features(edited: tuple[Path, dict[str, Any]]) -> None:
    """The code that reads the source vector and the kernels that fill it in use the same numbers, even with a warm cache."""
    folder, found = edited
    file = folder / "streetflow" / "kernels" / "sources.py"
    for a, b in (("WAITING = 1", "WAITING_TIME = 2"), ("PASSED = 1", "PASSED_TRAVEL_TIME = 2")):
        edit(file, f"{a}  #", f"{a[:-1]}{b[-1]}  #")
        edit(file, f"{b}  #", f"{b[:-1]}{a[-1]}  #")
    now = results(folder, "features")
    assert len({str(values) for values in found["features"]["features"].values()}) == 4  # exchanged ones would show
    assert now["features"] == found["features"]["features"]
    assert now["sources"] != found["features"]["sources"]
    assert sorted(now["sources"]) == sorted(found["features"]["sources"])


def test_a_changed_constant_of_a_helper_in_another_file_is_seen(edited: tuple[Path, dict[str, Any]]) -> None:
    folder, found = edited
    assert results(folder, "masked") == found["masked"] == 13
    edit(folder / "streetflow" / "kernels" / "index.py", "_LARGEST = 2147483647", "_LARGEST = 7")
    assert results(folder, "masked") == 5


def test_a_changed_constant_of_the_model_is_seen(edited: tuple[Path, dict[str, Any]]) -> None:
    folder, found = edited
    (folder / "model" / "kernels" / "constants.py").write_text("SMOOTHING, EPSILON = 0.99, 1e-8\n")
    file = folder / "model" / "kernels" / "rmsprop.py"
    edit(file, "\nSMOOTHING, EPSILON = 0.99, 1e-8\n", "\nfrom model.kernels.constants import EPSILON, SMOOTHING\n")
    assert results(folder, "weights") == found["weights"]
    (folder / "model" / "kernels" / "constants.py").write_text("SMOOTHING, EPSILON = 0.96, 1e-8\n")
    assert results(folder, "weights") != found["weights"]


ALL_KERNELS = """
import importlib, pkgutil
import model.kernels, streetflow.kernels

for package in (model.kernels, streetflow.kernels):
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
"""


def test_all_kernels_work_where_nothing_can_be_kept(tmp_path: Path) -> None:
    """A package that its user can't write to, and no home: numba refuses a cached function when it is made, in a traceback.
    (Compiling a whole engine again, as a command then does, takes too long for a test.)"""
    copy_packages(tmp_path, "streetflow", "model")
    for folder in (tmp_path, *tmp_path.rglob("*")):
        if folder.is_dir():
            (folder / "__pycache__").write_text("in the place of a folder, so that root can't make one either")
    nowhere = {"HOME": "/dev/null/home", "XDG_CACHE_HOME": "/dev/null/cache"}
    result = python(tmp_path, "-B", "-c", ALL_KERNELS, **nowhere)
    assert (result.returncode, result.stderr) == (0, "")
    for part in ("features", "weights"):
        result = python(tmp_path, "-B", str(ROOT / "tests" / "helpers" / "kernel_results.py"), part, **nowhere)
        assert (result.returncode, result.stderr) == (0, "")
    assert list(tmp_path.rglob("*.nb[ci]")) == []
