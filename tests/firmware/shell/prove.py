"""Proves the safety shell for every crossing at hand and for generated ones.

    python -m tests.firmware.shell.prove [--generated N] [--ticks N] [--out STEM]      # writes STEM.json and STEM.md

Each crossing's shell is explored in all its states, judged by its lamps, and then driven by hostile inputs for N ticks;
crossings with the same tables are one. Three faults planted in the tables of the built-in crossing must be found. What is
done is kept in STEM.json: a run that was stopped goes on where it was, unless shell, explorer or tables have changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from firmware.generator.light.tables import header_of
from hil.build.project import project_root
from streetflow.control.signal_groups import SignalPlan
from tests.firmware.shell.build import HERE, compile_program, programs_tables
from tests.firmware.shell.crossings import at_hand, generated
from tests.firmware.shell.planted import planted_tables

CROSSWALKS_MOST = 6  # groups: with more of them, the crosswalks' states are too many for a run over all crossings
PLANTED_ON = "crossing/intersection_1_1"
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
Result = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description="Explores the safety shell for all crossings.")
    parser.add_argument("--generated", type=int, default=50, metavar="N", help="generated crossings beside those at hand")
    parser.add_argument("--ticks", type=int, default=1_000_000, metavar="N", help="hostile ticks for each crossing")
    parser.add_argument("--out", type=Path, default=Path("docs/results/shell"), metavar="STEM")
    arguments = parser.parse_args()
    kept = _kept(arguments.out.with_suffix(".json"))
    results: dict[str, Result] = {}
    with tempfile.TemporaryDirectory(prefix="shell-") as folder:
        for name, plan, crosswalks in _variants(chain(at_hand(), generated(arguments.generated))):
            tables, judge = programs_tables(plan, crosswalks)
            key = _key(tables, judge, str(arguments.ticks))
            if key in results:
                results[key]["crossings"].append(name)
                continue
            results[key] = (
                kept[key] | {"crossings": [name]} if key in kept else _prove(name, tables, judge, arguments.ticks, folder)
            )
            results[key]["crosswalks"] = crosswalks
            if name == PLANTED_ON and "planted" not in results[key]:
                results[key]["planted"] = _planted(plan, Path(folder))
            _write(arguments.out, results, is_complete=False)
    _write(arguments.out, results, is_complete=True)
    failed = [each for each in results.values() if each["fault"] or not all(each.get("planted", {"": True}).values())]
    print(f"{len(results)} different shells, {len(failed)} with a fault")
    return 1 if failed else 0


def _variants(crossings: Iterator[tuple[str, SignalPlan]]) -> Iterator[tuple[str, SignalPlan, bool]]:
    """Each crossing without its crosswalks, and with them where that is not too much."""
    for name, plan in crossings:
        yield name, plan, False
        called = sum(group.is_served and not group.is_always_open for group in plan.groups)
        if called <= CROSSWALKS_MOST and any(group.walk_and_clearance_s for group in plan.groups):
            yield name, plan, True


def _key(*texts: str) -> str:
    """Of all that the result depends on."""
    firmware = project_root() / "firmware"
    files = [firmware / "src/light/shell.c", firmware / "include/light/shell.h"]
    files += [HERE / name for name in ("explore.c", "hostile.c", "judge.h")]
    code = [COMMENT.sub("", file.read_text(encoding="utf-8")).split() for file in files]
    return hashlib.sha256(json.dumps([code, texts]).encode()).hexdigest()[:16]


def _prove(name: str, tables: str, judge: str, ticks: int, folder: str) -> Result:
    """Explored, then driven; `fault` is "" if every promise was kept."""
    print(f"{name} ...", end=" ", flush=True)
    start = time.monotonic()
    result: Result = {"crossings": [name]} | run(compile_program("explore", tables, judge, Path(folder)))
    result["fault"] = result.get("fault") or unbounded(result)
    if not result["fault"]:
        bounds = [str(ticks) for ticks in result["due_to_green"] + result["due_to_yellow"]]
        driven = run(compile_program("hostile", tables, judge, Path(folder)), str(ticks), "1", *bounds)
        result["fault"] = "" if driven["fault"] == "fine" else f"hostile: {driven['fault']}"
        result["hostile"] = driven
    result["seconds"] = round(time.monotonic() - start, 1)
    print(
        result["fault"] or f"{result['states']:,} states, {result['transitions']:,} transitions, {result['seconds']} s",
        flush=True,
    )
    return result


def unbounded(result: Result) -> str:
    """Words for a call or a green that may wait or last for ever, or ""."""
    for name in ("due_to_green", "due_to_yellow"):
        if None in result[name]:
            return f"{name}: group {result[name].index(None)} has no bound"
    return ""


def run(program: Path, *arguments: str) -> Result:
    """A program's line of JSON. Exit status 1: it found a fault, which the line names."""
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"{program.name}: exit status {done.returncode}: {done.stderr.strip()}")
    found: Result = json.loads(done.stdout.splitlines()[-1])
    return found


