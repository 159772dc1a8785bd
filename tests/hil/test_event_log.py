"""The event log as a file, and what is measured from it alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.light.event_log import log_text, measure_log, read_log
from hil.wire.events import Event, Kind
from streetflow.errors import InputError
from tests.helpers.bench_controller import crossing_plan

EVENTS = [
    Event(1100, Kind.PHASE_BEGIN_GREEN, 2),
    Event(1150, Kind.DETECTOR_ON, 1),
    Event(1190, Kind.DETECTOR_OFF, 1),
    Event(1900, Kind.PHASE_BEGIN_YELLOW_CLEARANCE, 2),
    Event(2000, Kind.DETECTOR_ON, 2),
    Event(360_000, Kind.PHASE_BEGIN_GREEN, 2),
]


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text(log_text(EVENTS), encoding="utf-8")
    assert file.read_text(encoding="utf-8").splitlines()[:2] == [
        "TimeStamp,EventCode,EventParam",
        "2000-01-01 00:00:11.00,1,2",
    ]
    assert read_log(file) == EVENTS


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Time,Code\n", "line 1: the columns must be TimeStamp, EventCode, EventParam"),
        ("TimeStamp,EventCode,EventParam\n2000-01-01 00:00:11.00,1\n", "line 2"),
        ("TimeStamp,EventCode,EventParam\nyesterday,1,2\n", "line 2"),
    ],
)
def test_a_file_that_is_no_log_is_refused_with_its_line(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "log.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=fault):
        read_log(tmp_path / "log.csv")


def test_measures_of_a_small_log() -> None:
    plan = crossing_plan()
    found = measure_log(EVENTS, plan, len(plan.in_lanes))
    assert found.greens[1] == 2
    assert found.splits_s[1] == (8.0,)
    assert found.reds_s[1] == (3581.0,)
    assert (found.arrivals[0], found.departures[0]) == (1, 1)
    assert found.arrivals_on_green[0] == int(1 in plan.lane_groups[0])
