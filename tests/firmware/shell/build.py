"""The explorer and the hostile run, compiled around the shell's own source for one crossing."""

from __future__ import annotations

import math
import subprocess
from dataclasses import replace
from pathlib import Path

from firmware.generator.light.plan import ShellPlan, plan_of
from firmware.generator.light.tables import tables_header
from hil.build.project import project_root
from hil.build.signal_plan import plan_document
from streetflow.control.signal_groups import SignalPlan

HERE = Path(__file__).parent
FLAGS = ["-std=gnu11", "-O3", "-Wall", "-Wextra", "-Wshadow", "-Werror"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def without_crosswalks(plan: ShellPlan) -> ShellPlan:
    return replace(plan, walk_clear=(0,) * plan.groups)


def shell_plan(plan: SignalPlan) -> ShellPlan:
    """As the firmware's generator makes it."""
    return plan_of(plan_document(plan))


def judge_header(plan: SignalPlan, crosswalks: bool) -> str:
    """judge_tables.h: what the judge holds the lamps to, straight from the plan, rounded up to ticks of 10 ms."""

    def ticks(seconds: float) -> int:
        return -math.floor(-seconds * 100 + 1e-6)

    groups = range(len(plan.groups))
    columns = {
        "conflicts": [sum(1 << other for other in plan.conflicts_of(group)) for group in groups],
        "yellow": [ticks(group.yellow_s) for group in plan.groups],
        "red": [ticks(group.red_clearance_s) for group in plan.groups],
        "min_green": [ticks(group.min_green_s) for group in plan.groups],
        "walk_clear": [ticks(group.walk_and_clearance_s) if crosswalks else 0 for group in plan.groups],
    }
    lines = [f"#define JUDGE_GROUPS {len(plan.groups)}", f"#define JUDGE_WALK_TICKS {ticks(plan.walk_s)}"]
    lines += [f"static const uint16_t judge_{name}[] = {{{', '.join(map(str, column))}}};" for name, column in columns.items()]
    return "\n".join(lines) + "\n"


def compile_program(
    source: str, tables: str, judge: str, folder: Path, *, sanitize: bool = False, shell: str | None = None
) -> Path:
    """Compiles SOURCE.c of this folder into `folder`.

    Args:
        source: "explore" or "hostile".
        tables: shell_tables.h.
        judge: judge_tables.h.
        folder: for headers and program.
        sanitize: with address and undefined-behaviour sanitizers.
        shell: another text for the shell's source, with a fault planted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shell_tables.h").write_text(tables, encoding="ascii")
    (folder / "judge_tables.h").write_text(judge, encoding="ascii")
    root = project_root()
    code = (HERE / f"{source}.c").read_text(encoding="utf-8")
    if shell is not None:
        (folder / "shell.c").write_text(shell, encoding="utf-8")
        code = code.replace("../../../firmware/src/light/shell.c", "shell.c")
    code = code.replace("../../../firmware", str(root / "firmware")).replace('"judge.h"', f'"{HERE / "judge.h"}"')
    (folder / f"{source}.c").write_text(code, encoding="utf-8")
    program = folder / source
    includes = [f"-I{folder}", f"-I{root / 'firmware' / 'include'}"]
    flags = [*FLAGS, *(SANITIZERS if sanitize else []), *(["-Wno-error"] if shell is not None else [])]
    subprocess.run(["gcc", *flags, *includes, str(folder / f"{source}.c"), "-o", str(program)], check=True)
    return program


def programs_tables(plan: SignalPlan, crosswalks: bool) -> tuple[str, str]:
    """(shell_tables.h, judge_tables.h) of a crossing."""
    own = shell_plan(plan)
    return tables_header(own if crosswalks else without_crosswalks(own)), judge_header(plan, crosswalks)
