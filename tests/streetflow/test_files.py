"""Files are written whole or not at all, and never replace something that isn't a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streetflow.errors import InputError
from streetflow.files import write_whole, written_aside


def test_writes_text_and_bytes_in_place_of_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    write_whole(file, "käse\n")
    assert file.read_bytes() == "käse\n".encode()
    write_whole(str(file), b"\0\r\n")
    assert file.read_bytes() == b"\0\r\n" and os.listdir(tmp_path) == ["a.txt"]


def test_a_writer_that_raises_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("before")
    with pytest.raises(KeyboardInterrupt), written_aside(file) as aside:
        aside.write_text("half")
        assert file.read_text() == "before" and aside.parent == tmp_path
        raise KeyboardInterrupt
    assert file.read_text() == "before" and os.listdir(tmp_path) == ["a.txt"]


def test_faults_of_the_writer_itself_stay_its_own(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the plot's own") as raised, written_aside(tmp_path / "a"):
        raise ValueError("the plot's own")
    assert not isinstance(raised.value, InputError) and os.listdir(tmp_path) == []


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "a.txt", tmp_path / "link"
    umask = os.umask(0o027)
    try:
        write_whole(file, "1")
        assert file.stat().st_mode & 0o777 == 0o640
        file.chmod(0o604)
        link.symlink_to("a.txt")
        write_whole(link, "2")
    finally:
        os.umask(umask)
    assert link.is_symlink() and file.read_text() == "2" and file.stat().st_mode & 0o777 == 0o604


def test_a_pipe_is_written_into_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(tmp_path / "pipe", "through")
        assert os.read(reader, 100) == b"through" and (tmp_path / "pipe").is_fifo()
    finally:
        os.close(reader)


@pytest.mark.parametrize(("name", "why"), [("none/a", "No such file"), (".", "Is a directory"), ("a\0b", "embedded null")])
def test_what_cannot_be_written_is_named(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(InputError, match=f"can't be written: {why}") as raised:
        write_whole(tmp_path / name, "x")
    assert raised.value.file == str(tmp_path / name) and os.listdir(tmp_path) == []
