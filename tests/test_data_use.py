"""What `pytest --note-data-use` notes, and what `--with-data` therefore leaves out."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers.data_use import left_out
from tests.helpers.places import ROOT

pytest_plugins = ["pytester"]

CONFTEST = """
from pathlib import Path

def pytest_configure(config):
    from tests.helpers.data_use import Notes

    config.pluginmanager.register(Notes(Path("notes").absolute()))
"""
SUITE = """
import multiprocessing
import os
import subprocess
import sys

import pytest
from streetflow.networks.catalogue import find_network, network_names

ASKS = "from streetflow.networks.catalogue import network_names; network_names()"
MINE = {"TINYLIGHT_DATA": "/mine"}

@pytest.fixture(scope="module")
def names():
    return network_names()

def python(*arguments, **options):
    subprocess.run([sys.executable, *arguments], check=True, **options)

def test_uses_a_fixture(names): ...
def test_uses_the_same_fixture_later(names): ...
def test_uses_names(): network_names()
def test_uses_a_python(): python("-c", ASKS)
def test_uses_a_python_of_a_shell(): subprocess.run(f"{sys.executable} -c '{ASKS}'", shell=True, check=True)
def test_uses_a_python_that_is_not_watched(): python("-c", "", env={"TINYLIGHT_DATA": os.environ["TINYLIGHT_DATA"]})
def test_uses_a_python_that_reads_no_path(): python("-E", "-c", "")
def test_uses_a_new_process(): in_process("spawn", network_names)
def test_uses_a_fork(): in_process("fork", network_names)
def test_is_skipped(): pytest.skip("for a reason")
def test_skips_with_its_data(names): pytest.skip("for a reason")

def in_process(way, function):
    process = multiprocessing.get_context(way).Process(target=function)
    process.start()
    process.join()
    assert process.exitcode == 0

def test_same_built_in(): find_network("crossing")
def test_same_compiler(): subprocess.run(["true"])
def test_same_python(): python("-c", "import streetflow")
def test_same_python_of_a_python(): python("-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', ''])")
def test_same_python_without_the_variable(): python("-c", "", env={})
def test_same_python_with_its_own_data(): python("-c", ASKS, env=os.environ | MINE)
def test_same_fork(): in_process("fork", os.getpid)
def test_same_own_data(monkeypatch):
    monkeypatch.setenv("TINYLIGHT_DATA", "/mine")
    network_names()
"""
TESTS = SUITE.count("\ndef test_")
SKIPPED = 2


@pytest.fixture
def noted(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TINYLIGHT_DATA", "")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_suite=SUITE)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=TESTS - SKIPPED, skipped=SKIPPED)
    return pytester.path / "notes"


def test_what_never_asks_for_data_is_noted(noted: Path) -> None:
    same = {line.partition("::")[2] for line in noted.read_text().splitlines()}
    assert same == {line.split("(")[0].removeprefix("def ") for line in SUITE.splitlines() if line.startswith("def test_same_")}

    def items(*names: str) -> Any:
        return [SimpleNamespace(nodeid=f"test_suite.py::{name}") for name in names]

    known, new = items("test_uses_names", "test_is_skipped", "test_same_compiler"), items("test_new")
    assert left_out([*known, *new], noted) == known[2:], "a test that the first run had not is run"


def test_the_variable_is_read_in_one_place() -> None:
    """In the way that the notes watch."""
    reading = []
    for package in ("streetflow", "model", "hil", "tinylight", "firmware"):
        for file in (ROOT / package).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            reading += [file.name] if "DATA_VARIABLE" in text and "environ" in text else []
            assert "environ" not in text or "TINYLIGHT_DATA" not in text or file.name == "catalogue.py", file
    assert reading == ["catalogue.py"]
    text = (ROOT / "streetflow" / "networks" / "catalogue.py").read_text(encoding="utf-8")
    assert text.count("environ.get") == text.count("os.environ.get(DATA_VARIABLE)") == 1
    assert text.count("environ") == 2  # and where a node of a cluster is told
