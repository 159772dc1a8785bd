"""The compiled planner: play each action of each light to a horizon, on a copy of the engine's state.

One call plans one decision of all lights, one light after another. Each action of a light is played for one decision while
the lights before it do what they have chosen and those after it what the base policy wishes; then the base policy drives all
lights until the horizon. An action's cost is the time that all vehicles spend until then, running or waiting to enter, in
vehicle-seconds. (Bertsekas, "Multiagent rollout algorithms and reinforcement learning", 2021.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.kernels.network import network_action
from streetflow.kernels.jit import entry_point, helper
from streetflow.kernels.measure import lane_speed_sums, lane_waiting_times
from streetflow.kernels.observe import observe_cells
from streetflow.kernels.observe_vehicles import compare_passing, count_on_lanes
from streetflow.kernels.service import Service, ask_service
from streetflow.kernels.signals import CURRENT, advance_lights
from streetflow.kernels.sources import CHANGED, OWN_COUNT
from streetflow.kernels.step import OK, set_phases, step_many
from streetflow.kernels.tables import (
    DELTA,
    FIELDS,
    FINISHED_TIME,
    FLIP,
    N_RUNNING,
    PENDING,
    RUNNING,
    STEP,
    TIDY_STEP,
    WAITING,
    State,
    unpack,
)
from streetflow.kernels.vehicles import running_vehicles

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
NEVER = 2_147_483_647

# Entries of `Eyes.needs`: what the base policy looks at beside counts and lights.
WAITING_TIME, SPEED, OWN, VEHICLES, PASSING = range(5)
# Entries of `Eyes.places`.
WIDTH, FIRST_OWN, FIRST_BY_VEHICLE, BY_VEHICLE_COUNT, FIRST_LINK = range(5)

_CHANGED_BY_A_STEP = (
    "counters", "reals", "rng", "priority_uses", "head", "tail", "n_vehicles", "n_waiting", "arrival_step", "arrival_after",
    "queue_head", "queue_tail", "occupied", "queued", "out_count", "is_open", "announcing", "phase_index", "phase_remaining",
    "flow_counter", "flow_credit", "flow_dropped", "active_flows",
)  # fmt: skip
_N_VEHICLES, _N_WAITING = (2 * State._fields.index(name) for name in ("n_vehicles", "n_waiting"))  # of offsets
_BY_SLOT = tuple(field.name for field in FIELDS if field.size == "slots" and not field.name.startswith("mover"))


class Lights(NamedTuple):
    """What the lights' rule needs (`streetflow/control/signals.py`)."""

    numbers: Ints  # [N] in the engine
    phase_of_action: Ints  # [N, A]
    clearance_phases: Ints  # [N, A, A]
    clearance_s: Ints  # [N, A, A]
    least_green_s: Ints  # [N, A]
    action_counts: Ints  # [N]
    rows: Ints  # scratch [seconds of a decision, engine's intersections], all -1
    starts: Ints  # scratch [seconds of a decision]
    service: Service
    asked: Ints  # scratch [N]


class Eyes(NamedTuple):
    """The tables of the base policy's observation (`streetflow/control/observation.py`)."""

    needs: Ints
    places: Ints
    max_speed_mps: Floats
    lane_length_m: Floats
    first_action: Ints
    cells: Ints
    scales: Floats
    term_indices: Ints
    term_weights: Floats
    segments: Ints
    light_of_lane: Ints


class Sight(NamedTuple):
    """What one look writes, and what it remembers of the look before."""

    values: Floats  # the source vector
    seen: Ints  # [N * F * W + N]
    waiting_time_s: Floats  # [lanes]
    speed_sums_mps: Floats  # [lanes]
    last_action: Ints  # [N]
    drivable: Ints  # by vehicle
    serial: NDArray[np.int64]
    distance_m: Floats
    created_s: Floats
    light: Ints
    old_serial: NDArray[np.int64]
    old_created_s: Floats
    old_light: Ints
    old: NDArray[np.int64]  # vehicles then, and when, s
    table: Ints


class ToGo(NamedTuple):
    """What a vehicle's way is still worth, s: from the beginning of each drivable of a lane path to the path's end, and by
    metre of each drivable."""

    by_path: Floats  # [path]
    by_metre: Floats  # [drivables]


class Demand(NamedTuple):
    """Draws of the demand, one row a draw, one column a flow (`State.flow_...`); no rows: the flows as they are."""

    start_s: Ints
    end_s: Ints
    kind: Ints
    route: Ints
    order: Ints


