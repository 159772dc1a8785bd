"""The verdict: each claim with its measured value, its limit and pass or fail, and the provenance.

A claim that a board cannot show (compute cycles of a host build, say) is "not measured": it neither passes nor fails,
and is printed as such.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from rich.table import Table

from hil.build.footprint import Footprint
from hil.loop.closed_loop import DecisionRecord, LoopResult
from hil.loop.conduct import Conduct
from hil.loop.identity import Identity
from hil.loop.latency import LatencyStats
from hil.loop.range_counts import ChipRange, RangeCount, expected_range
from hil.loop.recovery import Recovery
from hil.loop.sweep import SweepResult
from hil.wire.exchange import Counters
from hil.words import counted, named
from model.policy.integer import SATURATED_LIMIT

LATENCY_BUDGET_US = 100_000  # a decision must be in hand within 0.1 s (paper, section 4.5)
FLASH_LIMIT_BYTES = 32_768 - 512  # ATmega328P less the Uno's bootloader
SRAM_LIMIT_BYTES = 2_048

NO_AVR = "the board is not an AVR"

Outcome = Literal["pass", "fail", "not measured"]


@dataclass(frozen=True)
class Check:
    """One claim: its name, outcome, what was measured and what was allowed."""

    name: str
    outcome: Outcome
    measured: str
    limit: str
    detail: str = ""


@dataclass
class Verdict:
    """All checks of one run, the figures behind them and their provenance."""

    checks: list[Check]
    provenance: dict[str, object]
    figures: dict[str, object] = field(default_factory=dict)
    records: list[DecisionRecord] = field(default_factory=list)
    footprint: Footprint | None = None

    @property
    def passed(self) -> bool:
        """True if no check failed and at least one was measured."""
        outcomes = [check.outcome for check in self.checks]
        return "fail" not in outcomes and "pass" in outcomes

    def check(self, name: str) -> Check:
        return next(check for check in self.checks if check.name == name)

    def naming(self, options: Mapping[str, str]) -> "Verdict":
        """The same with an option's name wherever a text has a field of the job in backticks."""
        checks = [
            replace(check, measured=named(check.measured, options), detail=named(check.detail, options))
            for check in self.checks
        ]
        return replace(self, checks=checks)

    def as_dict(self) -> dict[str, object]:
        return {
            "passed": self.passed,
            "checks": [asdict(check) for check in self.checks],
            "figures": self.figures,
            "provenance": self.provenance,
            "decisions": [asdict(record) for record in self.records],
        }


def check_handshake(fault: str | None, policy_sha256: str) -> Check:
    """The board answered HELLO and holds exactly the requested policy."""
    if fault is not None:
        return Check("handshake", "fail", fault, f"policy {policy_sha256[:12]}")
    return Check("handshake", "pass", f"policy {policy_sha256[:12]}", f"policy {policy_sha256[:12]}")


def check_latency(
    result: LoopResult,
    budget_us: float = LATENCY_BUDGET_US,
    line_us: float = 0.0,
    compute_us: float = 0.0,
    *,
    excused: bool = False,
) -> Check:
    """Every decision arrived, and the slowest round trip is within the budget. `line_us`: time of the bytes alone on the
    wire; `compute_us`: the chip's time for the slowest decision. Where they exceed the budget, a failure says so. `excused`:
    decisions without an answer are judged elsewhere (`check_recovery`)."""
    limit = f"<= {budget_us / 1000:g} ms, each"
    missing = [] if excused else result.unanswered
    hopeless, line_ms, compute_ms = "", line_us / 1000, compute_us / 1000
    if line_us > budget_us:
        hopeless = f"the line alone takes {line_ms:.1f} ms: this link cannot"
    elif line_us + compute_us > budget_us:
        hopeless = f"the line takes {line_ms:.1f} ms and the chip computes for {compute_ms:.1f} ms: together too long"
    times = [record.round_trip_us for record in result.records if record.round_trip_us is not None]
    if missing:
        worst = f"{len(missing)} of {len(result.records)} decisions without an answer"
        return Check("latency", "fail", worst, limit, hopeless or missing[0].fault or "")
    if not times:
        return Check("latency", "fail", "no decision was made", limit)
    late = sum(time > budget_us for time in times)
    return Check(
        "latency",
        "fail" if late else "pass",
        f"max {max(times) / 1000:.3f} ms",
        limit,
        (hopeless or f"{late} of {len(times)} decisions late") if late else "",
    )


def check_line(result: LoopResult, counters: Counters, injected: Mapping[str, int]) -> Check:
    """No phase was taken from a damaged answer or another firmware; retries and losses are reported, not judged."""
    wrong = len(result.unequal)
    events = [
        counted(counters.retries, "retry", "retries"),
        *(
            counted(count, word, words)
            for count, word, words in (
                (counters.greetings, "HELLO sent again while a board started up", "HELLOs sent again while a board started up"),
                (counters.in_parts, "decision in parts", "decisions in parts"),
                (counters.sessions_lost, "restart of the chip", "restarts of the chip"),
                (len(result.unanswered), "decision without an answer: phase kept", "decisions without an answer: phase kept"),
            )
            if count
        ),
    ]
    remark = "; injected: " + ", ".join(f"{count} {kind}" for kind, count in injected.items()) if injected else ""
    measured = f"{wrong} wrong phases or logits" if wrong else "no wrong phase"
    return Check("line", "fail" if wrong else "pass", measured, "no wrong phase", ", ".join(events) + remark)


