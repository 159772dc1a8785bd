"""A run with lamps: builds the firmware of each crossing and its monitor, closes the loop through the pins, judges."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hil.boards.bench import CrossingBench
from hil.boards.faults import BoardDied
from hil.build.firmware import NO_WATCHDOG, build_firmware
from hil.build.footprint import larger, measure
from hil.build.light_plan import light_documents, sensed_in_lanes
from hil.build.monitor import build_monitor
from hil.build.signal_plan import plan_document
from hil.light.closed_loop import run_light_loop
from hil.light.crossing import Crossing, NoStartError
from hil.light.light_run import LightRun
from hil.light.pedestrians import Pedestrians
from hil.light.verdicts import light_verdict, untold_traffic
from hil.loop.closed_loop import LoopResult, Seat
from hil.loop.job_spec import Job
from hil.loop.lamp_faults import check_groups
from hil.loop.verdict import Verdict
from hil.wire.link import Link
from hil.wire.probe import handshake_fault
from model.policy.agent import check_policy_fits
from model.policy.file import Policy, load_policy, save_policy
from streetflow.control.controllers import run
from streetflow.control.environment import Environment
from streetflow.control.features import find_feature
from streetflow.control.signal_groups import SignalPlan, signal_plans
from streetflow.kernels.sources import Source
from streetflow.page.recorder import Recorder
from streetflow.roadnet.network_tables import load_network

OnProgress = Callable[[str, int, int], None]  # what is being done, decisions made, decisions in all
LINE_COUNT_OF_A_LANE = 2


def run_light(
    job: Job, *, progress: OnProgress | None = None, keeps_all: bool = False, films: bool = False
) -> tuple[Verdict, LightRun]:
    """Runs the whole job of mode ``light`` or ``alone``.

    Args:
        job: the job.
        progress: called with the current activity, the decisions made so far, and how many there are in all.
        keeps_all: keep what a wave form needs, heartbeats and detectors as well.
        films: keep where the vehicles are, second by second, for a replay page.

    Returns:
        The verdict, and the run with all that the chips have told. The chips are closed.

    Raises:
        InputError: a tool is missing, or the policy is faulty.
    """
    policy = load_policy(job.policy_file)
    environment = job.environment(policy)
    check_policy_fits(policy, environment, str(job.policy_file))
    light = LightRun(job, policy)
    if films:
        light.recorder = Recorder(environment.engine)  # type: ignore[arg-type]  # the built-in one or SUMO, in these modes
        environment.engine = light.recorder
    say = progress or (lambda what, made, total: None)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tinylight-")))
        documents = light.documents = light_documents(job.network, job.flow)
        for number, plan in enumerate(plans_of(job)):
            say(f"building firmware {number + 1} of {len(policy.intersections)}", 0, environment.n_decisions)
            lanes = lanes_of(environment, policy, number, plan)
            bench = _bench(light, plan, len(lanes), documents[number] | plan_document(plan), folder)
            crossing = Crossing(number, plan, lanes, stack.enter_context(bench))
            crossing.keeps_all = keeps_all
            crossing.bench.tells_heartbeats = bool(job.monitor and (job.lamp_faults or job.faults))
            light.crossings.append(crossing)
        _play(light, environment, say)
        verdict = light_verdict(light)
    return verdict, light


def plans_of(job: Job) -> tuple[SignalPlan, ...]:
    """The signal plans of the network's crossings; without pedestrians there are no crosswalks."""
    plans = signal_plans(load_network(job.network.roadnet_file), job.rules)
    if job.pedestrians:
        return plans
    return tuple(
        replace(plan, groups=tuple(replace(group, walk_and_clearance_s=0.0) for group in plan.groups)) for plan in plans
    )


def has_crosswalks(plan: SignalPlan) -> bool:
    return any(group.walk_and_clearance_s > 0 for group in plan.groups)


