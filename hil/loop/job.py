"""The main job: build the firmware from the policy, put it on the board, close the loop over it, judge."""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from hil.boards import EMULATED, Board, SerialBoard, open_board
from hil.build.firmware import NO_WATCHDOG, Firmware, build_firmware
from hil.build.footprint import Footprint, larger, measure
from hil.loop.closed_loop import DecisionRecord, LoopResult, Seat, asked_of, run_closed_loop, run_reference
from hil.loop.conduct import run_conduct
from hil.loop.energy import EnergyMeter
from hil.loop.faults_on_purpose import FaultyBoard
from hil.loop.figures import figures_of, provenance_of
from hil.loop.identity import Judged, identity_of
from hil.loop.job_spec import Job
from hil.loop.latency import line_time_us, most_decision_cycles
from hil.loop.range_counts import chip_range, expected_range, read_range
from hil.loop.recovery import outage_s, recovery_of
from hil.loop.sweep import run_sweep
from hil.loop.verdict import (
    FLASH_LIMIT_BYTES,
    SRAM_LIMIT_BYTES,
    Check,
    Verdict,
    check_build,
    check_conduct,
    check_equality,
    check_flash,
    check_handshake,
    check_latency,
    check_line,
    check_ram,
    check_range,
    check_recovery,
    check_stack,
    check_sweep,
    check_traffic,
)
from hil.wire.exchange import Counters
from hil.wire.expected_firmware import kernel_name
from hil.wire.link import Link, LinkError
from hil.wire.probe import handshake_fault
from hil.words import counted
from model.policy.agent import check_policy_fits
from model.policy.file import Policy, load_policy, save_policy
from streetflow.control.environment import Environment
from streetflow.errors import FieldError
from streetflow.networks.catalogue import default_seed

__all__ = ["Around", "Chip", "Job", "OnProgress", "build", "fits", "judge", "judge_chips", "judge_fit", "run_job"]

OnProgress = Callable[[str, int, int], None]  # what is being done, decisions made, decisions in all
Around = Callable[[Board, Firmware, Footprint | None], Board]  # the board in place of one, with the build that it is judged by
UNKNOWN = "unknown"


class Chip(NamedTuple):
    """A board, the build that it is judged by, and the kernel flashed onto it: UNKNOWN where nothing was flashed."""

    board: Board
    firmware: Firmware | Judged
    footprint: Footprint | None
    kernel: str = UNKNOWN


def build(job: Job) -> tuple[Firmware, Footprint | None]:
    """Build the job's firmware.

    Returns:
        The firmware and, for an AVR, its footprint.

    Raises:
        InputError: a tool is missing, or the policy is faulty.
    """
    firmware = build_firmware(
        job.policy_file,
        target=job.target,
        f_cpu_hz=job.f_cpu_hz,
        baud=job.baud,
        kernel=job.kernel,
        min_green_s=job.min_green_s,
        extra_flags=(*job.firmware_flags, *(() if job.watchdog else (NO_WATCHDOG,))),
    )
    return firmware, None if job.target == "native" else measure(firmware)


def fits(footprint: Footprint | None) -> bool:
    """Whether the firmware fits the chip at all, stack aside."""
    if footprint is None:
        return True
    return footprint.flash_bytes <= FLASH_LIMIT_BYTES and footprint.static_ram_bytes < SRAM_LIMIT_BYTES


def run_job(
    job: Job, *, progress: OnProgress | None = None, opened: Board | None = None, around: Around | None = None
) -> Verdict:
    """Run the whole job: build the firmware, put it on the board, close the loop over it, judge.

    Args:
        job: the job to run.
        progress: called with the current activity, the decisions made so far, and how many there are in all.
        opened: the job's board where it is open already: a real one can't be opened twice.
        around: gives the board to use in place of each: one that records it, say.

    Returns:
        The verdict, with every fault of the board.

    Raises:
        InputError: faulty input: policy, network, board's name, or a missing tool.
    """
    policy = load_policy(job.policy_file)
    environment = job.environment(policy)
    check_policy_fits(policy, environment, str(job.policy_file))
    _report(progress, "building the firmware", 0, environment.n_decisions)
    if job.boards == "per-intersection":
        return _run_side_by_side(job, policy, environment, progress, around)
    firmware, footprint = build(job)
    if not fits(footprint):
        return judge_fit(job, policy, firmware.kernel, footprint)
    with contextlib.ExitStack() as stack:
        board = opened
        if board is None:
            board = stack.enter_context(open_board(job.board, firmware, f_cpu_hz=job.f_cpu_hz, baud=job.baud))
        return judge_chips(job, policy, environment, [_chip(board, firmware, footprint, job, around)], progress)


