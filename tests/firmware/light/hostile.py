"""Hostile inputs for the emulated pair of chips: whatever comes by the serial line, the loops and buttons, and however often
the controller restarts, its lamps keep what the shell promises, and the monitor stays silent.

    python -m tests.firmware.light.hostile [--count N] [--out STEM]      # writes STEM.json and STEM.md; some minutes

The lamps are judged at every change by hil/light/lamps.py, which knows the signal plan alone.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hil.boards.bench import CrossingBench, Given, Into, Seen
from hil.build.firmware import Mode, build_firmware
from hil.light.lamps import GREEN, LampJudge, lamps_of
from hil.light.monitor_judge import REASONS, judge_monitor
from hil.wire.protocol import DecideRequest, Frame, FrameSplitter, MessageType, encode_decide, encode_frame
from streetflow.control.signal_groups import SignalPlan
from streetflow.files import write_whole
from tests.firmware.light.scenes import GROUPS, POLICY, documents, light
from tests.firmware.shell.planted import a_bit_that_matters
from tests.helpers.bench_controller import crossing_plan, monitor_elf

COUNT = 10_000
VALUES = 28  # that the built-in crossing's policy takes
LOOPS = 48
RESTARTS = ("reset", "brownout", "hang", "power")
RESTART_SHARE = 0.006
APART_US = 2e6  # whoever restarts more often than once in 1.2 s is no controller that the monitor would excuse
STAYS_US = 15e6  # after a restart without a green: it flashes for good
LONGEST_WAIT_S = 3.0
SLICE_US = 20_000.0  # at least, where the line is full
Row = dict[str, Any]


@dataclass
class Outcome:
    """What came of one run. `violations`: what the judge of lamps found; `monitor`: why it tripped, or what it should have."""

    inputs: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    changes: int = 0
    greens: int = 0
    frames: int = 0
    violations: list[str] = field(default_factory=list)
    monitor: str = ""


class Hostile:
    """One pair of chips, and what is done to it. `plan`: what the lamps are judged by; `restarts`: their share."""

    def __init__(self, bench: CrossingBench, mode: Mode, seed: int, plan: SignalPlan, restarts: float = RESTART_SHARE) -> None:
        self._restarts = restarts
        self._bench, self._mode, self._draw = bench, mode, random.Random(seed)
        self._plan, self._judge, self._outcome = plan, LampJudge(plan), Outcome()
        self._levels = [0] * bench.detectors
        self._changes: list[Any] = []
        self._splitter = FrameSplitter()
        self._restarted_us: float | None = 0.0  # until a green
        self._deeds: dict[str, Callable[[], None]] = {
            "wish": self._wish, "frame": self._frame, "damaged frame": self._damaged, "noise": self._noise,
            "lines": self._lines, "all lines": self._all_lines, "chatter": self._chatter,
        }  # fmt: skip
        self._judge.restart(0.0)

    def run(self, count: int) -> Outcome:
        """So many inputs, drawn by the seed."""
        names = list(self._deeds)
        weights = [4, 2, 2, 2, 2, 0.5, 1] if self._mode == "light" else [0.5, 1, 1, 1, 6, 0.5, 2]
        for _ in range(count):
            if self._restarted_us is not None and self._bench.now_us() - self._restarted_us > STAYS_US:
                self._restart("power")
            elif self._draw.random() < self._restarts:
                self._restart(self._draw.choice(RESTARTS))
            else:
                name = self._draw.choices(names, weights)[0]
                self._outcome.inputs[name] += 1
                self._deeds[name]()
            self._go_on(1e6 * LONGEST_WAIT_S * self._draw.random() ** 4)
        return self._finish()

    def _finish(self) -> Outcome:
        self._go_on(5e6)
        opened_us = next((c.time_us for c in self._changes if c.what == Seen.RELAY and not c.value), None)
        reason, group = REASONS[self._bench.monitor_eeprom()[0] % 255], self._bench.monitor_eeprom()[1]
        trip = None if opened_us is None else (opened_us, reason, group)
        finding = judge_monitor(self._changes, self._plan, trip, self._bench.now_us())
        figures = self._judge.figures
        self._outcome.seconds = self._bench.now_us() / 1e6
        self._outcome.changes, self._outcome.greens, self._outcome.violations = figures.changes, figures.greens, figures.faults
        self._outcome.monitor = finding.fault or (f"tripped by {reason}, group {group}" if trip else "")
        return self._outcome

    def _go_on(self, wait_us: float) -> None:
        changes = self._bench.run(self._bench.now_us() + wait_us)
        self._changes += changes
        for change in changes:
            if change.what == Seen.LAMPS:
                self._judge.change(change.time_us, change.value)
                if GREEN in lamps_of(change.value, GROUPS):
                    self._restarted_us = None
        self._outcome.frames += sum(1 for _ in self._splitter.feed(self._bench.received()))

    def _restart(self, kind: str) -> None:
        self._outcome.inputs[kind] += 1
        self._go_on(0.0)
        self._judge.restart(self._bench.now_us())
        self._restarted_us = self._bench.now_us()
        deeds: dict[str, Callable[[], None]] = {
            "reset": self._bench.reset, "hang": self._bench.hang,
            "brownout": lambda: self._bench.brown_out(self._draw.getrandbits(32)),
            "power": lambda: self._bench.power_cycle(self._draw.getrandbits(32)),
        }  # fmt: skip
        deeds[kind]()
        self._go_on(APART_US)

    # By the serial line

    def _send(self, data: bytes) -> None:
        while True:
            try:
                self._bench.write(data)
                return
            except ValueError:
                self._go_on(SLICE_US)

    def _content(self, kind: int, payload: bytes = b"") -> bytes:
        return encode_frame(Frame(kind, self._draw.randrange(256), 0, payload))

    def _wish(self) -> None:
        """A session, where there is none, and a sound request: any phase may come of it."""
        values = [self._draw.choice((0, 1, 40, 255, 32767, -32768, self._draw.randrange(60))) for _ in range(VALUES)]
        self._send(self._content(MessageType.HELLO) if self._draw.random() < 0.3 else b"")
        self._send(self._content(MessageType.DECIDE, encode_decide(DecideRequest(values))))

    def _frame(self) -> None:
        """A sound frame of any type, its payload of any length."""
        self._send(self._content(self._draw.randrange(256), self._draw.randbytes(self._draw.randrange(80))))

    def _damaged(self) -> None:
        data = bytearray(self._content(MessageType.DECIDE, encode_decide(DecideRequest([7] * VALUES))))
        for _ in range(self._draw.randrange(1, 4)):
            data[self._draw.randrange(len(data))] = self._draw.randrange(256)
        self._send(bytes(data[: self._draw.randrange(1, len(data) + 1)]))

    def _noise(self) -> None:
        self._send(self._draw.randbytes(self._draw.choice((1, 5, 60, 300))))

    # By loops and buttons

    def _set(self, at_us: float, line: int, level: int) -> Given:
        self._levels[line] = level
        return Given(at_us, Into.DETECTOR, line, level)

    def _lines(self) -> None:
        """Some turn over, each at its own moment."""
        now_us = self._bench.now_us()
        lines = self._draw.sample(range(len(self._levels)), self._draw.randrange(1, 7))
        self._bench.feed([self._set(now_us + self._draw.randrange(9_000), line, 1 - self._levels[line]) for line in lines])

    def _all_lines(self) -> None:
        level = self._draw.randrange(2)
        self._bench.feed([self._set(self._bench.now_us(), line, level) for line in range(len(self._levels))])

    def _chatter(self) -> None:
        line, now_us = self._draw.randrange(len(self._levels)), self._bench.now_us()
        step_us = self._draw.randrange(3_000, 30_000)
        given = [self._set(now_us + n * step_us, line, 1 - self._levels[line]) for n in range(10)]
        self._bench.feed(given)
        self._go_on(10.0 * step_us)


def pair(controller: Path, monitor: Path, mode: Mode) -> CrossingBench:
    detectors = GROUPS + (LOOPS if mode == "alone" else 0)
    bench = CrossingBench(controller, groups=GROUPS, crosswalks=True, detectors=detectors, monitor=monitor)
    bench.tells_heartbeats = True
    return bench


def drive(
    controller: Path, mode: Mode, count: int, *, seed: int = 1, plan: SignalPlan | None = None, restarts: float = RESTART_SHARE
) -> Outcome:
    """The built-in crossing's pair, from power-on. `plan`, `restarts`: as `Hostile` has them."""
    with pair(controller, monitor_elf(), mode) as bench:
        return Hostile(bench, mode, seed, plan or crossing_plan(), restarts).run(count)


