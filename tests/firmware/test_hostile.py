"""The emulated pair under hostile inputs, some of the 10,000 that tests/firmware/light/hostile.py drives it by."""

from __future__ import annotations

import pytest

from tests.firmware.light.hostile import drive, planted_plans, short_yellow
from tests.firmware.light.scenes import documents, light
from tests.helpers.bench_controller import crossing_plan

pytestmark = pytest.mark.hil


@pytest.mark.parametrize("mode", ["light", "alone"])
def test_no_input_makes_a_lamp_wrong_or_the_monitor_trip(mode: str) -> None:
    outcome = drive(light(mode).elf, mode, 120, seed=3, restarts=0.03)  # type: ignore[arg-type]
    assert (outcome.violations, outcome.monitor) == ([], "")
    assert outcome.inputs.total() == 120 and len(outcome.inputs) >= 8
    assert outcome.greens > 5 and outcome.frames > 100


def test_a_yellow_that_is_too_short_is_seen() -> None:
    """As if the chip's were 30 ms too short, of 3 s."""
    outcome = drive(light("light").elf, "light", 60, seed=3, plan=short_yellow(crossing_plan(), 0.03))
    assert any("yellow is 30.0 ms too short" in each for each in outcome.violations)


def test_plans_with_a_planted_fault_differ_from_the_sound_one_and_from_each_other() -> None:
    plans = [*planted_plans().values(), documents()[0]]
    assert all(a != b for n, a in enumerate(plans) for b in plans[:n]) and len(plans) == 4
