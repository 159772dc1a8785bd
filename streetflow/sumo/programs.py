"""The programs of SUMO's traffic lights: what each signal shows in each phase, and which phases are ones to choose from.

A state has one letter a signal: ``G`` green, ``g`` green that yields (permitted), ``y`` yellow, ``r`` red, ``u`` red and
yellow, ``s`` a turn on red after a stop, ``o`` and ``O`` switched off (who has to yield yields, or not).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streetflow.sumo.xml_file import Element

OPEN = frozenset("GgOo")
PERMITTED = frozenset("go")
YELLOW = frozenset("yY")
LETTERS = OPEN | YELLOW | frozenset("rus")
KINDS = {"static", "actuated", "delay_based"}
YELLOW_S = 3.0  # where a program has no yellow


@dataclass(frozen=True)
class SumoPhase:
    duration_s: float
    state: str
    line: int

    @property
    def is_green(self) -> bool:
        """Whether it is one to choose: something is open, and nothing is on its way to another phase."""
        return bool(OPEN & set(self.state)) and not (YELLOW | {"u"}) & set(self.state)


@dataclass(frozen=True)
class Program:
    """A light's program. ``others``: programs of the same light that the net has besides."""

    light: str
    kind: str
    phases: tuple[SumoPhase, ...]
    others: int
    element: Element

    @property
    def width(self) -> int:
        """The number of signals."""
        return len(self.phases[0].state)

    @property
    def green(self) -> tuple[SumoPhase, ...]:
        """The phases to choose from, in the program's order, each state once."""
        first: dict[str, SumoPhase] = {}
        for phase in self.phases:
            if phase.is_green:
                first.setdefault(phase.state, phase)
        return tuple(first.values())

    @property
    def yellow_s(self) -> float:
        """The shortest time that a signal is yellow in it, at least 1 s."""
        times = []
        for first in range(len(self.phases)):
            before = self.phases[first - 1].state
            begins = [i for i, letter in enumerate(self.phases[first].state) if letter in YELLOW and before[i] not in YELLOW]
            for signal in begins:
                lasting_s, at = 0.0, first
                while self.phases[at % len(self.phases)].state[signal] in YELLOW and at < first + len(self.phases):
                    lasting_s += self.phases[at % len(self.phases)].duration_s
                    at += 1
                times.append(lasting_s)
        return max(min(times, default=YELLOW_S), 1.0)


def read_programs(roots: Sequence[Element]) -> dict[str, Program]:
    """The program of each light, which is the last one that the files have, as in SUMO. InputError for faulty ones."""
    programs: dict[str, Program] = {}
    for element in (each for root in roots for each in root.each("tlLogic")):
        light = element.text("id")
        kind = element.get("type", "static")
        if kind not in KINDS:
            known = ", ".join(sorted(KINDS))
            raise element.fault(f"is of type {kind!r}; its phases can't be chosen one by one. Types that are read: {known}")
        phases = tuple(_phase(each) for each in element.each("phase"))
        if not phases:
            raise element.fault("has no phase")
        for phase in phases[1:]:
            if len(phase.state) != len(phases[0].state):
                others = f"{len(phases[0].state)}, that of line {phase.line} {len(phase.state)}"
                raise element.fault(f"its phases have states of different length: the first {others}")
        before = programs.get(light)
        programs[light] = Program(light, kind, phases, 0 if before is None else before.others + 1, element)
    return programs


def _phase(element: Element) -> SumoPhase:
    state = element.text("state")
    unknown = set(state) - LETTERS
    if unknown:
        raise element.fault(f"state {state!r}: {min(unknown)!r} is no signal ({''.join(sorted(LETTERS))})")
    return SumoPhase(element.time_s("duration"), state, element.line)
