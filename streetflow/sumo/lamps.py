"""From the phases of our lights to the states of SUMO's: no signal goes from green to red but through yellow.

A phase of the road network's file is one of the program's green phases and shows that phase's state. A clearance is a phase
behind these (``control/clearance.py``), of which is known what stays open. In it, what was green and isn't to stay so shows
yellow, after the program's own yellow time red; what stays open keeps what it shows. Where a controller drives lamps, these say
what is green and yellow (`lit`), and the program's phases, who yields.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from streetflow.roadnet.reader import Phase
from streetflow.sumo.binding import LightBinding
from streetflow.sumo.programs import OPEN, PERMITTED, YELLOW


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

    def lit(self, green: frozenset[int], yellow: frozenset[int]) -> str:
        """The state for lamps that show these road links green and these yellow.

        Phases with just these open, else those with these and more, else all, say the rest: who of the green yields, if he does
        in one of them; who turns on red after a stop; what signals without a road link show, where the phases agree.
        """
        opened = [frozenset(self._phases[phase].road_links) for phase in range(len(self.light.states))]
        like = [phase for phase, links in enumerate(opened) if links == green]
        like = like or [phase for phase, links in enumerate(opened) if links >= green] or list(range(len(opened)))
        colours = {
            signal: OPEN if link in green else YELLOW if link in yellow else frozenset("r")
            for link, signals in enumerate(self.light.signals)
            for signal in signals
        }
        before = self.state or self.light.states[0]
        letters = []
        for signal, last in enumerate(before):
            shown = {self.light.states[phase][signal] for phase in like}
            colour = colours.get(signal)
            letters.append(_free_letter(shown, last, bool(yellow)) if colour is None else _letter(colour, shown))
        self.state, self._phase, self.yellow_left_s = "".join(letters), -1, 0
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


def _letter(colour: frozenset[str], shown: set[str]) -> str:
    """Of a signal whose lamp has a colour. shown: in the phases that are like it."""
    if colour == OPEN:
        open_ones = shown & OPEN
        return min(open_ones) if len(open_ones) == 1 else "g" if open_ones & PERMITTED or not open_ones else "G"
    return "y" if colour == YELLOW else "s" if shown == {"s"} else "r"


def _free_letter(shown: set[str], last: str, someone_is_yellow: bool) -> str:
    """Of a signal without a lamp. last: its letter so far."""
    letter = min(shown) if len(shown) == 1 else "r"
    if letter in OPEN:
        return letter
    return "y" if last in OPEN or (last in YELLOW and someone_is_yellow) else letter


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
