"""The mutation run (tests/firmware/mutants/): its mutants apply, and the harness finds those that were seen from outside."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hil.build.project import SOURCES
from tests.firmware.mutants.listed import LISTED, check_places
from tests.firmware.mutants.places import all_places, sample

FOUND = {"clipping begins one too late": "sweep", "no session is demanded": "conduct", "no sleep": "conduct"}


def test_the_listed_faults_apply_to_these_sources() -> None:
    check_places(SOURCES)
    assert len({mutant.name for mutant in LISTED}) == len(LISTED) >= 25


def test_each_place_is_changed_and_nothing_else() -> None:
    places = all_places(SOURCES)
    kinds = Counter(Path(place.file).suffix for place in places)
    assert min(kinds[suffix] for suffix in (".c", ".h", ".S", ".inc", ".py")) >= 30 and len(places) > 1_000
    for mutant in sample(SOURCES, 60):
        text = (SOURCES / mutant.file).read_text()
        before, after = text.splitlines(), mutant.apply(text).splitlines()
        assert [n for n, pair in enumerate(zip(before, after, strict=True), 1) if pair[0] != pair[1]] == [mutant.line]
    assert sample(SOURCES, 60) == sample(SOURCES, 60) != sample(SOURCES, 60, seed=1)


@pytest.mark.hil
def test_the_harness_finds_them(tmp_path: Path) -> None:
    """Three of them; what it makes of all is in docs/results/mutants.md."""
    names = [f"--only={name}" for name in FOUND]
    command = [sys.executable, "-m", "tests.firmware.mutants.run", "--out", str(tmp_path / "mutants"), *names]
    done = subprocess.run(command, cwd=SOURCES, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = json.loads((tmp_path / "mutants.json").read_text())["mutants"]
    assert {name: (row["outcome"], row["by"][0].partition(":")[0]) for name, row in rows.items()} == {
        name: ("found", verdict) for name, verdict in FOUND.items()
    }