def _chip(board: Board, firmware: Firmware, footprint: Footprint | None, job: Job, around: Around | None) -> Chip:
    """With the job's faults on its line."""
    kernel = UNKNOWN if isinstance(board, SerialBoard) else firmware.kernel
    board = board if around is None else around(board, firmware, footprint)
    return Chip(FaultyBoard(board, job.faults) if job.faults is not None else board, firmware, footprint, kernel)


def _run_side_by_side(
    job: Job, policy: Policy, environment: Environment, progress: OnProgress | None, around: Around | None
) -> Verdict:
    """One chip for each intersection, all open at once; the footprint is that of the largest."""
    names = job.board_names
    count = len(policy.intersections)
    if len(names) == 1:
        names *= count if names[0] in EMULATED else 1
    if len(names) != count:
        boards, intersections = counted(len(names), "board"), counted(count, "intersection")
        raise FieldError("board", f"{boards} for {intersections}: list one for each, separated by commas")
    chips: list[Chip] = []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tinylight-")))
        for number, name in enumerate(names):
            _report(progress, f"building firmware {number + 1} of {count}", 0, environment.n_decisions)
            alone = policy.alone(number)
            file = folder / f"{number}.json"
            save_policy(alone, file)
            firmware, size = build(replace(job, policy_file=file, board=name))
            if not fits(size):
                return judge_fit(job, policy, firmware.kernel, size)
            board = stack.enter_context(open_board(name, firmware, f_cpu_hz=job.f_cpu_hz, baud=job.baud))
            chips.append(_chip(board, firmware, size, job, around))
        return judge_chips(job, policy, environment, chips, progress)


def judge_fit(job: Job, policy: Policy, kernel: str, footprint: Footprint | None) -> Verdict:
    """The verdict on a firmware too large for the chip: by how much; nothing is run."""
    skipped = "the firmware doesn't fit the chip, so no run"
    checks = [
        Check("handshake", "not measured", "-", f"policy {policy.sha256[:12]}", skipped),
        Check("latency", "not measured", "-", "<= 100 ms, each", skipped),
        check_flash(footprint),
        check_ram(footprint, None),
    ]
    provenance = provenance_of(job, policy, default_seed(job.flow), "none", kernel)
    return Verdict(checks, provenance, figures_of(job, None, None, footprint, None), footprint=footprint)


def judge(
    job: Job,
    policy: Policy,
    environment: Environment,
    board: Board,
    firmware: Firmware,
    *,
    progress: OnProgress | None = None,
) -> Verdict:
    """Close the loop over an open board, whatever program it has, and judge it by `firmware`."""
    footprint = None if firmware.target == "native" else measure(firmware)
    return judge_chips(job, policy, environment, [Chip(board, firmware, footprint)], progress)


