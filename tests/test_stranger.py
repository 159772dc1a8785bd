"""The rule for `pytest --stranger` leaves out no test that the absence of data could change."""

import re
from pathlib import Path

from tests.helpers.places import ROOT
from tests.helpers.strangers_tests import strangers_tests


def named(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def test_who_asks_for_data_or_runs_the_command_is_taken() -> None:
    asking = {
        named(file)
        for file in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"needs_data_set|needs_shared|run_cli|find_network|cli\.main|Job\.named|pytester", file.read_text())
    }
    assert len(asking) > 20 and asking <= strangers_tests()


def test_who_reaches_data_through_others_is_taken() -> None:
    """By imports of other modules, and in functions: tests.model.test_learning never names a network's finder."""
    assert {"tests.model.test_learning", "tests.tinylight.test_whole_way", "tests.test_quickstart"} <= strangers_tests()


def test_who_cannot_reach_data_is_left_out() -> None:
    """Else the second run would be the first one again."""
    out = {"tests.streetflow.test_engine_oracle", "tests.firmware.test_frame_vectors", "tests.hil.test_protocol"}
    assert not out & strangers_tests()
