"""The replay page of a chip that is the light: lamps and loops are those of its pins, in the file and in the browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hil.boards.bench import Into, Seen
from hil.light.closed_loop import LAG_S
from hil.light.job import run_light
from hil.light.light_run import LightRun
from hil.light.page import signals_of, write_page
from hil.loop.job_spec import Job
from hil.loop.lamp_faults import parse_lamp_faults
from tests.streetflow.test_replay_page import CHROMIUM, dumped

pytestmark = pytest.mark.hil
SECONDS, TRIPS_AT = 50, 40


@pytest.fixture(scope="module")
def filmed() -> LightRun:
    """The monitor trips near the end."""
    faults = parse_lamp_faults(f"on@{TRIPS_AT}:red2")
    job = Job.named("crossing", 0, None, mode="alone", monitor=True, lamp_faults=faults)
    return run_light(replace(job, network=replace(job.network, horizon_s=SECONDS)), keeps_all=True, films=True)[1]


def test_lamps_and_loops_of_a_frame_are_those_of_the_pins_in_its_second(filmed: LightRun) -> None:
    (crossing,) = filmed.crossings
    assert filmed.recorder is not None
    signals = signals_of(filmed, filmed.recorder.recording())
    assert signals.lamps.shape == (SECONDS, 9) and signals.loops.shape == (SECONDS, len(crossing.lanes))
    for second in range(SECONDS):
        at_us = crossing.start_us + 1e6 * (second + LAG_S)
        value = [c.value for c in crossing.changes if c.what == Seen.SHOWN and c.time_us <= at_us][-1]
        flashes = 8 * (crossing.trips[0].at_s <= second + LAG_S)
        assert signals.lamps[second].tolist() == [value >> 3 * group & 7 | flashes for group in range(9)]
    assert {1, 2, 4} <= set(signals.lamps.ravel()) and (signals.lamps[-1] & 8).all() and not (signals.lamps[0] & 8).any()
    felt = np.zeros_like(signals.loops)
    for given in crossing.inputs:
        second = int((given.time_us - crossing.start_us) / 1e6 - LAG_S)
        if given.what == Into.DETECTOR and given.level and second < SECONDS:
            felt[second, given.line // 2] |= 1 << given.line % 2
    assert felt.any() and ((felt & signals.loops) == felt).all(), "whoever came is seen in its second"
    assert (signals.loops != 0).mean() < 0.5


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian's package chromium)")
def test_chromium_shows_the_lamps_of_each_lane(filmed: LightRun, tmp_path: Path) -> None:
    (crossing,) = filmed.crossings
    write_page(filmed, tmp_path / "page.html")
    shown = dumped(tmp_path / "page.html", 30, tmp_path)
    assert filmed.recorder is not None
    signals = signals_of(filmed, filmed.recorder.recording())
    heads = {each["lane"]: each["states"] for each in shown["heads"]}
    assert len(heads) == len(crossing.plan.in_lanes)
    assert sorted(state for states in heads.values() for state in states) == sorted(
        int(signals.lamps[30, lamp]) for _, lamp in signals.heads
    )
    assert sum(each["entry"] + 2 * each["stop"] for each in shown["loops"]) == signals.loops[30].sum()
