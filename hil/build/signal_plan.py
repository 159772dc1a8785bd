"""The signal plan of a crossing as a JSON document, from which firmware/generator/light makes the shell's tables."""

from __future__ import annotations

from typing import Any

from firmware.generator.light.plan import FORMAT
from streetflow.control.signal_groups import SignalPlan


def plan_document(plan: SignalPlan) -> dict[str, Any]:
    """All that the firmware needs of the plan, in an order that never changes: same plan, same bytes."""
    return {
        "format": FORMAT,
        "intersection": plan.intersection,
        "groups": [
            {
                "road_links": list(group.road_links),
                "yellow_s": group.yellow_s,
                "red_clearance_s": group.red_clearance_s,
                "min_green_s": group.min_green_s,
                "max_green_s": group.max_green_s,
                "walk_and_clearance_s": group.walk_and_clearance_s,
            }
            for group in plan.groups
        ],
        "phases": [list(groups) for groups in plan.phases],
        "phase_numbers": list(plan.phase_numbers),
        "conflicts": [list(pair) for pair in sorted(plan.conflicts)],
        "lanes": [list(groups) for groups in plan.lane_groups],
        "longest_red_s": plan.longest_red_s,
        "walk_s": plan.walk_s,
    }
