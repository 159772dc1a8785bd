"""A light's own C without its pins, compiled for this machine with sanitizers and driven by a script (`host.c`)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firmware.generator.generate import generate
from firmware.generator.light.control import generate_light
from hil.build.project import project_root

SOURCES = ("beside", "control", "events", "features", "generated", "lamp_events", "lines", "plan", "sensing", "shell", "tables")
FLAGS = [
    "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-DMODE=2",
    "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
]  # fmt: skip


def compile_host(policy_file: Path, document: dict[str, Any], folder: Path, *flags: str) -> Path:
    """The program for a policy of one intersection, and its crossing."""
    plan_file, root = folder / "plan.json", project_root()
    plan_file.write_text(json.dumps(document), encoding="utf-8")
    policy = generate(policy_file, folder, "c", is_light=True)
    generate_light(plan_file, policy, "alone", folder)
    sources = [str(root / f"firmware/src/light/{name}.c") for name in SOURCES]
    built = folder / "host"
    own = str(root / "tests/firmware/light/host.c")
    command = ["gcc", *FLAGS, *flags, f"-I{folder}", f"-I{root / 'firmware/include'}", own, *sources, "-o", str(built)]
    subprocess.run(command, check=True)
    return built


def answers(program: Path, script: Sequence[str]) -> list[list[str]]:
    """What it says to the script's lines, split at blanks."""
    done = subprocess.run([str(program)], input="\n".join((*script, "")), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]
