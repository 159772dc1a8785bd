"""The verdicts on a run with lamps: `lamps`, `monitor`, `sensing`, `decisions`, `traffic`, beside those of every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from hil.light.closed_loop import LightResult
from hil.light.crossing import Crossing
from hil.light.fault_verdict import check_faults, fault_findings
from hil.light.lamps import longest_green_bound_s, longest_wait_bound_s
from hil.light.light_run import LightRun
from hil.light.monitor_judge import REASONS, TripFinding, judge_monitor
from hil.loop.closed_loop import LoopResult
from hil.loop.figures import figures_of, provenance_of
from hil.loop.job_spec import Job
from hil.loop.verdict import Check, Outcome, Verdict, check_flash, check_handshake, check_latency, check_ram, check_stack
from hil.words import counted
from streetflow.networks.catalogue import default_seed

TRAFFIC_SLACK = 0.05  # of the travel time with true counts
SENSING_MEAN_VEH = 0.1  # off at a decision, a value, on average
SENSING_SHARE = 0.99  # of the values within one vehicle, which a pressure counts once for each way that it may take
_BETWEEN_LOOPS = "vehicles change lanes between two loops"
FAULTS_OF_LAMPS = "the faults on purpose"


def light_verdict(light: LightRun) -> Verdict:
    """All checks of one run."""
    job, policy = light.job, light.policy
    board = light.crossings[0].bench
    several = f"{len(light.crossings)} crossings: " if len(light.crossings) > 1 else ""
    monitor = ", each with a monitor" if job.monitor and several else ", with its monitor" if job.monitor else ""
    description = f"{several}{board.description}{monitor}"
    provenance = provenance_of(job, policy, default_seed(job.flow), description, light.firmwares[0].kernel)
    provenance |= {
        "mode": job.mode,
        "clearance": "computed",
        "max_green_s": job.max_green_s,
        "longest_red_s": job.longest_red_s,
    }
    handshake = check_handshake(light.fault, policy.sha256 if len(light.crossings) == 1 else light.firmwares[0].policy_sha256)
    if light.fault:
        return Verdict([handshake], provenance, figures_of(job, None, None, None, None))
    marks = [crossing.bench.stack_high_water_bytes() for crossing in light.crossings]
    stack_bytes = max((mark for mark in marks if mark is not None), default=None)
    findings = fault_findings(light) if job.faults is not None else []
    checks = [
        handshake,
        *([check_latency(light.result, job.budget_s * 1e6, excused=job.faults is not None)] if job.mode == "light" else []),
        check_flash(light.footprint),
        check_ram(light.footprint, stack_bytes),
        check_stack(light.footprint, stack_bytes),
        check_lamps(light.crossings, light.result),
        check_monitor(light),
        *([check_faults(light, findings)] if job.faults is not None else []),
        check_sensing(light.result) if not (why := _unsensed(light)) else Check("sensing", "not measured", "-", "-", why),
        check_light_decisions(light),
        check_light_traffic(light.result, light.reference, untold_traffic(job), light.unlimited),
    ]
    figures = figures_of(job, light.result, light.reference, light.footprint, stack_bytes)
    if job.mode == "alone":
        figures.pop("latency", None)
    figures["light"] = _figures(light) | ({"chip_faults": [asdict(each) for each in findings]} if findings else {})
    return Verdict(checks, provenance, figures, light.result.records, light.footprint)


def check_lamps(crossings: Sequence[Crossing], result: LightResult) -> Check:
    """At every change: no conflict, no other way than green, yellow, red; yellow, red clearance and green as long as computed.
    Nobody waits for longer than the shell promises, and no green lasts longer while others wait. The engine knows all that the
    lamps show."""
    limit = "no conflict, all times as computed"
    faults = [f"{crossing.plan.intersection}: {fault}" for crossing in crossings for fault in crossing.judge.figures.faults] + [
        f"no phase of the engine at {mismatch}" for mismatch in result.mismatches
    ]
    for crossing in crossings:
        bound_s, waited_s = longest_wait_bound_s(crossing.plan), crossing.judge.figures.longest_wait_s
        if waited_s > bound_s:
            faults.append(f"{crossing.plan.intersection}: somebody waited for {waited_s:.0f} s, {bound_s:.0f} s is the most")
        bound_s, green_s = longest_green_bound_s(crossing.plan), crossing.judge.figures.longest_green_s
        if green_s > bound_s:
            faults.append(
                f"{crossing.plan.intersection}: a green of {green_s:.0f} s while others wait, {bound_s:.0f} s is the most"
            )
    changes = sum(crossing.judge.figures.changes for crossing in crossings)
    if not changes:
        return Check("lamps", "fail", "no lamp has changed", limit)
    wait_s = max(crossing.judge.figures.longest_wait_s for crossing in crossings)
    green_s = max(crossing.judge.figures.longest_green_s for crossing in crossings)
    detail = (
        faults[0] if faults else f"longest wait for a green {wait_s:.0f} s, longest green while others wait {green_s:.0f} s"
    )
    measured = counted(len(faults), "fault", "faults") + f" in {changes} changes"
    return Check("lamps", "fail" if faults else "pass", measured, limit, detail)


def check_monitor(light: LightRun) -> Check:
    """Silent while the lamps show nothing that it must trip on; where they do, tripped within the limits of that kind of fault,
    from when it first shows, and open from then on."""
    job, limit = light.job, "within its limits" if light.job.lamp_faults else "silent"
    if not job.monitor:
        return Check("monitor", "not measured", "-", "silent", "no monitor was asked for: `monitor`")
    findings = [_monitor_finding(crossing) for crossing in light.crossings]
    shown = [
        f"{c.plan.intersection}: {REASONS[t.reason]}, group {t.group}, at {t.at_s:.3f} s"
        for c in light.crossings
        for t in c.trips
    ]
    after_ms = [finding.after_ms for finding in findings if finding.after_ms is not None]
    measured = (
        f"tripped after {max(after_ms):.1f} ms" if after_ms else f"tripped {counted(len(shown), 'time')}" if shown else "silent"
    )
    for crossing, finding in zip(light.crossings, findings, strict=True):
        fault = finding.fault or ("tripped, and closed again" if len(crossing.trips) > 1 else "")
        if fault or (shown and not job.lamp_faults):
            fault = fault or "tripped, though no lamp has a fault on purpose"
            return Check("monitor", "fail", measured, limit, f"{crossing.plan.intersection}: {fault}")
    if shown:
        return Check("monitor", "pass", measured, limit, "; ".join(shown))
    longest = next((each.longest for each in findings if each.longest is not None), None)
    if not job.lamp_faults:
        return Check("monitor", "pass", "silent", "silent")
    if longest is None:
        return Check(
            "monitor", "not measured", "silent", limit, f"{FAULTS_OF_LAMPS} never showed: the lamps were as they should"
        )
    lasted_ms = max(
        each.longest.lasted_ms(c.bench.now_us()) for c, each in zip(light.crossings, findings, strict=True) if each.longest
    )
    return Check(
        "monitor", "pass", "silent", limit, f"as it should: {longest.kind} of group {longest.group} for {lasted_ms:.0f} ms"
    )


def _monitor_finding(crossing: Crossing) -> TripFinding:
    first = next(iter(crossing.trips), None)
    trip = None if first is None else (crossing.start_us + 1e6 * first.at_s, REASONS[first.reason], first.group)
    return judge_monitor(crossing.changes, crossing.plan, trip, crossing.bench.now_us(), crossing.start_us)


def check_sensing(result: LightResult) -> Check:
    """The chip's values at each decision against the engine's; where vehicles change lanes, their sums over whole roads.
    Within 1: within what a single vehicle makes of the value."""
    limit = f"<= {SENSING_MEAN_VEH:g} off on average, {SENSING_SHARE:.0%} within 1 vehicle"
    if not result.sensed:
        return Check("sensing", "fail", "the chip told no decision", limit)
    off = np.abs(np.concatenate([np.array(each) for each in result.sensed]))
    if not off.size:
        return Check("sensing", "not measured", "-", "-", f"no value is of whole roads, and {_BETWEEN_LOOPS}")
    mean, near = float(off.mean()), float((off <= np.concatenate([np.array(each) for each in result.ways])).mean())
    outcome: Outcome = "pass" if mean <= SENSING_MEAN_VEH and near >= SENSING_SHARE else "fail"
    detail = f"at most {off.max()} off"
    if result.by_lanes is not None:
        by_lanes = np.abs(np.concatenate([np.array(each) for each in result.by_lanes]))
        detail += f", by whole roads: {_BETWEEN_LOOPS}; the values themselves are {by_lanes.mean():.3f} off on average"
    return Check("sensing", outcome, f"{mean:.3f} off on average, {near:.1%} within 1 vehicle", limit, detail)


def check_decisions(result: LightResult, *, excused: bool = False) -> Check:
    """Every decision is numpy's on the chip's own values: action and the logits' CRC. `excused`: those that the plan in flash
    made, as it should where detectors have faults on purpose."""
    limit = "all, action and logits' CRC"
    by_plan = sum(not record.answered for record in result.records) if excused else 0
    total = len(result.records) + result.silent - by_plan
    right = sum(record.answered and record.equal for record in result.records)
    wrong = next((each for each in result.records if not (each.equal if each.answered else excused)), None)
    detail = ""
    if wrong is not None:
        why = wrong.fault or f"action {wrong.action} for {wrong.expected_action}"
        detail = f"decision {wrong.decision}, {wrong.intersection}: {why}"
    elif by_plan:
        detail = f"{counted(by_plan, 'more', 'more')} by the plan in flash"
    elif result.silent:
        detail = f"{counted(result.silent, 'decision', 'decisions')} not told"
    return Check("decisions", "pass" if right == total and total else "fail", f"{right} of {total} decisions", limit, detail)


def check_light_decisions(light: LightRun) -> Check:
    """Faults on purpose excuse decisions that were not made, and a network that was damaged decides as it will."""
    job = light.job
    check = check_decisions(light.result, excused=job.detector_faults is not None or job.faults is not None)
    if any(crossing.chip_faults.is_damaged for crossing in light.crossings):
        return Check("decisions", "not measured", check.measured, "-", f"the network was damaged on purpose; {check.detail}")
    return check


def _unsensed(light: LightRun) -> str:
    """Why the chip's values say nothing of its sensing; "" where they do."""
    if light.job.mode != "alone":
        return "the host senses"
    if any(crossing.chip_faults.done for crossing in light.crossings):
        return "a chip that has restarted counts from 0"
    return ""


