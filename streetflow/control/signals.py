"""The lights of all signalled intersections: from actions to phases, second by second.

Once a second, before the engine's step, every light does one of these, where ``a`` is the action last chosen for it (the rule
of the paper's released experiment, extended by clearances and a minimum green):

* a change is pending: while ``elapsed`` is below its clearance's seconds count on; otherwise show the action that the change
  began with, elapsed = 1;
* ``a`` is the current action, or elapsed is below the minimum green: count on;
* else a change becomes pending, the light shows the clearance, elapsed = 1; where the clearance takes 0 s, the light shows
  ``a`` at once.

At reset action 0 is current, its phase is shown and elapsed is 0. A change takes effect after 3 s (with ``computed`` after as
long as it needs), and the clearance (see ``clearance.py``) defines what is open in between. A change that has begun is
completed, even if the action changes again in this time: a yellow must be followed by the phase that it announced. (With a
decision every 20 s and no minimum green that can't happen, so the release's rule, to show whatever action is chosen by then,
gives the same.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streetflow.control.clearance import Changes
from streetflow.control.intersection import Intersection
from streetflow.errors import InputError, whole_number
from streetflow.kernels.service import Service, ask_service
from streetflow.kernels.signals import CURRENT, ELAPSED_S, SHOWN, STATE_COLUMNS, advance_lights

Ints = NDArray[np.int32]


class Signals:
    """Lights of N intersections in an engine that has ``engine_intersections`` of them.

    ``min_green_s``: whole seconds, for each action, where ``changes`` don't ask for more. ``reset`` must be called first.
    """

    def __init__(
        self,
        intersections: Sequence[Intersection],
        changes: Changes,
        engine_intersections: int,
        min_green_s: int = 0,
    ) -> None:
        if whole_number(min_green_s, "min_green_s") < 0:
            raise InputError("signals", "min_green_s", f"must not be negative, is {min_green_s}")
        count = len(intersections)
        self.min_green_s = min_green_s
        self._numbers = np.array([each.number for each in intersections], np.int32)
        self._phase_of_action = np.zeros((count, max(each.action_count for each in intersections)), np.int32)
        for i, each in enumerate(intersections):
            self._phase_of_action[i, : each.action_count] = each.phases
        self._changes = (changes.phases, changes.seconds, np.maximum(changes.least_green_s, np.int32(min_green_s)))
        self._engine_intersections = engine_intersections
        self._service = changes.service
        self._state = np.zeros((count, self._service.columns if self.serves else STATE_COLUMNS), np.int32)

    def reset(self) -> NDArray[np.int32]:
        """Back to the start: action 0 current, elapsed 0. Returns the phases to set, as in ``advance``."""
        self._state[:] = 0
        self._state[:, SHOWN] = self._phase_of_action[:, 0]
        if self.serves:
            self._service.start(self._state)
        phases = np.full(self._engine_intersections, -1, np.int32)
        phases[self._numbers] = self._state[:, SHOWN]
        return phases

    @property
    def service(self) -> Service:
        return self._service

    @property
    def serves(self) -> bool:
        """Whether lights serve those who have waited too long: then ``asked`` is to be called each second."""
        return self._service.lanes.size > 0

    def asked(self, actions: NDArray[np.int32], vehicles: NDArray[np.int32], *, is_new: bool) -> NDArray[np.int32]:
        """int32[N]: the actions to advance with in the coming second: those that must come, else ``actions``.

        Args:
            actions: int32[N], that are wished.
            vehicles: int32[lanes of the engine].
            is_new: whether they have just been decided.
        """
        asked = np.empty_like(actions)
        ask_service(self._state, actions, is_new, vehicles, *self._service, asked)
        return asked

    @property
    def state(self) -> NDArray[np.int32]:
        """int32[N, columns]: each light's state, columns as in ``streetflow/kernels/signals.py`` and, where the lights serve
        those who wait, ``service.py`` (not a copy)."""
        return self._state

    @property
    def tables(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Numbers in the engine [N], phases of the actions [N, A], the clearances' phases and seconds [N, A, A], minimum
        greens [N, A]."""
        return self._numbers, self._phase_of_action, *self._changes

    @property
    def current_action(self) -> NDArray[np.int32]:
        """int32[N]: the action in force at each light, the old one while a change is pending."""
        return self._state[:, CURRENT].copy()

    @property
    def elapsed_s(self) -> NDArray[np.int32]:
        """int32[N]: seconds since the current action showed, or since the pending change began."""
        return self._state[:, ELAPSED_S].copy()

    @property
    def shown_phase(self) -> NDArray[np.int32]:
        """int32[N]: engine phase that each light shows."""
        return self._state[:, SHOWN].copy()

    def advance(self, actions: NDArray[np.int32], seconds: int) -> list[tuple[NDArray[np.int32] | None, int]]:
        """Apply ``actions`` (int32[N]) for ``seconds``: returns a list of (phases to set, seconds to step after it).

        Phases are int32 over all intersections of the engine, -1 = leave; None: nothing changes.
        """
        rows = np.full((seconds, self._engine_intersections), -1, np.int32)
        starts = np.empty(seconds, np.int32)
        runs = advance_lights(self._state, actions, *self.tables, rows, starts)
        begins = starts[:runs].tolist()
        ends = [*begins[1:], seconds]
        legs: list[tuple[NDArray[np.int32] | None, int]] = (
            [(rows[begin], end - begin) for begin, end in zip(begins, ends, strict=True)] if begins else []
        )
        quiet = begins[0] if begins else seconds
        return [(None, quiet), *legs] if quiet else legs
