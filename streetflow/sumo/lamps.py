"""From the phases of our lights to the states of SUMO's: no signal goes from green to red but through yellow.

A phase of the road network's file is one of the program's green phases and shows that phase's state. A clearance is a phase
behind these (``control/clearance.py``), of which is known what stays open. In it, what was green and isn't to stay so shows
yellow, after the program's own yellow time red; what stays open keeps what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from streetflow.roadnet.reader import Phase
from streetflow.sumo.binding import LightBinding
from streetflow.sumo.programs import OPEN, YELLOW


class Lamps:
    """The signals of one light. phases: all of its intersection, those of clearances included."""

    def __init__(self, light: LightBinding, phases: Sequence[Phase]) -> None:
        self.light = light
        self._phases = phases
        self._bound = frozenset(signal for signals in light.signals for signal in signals)
        self.forget()

    def forget(self) -> None:
        """As at the start: SUMO's own program shows what it will, and any phase may follow."""
        self.state: str | None = None
        self._phase = -1
        self.yellow_left_s = 0

    def show(self, phase: int) -> str:
        """The state for a phase.

        Raises:
            ValueError: a signal would go from green to red.
        """
        if phase == self._phase and self.state is not None:
            return self.state
        before, self._phase = self.state, phase
        self.yellow_left_s = 0
        if phase < len(self.light.states):
            state = self.light.states[phase]
            self._require_no_jump(before, state)
        else:
            state = self._clearance(before or self.light.states[0], self._phases[phase].road_links)
            if YELLOW & set(state):
                self.yellow_left_s = math.ceil(self.light.yellow_s)
        self.state = state
        return state

    def pass_yellow(self, seconds: int) -> str | None:
        """So many seconds have passed: the new state, where a yellow is over."""
        if not self.yellow_left_s or self.state is None:
            return None
        self.yellow_left_s -= seconds
        if self.yellow_left_s > 0:
            return None
        self.state = "".join("r" if letter in YELLOW else letter for letter in self.state)
        return self.state

    def _clearance(self, before: str, road_links: Sequence[int]) -> str:
        staying = {signal for link in road_links for signal in self.light.signals[link]}

        def after(signal: int, letter: str) -> str:
            if signal in staying:
                return letter
            return "y" if letter in OPEN else "r" if letter in YELLOW else letter

        return "".join(after(signal, letter) for signal, letter in enumerate(before))

    def _require_no_jump(self, before: str | None, state: str) -> None:
        for signal in sorted(self._bound):
            if before is not None and before[signal] in OPEN and state[signal] not in OPEN:
                raise ValueError(
                    f"signal {signal} of the light {self.light.light!r} would go from green to red without yellow: "
                    f"{before!r} to {state!r}"
                )


def legs(lamps: Sequence[Lamps], seconds: int) -> Iterator[tuple[int, dict[str, str]]]:
    """How to step so many seconds: (seconds, states to show after them), cut where a yellow is over."""
    while seconds > 0:
        leg_s = min([seconds, *(each.yellow_left_s for each in lamps if each.yellow_left_s)])
        changes = {}
        for each in lamps:
            state = each.pass_yellow(leg_s)
            if state is not None:
                changes[each.light.light] = state
        yield leg_s, changes
        seconds -= leg_s