class Scratch(NamedTuple):
    """Room for one plan. H: decisions to the horizon; S: draws of the demand, or 1."""

    light_state: Ints  # [N, columns of Signals.state]
    actions: Ints  # [N]
    current: Ints  # [N]
    trail: Floats  # [S, H]: vehicle-seconds spent by each decision's end
    best_trail: Floats
    base_s: Floats


@helper
def _copy_array(source, target):  # type: ignore[no-untyped-def]
    for i in range(source.size):
        target[i] = source[i]


@helper
def _copy_rows(source, target):  # type: ignore[no-untyped-def]
    for row in range(source.shape[0]):
        for k in range(source.shape[1]):
            target[row, k] = source[row, k]


def _make_copy_state() -> Any:
    lines = [f"    copy_array(s.{name}, w.{name})" for name in (*_CHANGED_BY_A_STEP, *_BY_SLOT)]
    names: dict[str, Any] = {"copy_array": _copy_array}
    exec("def copy_state(s, w):\n" + "\n".join(lines) + "\n", names)  # the table of fields is the only input
    return helper(names["copy_state"])


_copy_state = _make_copy_state()


@entry_point
def copy_blocks(net_i, net_f, veh_i, veh_f, to_net_i, to_net_f, to_veh_i, to_veh_f):  # type: ignore[no-untyped-def]
    _copy_array(net_i, to_net_i)
    _copy_array(net_f, to_net_f)
    _copy_array(veh_i, to_veh_i)
    _copy_array(veh_f, to_veh_f)