def untold_traffic(job: Job) -> str:
    """Why the travel time says nothing of the policy; "" where it does."""
    if job.mode == "light":
        return "without detectors everybody counts as waiting, and is served in turn"
    return "faults on purpose" if job.lamp_faults or job.detector_faults or job.faults else ""


def check_light_traffic(result: LoopResult, reference: LoopResult, untold: str, unlimited: LoopResult | None = None) -> Check:
    """The travel time is close to that of the same policy with true counts, clearances and limits. `untold`: why not;
    `unlimited`: the same without the shell's longest green and red, which the detail shows."""
    time_s, true_s = result.average_travel_time_s, reference.average_travel_time_s
    more = time_s / true_s - 1 if true_s else 0.0
    limit = f"<= {true_s * (1 + TRAFFIC_SLACK):.3f} s"
    detail = f"{more:+.1%} against {true_s:.3f} s with true counts, the same clearances and limits"
    if unlimited is not None and (free_s := unlimited.average_travel_time_s):
        detail += f"; {time_s / free_s - 1:+.1%} against {free_s:.3f} s without a longest green and red"
    if untold:
        return Check("traffic", "not measured", f"{time_s:.3f} s", "-", f"{detail}; {untold}")
    return Check("traffic", "pass" if more <= TRAFFIC_SLACK else "fail", f"{time_s:.3f} s", limit, detail)


