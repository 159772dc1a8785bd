"""The monitor beside the emulated controller: each fault of lamps and controller, when it trips, and that it stays so.

    python -m tests.firmware.monitor.table [--out STEM]      # writes STEM.json and STEM.md; some minutes

Both chips are emulated on one clock, so that times are exact. Each fault is also made just too short for the usual range, and
just too short for the monitor's own limit: then nothing may happen.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

from hil.boards.bench import Change, CrossingBench, Seen
from hil.build.firmware import NO_WATCHDOG, build_firmware
from hil.light.lamps import RED, lamps_of
from hil.light.monitor_judge import CONFLICT, HEARTBEAT, LIMITS, NO_YELLOW, SHORT_YELLOW
from streetflow.files import write_whole
from tests.firmware.light.scenes import POLICY, documents, light
from tests.firmware.monitor.trials import BEGIN_US, GROUPS, PLAN, Trial, judged, pair, perform, row, trials
from tests.helpers.bench_controller import monitor_elf

TRIPS_US, DISTURBANCES_US = (0.0, 740.0), (370.0,)  # within the monitor's millisecond
RUN_US = 25e6
IN_YELLOW_US = 19_600_000.0  # of the first change
Action = Callable[[CrossingBench], None]  # one that is done at once; `Acts`: over some time, with what changed meanwhile
Acts = Callable[[CrossingBench], list[Change]]
Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures the monitor beside the emulated controller.")
    parser.add_argument("--out", type=Path, default=Path("docs/results/monitor"), metavar="STEM")
    arguments = parser.parse_args()
    controller, monitor, rows = light("alone").elf, monitor_elf(), []
    for number, trial in enumerate(found := list(trials()), 1):
        offsets_us = TRIPS_US if trial.trips else DISTURBANCES_US
        outcomes = [
            perform(trial, controller, monitor, offset_us=offset_us, latch=not n) for n, offset_us in enumerate(offsets_us)
        ]
        rows.append(row(trial, outcomes))
        print(f"\r{number} of {len(found)} at the wires", end="", flush=True)
    of_controller = controller_rows(controller, monitor)
    command = f"python -m {__spec__.name} {' '.join(sys.argv[1:])}".strip()
    document = {"command": command, "limits_ms": LIMITS, "wires": rows, "controller": of_controller}
    write_whole(arguments.out.with_suffix(".json"), (json.dumps(document, indent=1) + "\n").encode())
    write_whole(arguments.out.with_suffix(".md"), page(document).encode())
    wrong = [each for each in (*rows, *of_controller) if each["faults"]]
    print(f"\n{len(rows) + len(of_controller)} kinds of trial, {len(wrong)} not as they should")
    return 1 if wrong else 0


# The controller's own faults


def controller_rows(controller: Path, monitor: Path) -> list[Row]:
    """The controller restarts, hangs, or has wrong tables in its flash, with a right checksum."""
    deaf = light("alone", NO_WATCHDOG).elf
    rows = [
        _acted("reset", controller, monitor, lambda bench: bench.reset()),
        _acted("reset in a yellow", controller, monitor, lambda bench: bench.reset(), at_us=IN_YELLOW_US),
        _acted("brown-out, noise in its RAM", controller, monitor, lambda bench: bench.brown_out(7)),
        _acted("power gone and back", controller, monitor, lambda bench: bench.power_cycle(7)),
        _acted("hang, ended by its watchdog", controller, monitor, lambda bench: bench.hang()),
        _acted("a bit of its flash changed, then a reset: it flashes for good", controller, monitor, _with_wrong_flash),
        _acted("three resets in 5 s: it flashes for good", controller, monitor, _three_times),
        _acted("hang, built without a watchdog", deaf, monitor, lambda bench: bench.hang(), HEARTBEAT),
        _acted("reset every 0.6 s: it never comes to flash", controller, monitor, _again_and_again, NO_YELLOW),
    ]
    for name, change, reason in (
        ("wrong tables: phase 0 opens two groups in conflict", _conflict, CONFLICT),
        ("wrong tables: yellow of 2.6 s", lambda plan: _yellow(plan, 2.6), SHORT_YELLOW),
        ("wrong tables: yellow of 0.03 s", lambda plan: _yellow(plan, 0.03), NO_YELLOW),
    ):
        plan = json.loads(json.dumps(documents()[0]))
        change(plan)
        rows.append(_acted(name, build_firmware(POLICY, mode="alone", plans=[plan]).elf, monitor, _nothing, reason, 1e6))
    return rows


def _acted(name: str, controller: Path, monitor: Path, action: Action | None, reason: str = "", at_us: float = BEGIN_US) -> Row:
    """One fault of the controller, and for how long its lamps stay as they are. `reason`: what the monitor must trip by; "":
    nothing."""
    trial = Trial(name, "-", (reason or NO_YELLOW,), (), lasts_ms=None if reason else 0.0)
    with pair(controller, monitor) as bench:
        changes = bench.run(at_us)
        begin_us = bench.now_us()
        changes += action(bench) or []
        changes += bench.run(begin_us + RUN_US)
        outcome = judged(bench, trial, changes, begin_us, latch=False)
        first = next((c for c in changes if c.what == Seen.LAMPS and c.time_us > begin_us), None)
    found = row(trial, [outcome])
    flashes = first is not None and action is not _nothing and set(lamps_of(first.value, GROUPS)) == {RED}
    found["flashes_after_ms"] = round((first.time_us - begin_us) / 1000, 3) if first is not None and flashes else None
    return found


def _nothing(bench: CrossingBench) -> None:
    """Its lamps alone are at fault."""


def _with_wrong_flash(bench: CrossingBench) -> None:
    bench.damage_flash()
    bench.reset()


def _three_times(bench: CrossingBench) -> list[Change]:
    return _resets(bench, 3, 2.5)


def _again_and_again(bench: CrossingBench) -> list[Change]:
    return _resets(bench, 6, 0.6)


def _resets(bench: CrossingBench, count: int, apart_s: float) -> list[Change]:
    changes = []
    for _ in range(count):
        bench.reset()
        changes += bench.run(bench.now_us() + 1e6 * apart_s)
    return changes


def _conflict(plan: Row) -> None:
    rival = min(PLAN.conflicts_of(1))
    plan["phases"][0] = sorted({*plan["phases"][0], rival})
    shown = set(plan["phases"][0])
    plan["conflicts"] = [pair for pair in plan["conflicts"] if not set(pair) <= shown]


def _yellow(plan: Row, yellow_s: float) -> None:
    for group in plan["groups"]:
        group["yellow_s"] = yellow_s


# The page


def page(document: Row) -> str:
    wires, controller = document["wires"], document["controller"]
    wrong = sum(bool(each["faults"]) for each in (*wires, *controller))
    made = sum(each["of"] for each in (*wires, *controller))
    trips = [each for each in wires if each["limits_ms"]]
    lines = [
        "# The monitor, measured",
        "",
        f"`{document['command']}`: monitor and controller of the built-in crossing, both emulated on one clock; {made}",
        f"trials, of which {wrong} did not go as they should. Each fault of the wires on every signal group that can show",
        "it, and each that must trip at two moments within the monitor's millisecond. ms from when a fault first shows at the",
        "lamps (of a yellow: from the red; of the heartbeat: from its last edge) until the relay opens.",
        "",
        "## Faults that must trip it",
        "",
        "One trial of each was followed over 2 s without the fault, a power cycle of the monitor, and its button: it stayed",
        "open, kept its reason, and closed.",
        "",
        "| fault | group | trials, tripped | by | after, ms | limits, ms |",
        "| --- | --- | ---: | --- | ---: | ---: |",
        *(_line(name, kind, rows) for (name, kind), rows in _grouped(trips)),
        "",
        "## Disturbances that must not",
        "",
        "| what shows | group | for, ms | trials, tripped |",
        "| --- | --- | ---: | ---: |",
        *(_short_line(name, kind, rows) for (name, kind), rows in _grouped([each for each in wires if not each["limits_ms"]])),
        "",
        "## Faults of the controller",
        "",
        "| fault | lamps flash after, ms | monitor |",
        "| --- | ---: | --- |",
        *(_controller_line(each) for each in controller),
    ]
    faults = [f"* {each['fault']}, {each['group']}: {each['faults'][0]}" for each in (*wires, *controller) if each["faults"]]
    return "\n".join((*lines, *(["", "Not as they should:", "", *faults] if faults else []), ""))


def _grouped(rows: list[Row]) -> list[tuple[tuple[str, str], list[Row]]]:
    def key(each: Row) -> tuple[str, str]:
        return each["fault"], each["group"]

    order = {key(each): number for number, each in reversed(list(enumerate(rows)))}
    return [(name, list(group)) for name, group in groupby(sorted(rows, key=lambda each: order[key(each)]), key)]


def _count(rows: list[Row]) -> str:
    return f"{sum(each['of'] for each in rows)}, {sum(each['tripped'] for each in rows)}"


def _line(name: str, kind: str, rows: list[Row]) -> str:
    after = [ms for each in rows for ms in each["after_ms"] or ()]
    shown = f"{min(after):.1f} to {max(after):.1f}" if after else "-"
    reasons = " or ".join(sorted({reason for each in rows for reason in each["reasons"]}))
    least, most = rows[0]["limits_ms"]
    return f"| {name} | {kind} | {_count(rows)} | {reasons} | {shown} | {least:g} to {most:g} |"


def _short_line(name: str, kind: str, rows: list[Row]) -> str:
    lasts = ", ".join(f"{ms:g}" for ms in sorted({each["lasts_ms"] for each in rows}))
    return f"| {name} | {kind} | {lasts} | {_count(rows)} |"


def _controller_line(each: Row) -> str:
    flashes = "-" if each["flashes_after_ms"] is None else f"{each['flashes_after_ms']:.0f}"
    did = f"tripped by {each['reasons'][0]} after {each['after_ms'][0]:.1f} ms" if each["after_ms"] else "silent"
    return f"| {each['fault']} | {flashes} | {did} |"


if __name__ == "__main__":
    sys.exit(main())
