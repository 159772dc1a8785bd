"""The monitor beside the controller, both emulated: a cheap part of the table that tests/firmware/monitor/table.py makes, and a
wrong limit in the monitor, which fails it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import hil.build.monitor
from hil.boards.bench import Given, Into
from tests.firmware.light.scenes import light
from tests.firmware.monitor.trials import Trial, group_kind, pair, perform, row, trials
from tests.helpers.bench_controller import monitor_elf

pytestmark = pytest.mark.hil
NAMES = ("dark", "red and green at once", "green beside a green in conflict", "green, then red")


def some(*, trip: bool) -> list[Trial]:
    """Of a green group and of a red one: the first of each name."""
    found = {trial.fault: trial for trial in reversed(list(trials((1, 4)))) if trial.trips == trip}
    return [found[name] for name in NAMES if name in found]


def test_faults_trip_it_within_their_limits_and_it_stays_open_until_its_button() -> None:
    for trial in some(trip=True):
        outcome = perform(trial, light("alone").elf, monitor_elf(), latch=trial.fault == "dark")
        assert outcome.fault == "" and outcome.after_ms is not None, (trial, outcome)
        made = row(trial, [outcome])
        assert (made["tripped"], made["of"]) == (1, 1) and made["reasons"][0] in trial.reasons


def test_what_is_just_too_short_does_not() -> None:
    for trial in some(trip=False):
        assert perform(trial, light("alone").elf, monitor_elf()).after_ms is None, trial


@pytest.mark.parametrize(
    ("limit", "wrong", "fault"), [("CONFLICT_MS 350", "CONFLICT_MS 510", "CONFLICT"), ("DARK_MS 850", "DARK_MS 690", "DARK")]
)
def test_a_wrong_limit_in_the_monitor_is_seen(
    limit: str, wrong: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = shutil.copytree(hil.build.monitor.SOURCES, tmp_path / "monitor")
    header = sources / "monitor.h"
    text = header.read_text()
    assert f"MONITOR_{limit}" in text
    header.write_text(text.replace(f"MONITOR_{limit}", f"MONITOR_{wrong}"))
    monkeypatch.setattr(hil.build.monitor, "SOURCES", sources)
    name = "green beside a green in conflict" if fault == "CONFLICT" else "dark"
    (trial,) = (each for each in some(trip=True) if each.fault == name)
    assert "tripped" in perform(trial, light("alone").elf, monitor_elf(), latch=False).fault


def test_what_a_restart_shows_does_not_trip_it_and_a_lamp_that_stays_green_does() -> None:
    with pair(light("alone").elf, monitor_elf()) as bench:
        bench.run(12.5e6)
        bench.reset()
        bench.run(bench.now_us() + 12.5e6)
        assert bench.monitor_eeprom()[0] in (0, 255)
        bench.feed([Given(bench.now_us(), Into.STUCK_ON, 3 * 1 + 2)])
        bench.reset()
        bench.run(bench.now_us() + 2e6)
        assert bench.monitor_eeprom()[0] == 3, "green beside the flashing red"
    assert group_kind(2) == "always open"