def _planted(plan: SignalPlan, folder: Path) -> dict[str, bool]:
    """Which planted faults are found by exploring."""
    _, judge = programs_tables(plan, False)
    found = {}
    for name, values in planted_tables(plan).items():
        result = run(compile_program("explore", header_of(values), judge, folder), "--no-bounds")
        found[name] = bool(result.get("fault"))
        print(f"planted: {name}: {result.get('fault') or 'NOT FOUND'}", flush=True)
    return found


def _kept(file: Path) -> dict[str, Result]:
    return json.loads(file.read_text(encoding="utf-8"))["shells"] if file.is_file() else {}


def _write(stem: Path, results: dict[str, Result], is_complete: bool) -> None:
    command = f"python -m {__spec__.name} {' '.join(sys.argv[1:])}".strip()
    document = {"command": command, "is_complete": is_complete, "shells": results}
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if is_complete:
        stem.with_suffix(".md").write_text(_page(command, list(results.values())), encoding="utf-8")


def _page(command: str, results: list[Result]) -> str:
    states, transitions = (sum(each.get(name, 0) for each in results) for name in ("states", "transitions"))
    ticks = sum(each.get("hostile", {}).get("ticks", 0) for each in results)
    violations = sum(bool(each["fault"]) for each in results)
    crossings = {name for each in results for name in each["crossings"]}
    planted = [(name, found) for each in results for name, found in each.get("planted", {}).items()]
    lines = [
        "# The safety shell, explored",
        "",
        f"`{command}`: {len(crossings)} crossings, {len(results)} different shells (with and without crosswalks),"
        f" {states:,} states, {transitions:,} transitions and {ticks:,} hostile ticks: {violations} violations."
        " [What was explored, and why that is all](../controller.md#proof).",
        "",
        *(f"Planted: {name}: {'found' if found else 'not found'}.\n" for name, found in planted),
        "Waits and greens are bounded by the longest red and the maximum green, and then by the longest path through the"
        " states: s after its longest red until a call is green, s after its maximum green until a group is yellow (worst"
        " group).",
        "",
        "| crossing (first of those with these tables) | crossings | crosswalks | states | transitions | call due: s"
        " | green due: s | hostile: longest wait s |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for each in results:
        if each["fault"]:
            lines.append(f"| {each['crossings'][0]} | **{each['fault']}** | | | | | | |")
            continue
        due, green = max(each["due_to_green"]) / 100, max(each["due_to_yellow"]) / 100
        waited, crosswalks = each["hostile"]["longest_wait"] / 100, "yes" if each["crosswalks"] else "no"
        lines.append(
            f"| {each['crossings'][0]} | {len(each['crossings'])} | {crosswalks} | {each['states']:,}"
            f" | {each['transitions']:,} | {due:.1f} | {green:.1f} | {waited:.1f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