def check_build(identities: Sequence[Identity]) -> Check:
    """Each board runs the very build that is judged. Another one is no fault, but nothing is known of its size."""
    judged = next((each.judged for each in identities if not each.is_judged), identities[0].judged)
    limit = f"build {judged}"
    if judged is None:
        return Check("build", "not measured", "-", "the one judged", NO_AVR)
    if fault := next((each.fault for each in identities if each.fault), ""):
        return Check("build", "fail", fault, limit)
    if other := next((each for each in identities if not each.is_judged), None):
        return Check("build", "not measured", "-" if other.told is None else f"build {other.told}", limit, other.why_not)
    return Check("build", "pass", limit if len(identities) == 1 else f"{len(identities)} boards, each its own", limit)


def check_flash(footprint: Footprint | None, why: str = "") -> Check:
    """The firmware's code and data fit the flash that the bootloader leaves. None: not known, and `why`."""
    limit = f"<= {FLASH_LIMIT_BYTES} B"
    if footprint is None:
        return Check("flash", "not measured", "-", limit, why or NO_AVR)
    fits = footprint.flash_bytes <= FLASH_LIMIT_BYTES
    return Check("flash", "pass" if fits else "fail", f"{footprint.flash_bytes} B", limit)


def ram_bytes(footprint: Footprint, stack_bytes: int | None) -> int:
    """Statics and stack; the larger of the stack's proven bound and the measured depth."""
    bound = footprint.stack.total_bytes if footprint.stack else None
    return footprint.static_ram_bytes + max(bound or 0, stack_bytes or 0)


def check_ram(footprint: Footprint | None, stack_bytes: int | None, why: str = "") -> Check:
    """Static RAM and the stack fit the SRAM together. None: not known, and `why`."""
    limit = f"<= {SRAM_LIMIT_BYTES} B"
    if footprint is None:
        return Check("RAM", "not measured", "-", limit, why or NO_AVR)
    bound = footprint.stack.total_bytes if footprint.stack else None
    used = ram_bytes(footprint, stack_bytes)
    parts = f"{footprint.static_ram_bytes} B static"
    if bound is None and stack_bytes is None:
        outcome: Outcome = "fail" if used > SRAM_LIMIT_BYTES else "not measured"
        return Check("RAM", outcome, parts, limit, "no run, so no stack mark")
    seen = f", {stack_bytes} B seen" if stack_bytes is not None else ""
    outcome = "pass" if used <= SRAM_LIMIT_BYTES else "fail"
    return Check("RAM", outcome, f"{used} B", limit, f"{parts} + {used - footprint.static_ram_bytes} B stack{seen}")


def check_stack(footprint: Footprint | None, stack_bytes: int | None, why: str = "") -> Check:
    """The stack was never deeper than what the call graph proves. None: not known, and `why`."""
    if footprint is None or footprint.stack is None or stack_bytes is None:
        return Check("stack", "not measured", "-", "<= the proven bound", why or "no mark, or no AVR")
    bound = footprint.stack.total_bytes
    return Check("stack", "pass" if stack_bytes <= bound else "fail", f"{stack_bytes} B", f"<= {bound} B", "mark against proof")


def check_recovery(recovery: Recovery) -> Check:
    """After each fault on purpose the chip decides again as soon as it can."""
    measured = f"{counted(recovery.lost, 'decision')} lost"
    return Check("recovery", "pass" if recovery.is_enough else "fail", measured, f"<= {recovery.allowed} lost")


def check_equality(result: LoopResult, logits: bool = False, *, excused: bool = False) -> Check:
    """Action, phase and the logits' CRC of every decision are the reference's; with `logits`, where they were fetched, every
    logit. `excused`: of those that were answered."""
    unequal, total = len(result.unequal), len(result.records)
    answered = total - len(result.unanswered)
    outcome: Outcome = "pass" if answered and (answered == total or excused) and not unequal else "fail"
    detail = ""
    if result.unequal:
        first = result.unequal[0]
        detail = f"first at decision {first.decision}, {first.intersection}: "
        if first.phase != first.expected_phase:
            detail += f"phase {first.phase} for {first.expected_phase}, "
        detail += f"logits {first.logits} for {first.expected_logits}"
    limit = "all, every logit" if logits else "all, logits' CRC"
    return Check("equality", outcome, f"{answered - unequal} of {total} decisions", limit, detail)


def check_sweep(sweep: SweepResult | None, why: str = "") -> Check:
    """Phase and logits of every input of the sweep are the reference's. None: not run, and `why`."""
    limit = "all, logits' CRC"
    if sweep is None:
        return Check("sweep", "not measured", "-", limit, why)
    faults = [*sweep.wrong, *sweep.unanswered]
    right = sweep.inputs - len(faults)
    return Check("sweep", "fail" if faults else "pass", f"{right} of {sweep.inputs} inputs", limit, faults[0] if faults else "")


