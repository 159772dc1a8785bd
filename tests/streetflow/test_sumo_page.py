"""docs/sumo.md: its commands run, as a SUMO user would type them."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from streetflow.networks.catalogue import network_of
from tests.helpers.places import ROOT
from tests.helpers.run_cli import tinylight
from tests.helpers.sumo_files import DRAWN, needs_sumo

PAGE = ROOT / "docs" / "sumo.md"


def commands() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


@needs_sumo
@pytest.mark.hil
def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.hil.test_sumo_loop import write_policy

    for file in DRAWN.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    said = {}
    for command in commands():
        match command:
            case ["pip", "install", what]:
                assert what == "tinylight-hil[sumo]"
            case ["export", assignment]:
                name, _, value = assignment.partition("=")
                monkeypatch.setenv(name, value)
            case ["tinylight", "hil", *_]:
                write_policy(network_of("nets/town"), Path("town.json"))
                assert tinylight(*command[1:]) in (0, 1)  # a random policy leaves its range
                said["hil"] = said.get("hil", "") + capsys.readouterr().out
            case ["tinylight", *arguments]:
                assert tinylight(*arguments) == 0, command
                said[arguments[0]] = capsys.readouterr().out
            case _:
                raise AssertionError(command)
    assert "MaxPressure on town" in said["evaluate"] and "equality" in said["hil"]
    assert "alone with a monitor, town 60 of 60 decisions, lamps 0 faults" in said["hil"]
    assert network_of("nets/town_until_300").horizon_s == 300
