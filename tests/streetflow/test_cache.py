"""The cache folder of a user without a home folder that can be written to."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from streetflow import cache


@pytest.fixture(autouse=True)
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No cache folder in a home folder, and a folder for temporary files of the test's own."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/dev/null")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    cache._temporary_folder.cache_clear()
    yield
    cache._temporary_folder.cache_clear()


def test_it_is_below_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / ".cache" / "tinylight-hil"


def test_a_named_folder_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/x")
    assert cache.cache_folder() == Path("/dev/null/x/tinylight-hil")


def test_without_a_home_folder_it_is_a_temporary_one_for_this_user_alone(tmp_path: Path) -> None:
    folder = cache.cache_folder()
    assert folder.parent == tmp_path / "tmp" and folder.stat().st_mode & 0o777 == 0o700
    cache._temporary_folder.cache_clear()  # as in another process
    assert cache.cache_folder() == folder


def test_a_home_folder_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anywhere, so the refusal is simulated."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("streetflow.cache.os.access", lambda *_: False)
    assert cache.cache_folder().parent == tmp_path / "tmp"


def test_an_unknown_home_folder_makes_none_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user that no table knows: the path stays "~"."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("streetflow.cache.os.path.expanduser", lambda path: path)
    assert cache.cache_folder().parent == tmp_path / "tmp"
    assert [each.name for each in tmp_path.iterdir()] == ["tmp"]


@pytest.mark.parametrize("trap", ["link", "open", "file", "stranger"])
def test_what_another_user_has_put_there_is_not_used(trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = tmp_path / "tmp" / f"tinylight-hil-{os.getuid()}"
    if trap == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        taken.symlink_to(tmp_path / "elsewhere")
    elif trap == "file":
        taken.touch(0o700)
    else:
        taken.mkdir(0o777)
        taken.chmod(0o777 if trap == "open" else 0o700)
    if trap == "stranger":
        user = os.getuid()
        monkeypatch.setattr("streetflow.cache.os.getuid", iter([user, user + 1]).__next__)
    folder = cache.cache_folder()
    assert folder != taken and folder.parent == tmp_path / "tmp"
    assert folder.stat().st_mode & 0o777 == 0o700 and cache.cache_folder() == folder


def test_a_published_folder_may_have_folders(tmp_path: Path) -> None:
    made = cache.publish_folder(tmp_path / "new", {"top": b"1", "a/b/deep": b"2"})
    assert (made / "top").read_bytes() == b"1" and (made / "a" / "b" / "deep").read_bytes() == b"2"
