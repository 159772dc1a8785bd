"""The PlatformIO project of an installed package, which its user may not be allowed to write to."""

import shutil
from pathlib import Path

import pytest

from hil.build import project
from hil.build.firmware import build_firmware, default_build_dir
from model import pretrained_policy
from streetflow.errors import InputError
from tests.helpers.places import ROOT


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """site-packages as the wheel fills it."""
    folder = tmp_path / "site-packages"
    shutil.copytree(ROOT / "firmware", folder / "firmware", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "platformio.ini", folder / "firmware")
    monkeypatch.setattr(project, "SOURCES", folder)
    monkeypatch.setattr(project, "PACKAGE", folder / "firmware")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and "__pycache__" not in file.parts)
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def test_a_checkout_is_the_project_itself() -> None:
    assert project.project_root() == ROOT and default_build_dir() == ROOT / "build" / "firmware"


def test_an_installed_package_builds_in_the_users_cache(installed: Path, tmp_path: Path) -> None:
    before = tree(installed)
    firmware = build_firmware(pretrained_policy("crossing"))
    assert firmware.elf.is_relative_to(tmp_path / "cache" / "tinylight-hil" / "firmware")
    assert project.project_root().is_relative_to(tmp_path / "cache" / "tinylight-hil" / "project")
    assert tree(installed) == before and not (installed / "build").exists()


def test_the_laid_out_project_is_the_checkouts(installed: Path) -> None:
    laid_out = tree(project.project_root())
    assert laid_out.pop("platformio.ini") == (ROOT / "platformio.ini").read_bytes()
    assert laid_out == {f"firmware/{name}": content for name, content in tree(ROOT / "firmware").items()}


def test_another_version_gets_a_project_of_its_own(installed: Path) -> None:
    first = project.project_root()
    assert project.project_root() == first
    with (installed / "firmware" / "src" / "main.c").open("a") as source:
        source.write("\n")
    assert project.project_root() != first and first.is_dir()


def test_a_checkout_that_cannot_be_written_to_is_built_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("hil.build.project.os.access", lambda *_: False)
    assert project.checkout() is None
    assert project.project_root().is_relative_to(tmp_path / "cache")
    assert default_build_dir().is_relative_to(tmp_path / "cache")


def test_an_incomplete_installation_is_named(installed: Path) -> None:
    (installed / "firmware" / "platformio.ini").unlink()
    with pytest.raises(InputError, match=r"^platformio\.ini: .*the installation is incomplete"):
        project.project_root()
