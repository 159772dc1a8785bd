"""The compiled rule that nobody waits too long, second by second (see ``streetflow/control/service.py``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streetflow.kernels.jit import entry_point, helper
from streetflow.kernels.signals import CURRENT, PENDING, STATE_COLUMNS, TARGET

# Columns of a light's state behind those of ``signals.py``; sets of groups are bits. The last ones are the groups' clocks.
CALLED, DUE, SEEN_CURRENT, SEEN_PENDING, WISH, FIRST_CLOCK = range(STATE_COLUMNS, STATE_COLUMNS + 6)

# What the wish is worth: it holds; somebody else is asked for; it is out of date, since somebody else has been served.
HOLDS, OUTBID, OUT_OF_DATE = range(3)


class Service(NamedTuple):
    """Who calls and who must be served, at N lights with up to A actions and G groups; sets of groups are bits."""

    lanes: NDArray[np.int32]  # [L, 3]: light, lane of the engine, groups
    opens: NDArray[np.int32]  # [N, A]
    conflicts: NDArray[np.int32]  # [N, G]
    served: NDArray[np.int32]  # [N]
    limits_s: NDArray[np.int32]  # [N, 1 + G]: longest red, and each group's maximum green

    @property
    def columns(self) -> int:
        """Of a light's state, those of the lights' rule included."""
        return FIRST_CLOCK + self.conflicts.shape[1]

    def start(self, state: NDArray[np.int32]) -> None:
        """A light's state at the start: as if everybody had been waiting, action 0 green."""
        state[:, CALLED] = self.served & ~self.opens[:, 0]


@helper
def _in_conflict(groups, others, conflicts):  # type: ignore[no-untyped-def]
    """Of these groups, those in conflict with any of the others."""
    found = 0
    for group in range(conflicts.size):
        if groups >> group & 1 and conflicts[group] & others:
            found |= 1 << group
    return found


@helper
def _restart(light, groups, count):  # type: ignore[no-untyped-def]
    light[DUE] &= ~groups
    for group in range(count):
        if groups >> group & 1:
            light[FIRST_CLOCK + group] = 0


@helper
def _green(light, opens):  # type: ignore[no-untyped-def]
    """The groups that are green, or stay so through a change."""
    return opens[light[CURRENT]] & opens[light[TARGET]] if light[PENDING] else opens[light[CURRENT]]


@entry_point
def ask_service(  # type: ignore[no-untyped-def]
    state, actions, is_new, vehicles, lanes, opens, conflicts, served, limits_s, asked
):
    """Fill in asked[N], the actions to go for in the coming second: those that must come, else ``actions``.

    is_new: whether ``actions`` have just been decided. Once somebody who was due is being served, what had been decided before
    is out of date, and until the next decision nothing is wished.

    vehicles: by lane of the engine; lanes[L, 3]: light, lane, groups; opens[N, A], conflicts[N, G], served[N]: sets of groups;
    limits_s[N, 1 + G]: longest red, and each group's maximum green.
    """
    for i in range(state.shape[0]):
        light = state[i]
        now, opened = light[CURRENT], opens[i, light[CURRENT]]
        if light[WISH] == OUTBID:
            begins = (light[PENDING] and not light[SEEN_PENDING]) or now != light[SEEN_CURRENT]
            light[WISH] = OUT_OF_DATE if begins else HOLDS
        if is_new:
            light[WISH] = HOLDS
        if light[PENDING] and not light[SEEN_PENDING]:
            _restart(light, opened & ~opens[i, light[TARGET]], conflicts.shape[1])
        elif not light[PENDING] and now != light[SEEN_CURRENT]:
            _restart(light, opened & ~opens[i, light[SEEN_CURRENT]], conflicts.shape[1])
            light[CALLED] &= ~opened
        light[SEEN_CURRENT], light[SEEN_PENDING] = now, light[PENDING]
    for k in range(lanes.shape[0]):
        if vehicles[lanes[k, 1]] > 0:
            i = lanes[k, 0]
            state[i, CALLED] |= lanes[k, 2] & served[i] & ~_green(state[i], opens[i])
    for i in range(state.shape[0]):
        light = state[i]
        green = _green(light, opens[i])
        running = light[CALLED] | _in_conflict(green, light[CALLED], conflicts[i])
        for group in range(conflicts.shape[1]):
            clock = FIRST_CLOCK + group
            limit_s = limits_s[i, 0] if light[CALLED] >> group & 1 else limits_s[i, 1 + group]
            if not running >> group & 1:
                light[clock] = 0
            elif light[clock] >= limit_s:
                light[DUE] |= 1 << group
            else:
                light[clock] += 1
        asked[i] = actions[i] if light[WISH] != OUT_OF_DATE else light[CURRENT]
        if light[DUE] and not light[PENDING]:
            wanted = light[DUE] & light[CALLED]
            wanted |= _in_conflict(light[CALLED], light[DUE] & green, conflicts[i])
            for turn in range(1, opens.shape[1]):
                action = (light[CURRENT] + turn) % opens.shape[1]
                if opens[i, action] & wanted:
                    asked[i] = action
                    light[WISH] = max(light[WISH], OUTBID)
                    break