def check_conduct(conduct: Conduct | None, why: str = "") -> Check:
    """The board does what it should with frames that are repeated, damaged or misplaced. None: not tried, and `why`."""
    if conduct is None:
        return Check("conduct", "not measured", "-", "as the protocol says", why)
    failed = len({fault.partition(":")[0] for fault in conduct.faults})
    points = len(conduct.tried)
    detail = conduct.faults[0] if conduct.faults else ""
    if conduct.not_tried and not detail:
        detail = f"not tried on this board: {', '.join(conduct.not_tried)}"
    outcome: Outcome = "fail" if conduct.faults else "pass"
    return Check("conduct", outcome, f"{points - failed} of {points} points", "as the protocol says", detail)


def check_range(result: LoopResult, chips: Sequence[ChipRange]) -> Check:
    """The chips have counted as many decisions that leave the integers' range as the reference, and those are few."""
    limit = f"chip's count = host's, <= {SATURATED_LIMIT:.0%}"
    total, expected = len(result.records), expected_range(result.records)
    saturated = Counter(record.intersection for record in result.records if record.saturated)
    count = saturated.total()
    measured = f"left in {count} of {total} decisions"
    detail = f"inputs beyond range in {expected.beyond_range}, units at their limit in {expected.at_limit}"
    if count:
        (light, most), *_ = saturated.most_common(1)
        detail += f"; most at {light}: {most}"
    fault = next((chip.fault for chip in chips if chip.fault), None)
    if fault is not None:
        return Check("range", "not measured", "-", limit, f"{fault}; {detail}" if count else fault)
    for chip in chips:
        if chip.counted != chip.expected:
            return Check("range", "fail", f"chip {_counts(chip.counted)}, host {_counts(chip.expected)}", limit, detail)
    outcome: Outcome = "pass" if total and count <= SATURATED_LIMIT * total else "fail"
    return Check("range", outcome, measured, limit, detail if count else "")


def _counts(count: RangeCount | None) -> str:
    return "-" if count is None else f"{count.beyond_range} beyond, {count.at_limit} at limit of {count.decisions}"


def check_traffic(result: LoopResult, reference: LoopResult, *, excused: bool = False) -> Check:
    """The travel time with the chip in the loop is the integer run's, to the last bit. `excused`: not if phases were kept."""
    if excused and (kept := len(result.unanswered)):
        shown = f"{result.average_travel_time_s:.3f} s"
        return Check("traffic", "not measured", shown, "-", f"{counted(kept, 'phase')} kept for want of a decision")
    same = result.average_travel_time_s == reference.average_travel_time_s
    return Check(
        "traffic",
        "pass" if same else "fail",
        f"{result.average_travel_time_s:.3f} s",
        f"= {reference.average_travel_time_s:.3f} s",
        "average travel time with the chip against the integer run",
    )


def latency_figures(result: LoopResult, f_cpu_hz: int, compute_measured: bool) -> dict[str, dict[str, float]]:
    """p50, p99 and max of compute, response and round trip in microseconds; compute in cycles as well."""
    answered = [record for record in result.records if record.answered]
    series = {
        "response_us": [r.response_us for r in answered if r.response_us is not None],
        "round_trip_us": [r.round_trip_us for r in answered if r.round_trip_us is not None],
    }
    if compute_measured:
        cycles = [float(r.compute_cycles) for r in answered if r.compute_cycles is not None]
        series = {
            "compute_cycles": cycles,
            "compute_us": [count / f_cpu_hz * 1e6 for count in cycles],
        } | series
    return {name: asdict(LatencyStats.of(values)) for name, values in series.items() if values}


def verdict_table(verdict: Verdict, title: str) -> Table:
    """The verdict as people read it."""
    table = Table(title=title, title_justify="left", show_lines=False)
    for heading in ("check", "verdict", "measured", "limit", "remark"):
        table.add_column(heading, overflow="fold")
    colour = {"pass": "green", "fail": "bold red", "not measured": "yellow"}
    for check in verdict.checks:
        shown = f"[{colour[check.outcome]}]{check.outcome.upper() if check.outcome == 'fail' else check.outcome}[/]"
        table.add_row(check.name, shown, check.measured, check.limit, check.detail)
    return table


def latency_table(verdict: Verdict) -> Table:
    """p50, p99 and max of the three latencies."""
    table = Table(title="latency", title_justify="left")
    table.add_column("figure")
    for heading in ("p50", "p99", "max"):
        table.add_column(heading, justify="right")
    figures = verdict.figures.get("latency")
    assert isinstance(figures, dict)
    for name, stats in figures.items():
        label, _, unit = name.rpartition("_")
        shown = (f"{stats[key]:,.0f}" if unit == "cycles" else f"{stats[key] / 1000:,.3f}" for key in ("p50", "p99", "max"))
        table.add_row(
            f"{label.replace('_', ' ')} [{'cycles' if unit == 'cycles' else 'ms'}]".replace("[", r"\["),
            *shown,
        )
    return table
