"""The compiled rule of the lights, second by second (see ``streetflow/control/signals.py``)."""

from __future__ import annotations

from streetflow.kernels.jit import entry_point

# Columns of the state, one row an intersection.
CURRENT, TARGET, ELAPSED_S, PENDING, SHOWN = range(5)
STATE_COLUMNS = 5


@entry_point
def advance_lights(  # type: ignore[no-untyped-def]
    state, actions, numbers, phase_of_action, clearance_phases, clearance_s, least_green_s, rows, starts
):
    """Run the rule for ``len(rows)`` seconds; fill in the rows of seconds in which a light changes, return how many.

    clearance_s[N, A, A]: by the action that ends and the one that begins; least_green_s[N, A].
    """
    runs = 0
    for second in range(rows.shape[0]):
        changed = False
        for i in range(state.shape[0]):
            shown = state[i, SHOWN]
            if state[i, PENDING]:
                if state[i, ELAPSED_S] < clearance_s[i, state[i, CURRENT], state[i, TARGET]]:
                    state[i, ELAPSED_S] += 1
                else:
                    state[i, PENDING] = 0
                    state[i, CURRENT] = state[i, TARGET]
                    state[i, ELAPSED_S] = 1
                    shown = phase_of_action[i, state[i, TARGET]]
            elif actions[i] == state[i, CURRENT] or state[i, ELAPSED_S] < least_green_s[i, state[i, CURRENT]]:
                state[i, ELAPSED_S] += 1
            elif clearance_s[i, state[i, CURRENT], actions[i]] == 0:
                state[i, CURRENT] = actions[i]
                state[i, ELAPSED_S] = 1
                shown = phase_of_action[i, actions[i]]
            else:
                state[i, PENDING] = 1
                state[i, TARGET] = actions[i]
                state[i, ELAPSED_S] = 1
                between = clearance_phases[i, state[i, CURRENT], actions[i]]
                if between >= 0:
                    shown = between
            if shown != state[i, SHOWN]:
                state[i, SHOWN] = shown
                rows[second, numbers[i]] = shown
                changed = True
        if changed:
            starts[runs] = second
            runs += 1
    return runs