# The command


def main() -> int:
    parser = argparse.ArgumentParser(description="Drives the emulated pair of chips by hostile inputs.")
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help="inputs in each mode")
    parser.add_argument("--out", type=Path, default=Path("docs/results/hostile"), metavar="STEM")
    arguments = parser.parse_args()
    rows = []
    modes: tuple[Mode, ...] = ("light", "alone")
    for mode in modes:
        began_s = time.monotonic()
        rows.append(row(mode, drive(light(mode).elf, mode, arguments.count)))
        print(f"{mode}: {json.dumps(rows[-1])}, {time.monotonic() - began_s:.0f} s", flush=True)
    found = {name: planted(plan, arguments.count // 20) for name, plan in planted_plans().items()}
    command = f"python -m {__spec__.name} {' '.join(sys.argv[1:])}".strip()
    document = {"command": command, "rows": rows, "planted": found}
    write_whole(arguments.out.with_suffix(".json"), (json.dumps(document, indent=1) + "\n").encode())
    write_whole(arguments.out.with_suffix(".md"), page(document).encode())
    wrong = [each for each in rows if each["violations"] or each["monitor"]]
    return 1 if wrong or not all(found.values()) else 0


def row(mode: Mode, outcome: Outcome) -> Row:
    return {"mode": mode} | {**vars(outcome), "inputs": dict(outcome.inputs), "seconds": round(outcome.seconds, 1)}


def planted_plans() -> dict[str, Row]:
    """Documents of the crossing's plan, each with one fault that its lamps will show."""
    ending, beginning = a_bit_that_matters(crossing_plan())
    found: dict[str, Row] = {}
    for name in (
        f"conflict of groups {ending} and {beginning} left out",
        "yellow cut by two ticks",
        "minimum green cut by 0.5 s",
    ):
        plan: Row = json.loads(json.dumps(documents()[0]))
        if name.startswith("conflict"):
            plan["conflicts"].remove(sorted((ending, beginning)))
        for group in plan["groups"]:
            group["yellow_s"] -= 0.02 * name.startswith("yellow")
            group["min_green_s"] -= 0.5 * name.startswith("minimum")
        found[name] = plan
    return found


def planted(plan: Row, count: int) -> str:
    """The first violation that is found with this plan in the chip; "" for none."""
    outcome = drive(build_firmware(POLICY, mode="light", plans=[plan]).elf, "light", count)
    return next(iter(outcome.violations), "")


def short_yellow(plan: SignalPlan, by_s: float) -> SignalPlan:
    """What the lamps are judged by as if the chip's yellow were so much too short."""
    return replace(plan, groups=tuple(replace(group, yellow_s=group.yellow_s + by_s) for group in plan.groups))


def page(document: Row) -> str:
    rows = document["rows"]
    total = sum(sum(each["inputs"].values()) for each in rows)
    wrong = sum(len(each["violations"]) + bool(each["monitor"]) for each in rows)
    lines = [
        "# Hostile inputs to both chips",
        "",
        f"`{document['command']}`: {total:,} inputs to the emulated controller of the built-in crossing, with its monitor on",
        f"the same clock; {wrong} violations. The lamps are judged at each change, and the monitor by what they showed.",
        "",
        "| mode | inputs | of them restarts | time | changes of lamps | greens | frames told | violations | monitor |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for each in rows:
        inputs = each["inputs"]
        restarts = ", ".join(f"{inputs.get(kind, 0)} {name}" for kind, name in zip(RESTARTS, RESTART_NAMES, strict=True))
        lines.append(
            f"| `{each['mode']}` | {sum(inputs.values()):,} | {restarts} | {each['seconds']:,.0f} s | {each['changes']:,} | "
            f"{each['greens']:,} | {each['frames']:,} | {len(each['violations'])} | {each['monitor'] or 'silent'} |"
        )
    others = sorted({name for each in rows for name in each["inputs"]} - set(RESTARTS))
    lines += ["", f"Inputs beside restarts: {', '.join(others)}. Planted in the chip's tables, and found:", ""]
    lines += [f"* {name}: {found or '**not found**'}" for name, found in document["planted"].items()]
    return "\n".join((*lines, ""))


RESTART_NAMES = ("reset", "brown-out", "hang", "power")

if __name__ == "__main__":
    sys.exit(main())
