"""What the lamps at the pins are to the traffic: phases of the built-in engine, signals of SUMO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hil.light.crossing import Crossing
from streetflow.control.environment import Environment
from streetflow.page.recorder import unrecorded
from streetflow.sumo.engine import SumoEngine


class Street(Protocol):
    @property
    def changes_lanes(self) -> bool:
        """Whether vehicles change lanes, between their loops too."""
        ...

    def show(self, crossings: Sequence[Crossing]) -> list[str]:
        """For the engine's next step. Returns what it can't show, a text for each crossing; there all is closed."""
        ...


def street_of(environment: Environment) -> Street:
    """That of the environment's engine; the clearance is ``computed``."""
    engine = unrecorded(environment.engine)
    if isinstance(engine, SumoEngine):
        return SumoStreet(engine)
    return BuiltInStreet(environment)


class BuiltInStreet:
    """Lamps are the phase of which just the green road links are open: yellow is closed."""

    changes_lanes = False

    def __init__(self, environment: Environment) -> None:
        self._engine, self._changes = environment.engine, environment.changes

    def show(self, crossings: Sequence[Crossing]) -> list[str]:
        mismatches = []
        phases = np.full(len(self._engine.intersection_ids), -1, np.int32)
        for crossing in crossings:
            phase = self._changes.phase_of(crossing.number, crossing.open_road_links)
            if phase is None:
                mismatches.append(f"{crossing.plan.intersection}: green {crossing.open_groups}")
                phase = self._changes.phase_of(crossing.number, frozenset())
            assert phase is not None, "clearance computed has a phase in which all is closed"
            phases[crossing.plan.number] = phase
        self._engine.set_phases(phases)
        return mismatches


class SumoStreet:
    """Each signal shows its lamp, yellow included. A crossing that is dark or flashes, or that its monitor cut off, is red."""

    changes_lanes = True

    def __init__(self, engine: SumoEngine) -> None:
        self._engine = engine

    def show(self, crossings: Sequence[Crossing]) -> list[str]:
        for crossing in crossings:
            self._engine.show_lamps(crossing.plan.number, crossing.open_road_links, crossing.yellow_road_links)
        return []
