"""What `tinylight check` says of places that hold nothing to check."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streetflow.check.report import files_to_check
from streetflow.errors import InputError


@pytest.mark.parametrize("place", ["nowhere", "lonely/flow.json", "lonely"])
def test_places_where_nothing_is(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lonely").mkdir()
    (tmp_path / "lonely" / "flow.json").write_text("[]")
    with pytest.raises(InputError, match=r"unknown network|roadnet\.json: missing"):
        files_to_check([place])


def test_what_is_no_file_is_said_to_be_none(tmp_path: Path) -> None:
    os.symlink(tmp_path / "there", tmp_path / "here")
    os.symlink(tmp_path / "here", tmp_path / "there")
    os.mkfifo(tmp_path / "pipe")
    for place, fault in (("here", "is a link that leads to nothing"), ("pipe", "is neither a file nor a folder")):
        with pytest.raises(InputError, match=f"{place}: {fault}$"):
            files_to_check([str(tmp_path / place)])
