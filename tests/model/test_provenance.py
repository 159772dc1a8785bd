"""Where results come from: a commit only where the firmware's own files are in it."""

import subprocess
from pathlib import Path

import pytest

from hil.build.provenance import firmware_commit


def git(folder: Path, *arguments: str) -> str:
    author = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(["git", *author, "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the firmware's files in it."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "checkout"
    put_project(folder)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "all")
    return folder


def put_project(folder: Path) -> None:
    (folder / "firmware" / "src").mkdir(parents=True)
    (folder / "firmware" / "src" / "main.c").write_text("int main(void) { return 0; }")
    (folder / "platformio.ini").write_text("[platformio]")


def test_a_checkout_has_its_commit(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "--short=12", "HEAD")
    assert firmware_commit(checkout) == commit
    (checkout / "notes.txt").touch()
    assert firmware_commit(checkout) == commit
    (checkout / "platformio.ini").write_text("[env]")
    assert firmware_commit(checkout) == f"{commit}-dirty"


def test_a_package_installed_inside_a_strangers_repository_has_none(checkout: Path) -> None:
    package = checkout / ".venv" / "lib" / "site-packages"
    put_project(package)
    assert firmware_commit(package) == "unknown"
    (checkout / ".gitignore").write_text(".venv")
    assert firmware_commit(package) == "unknown"


def test_the_repository_that_a_hook_runs_in_is_another(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = git(checkout, "rev-parse", "--short=12", "HEAD")
    other = tmp_path / "other"
    put_project(other)
    git(other, "init", "--quiet")
    git(other, "add", ".")
    git(other, "commit", "--quiet", "-m", "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert firmware_commit(checkout) == commit


def test_no_repository_or_no_git(tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_project(tmp_path / "plain")
    assert firmware_commit(tmp_path / "plain") == "unknown"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert firmware_commit(checkout) == "unknown"
