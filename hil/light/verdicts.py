"""The verdicts on a run with lamps: `lamps`, `monitor`, `sensing`, `decisions`, `traffic`, beside those of every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from hil.light.closed_loop import LightResult
from hil.light.crossing import Crossing
from hil.light.lamps import longest_wait_bound_s
from hil.light.light_run import LightRun
from hil.loop.closed_loop import LoopResult
from hil.loop.figures import figures_of, provenance_of
from hil.loop.job_spec import Job
from hil.loop.verdict import Check, Outcome, Verdict, check_flash, check_handshake, check_latency, check_ram, check_stack
from hil.words import counted
from streetflow.networks.catalogue import default_seed

TRAFFIC_SLACK = 0.05  # of the travel time with true counts
SENSING_MEAN_VEH = 0.1  # off at a decision, a value, on average
SENSING_SHARE = 0.99  # of the values within one vehicle
REASONS = ("fine", "conflict", "dark", "two lamps at once", "short yellow", "no yellow", "heartbeat", "its table")


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
    checks = [
        handshake,
        *([check_latency(light.result, job.budget_s * 1e6)] if job.mode == "light" else []),
        check_flash(light.footprint),
        check_ram(light.footprint, stack_bytes),
        check_stack(light.footprint, stack_bytes),
        check_lamps(light.crossings, light.result),
        check_monitor(light),
        check_sensing(light.result) if job.mode == "alone" else Check("sensing", "not measured", "-", "-", "the host senses"),
        check_decisions(light.result, excused=job.detector_faults is not None),
        check_light_traffic(light.result, light.reference, _untold(job)),
    ]
    figures = figures_of(job, light.result, light.reference, light.footprint, stack_bytes)
    if job.mode == "alone":
        figures.pop("latency", None)
    figures["light"] = _figures(light)
    return Verdict(checks, provenance, figures, light.result.records, light.footprint)


def check_lamps(crossings: Sequence[Crossing], result: LightResult) -> Check:
    """At every change: no conflict, no other way than green, yellow, red; yellow, red clearance and green as long as computed.
    Nobody waits for longer than the shell promises, and the engine knows every state of the lamps."""
    limit = "no conflict, all times as computed"
    faults = [f"{crossing.plan.intersection}: {fault}" for crossing in crossings for fault in crossing.judge.figures.faults] + [
        f"no phase of the engine at {mismatch}" for mismatch in result.mismatches
    ]
    for crossing in crossings:
        bound_s, waited_s = longest_wait_bound_s(crossing.plan), crossing.judge.figures.longest_wait_s
        if waited_s > bound_s:
            faults.append(f"{crossing.plan.intersection}: somebody waited for {waited_s:.0f} s, {bound_s:.0f} s is the most")
    changes = sum(crossing.judge.figures.changes for crossing in crossings)
    if not changes:
        return Check("lamps", "fail", "no lamp has changed", limit)
    longest_s = max(crossing.judge.figures.longest_wait_s for crossing in crossings)
    detail = faults[0] if faults else f"longest wait for a green {longest_s:.0f} s"
    measured = counted(len(faults), "fault", "faults") + f" in {changes} changes"
    return Check("lamps", "fail" if faults else "pass", measured, limit, detail)


def check_monitor(light: LightRun) -> Check:
    """Silent when all is well; tripped when lamps have faults on purpose. The verdict shows how long after the
    first of them, and does not judge it: that depends on what the lamps show."""
    job = light.job
    if not job.monitor:
        return Check("monitor", "not measured", "-", "silent", "no monitor was asked for: `monitor`")
    trips = [(crossing, trip) for crossing in light.crossings for trip in crossing.trips]
    shown = [f"{c.plan.intersection}: {REASONS[t.reason]}, group {t.group}, at {t.at_s:.3f} s" for c, t in trips]
    if not job.lamp_faults:
        measured = f"tripped {counted(len(trips), 'time', 'times')}" if trips else "silent"
        return Check("monitor", "fail" if trips else "pass", measured, "silent", shown[0] if shown else "")
    begin_s, measured_ms = min(fault.begin_s for fault in job.lamp_faults), []
    for crossing in light.crossings:
        first = next(iter(crossing.trips), None)
        if first is None:
            return Check(
                "monitor", "fail", "silent", "trips", f"{crossing.plan.intersection}: not tripped by {light.job.lamp_faults}"
            )
        measured_ms.append((first.at_s - begin_s) * 1000)
    return Check("monitor", "pass", f"tripped after {max(measured_ms):.0f} ms", "trips", "; ".join(shown))


def check_sensing(result: LightResult) -> Check:
    """The chip's values at each decision against the engine's."""
    limit = f"<= {SENSING_MEAN_VEH:g} off on average, {SENSING_SHARE:.0%} within 1"
    if not result.sensed:
        return Check("sensing", "fail", "the chip told no decision", limit)
    off = np.abs(np.concatenate([np.array(each) for each in result.sensed]))
    mean, near = float(off.mean()), float((off <= 1).mean())
    outcome: Outcome = "pass" if mean <= SENSING_MEAN_VEH and near >= SENSING_SHARE else "fail"
    return Check("sensing", outcome, f"{mean:.3f} off on average, {near:.1%} within 1", limit, f"at most {off.max()} off")


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


def _untold(job: Job) -> str:
    """Why the travel time says nothing of the policy; "" where it does."""
    if job.mode == "light":
        return "without detectors everybody counts as waiting, and is served in turn"
    return "faults on purpose" if job.lamp_faults or job.detector_faults else ""


def check_light_traffic(result: LoopResult, reference: LoopResult, untold: str) -> Check:
    """The travel time is close to that of the same policy with true counts and the same clearances. `untold`: why not."""
    time_s, true_s = result.average_travel_time_s, reference.average_travel_time_s
    more = time_s / true_s - 1 if true_s else 0.0
    limit = f"<= {true_s * (1 + TRAFFIC_SLACK):.3f} s"
    detail = f"{more:+.1%} against {true_s:.3f} s with true counts and the same clearances"
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
        "sensing_mean_off": float(np.abs(np.concatenate([np.array(s) for s in light.result.sensed])).mean())
        if light.result.sensed
        else None,
    }
