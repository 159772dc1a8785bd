"""What the light's own program needs beside the shell's tables: sizes, and the plan of fixed times in flash."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firmware.generator.c_tables import array
from firmware.generator.light.plan import PHASES_MAX, ShellPlan, plan_of
from firmware.generator.light.sensing import NOTHING_SENSED, Sensing, sensing_of, tables
from firmware.generator.light.tables import GENERATED, tables_header
from firmware.generator.policy import JsonObject, PolicyError

MODES = ("answer", "light", "alone")  # by their number in HELLO
PLAN_STEPS_MAX = 64
STEP_SECONDS_MAX = 255
INTERVAL_S_MAX = 255
PATIENCE = 2.5  # decision intervals without a request, then the plan decides
TICKS_PER_S = 100

Step = tuple[int, int]
"""An action, and for how many seconds it is wished for."""


def generate_light(plan_file: Path, policy: JsonObject, mode: str, folder: Path) -> ShellPlan:
    """Writes shell_tables.h, light/dimensions.h and light/light_tables.h into `folder`, each unless it would not change.

    PolicyError if the plan in the file doesn't fit the chip, or isn't the policy's.
    """
    document = _read(plan_file)
    try:
        plan = plan_of(document)
        _check_policy(document, policy)
        steps = plan_steps(document, plan, policy["decision_interval_s"])
        sensed = sensing_of(document, policy) if mode == "alone" else NOTHING_SENSED
        dimensions = _dimensions(plan, policy, steps, sensed)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise PolicyError(f"not a signal plan ({type(error).__name__}: {error})") from None
    texts = {
        "shell_tables.h": tables_header(plan),
        "light/dimensions.h": dimensions_header(dimensions),
        "light/light_tables.h": "\n\n".join([GENERATED, _steps_table(steps), *tables(sensed), ""]),
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="ascii") != text:
            path.write_text(text, encoding="ascii")
    return plan


def plan_steps(document: dict[str, Any], plan: ShellPlan, interval_s: int) -> list[Step]:
    """The document's plan of fixed times; without one, each phase for one decision, in turn."""
    steps = [(action, seconds) for action, seconds in document.get("plan") or ()]
    if not steps:
        steps = [(action, interval_s) for action in range(len(plan.phase_groups))]
    if len(steps) > PLAN_STEPS_MAX:
        raise PolicyError(f"plan: {len(steps)} steps, the chip holds 1 to {PLAN_STEPS_MAX}")
    for number, (action, seconds) in enumerate(steps):
        if type(action) is not int or not 0 <= action < len(plan.phase_groups):
            raise PolicyError(f"plan[{number}]: {action!r} is no action of {len(plan.phase_groups)}")
        if type(seconds) is not int or not 1 <= seconds <= STEP_SECONDS_MAX:
            raise PolicyError(f"plan[{number}]: {seconds!r} s, must be 1 to {STEP_SECONDS_MAX} whole seconds")
    return steps


def dimensions_header(values: dict[str, int]) -> str:
    """light/dimensions.h"""
    guard = "LIGHT_DIMENSIONS_H"
    lines = [f"#define {name} {value}" for name, value in values.items()]
    return "\n".join([GENERATED, f"#ifndef {guard}", f"#define {guard}", "", *lines, "", "#endif", ""])


def _dimensions(plan: ShellPlan, policy: JsonObject, steps: Sequence[Step], sensed: Sensing) -> dict[str, int]:
    crosswalks = any(plan.walk_clear)
    interval_s = policy["decision_interval_s"]
    if not 1 <= interval_s <= INTERVAL_S_MAX:
        raise PolicyError(f"decision_interval_s: {interval_s}, the chip counts 1 to {INTERVAL_S_MAX} s")
    return {
        "LIGHT_GROUPS": plan.groups,
        "LIGHT_LAST_GROUP": 1 << (plan.groups - 1),
        "LIGHT_CROSSWALKS": int(crosswalks),
        "LIGHT_ACTIONS": len(plan.phase_groups),
        "LIGHT_IN_LANES": sensed.in_lanes,
        "LIGHT_LANES": len(sensed.lanes),
        "LIGHT_PASSED": int(sensed.counts_passed),
        "LIGHT_BESIDE": int(sensed.has_lanes_beside),
        "LIGHT_FIRST_BUTTON": 2 * len(sensed.lanes),
        "LIGHT_LINES": 2 * len(sensed.lanes) + (plan.groups if crosswalks else 0),
        "LIGHT_INTERVAL_S": interval_s,
        "LIGHT_PATIENCE_TICKS": round(PATIENCE * interval_s * TICKS_PER_S),
        "LIGHT_PLAN_STEPS": len(steps),
    }


def _steps_table(steps: Sequence[Step]) -> str:
    return array("struct plan_step", "plan_steps", (f"{{{action}, {seconds}}}" for action, seconds in steps), storage="")


def _check_policy(document: dict[str, Any], policy: JsonObject) -> None:
    """A light is of one intersection, and wishes for actions by their numbers: both must mean the same ones."""
    parts = policy["intersections"]
    if len(parts) != 1:
        raise PolicyError(f"the policy is of {len(parts)} intersections, a light of one: name it")
    if parts[0]["id"] != document["intersection"]:
        raise PolicyError(f"intersection: {document['intersection']!r}, the policy is of {parts[0]['id']!r}")
    if parts[0]["phases"] != document["phase_numbers"]:
        raise PolicyError(f"phase_numbers: {document['phase_numbers']}, the policy's are {parts[0]['phases']}")
    assert len(parts[0]["phases"]) <= PHASES_MAX, "as the plan's"


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PolicyError(f"can't be read: {error.strerror or error}") from None
    except json.JSONDecodeError as error:
        raise PolicyError(f"not JSON: {error}") from None
    if not isinstance(content, dict):
        raise PolicyError("not a signal plan: no object")
    return content
