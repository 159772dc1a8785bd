"""Faults of a chip that is the light, in the closed loop: what its lamps do, the verdict on that, and that it can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hil.boards.bench import Seen
from hil.light.fault_verdict import check_faults, fault_findings
from hil.light.job import run_light
from hil.light.light_run import LightRun
from hil.loop.fault_spec import FaultSpec
from hil.loop.job_spec import Job
from hil.loop.verdict import Verdict
from hil.report.page import section
from hil.wire.events import Alarm, Kind
from streetflow.errors import FieldError

pytestmark = pytest.mark.hil


def played(mode: str, faults: str, seconds: int) -> tuple[Verdict, LightRun]:
    named = Job.named("crossing", 0, None, mode=mode, monitor=True, faults=FaultSpec.parse(faults))
    return run_light(replace(named, network=replace(named.network, horizon_s=seconds)))


@pytest.fixture(scope="module")
def restarted() -> tuple[Verdict, LightRun]:
    """Three restarts within a minute, and then a power cycle."""
    return played("alone", "reset@20,hang@35,brownout@50,power@75", 100)


def test_each_restart_flashes_and_starts_anew_and_the_third_stays_in_flash(restarted: tuple[Verdict, LightRun]) -> None:
    verdict, run = restarted
    assert all(check.outcome != "fail" for check in verdict.checks), verdict.checks
    assert verdict.check("faults").measured == "4 of 4 faults as designed"
    assert verdict.check("monitor").measured == "silent"
    assert verdict.check("sensing").detail == "a chip that has restarted counts from 0"
    reset, hang, third, power = fault_findings(run)
    assert reset.seen.startswith("flashes after ") and reset.seen.endswith("phase 0 after 11.05 s")
    assert hang.seen.endswith("phase 0 after 11.17 s"), "0.12 s of it the watchdog's"
    assert "no green in the 25 s after" in third.seen and third.expected.startswith("flashes for good (three restarts")
    assert power.seen.endswith("phase 0 after 11.05 s")
    alarms = [event.channel for event in run.crossings[0].told.events if event.kind == Kind.VENDOR_SPECIFIC_ALARM]
    assert alarms == [Alarm.EXTERNAL_RESET, Alarm.WATCHDOG_RESET, Alarm.BROWN_OUT_RESET, Alarm.THREE_RESETS]


def test_the_report_shows_lamps_and_faults(restarted: tuple[Verdict, LightRun]) -> None:
    verdict, run = restarted
    shown = section(run.job, verdict)
    assert shown["title"].endswith("mode alone")
    for words in ("<h3>Lamps</h3>", "Faults of the chip, on purpose", "flashes for good (three restarts", "<td>brownout</td>"):
        assert words in shown["html"], words
    assert "<h3>Traffic</h3>" not in shown["html"], "the lamps ruled, not the decisions"


def test_lamps_that_do_something_else_fail_the_verdict(restarted: tuple[Verdict, LightRun]) -> None:
    _, run = restarted
    (crossing,) = run.crossings
    changes, start_us = crossing.changes, crossing.start_us

    def judged(first_s: float, last_s: float) -> str:
        """Without what the lamps did from then to then."""
        crossing.changes = [c for c in changes if c.what != Seen.LAMPS or not first_s <= (c.time_us - start_us) / 1e6 <= last_s]
        check = check_faults(run, fault_findings(run))
        crossing.changes = changes
        assert check.outcome == "fail"
        return check.detail

    assert "hang at 35 s: no lamp has changed" in judged(35.0, 50.0)
    assert "reset at 20 s: flashes after" in judged(31.0, 34.9), "no green"
    assert "brown-out at 50 s: flashes after" in judged(60.0, 75.0), "not to the end"
    run.job = replace(run.job, faults=FaultSpec.parse("reset@20,hang@35,brownout@50,power@75,reset@900"))
    assert check_faults(run, fault_findings(run)).detail == "1 come after the end of the run"


def test_with_its_line_cut_the_plan_in_flash_rules_and_then_the_network_again() -> None:
    verdict, run = played("light", "silence@25:115", 150)
    assert all(check.outcome != "fail" for check in verdict.checks), verdict.checks
    (found,) = fault_findings(run)
    assert found.is_right and found.seen == "phases 1, 4, 5 begun, the plan's are 1, 4, 5"
    assert sum(record.answered for record in run.result.records) == 3 and len(run.result.records) == 8
    run.documents[0]["plan"] = [[3, 20], [1, 20]]
    assert check_faults(run, fault_findings(run)).outcome == "fail"


def test_weights_that_are_code_are_no_data_to_change() -> None:
    with pytest.raises(FieldError, match="here the weights are code"):
        played("alone", "weight@5", 10)


def test_a_spec_has_what_a_chip_with_lamps_can_be_given() -> None:
    spec = FaultSpec.parse("power@9,weight@8,policy@7,flash@6,silence@5:3,seed=4")
    assert [event.kind for event in spec.script] == ["silence", "flash", "policy", "weight", "power"]
    assert spec.unfit_for_lamps == ""
    assert FaultSpec.parse("bytes=0.1").unfit_for_lamps == "'drop' strikes requests at random"
    with pytest.raises(FieldError, match="power takes nothing after"):
        FaultSpec.parse("power@9:1")
