"""What `pytest --note-data-use` notes, and what `--stranger` therefore leaves out."""

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
from pathlib import Path

import pytest
from streetflow.networks.catalogue import find_network, network_names

@pytest.fixture(scope="module")
def names():
    return network_names()

def nothing():
    pass

def test_uses_a_fixture(names): ...
def test_uses_the_same_fixture_later(names): ...
def test_uses_names(): network_names()
def test_uses_a_file(): Path(os.environ["TINYLIGHT_SHARED"], "file").read_text()
def test_uses_a_folder(): os.listdir(os.environ["TINYLIGHT_DATA"])
def test_uses_a_python(): subprocess.run([sys.executable, "-c", ""])
def test_uses_a_process():
    process = multiprocessing.get_context("spawn").Process(target=nothing)
    process.start()
    process.join()

def test_built_in(): find_network("crossing")
def test_compiler(): subprocess.run(["true"])
def test_platformio(): subprocess.run([sys.executable, "-m", "platformio", "--version"], capture_output=True)
def test_other_file(): Path(__file__).read_text()
"""


@pytest.fixture
def noted(pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("TINYLIGHT_SHARED", "TINYLIGHT_DATA"):
        (tmp_path / variable).mkdir()
        (tmp_path / variable / "file").touch()
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_suite=SUITE)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=11)
    return pytester.path / "notes"


def test_what_may_come_to_data_is_noted(noted: Path) -> None:
    facts = [line.split() for line in noted.read_text().splitlines()]
    seen, uses = ({test.partition("::")[2] for fact, test in facts if fact == word} for word in ("seen", "uses"))
    assert len(seen) == 11 and uses == {name for name in seen if name.startswith("test_uses_")}

    def items(*names: str) -> Any:
        return [SimpleNamespace(nodeid=f"test_suite.py::{name}") for name in names]

    known, new = items("test_uses_names", "test_compiler"), items("test_new")
    assert left_out([*known, *new], noted) == known[1:], "a test that the first run had not is run"


def test_the_variable_is_read_in_one_place() -> None:
    """Which the notes watch."""
    reading = []
    for package in ("streetflow", "model", "hil", "tinylight", "firmware"):
        for file in (ROOT / package).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            reading += [file.name] if "DATA_VARIABLE" in text and "environ" in text else []
            assert "environ" not in text or "TINYLIGHT_DATA" not in text or file.name == "catalogue.py", file
    assert reading == ["catalogue.py"]