def lanes_of(environment: Environment, policy: Policy, number: int, plan: SignalPlan) -> tuple[int, ...]:
    """The lanes with loops of a crossing, in the order of their lines: docs/controller.md."""
    each = environment.intersections[number]
    features = policy.intersections[number].features
    seen = {
        index
        for feature in features
        if (spec := find_feature(feature.name)).source in (Source.VEHICLES, Source.WAITING)
        for cell in spec.cells(each)
        for index, _ in cell
    }
    return sensed_in_lanes(plan, each) + (each.out_lanes if seen & set(each.out_lanes) else ())


def _bench(light: LightRun, plan: SignalPlan, lanes: int, document: dict[str, Any], folder: Path) -> CrossingBench:
    """`lanes`: with loops, in mode ``alone``."""
    job, number = light.job, len(light.crossings)
    file = folder / f"{number}.json"
    save_policy(light.policy.alone(number), file)
    firmware = build_firmware(
        file,
        f_cpu_hz=job.f_cpu_hz,
        baud=job.baud,
        kernel=job.kernel,
        mode=job.mode,
        plans=[document],
        extra_flags=(*job.firmware_flags, *(() if job.watchdog else (NO_WATCHDOG,))),
    )
    light.firmwares.append(firmware)
    size = measure(firmware)
    light.footprint = size if light.footprint is None else larger(light.footprint, size)
    monitor = build_monitor(job.network.roadnet_file, plan.intersection).elf if job.monitor else None
    check_groups(job.lamp_faults, len(plan.groups), plan.intersection)
    crosswalks = has_crosswalks(plan)
    return CrossingBench(
        firmware.elf,
        groups=len(plan.groups),
        crosswalks=crosswalks,
        detectors=(LINE_COUNT_OF_A_LANE * lanes if job.mode == "alone" else 0) + (len(plan.groups) if crosswalks else 0),
        monitor=monitor,
        f_cpu_hz=job.f_cpu_hz,
        baud=job.baud,
    )


def _play(light: LightRun, environment: Environment, say: OnProgress) -> None:
    job, crossings = light.job, light.crossings
    light.links = [Link(crossing.bench, budget_s=job.budget_s) for crossing in crossings]
    for link, firmware in zip(light.links, light.firmwares, strict=True):
        light.fault = light.fault or handshake_fault(link, firmware.policy_sha256, job.setting)
    if light.fault:
        return
    for crossing in crossings:
        try:
            crossing.start()
        except NoStartError as fault:
            light.fault = str(fault)
            return
        crossing.disturb(job.detector_faults, job.lamp_faults, job.faults)
        if job.pedestrians:
            crossing.let_walk(Pedestrians(crossing.plan, job.pedestrians, seed=environment.seed + crossing.number))
    seats: Sequence[Seat] = [Seat(link, 0) for link in light.links] if job.mode == "light" else ()
    what = f"{job.network.name}, the chip {'drives the lamps' if seats else 'alone'}"
    try:
        light.result = run_light_loop(
            environment, light.policy, crossings, seats, policy_file=str(job.policy_file),
            decider=job.decider(light.policy, crossings), on_decision=lambda made: say(what, made, environment.n_decisions),
        )  # fmt: skip
    except BoardDied as fault:
        light.fault = str(fault)
        return
    for crossing in crossings:
        crossing.finish()
    light.reference = true_counts(job, light.policy)
    if not untold_traffic(job):
        light.unlimited = true_counts(job, light.policy, has_limits=False)


def true_counts(job: Job, policy: Policy, *, has_limits: bool = True) -> LoopResult:
    """The same policy by numpy, with true counts and the same clearances: what the traffic is measured against. It has the
    chip's longest green and red as well, or, without limits, none."""
    environment = job.environment(policy, has_limits=has_limits)
    run(environment, job.controller(policy))
    return LoopResult(
        average_travel_time_s=environment.average_travel_time_s(), throughput_veh_per_min=environment.throughput_veh_per_min()
    )
