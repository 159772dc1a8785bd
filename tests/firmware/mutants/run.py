"""Runs the harness on firmwares with one small fault each: which verdict finds it?

    python -m tests.firmware.mutants.run [--count N] [--out STEM]      # writes STEM.json and STEM.md

The listed faults, and N drawn ones of C, assembly and generator. Each is built in a copy of the sources and judged as
`tinylight hil` judges a board: by 30 decisions of traffic, the sweep and the conduct, on the emulated chip. A program with the
same bytes is the same program. What is done is kept in STEM.json: a run that was stopped goes on where it was.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.firmware.mutants.listed import LISTED, Listed, check_places
from tests.firmware.mutants.places import Mutant, sample
from tests.firmware.mutants.reasons import REASONS

if TYPE_CHECKING:
    from hil.loop.job import Job

ROOT = Path(__file__).resolve().parents[3]
TREE = "TINYLIGHT_MUTANTS_TREE"  # set in the process that runs in the copy
KERNELS = {
    "table.S": "table", "table_outputs.inc": "table", "stream.py": "table", "infer.c": "c", "infer.h": "c", "c_tables.py": "c",
    "range.c": "c",
}  # fmt: skip
MIN_GREEN_S = 5
HORIZON_S = 300


def main() -> int:
    parser = argparse.ArgumentParser(description="Firmwares with one fault each, judged by the harness.")
    parser.add_argument("--count", type=int, default=240, metavar="N", help="drawn mutants, beside the listed ones")
    parser.add_argument("--only", action="append", metavar="NAME", help="this one alone; may be given more than once")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/mutants", metavar="STEM")
    arguments = parser.parse_args()
    if TREE not in os.environ:
        return _in_copy(sys.argv[1:])
    return _run(Path(os.environ[TREE]), arguments.count, arguments.only, arguments.out)


def _in_copy(options: list[str]) -> int:
    """The same command, with the package `firmware` of a copy: the harness builds from what is changed there."""
    tree = ROOT / "build" / "mutants"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / "firmware", tree / "firmware", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "platformio.ini", tree)
    out = [] if "--out" in options else ["--out", str(ROOT / "docs/results/mutants")]
    command = [sys.executable, "-m", "tests.firmware.mutants.run", *options, *out]
    return subprocess.call(command, cwd=tree, env=os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{ROOT}", TREE: str(tree)})


def _run(tree: Path, count: int, only: list[str] | None, stem: Path) -> int:
    from tinylight.console import progress_bar

    check_places(tree)
    mutants = [each for each in (*LISTED, *sample(tree, count)) if only is None or each.name in only]
    file = stem.with_suffix(".json")
    sources = hashlib.sha256(b"".join((tree / each.file).read_bytes() for each in mutants)).hexdigest()
    done: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    rows: dict[str, Any] = done["mutants"] if done.get("sources") == sources else {}
    with progress_bar() as bar:
        task = bar.add_task("", total=len(mutants))
        for mutant in mutants:
            bar.update(task, description=mutant.name[:60])
            if mutant.name not in rows:
                rows[mutant.name] = _row(tree, mutant)
                file.write_text(json.dumps({"sources": sources, "mutants": rows}, indent=1, ensure_ascii=False) + "\n")
            bar.advance(task)
    kept = {mutant.name: rows[mutant.name] for mutant in mutants}
    file.write_text(json.dumps({"sources": sources, "mutants": kept}, indent=1, ensure_ascii=False) + "\n")
    text = markdown(kept, {mutant.name for mutant in LISTED})
    stem.with_suffix(".md").write_text(text)
    print(text)
    return 0


@cache
def sound_program(kernel: str) -> bytes:
    """The bytes of the firmware without a fault, which all verdicts pass."""
    failed, program = judged(kernel)
    assert not failed, f"the sound firmware fails with kernel {kernel}: {failed}"
    return program


def _row(tree: Path, mutant: Listed | Mutant) -> dict[str, Any]:
    file = tree / mutant.file
    original = file.read_text(encoding="utf-8")
    kernel = KERNELS.get(file.name, "unrolled")
    sound = sound_program(kernel)
    try:
        file.write_text(mutant.apply(original), encoding="utf-8")
        failed, program = judged(kernel)
    finally:
        file.write_text(original, encoding="utf-8")
    if program == sound:
        return {"kernel": kernel, "outcome": "the same program"}
    if program == b"":
        return {"kernel": kernel, "outcome": "not built", "by": failed}
    return {"kernel": kernel, "outcome": "found" if failed else "not found", "by": failed}


@cache
def crossing_with_a_phase_that_opens_nothing(kernel: str) -> "Job":
    """The built-in crossing with such a phase first, as in CityFlow's data sets: else a phase would be its action's number."""
    from hil.loop.job import Job
    from model import pretrained_policy
    from model.policy.file import load_policy, save_policy

    job = Job.named("crossing", 0, None, kernel=kernel, min_green_s=MIN_GREEN_S)
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    roadnet = json.loads(job.network.roadnet_file.read_text())
    for intersection in roadnet["intersections"]:
        if not intersection["virtual"]:
            intersection["trafficLight"]["lightphases"].insert(0, {"time": 5, "availableRoadLinks": []})
    (folder / "roadnet.json").write_text(json.dumps(roadnet))
    policy = load_policy(pretrained_policy("crossing"))
    (part,) = policy.intersections
    shifted = part.model_copy(update={"phases": [phase + 1 for phase in part.phases]})
    policy = policy.model_copy(update={"intersections": [shifted]})
    save_policy(policy.model_copy(update={"sha256": policy.compute_sha256()}), folder / "policy.json")
    network = replace(job.network, roadnet_file=folder / "roadnet.json", horizon_s=HORIZON_S)
    return replace(job, network=network, policy_file=folder / "policy.json")


def judged(kernel: str) -> tuple[list[str], bytes]:
    """The names of the verdicts that fail, the first with its detail, and the program's bytes (none: it couldn't be built)."""
    from hil.boards.faults import LinkError
    from hil.build.firmware import BuildError, build_firmware
    from hil.loop.job import run_job
    from streetflow.errors import InputError

    job = crossing_with_a_phase_that_opens_nothing(kernel)
    try:
        firmware = build_firmware(job.policy_file, kernel=kernel, min_green_s=MIN_GREEN_S)
    except (BuildError, InputError) as fault:
        return [str(fault).replace(f"{job.policy_file.parent}/", "").strip().splitlines()[-1][:200]], b""
    program = firmware.hex.read_bytes() if firmware.hex is not None else b""
    try:
        verdict = run_job(job)
    except (InputError, LinkError) as fault:  # such as a stack that can't be bounded
        return [f"{type(fault).__name__}: {fault}"[:200]], program
    failed = [check for check in verdict.checks if check.outcome == "fail"]
    said = [f"{check.name}: {check.detail or check.measured}"[:200] for check in failed[:1]]
    return said + [check.name for check in failed[1:]], program


def markdown(rows: dict[str, Any], listed: set[str]) -> str:
    """The table as people read it."""
    outcomes = Counter(row["outcome"] for row in rows.values())
    first = Counter(row["by"][0].partition(":")[0] for row in rows.values() if row["outcome"] == "found")
    lines = [
        "# Mutants of the firmware",
        "",
        f"{len(rows)} firmwares with one small fault each, {len(listed)} of them listed by name, judged by `tinylight hil` "
        f"(crossing, {HORIZON_S} s of traffic): "
        + ", ".join(f"{count} {each}" for each, count in outcomes.most_common())
        + ".",
        "First verdict to fail: " + ", ".join(f"{name} {count}" for name, count in first.most_common()) + ".",
        "",
        "    python -m tests.firmware.mutants.run",
        "",
    ]
    for title, chosen in (("Listed", True), ("Drawn", False)):
        lines += [f"## {title}", "", "| mutant | kernel | outcome | by |", "| --- | --- | --- | --- |"]
        for name, row in rows.items():
            if (name in listed) is chosen:
                said = row.get("by") or [REASONS.get(name, "not explained") if row["outcome"] == "not found" else ""]
                by = "; ".join(said).replace("|", r"\|").replace("\n", " ")
                lines.append(f"| {name.replace('|', chr(92) + '|')} | {row['kernel']} | {row['outcome']} | {by} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
