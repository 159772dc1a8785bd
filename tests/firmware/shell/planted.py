"""Faults planted in the shell's tables, each the smallest there is, which exploring must find."""

from __future__ import annotations

from copy import deepcopy

from firmware.generator.light.tables import fields
from streetflow.control.signal_groups import SignalPlan
from tests.firmware.shell.build import shell_plan, without_crosswalks

Fields = dict[str, int | list[int]]


def planted_tables(plan: SignalPlan) -> dict[str, Fields]:
    """By name, the tables' fields with one conflict bit cleared, one yellow and one minimum green a tick too short."""
    sound = fields(without_crosswalks(shell_plan(plan)))

    def changed(name: str, index: int, value: int) -> Fields:
        values = deepcopy(sound)
        column = values[name]
        assert isinstance(column, list)
        column[index] = value
        return values

    ending, beginning = a_bit_that_matters(plan)
    conflicts, yellow, least = (sound[name] for name in ("conflicts", "yellow_ticks", "phase_least_ticks"))
    assert isinstance(conflicts, list) and isinstance(yellow, list) and isinstance(least, list)
    phase = next(p for p, groups in enumerate(plan.phases) if least[p] == max(shell_plan(plan).min_green[g] for g in groups))
    return {
        f"conflict bit of groups {ending} and {beginning} cleared": changed(
            "conflicts", ending, conflicts[ending] & ~(1 << beginning)
        ),
        f"yellow of group {ending} cut by a tick": changed("yellow_ticks", ending, yellow[ending] - 1),
        f"minimum green of phase {phase} cut by a tick": changed("phase_least_ticks", phase, least[phase] - 1),
    }


def a_bit_that_matters(plan: SignalPlan) -> tuple[int, int]:
    """(group that ends, group that begins) in conflict where in some change no other pair asks for a wait as long."""
    for start, opened in enumerate(plan.phases):
        for end, others in enumerate(plan.phases):
            leaving, entering = set(opened) - set(others), set(others) - set(opened)
            for group in sorted(leaving):
                met = plan.conflicts_of(group) & entering
                rest = [
                    plan.groups[other].yellow_s + bool(plan.conflicts_of(other) & entering) * plan.groups[other].red_clearance_s
                    for other in leaving - {group}
                ]
                if len(met) == 1 and max(rest, default=0.0) + 0.01 < plan.change_s(start, end):
                    return group, next(iter(met))
    raise AssertionError("every conflict of this crossing is covered by others")
