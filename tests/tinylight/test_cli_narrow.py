"""Tables where no terminal is, or a narrow one: nothing is cut."""

import re
from pathlib import Path

import pytest

from hil.loop.job import Job, run_job
from hil.loop.verdict import Verdict
from tests.helpers.run_cli import tinylight

BORDERS = re.compile("[\u2500-\u257f]+")
COMMANDS = [
    "check crossing",
    "networks",
    "cost --rows",
    "evaluate --network crossing --agent SOTL --flows 0 --measures",
    "table --networks crossing --models SOTL --flows 0 --reference SOTL",
    "size --network crossing --kernel table",
    "size --network crossing --kernel table --symbols",
    "hil --board host --network crossing --network arterial",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_word_is_whole_in_a_narrow_terminal(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    verdicts: dict[Job, Verdict] = {}  # of the first time: the host's times vary
    monkeypatch.setattr("hil.loop.job.run_job", lambda job, **_: verdicts.get(job) or verdicts.setdefault(job, run_job(job)))
    words = []
    for columns in (300, 30):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert tinylight(*command.split()) == 0
        words.append(set(BORDERS.sub(" ", capsys.readouterr().out).split()))
    wide, narrow = words
    assert wide <= narrow and not any("…" in word for word in narrow)


def test_a_demand_is_one_line_of_the_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert tinylight("check", "crossing") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip().startswith("flow_")]
    assert len(rows) == 10 and all(len(row) == 10 for row in rows)
