"""The sweep: before any traffic the board decides on inputs that show what the traffic may never reach (sweep_inputs.py)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hil.loop.closed_loop import Seat
from hil.loop.sweep_inputs import sweep_of
from hil.wire.link import LinkError
from hil.wire.protocol import logits_checksum
from model.policy.file import Policy
from model.policy.integer import IntegerPolicy


class SweepResult(NamedTuple):
    """How a board answered: ``wrong`` and ``unanswered`` tell what was asked, and what came. ``largest_compute_cycles`` is of a
    whole decision; ``shown`` of ``total`` things that the inputs are made to show are shown (the rest nothing was found to
    show)."""

    inputs: int
    wrong: tuple[str, ...]
    unanswered: tuple[str, ...]
    largest_compute_cycles: int
    shown: int
    total: int


def run_sweep(policy: Policy, seats: Sequence[Seat], on_input: Callable[[int, int], None] | None = None) -> SweepResult:
    """Ask each intersection's board for a decision on each of that intersection's inputs.

    Args:
        policy: what the boards hold.
        seats: of its intersections.
        on_input: called with the inputs asked so far and how many there are.
    """
    sweeps = [sweep_of(part) for part in policy.intersections]
    total, asked, cycles = sum(len(sweep.inputs) for sweep in sweeps), 0, 0
    wrong: list[str] = []
    unanswered: list[str] = []
    for part, seat, sweep in zip(policy.intersections, seats, sweeps, strict=True):
        logits = IntegerPolicy(part).logits(sweep.inputs)
        for number, (values, expected) in enumerate(zip(sweep.inputs.tolist(), logits.tolist(), strict=True)):
            asked += 1
            if on_input is not None:
                on_input(asked, total)
            place = f"input {number} of {part.id}"
            try:
                answer = seat.link.decide(seat.number, values)
            except LinkError as fault:
                unanswered.append(f"{place}: {type(fault).__name__}")
                continue
            cycles = max(cycles, answer.compute_cycles)
            action = int(np.argmax(expected))
            if (answer.action, answer.phase) != (action, part.phases[action]):
                wrong.append(f"{place}: phase {answer.phase} for {part.phases[action]}")
            elif answer.logits_crc != logits_checksum(expected):
                wrong.append(f"{place}: the right phase, but other logits")
    shown, items = sum(sweep.shown for sweep in sweeps), sum(sweep.total for sweep in sweeps)
    return SweepResult(total, tuple(wrong), tuple(unanswered), cycles, shown, items)