@entry_point
def restart(net_i, net_f, veh_i, veh_f, to_net_i, to_net_f, to_veh_i, to_veh_f, offsets):  # type: ignore[no-untyped-def]
    """Bring a copy of the blocks back to the original's state; static tables are not copied again."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    w = unpack(to_net_i, to_net_f, to_veh_i, to_veh_f, offsets)
    _copy_state(s, w)
    w.counters[TIDY_STEP] = NEVER


@entry_point
def spent_s(net_i, net_f, veh_i, veh_f, offsets, to_go):  # type: ignore[no-untyped-def]
    """Time that all vehicles have spent since their creation, finished or not, and what those under way have still to go, in
    vehicle-seconds.

    to_go: the tables for the latter; its ``by_path`` empty: nothing.
    """
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    steps, left_s = 0, 0.0
    distance_m = s.distance_1 if s.counters[FLIP] else s.distance_0
    for v in range(s.status.size):
        status = s.status[v]
        if status >= PENDING:
            steps += s.counters[STEP] - s.enter_step[v]
            if to_go.by_path.size > 0 and status >= WAITING:
                left_s += to_go.by_path[s.path_index[v]]
                if status == RUNNING:
                    left_s -= distance_m[v] * to_go.by_metre[s.path[s.path_index[v]]]
    return s.reals[FINISHED_TIME] + steps * s.reals[DELTA] + left_s


@entry_point
def play(net_i, net_f, veh_i, veh_f, offsets, lights, light_state, actions):  # type: ignore[no-untyped-def]
    """One decision of all lights. Returns OK or a step's fault."""
    serves, fault = lights.service.lanes.shape[0] > 0, OK
    seconds = 1 if serves else lights.starts.size  # at a time
    for turn in range(lights.starts.size // seconds):
        asked = actions
        if serves:
            s, served = unpack(net_i, net_f, veh_i, veh_f, offsets), lights.service
            ask_service(
                light_state, actions, turn == 0, s.n_vehicles, served.lanes, served.opens, served.conflicts, served.served,
                served.limits_s, lights.asked,
            )  # fmt: skip
            asked = lights.asked
        runs = advance_lights(
            light_state, asked, lights.numbers, lights.phase_of_action, lights.clearance_phases,
            lights.clearance_s, lights.least_green_s, lights.rows[:seconds], lights.starts[:seconds],
        )  # fmt: skip
        second = 0
        for run in range(runs + 1):
            end = lights.starts[run] if run < runs else seconds
            if end > second and fault == OK:
                fault = step_many(net_i, net_f, veh_i, veh_f, offsets, end - second)
            if run < runs:
                row = lights.rows[end]
                if fault == OK:
                    set_phases(net_i, net_f, veh_i, veh_f, offsets, row)
                for i in range(row.size):
                    row[i] = -1
            second = end
    return fault


@entry_point
def look(net_i, net_f, veh_i, veh_f, offsets, eyes, sight, current):  # type: ignore[no-untyped-def]
    """The base policy's observation of a state, into ``sight.seen``."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    lanes = eyes.max_speed_mps.size
    first_own = eyes.places[FIRST_OWN]
    if eyes.needs[WAITING_TIME]:
        lane_waiting_times(net_i, net_f, veh_i, veh_f, offsets, sight.waiting_time_s)
    if eyes.needs[SPEED]:
        lane_speed_sums(net_i, net_f, veh_i, veh_f, offsets, sight.speed_sums_mps)
    if eyes.needs[OWN]:
        for i in range(current.size):
            sight.values[first_own + OWN_COUNT * i + CHANGED] = 1.0 if current[i] != sight.last_action[i] else 0.0
            sight.last_action[i] = current[i]
    if eyes.needs[VEHICLES] or eyes.needs[PASSING]:
        count = s.counters[N_RUNNING]
        drivable, serial = sight.drivable[:count], sight.serial[:count]
        distance_m, created_s = sight.distance_m[:count], sight.created_s[:count]
        running_vehicles(net_i, net_f, veh_i, veh_f, offsets, drivable, serial, distance_m, created_s)
        first, entries = eyes.places[FIRST_BY_VEHICLE], eyes.places[BY_VEHICLE_COUNT]
        for k in range(first, first + entries):
            sight.values[k] = 0.0
        count_on_lanes(drivable, distance_m, eyes.lane_length_m, eyes.places[FIRST_LINK], eyes.segments, sight.values)
        if eyes.needs[PASSING]:
            own = sight.values[first_own : first_own + OWN_COUNT * current.size]
            _passing(s, eyes, sight, count, own)
    vehicles, waiting = net_i[offsets[_N_VEHICLES] :][:lanes], net_i[offsets[_N_WAITING] :][:lanes]
    observe_cells(
        vehicles, waiting, sight.waiting_time_s, sight.speed_sums_mps, eyes.max_speed_mps, current,
        eyes.first_action, sight.values, eyes.cells, eyes.scales, eyes.term_indices, eyes.term_weights, sight.seen,
    )  # fmt: skip


@helper
def _passing(s, eyes, sight, count, own):  # type: ignore[no-untyped-def]
    """PASSED and PASSED_TRAVEL_TIME since the last look, and what the next one compares with."""
    lanes = eyes.light_of_lane.size
    for n in range(count):
        sight.light[n] = eyes.light_of_lane[sight.drivable[n]] if sight.drivable[n] < lanes else -1
    for k in range(sight.table.size):
        sight.table[k] = -1
    before = sight.old[0]
    compare_passing(
        sight.old_serial[:before], sight.old_created_s[:before], sight.old_light[:before],
        sight.serial[:count], sight.created_s[:count], sight.light[:count], sight.table, float(sight.old[1]), own,
    )  # fmt: skip
    for n in range(count):
        sight.old_serial[n] = sight.serial[n]
        sight.old_created_s[n] = sight.created_s[n]
        sight.old_light[n] = sight.light[n]
    sight.old[0] = count
    sight.old[1] = int(s.counters[STEP] * s.reals[DELTA])


@entry_point
def wish(lights, eyes, networks, seen, actions):  # type: ignore[no-untyped-def]
    """The base policy's actions: its network's, or without one the first action with the most of feature 0."""
    width = eyes.places[WIDTH]
    for i in range(actions.size):
        if networks.shape.shape[0] > 0:
            actions[i] = network_action(networks, i, seen, i * width)
        else:
            best = 0
            for a in range(1, lights.action_counts[i]):
                if seen[i * width + a] > seen[i * width + best]:
                    best = a
            actions[i] = best


@entry_point
def expect(net_i, net_f, veh_i, veh_f, offsets, demand, draw):  # type: ignore[no-untyped-def]
    """Let the copy's flows be those of one draw."""
    w = unpack(net_i, net_f, veh_i, veh_f, offsets)
    for f in range(w.flow_start.size):
        w.flow_start[f] = demand.start_s[draw, f]
        w.flow_end[f] = demand.end_s[draw, f]
        w.flow_kind[f] = demand.kind[draw, f]
        w.flow_route[f] = demand.route[draw, f]
        w.flow_order[f] = demand.order[draw, f]


@entry_point
def roll_out(  # type: ignore[no-untyped-def]
    net_i, net_f, veh_i, veh_f, offsets,
    lights, light_state, eyes, sight, networks, to_go, actions, current, now_s, cut_s, base_s, trail,
):  # fmt: skip
    """Play ``actions`` for one decision and the base policy until the horizon.

    trail[H]: vehicle-seconds spent, and still to go, by each decision's end. The rollout ends where that is more than cut_s
    above base_s; the rest is assumed to go as the base's. Returns OK or a step's fault.
    """
    n_lights, horizon = actions.size, trail.size
    for decision in range(horizon):
        if decision > 0:
            for i in range(n_lights):
                current[i] = light_state[i, CURRENT]
            look(net_i, net_f, veh_i, veh_f, offsets, eyes, sight, current)
            wish(lights, eyes, networks, sight.seen, actions)
        fault = play(net_i, net_f, veh_i, veh_f, offsets, lights, light_state, actions)
        if fault != OK:
            return fault
        trail[decision] = spent_s(net_i, net_f, veh_i, veh_f, offsets, to_go) - now_s
        behind_s = trail[decision] - base_s[decision]
        if behind_s > cut_s:
            for later in range(decision + 1, horizon):
                trail[later] = base_s[later] + behind_s
            break
    return OK


@entry_point
def plan(  # type: ignore[no-untyped-def]
    net_i, net_f, veh_i, veh_f, to_net_i, to_net_f, to_veh_i, to_veh_f, offsets,
    light_state, lights, eyes, sight, networks, to_go, demand, order, wishes, cut_s, costs_s, decided, scratch,
):  # fmt: skip
    """Plan one decision of the lights ``order``, one after another; the others do what the base policy wishes.

    Fills in costs_s[N, A], vehicle-seconds from now to the horizon, and decided[N]. With draws of the demand each action is
    played on each of them, and its cost is the mean. Returns OK or a step's fault.
    """
    n_lights, draws, horizon = decided.size, scratch.trail.shape[0], scratch.trail.shape[1]
    actions, current, state = scratch.actions, scratch.current, scratch.light_state
    now_s = spent_s(net_i, net_f, veh_i, veh_f, offsets, to_go)
    copy_blocks(net_i, net_f, veh_i, veh_f, to_net_i, to_net_f, to_veh_i, to_veh_f)
    for i in range(n_lights):
        decided[i] = wishes[i]
    for place in range(order.size):
        light = order[place]
        wished, best, best_s = wishes[light], wishes[light], np.inf
        for turn in range(lights.action_counts[light]):
            action = (wished + turn) % lights.action_counts[light]  # the base's own first
            cost_s = 0.0
            for draw in range(draws):
                if turn == 0 and place > 0:  # played already: it is what the lights before have settled on
                    cost_s += scratch.base_s[draw, horizon - 1]
                    continue
                restart(net_i, net_f, veh_i, veh_f, to_net_i, to_net_f, to_veh_i, to_veh_f, offsets)
                if demand.start_s.shape[0] > 0:
                    expect(to_net_i, to_net_f, to_veh_i, to_veh_f, offsets, demand, draw)
                for i in range(n_lights):
                    for k in range(light_state.shape[1]):
                        state[i, k] = light_state[i, k]
                    actions[i] = decided[i]
                    current[i] = light_state[i, CURRENT]
                    sight.last_action[i] = current[i]
                actions[light] = action
                if eyes.needs[PASSING]:
                    look(to_net_i, to_net_f, to_veh_i, to_veh_f, offsets, eyes, sight, current)
                fault = roll_out(
                    to_net_i, to_net_f, to_veh_i, to_veh_f, offsets, lights, state, eyes, sight, networks, to_go, actions,
                    current, now_s, cut_s if turn > 0 else np.inf, scratch.base_s[draw], scratch.trail[draw],
                )  # fmt: skip
                if fault != OK:
                    return fault
                cost_s += scratch.trail[draw, horizon - 1]
            costs_s[light, action] = cost_s / draws
            if cost_s < best_s:
                best, best_s = action, cost_s
                if turn > 0 or place == 0:
                    _copy_rows(scratch.trail, scratch.best_trail)
            if turn == 0 and place == 0:
                _copy_rows(scratch.trail, scratch.base_s)
        decided[light] = best
        if best != wished:
            _copy_rows(scratch.best_trail, scratch.base_s)
    return OK