def judge_chips(
    job: Job,
    policy: Policy,
    environment: Environment,
    chips: Sequence[Chip],
    progress: OnProgress | None,
) -> Verdict:
    """Close the loop over open boards, one for all intersections or one for each, and judge them."""
    line_us = line_time_us(policy, job.baud)
    most_cycles = most_decision_cycles(policy)
    links = [Link(chip.board, budget_s=job.budget_s, most_decision_cycles=most_cycles) for chip in chips]
    greeted = (handshake_fault(link, chip.firmware.policy_sha256, job.setting) for link, chip in zip(links, chips, strict=True))
    fault = next((each for each in greeted if each is not None), None)
    description = chips[0].board.description if len(chips) == 1 else f"{len(chips)} boards: {chips[0].board.description}"
    kernels = [
        chip.kernel if link.greeting is None else kernel_name(link.greeting) for link, chip in zip(links, chips, strict=True)
    ]
    provenance = provenance_of(job, policy, environment.seed, description, ", ".join(dict.fromkeys(kernels)))
    handshake = check_handshake(fault, policy.sha256)
    if fault is not None:
        return Verdict([handshake], provenance, figures_of(job, None, None, None, None))
    identities = [
        identity_of(link, chip.firmware, chip.footprint, ask=job.faults is None)
        for link, chip in zip(links, chips, strict=True)
    ]
    foreign = next((each.why_not for each in identities if each.why_not), "")
    footprint = None if foreign else reduce(larger, (chip.footprint for chip in chips))
    seats = [
        Seat(links[0], number) if len(chips) == 1 else Seat(links[number], 0) for number in range(len(policy.intersections))
    ]

    sweep, conduct = None, None
    untried = "not asked for" if job.faults is None else "not with faults injected on purpose"
    if job.sweep and job.faults is None:
        conduct = run_conduct(policy, seats, watchdog=job.watchdog)
        sweep = run_sweep(policy, seats, lambda asked, total: _report(progress, f"sweep on {job.board}", asked, total))
    before = [read_range(link) if job.faults is None else None for link in links]
    meter, made = EnergyMeter([link.board for link in links]), 0

    def report(step: Sequence[DecisionRecord]) -> None:
        nonlocal made
        made += 1
        _report(progress, f"{job.network.name} on {job.board}", made, environment.n_decisions)

    file = str(job.policy_file)
    result = run_closed_loop(environment, policy, seats, policy_file=file, logits=job.logits, on_decision=report)
    energy = meter.energy([asked_of(link, seats, result) for link in links], job.f_cpu_hz, environment.decision_interval_s)
    stack_bytes = _stack_bytes(links, footprint)
    counters = Counters.sum(link.counters for link in links)
    injected = dict(sum((chip.board.injected for chip in chips if isinstance(chip.board, FaultyBoard)), Counter()))
    ranges = [chip_range(link, then, asked_of(link, seats, result)) for link, then in zip(links, before, strict=True)]
    reference = run_reference(job.environment(policy), policy, policy_file=file)
    recovery = recovery_of(result, _outages_s(chips), job.budget_s)
    excused = recovery is not None and recovery.is_enough
    compute_us = _slowest_cycles(links, result) / job.f_cpu_hz * 1e6
    checks = [
        handshake,
        check_latency(result, job.budget_s * 1e6, line_us, compute_us, excused=excused),
        *([check_recovery(recovery)] if recovery is not None else []),
        check_line(result, counters, injected),
        check_build(identities),
        check_flash(footprint, foreign),
        check_ram(footprint, stack_bytes, foreign),
        check_stack(footprint, stack_bytes, foreign),
        check_equality(result, job.logits, excused=excused),
        check_sweep(sweep, untried),
        check_conduct(conduct, untried),
        check_range(result, ranges),
        check_traffic(result, reference, excused=excused),
    ]
    figures = figures_of(job, result, reference, footprint, stack_bytes)
    figures["link"] = asdict(counters)
    figures["faults"] = injected
    figures["energy"] = energy
    figures["range"] = expected_range(result.records)._asdict()
    figures |= {name: found._asdict() for name, found in (("sweep", sweep), ("conduct", conduct)) if found is not None}
    return Verdict(checks, provenance, figures, result.records, footprint)


def _outages_s(chips: Sequence[Chip]) -> list[float]:
    """How long each fault on purpose may have kept its chip from answering."""
    faulty = (chip.board for chip in chips if isinstance(chip.board, FaultyBoard))
    return [outage_s(event, board) for board in faulty for event in board.struck]


def _slowest_cycles(links: Sequence[Link], result: LoopResult) -> int:
    """Of all decisions computed: where some have not arrived, the chips are asked; one may still be computing."""
    cycles = [record.compute_cycles or 0 for record in result.records]
    for link in links if result.unanswered else ():
        if link.greeting is not None and link.greeting.f_cpu_hz:
            with contextlib.suppress(LinkError):
                cycles.append(link.stats(link.board.boot_us / 1e6).largest_compute_cycles)
    return max(cycles, default=0)


def _stack_bytes(links: Sequence[Link], footprint: Footprint | None) -> int | None:
    """Deepest stack seen on any chip, from the emulator's RAM or the chip's own painted mark; None if neither is available."""
    if footprint is None:
        return None
    marks = [_stack_mark(link) for link in links]
    return max((mark for mark in marks if mark is not None), default=None)


def _stack_mark(link: Link) -> int | None:
    mark = link.board.stack_high_water_bytes()
    if mark is not None:
        return mark
    try:
        stats = link.stats()
    except LinkError:
        return None
    if not stats.static_ram_bytes:
        return None  # a host build among the chips
    return SRAM_LIMIT_BYTES - stats.static_ram_bytes - stats.untouched_ram_bytes


def _report(progress: OnProgress | None, what: str, made: int, total: int) -> None:
    if progress is not None:
        progress(what, made, total)
