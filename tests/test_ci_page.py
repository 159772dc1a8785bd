"""The workflow in docs/ci.md: sound YAML, whose commands are those of this repository."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.places import ROOT

PAGE = ROOT / "docs/ci.md"


@pytest.fixture(scope="module")
def steps() -> list[dict[str, Any]]:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    workflow = yaml.safe_load(text)
    assert workflow[True] == ["push", "pull_request"], "YAML 1.1 reads `on` as true"
    (job,) = workflow["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    assert all("run" in step or "uses" in step for step in found)
    return found


def command_with(steps: list[dict[str, Any]], word: str) -> list[str]:
    lines = [line for step in steps for line in str(step.get("run", "")).splitlines() if word in shlex.split(line)]
    assert len(lines) == 1, lines
    return shlex.split(lines[0])


def test_the_test_command_finds_its_tests(steps: list[dict[str, Any]], tmp_path: Path) -> None:
    """The options exist, the tests are there, and some of them use the chip."""
    python, *arguments = command_with(steps, "pytest")
    assert python == ".venv/bin/python" and arguments[:2] == ["-m", "pytest"]
    places = [word for word in arguments if not word.startswith(("--junitxml", "--hil-report"))]
    given = [f"{word.partition('=')[0]}={tmp_path / 'out'}" for word in arguments if word not in places]
    command = [sys.executable, *places, *given, "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) tests collected", done.stdout)[0]) > 5


def test_what_is_kept_is_what_is_written(steps: list[dict[str, Any]]) -> None:
    written = [word.partition("=")[2] for word in command_with(steps, "pytest") if word.startswith(("--hil-report", "--junit"))]
    (kept,) = (step["with"]["path"].split() for step in steps if "upload-artifact" in step.get("uses", ""))
    assert kept == written == ["report.html", "junit.xml"]


def test_packages_and_extras_are_ours(steps: list[dict[str, Any]]) -> None:
    packages = set(command_with(steps, "--no-install-recommends"))
    needed = set(re.findall(r"^  need (\S+)", (ROOT / "scripts/system_packages.sh").read_text(), re.MULTILINE))
    assert needed - packages == {"simavr", "avrdude", "arduino-core-avr"}, "not needed: those of a board on a port"
    install = command_with(steps, "-c")
    extras = re.findall(r"\w+", install[-1])
    project = (ROOT / "pyproject.toml").read_text()
    assert extras == ["test"] and all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras)
    assert (ROOT / install[install.index("-c") + 1]).exists()
