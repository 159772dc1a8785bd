"""The closed loop through the pins: the chip alone with its monitor, in traffic, and each verdict with a run that fails it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hil.boards.bench import Seen
from hil.light.crossing import Crossing
from hil.light.event_log import log_text, measure_log, read_log
from hil.light.job import run_light
from hil.light.lamps import GREEN, lamps_of
from hil.light.light_run import LightRun
from hil.light.verdicts import check_decisions, check_lamps, check_light_traffic, check_monitor, check_sensing
from hil.light.waves import signals_of
from hil.loop.closed_loop import LoopResult
from hil.loop.detector_faults import DetectorFaultSpec
from hil.loop.job_spec import Job
from hil.loop.lamp_faults import parse_lamp_faults
from hil.loop.verdict import Verdict
from hil.wire.events import Kind

pytestmark = pytest.mark.hil
SECONDS = 160
TICK_S = 0.01


def job(seconds: int = SECONDS, **settings: object) -> Job:
    named = Job.named("crossing", 0, None, mode=settings.pop("mode", "alone"), **settings)
    return replace(named, network=replace(named.network, horizon_s=seconds))


@pytest.fixture(scope="module")
def alone() -> tuple[Verdict, LightRun, bytes]:
    verdict, run = run_light(job(monitor=True), keeps_all=True)
    return verdict, run, b""


def only(run: LightRun) -> Crossing:
    (crossing,) = run.crossings
    return crossing


def test_alone_with_its_monitor_every_verdict_passes(alone: tuple[Verdict, LightRun, bytes]) -> None:
    verdict, run, _ = alone
    outcomes = {check.name: check.outcome for check in verdict.checks}
    assert outcomes == dict.fromkeys(
        ("handshake", "flash", "RAM", "stack", "lamps", "monitor", "sensing", "decisions", "traffic"), "pass"
    ), [check for check in verdict.checks if check.outcome != "pass"]
    assert len(run.result.records) == SECONDS // 20
    assert only(run).told.lost == only(run).told.damaged == 0
    assert verdict.provenance["mode"] == "alone"


def test_the_log_alone_tells_what_the_lamps_showed_and_the_loops_felt(
    alone: tuple[Verdict, LightRun, bytes], tmp_path: Path
) -> None:
    _, run, _ = alone
    crossing = only(run)
    (tmp_path / "log.csv").write_text(log_text(crossing.told.events), encoding="utf-8")
    found = measure_log(read_log(tmp_path / "log.csv"), crossing.plan, len(crossing.lanes))
    greens, splits = _greens(crossing)
    assert found.greens == greens
    assert sum(greens) > 10
    for told, shown in zip(found.splits_s, splits, strict=True):
        assert told == pytest.approx(shown, abs=1.1 * TICK_S)
    felt = np.zeros(2 * len(crossing.lanes), int)
    for given in crossing.inputs:
        felt[given.line] += given.level
    came, left = felt[0::2], felt[1::2]
    assert abs(np.array(found.arrivals) - came).max() <= 1, "whoever came in the last second may not be told"
    assert abs(np.array(found.departures) - left).max() <= 1
    assert sum(found.arrivals) > 50
    assert 0 < sum(found.arrivals_on_green) < sum(found.arrivals)


def test_lamps_that_end_green_are_told_by_begin_yellow_at_their_very_tick(alone: tuple[Verdict, LightRun, bytes]) -> None:
    crossing = only(alone[1])
    told = [event.tick for event in crossing.told.events if event.kind == Kind.PHASE_BEGIN_GREEN]
    first = told[0]
    shown, green = [], set()
    for change in crossing.changes:
        if change.what == Seen.LAMPS:
            now = {g for g, lamp in enumerate(lamps_of(change.value, len(crossing.plan.groups))) if lamp == GREEN}
            shown += [round((change.time_us - crossing.start_us) / 1e4)] * len(now - green)
            green = now
    assert [tick - first for tick in told] == shown[: len(told)]


def test_the_wave_form_has_lamps_loops_heartbeat_relay_and_line(alone: tuple[Verdict, LightRun, bytes]) -> None:
    crossing = only(alone[1])
    signals = signals_of(crossing, 16_000_000)
    for name in ("group0_red", "group1_green", "lane0_entry", "lane0_stop_line", "heartbeat", "relay", "tx"):
        assert signals[name], name
    beats = [at_ns for at_ns, _ in signals["heartbeat"]]
    assert np.diff(beats) == pytest.approx(1e7, abs=5e5), "an edge every tick"


def test_the_reference_has_the_limits_of_the_chip_and_the_one_beside_it_none() -> None:
    """Who has waited for a minute comes next, at the lamps and with true counts alike: both are slower than without."""
    _, run = run_light(job(600, max_green_s=30.0, longest_red_s=60.0))
    assert run.unlimited is not None
    limited_s, free_s = run.reference.average_travel_time_s, run.unlimited.average_travel_time_s
    assert limited_s > 1.04 * free_s
    assert abs(run.result.average_travel_time_s - limited_s) < run.result.average_travel_time_s - free_s


def test_a_lamp_that_is_stuck_on_trips_the_monitor_and_the_traffic_stops() -> None:
    verdict, run = run_light(job(60, monitor=True, lamp_faults=parse_lamp_faults("on@30:red1")))
    check = verdict.check("monitor")
    assert check.outcome == "pass", check
    assert check.measured.startswith("tripped after 34") or check.measured.startswith("tripped after 35"), "ms"
    (trip,) = only(run).trips
    assert 30.0 < trip.at_s < 60.0
    only(run).trips = [replace(trip, at_s=trip.at_s - 0.2)]
    hasty = check_monitor(run)
    assert hasty.outcome == "fail" and "but two lamps at once of group 1 had lasted for" in hasty.detail, hasty
    assert only(run).open_groups == ()
    assert verdict.check("lamps").outcome == "pass", "the controller itself did nothing wrong"


def test_a_fault_that_is_too_short_for_the_monitor_leaves_it_silent_as_it_should() -> None:
    verdict, run = run_light(job(40, monitor=True, lamp_faults=parse_lamp_faults("dark@20:red0:0.3,dark@30:green3:0.1")))
    check = verdict.check("monitor")
    assert (check.outcome, check.measured) == ("pass", "silent")
    assert check.detail == "as it should: dark of group 0 for 300 ms"
    only(run).changes = [
        change for change in only(run).changes if change.what != Seen.SHOWN or change.time_us < only(run).start_us + 20.2e6
    ]
    late = check_monitor(run)
    assert late.outcome == "fail" and late.detail.startswith("intersection_1_1: silent, though dark of group 0 lasted for"), (
        late
    )


def test_dead_loops_are_seen_in_the_verdict_sensing() -> None:
    verdict, run = run_light(job(detector_faults=DetectorFaultSpec.parse("dead:20%,seed=2")))
    assert verdict.check("sensing").outcome == "fail"
    assert verdict.check("decisions").outcome == "pass", verdict.check("decisions")
    assert verdict.check("traffic").outcome == "not measured" and run.unlimited is None
    assert run.result.sensed


def test_mode_light_decides_by_request_and_drives_the_lamps() -> None:
    verdict, run = run_light(job(100, mode="light", monitor=True))
    for name in ("handshake", "latency", "lamps", "monitor", "decisions"):
        assert verdict.check(name).outcome == "pass", verdict.check(name)
    assert len(run.result.records) == 5


def test_pedestrians_get_their_walk_and_their_waits_are_measured() -> None:
    verdict, run = run_light(job(pedestrians=60, monitor=True))
    people = only(run).pedestrians
    assert people is not None
    assert people.waits_s
    assert all(0 <= wait_s < SECONDS for wait_s in people.waits_s)
    assert verdict.check("lamps").outcome == "pass"
    assert any(change.what == Seen.WALKS for change in only(run).changes)


def test_verdicts_fail_on_what_they_are_for(alone: tuple[Verdict, LightRun, bytes]) -> None:
    _, run, _ = alone
    result = run.result
    wrong = replace(result, records=[replace(result.records[0], action=result.records[0].expected_action + 1)])
    assert check_decisions(wrong).outcome == "fail"
    assert check_decisions(replace(result, silent=1)).outcome == "fail"
    off = [tuple(value + 1 for value in values) for values in result.sensed]
    assert check_sensing(replace(result, sensed=off)).outcome == "fail"
    assert check_sensing(replace(result, sensed=[])).outcome == "fail"
    one, three = (0,) * 39 + (3,), (3,) * 40  # a vehicle that a pressure counts three times
    assert check_sensing(replace(result, sensed=[one], ways=[three])).outcome == "pass"
    assert check_sensing(replace(result, sensed=[one], ways=[(1,) * 40])).outcome == "fail"
    assert check_lamps(run.crossings, replace(result, mismatches=["1 s: green (0, 4)"])).outcome == "fail"
    figures = only(run).judge.figures
    only(run).judge.figures = replace(figures, longest_green_s=300.0)
    long = check_lamps(run.crossings, result)
    only(run).judge.figures = figures
    assert long.outcome == "fail" and "a green of 300 s while others wait" in long.detail
    slow, fast = LoopResult(average_travel_time_s=106.0), LoopResult(average_travel_time_s=100.0)
    assert check_light_traffic(slow, fast, "").outcome == "fail"
    told = check_light_traffic(slow, slow, "", fast)
    assert told.outcome == "pass", "limits that both have cost nothing; what they cost is told"
    assert "+6.0% against 100.000 s without a longest green and red" in told.detail
    assert check_light_traffic(replace(slow, average_travel_time_s=104.0), fast, "").outcome == "pass"


def _greens(crossing: Crossing) -> tuple[tuple[int, ...], list[tuple[float, ...]]]:
    """By group, from the lamps themselves: how often it became green, and how long each green that ended lasted."""
    groups = len(crossing.plan.groups)
    counts, splits, since = [0] * groups, [list[float]() for _ in range(groups)], [0.0] * groups
    before = ["red"] * groups
    for change in crossing.changes:
        if change.what != Seen.LAMPS:
            continue
        lamps = lamps_of(change.value, groups)
        for group, (old, new) in enumerate(zip(before, lamps, strict=True)):
            if new == GREEN and old != GREEN:
                counts[group] += 1
                since[group] = change.time_us
            elif old == GREEN and new != GREEN:
                splits[group].append((change.time_us - since[group]) / 1e6)
        before = lamps
    return tuple(counts), [tuple(each) for each in splits]