def _figures(light: LightRun) -> dict[str, object]:
    """What was seen at each crossing."""
    return {
        "mode": light.job.mode,
        "crossings": [
            {
                "intersection": crossing.plan.intersection,
                "lamps": {name: value for name, value in asdict(crossing.judge.figures).items() if name != "faults"},
                "faults": crossing.judge.figures.faults[:10],
                "trips": [{"at_s": t.at_s, "reason": REASONS[t.reason], "group": t.group} for t in crossing.trips],
                "events": len(crossing.told.events),
                "frames_lost": crossing.told.lost,
                "frames_damaged": crossing.told.damaged,
                "pedestrian_waits_s": list(crossing.pedestrians.waits_s) if crossing.pedestrians is not None else [],
            }
            for crossing in light.crossings
        ],
        "unlimited_average_travel_time_s": light.unlimited.average_travel_time_s if light.unlimited else None,
        "sensing_mean_off": _mean_off(light.result.sensed),
        **({} if (by_lanes := light.result.by_lanes) is None else {"sensing_mean_off_by_lanes": _mean_off(by_lanes)}),
    }


def _mean_off(sensed: Sequence[tuple[int, ...]]) -> float | None:
    off = np.abs(np.concatenate([np.array(each) for each in sensed])) if sensed else np.zeros(0)
    return float(off.mean()) if off.size else None
