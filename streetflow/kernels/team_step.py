"""The compiled entry points that step with a team of threads. They are compiled only where an engine has one.

One thread leads: it does what has to be done in order, and cuts the rest of a step (marking lane links that announce
vehicles, speeds and positions, leader searches: four fifths of the time) into parts. Leader and helpers take the parts one by
one. Each part writes only what belongs to its own drivables and vehicles, and reads only what no part writes, so that results
don't depend on who does what. A helper that comes late, or never, delays nobody: the leader takes what is left.

``team`` is an int64 array that the threads share. Its entry TICKET holds the kind of the work and the next part to be taken.
"""

from __future__ import annotations

from streetflow.kernels.action import FAULT_DEAD_END, OK, act_on
from streetflow.kernels.atomics import fetch_add, let_others_run, load, set_bits, store
from streetflow.kernels.bits import list_set_bits
from streetflow.kernels.crossing import clear_announcing, mark_announcing
from streetflow.kernels.entry import enter_lanes, plan_pending, run_flows
from streetflow.kernels.index import index
from streetflow.kernels.jit import entry_point, helper, subroutine
from streetflow.kernels.move import find_leaders_on, move
from streetflow.kernels.step import begin_step, end_step
from streetflow.kernels.tables import BROKEN, FAULT_SLOT, FLIP, N_RUNNING, unpack

PARTS = 32
TICKET = 0  # kind * KIND + the next part
DONE = 8  # parts done; entries that are written often lie 64 bytes apart
FIRST = 16  # [PARTS + 1]: each part's first entry of State.listed
MOVERS = FIRST + PARTS + 1  # [PARTS]: where its entries of State.mover begin ...
MOVERS_END = MOVERS + PARTS  # [PARTS]: ... and end
STUCK = MOVERS_END + PARTS  # [PARTS]: a vehicle that has come to a dead end, or -1
TEAM_SIZE = STUCK + PARTS
KIND = 1024  # above the parts that helpers may count beyond the last one
MARK, ACT, LEAD, QUIT = range(4)
NOTHING_YET = PARTS  # the ticket before the first work
_PATIENCE = 2000  # looks at the ticket before the processor is given to others


@helper
def _mark_link(s, link):  # type: ignore[no-untyped-def]
    """`crossing.mark_link` beside other threads."""
    word = index(s.bit_word[link])
    if s.announcing[word] & s.bit_mask[link] == 0:
        set_bits(s.announcing, word, s.bit_mask[link])


@subroutine
def _work(net_i, net_f, veh_i, veh_f, offsets, team, kind, part):  # type: ignore[no-untyped-def]
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    flip = s.counters[FLIP]
    distance = s.distance_1 if flip else s.distance_0
    new_distance = s.distance_0 if flip else s.distance_1
    first = team[FIRST + part]
    end = team[FIRST + part + 1]
    if kind == MARK:
        mark_announcing(s, first, end, distance, _mark_link)
    elif kind == ACT:
        speed = s.speed_1 if flip else s.speed_0
        new_speed = s.speed_0 if flip else s.speed_1
        blocker = s.blocker_1 if flip else s.blocker_0
        new_blocker = s.blocker_0 if flip else s.blocker_1
        stuck, n_movers = act_on(
            s, first, end, team[MOVERS + part], distance, speed, blocker, new_distance, new_speed, new_blocker
        )
        team[STUCK + part] = stuck
        team[MOVERS_END + part] = n_movers
    else:
        find_leaders_on(s, first, end, new_distance)


@helper
def _do_all(net_i, net_f, veh_i, veh_f, offsets, team, kind):  # type: ignore[no-untyped-def]
    """The leader's side of a work: hand it out, take parts, wait until all are done."""
    store(team, DONE, 0)
    store(team, TICKET, kind * KIND)
    while True:
        part = fetch_add(team, TICKET) % KIND
        if part >= PARTS:
            break
        _work(net_i, net_f, veh_i, veh_f, offsets, team, kind, part)
        fetch_add(team, DONE)
    looks = 0
    while load(team, DONE) < PARTS:
        looks += 1
        if looks > _PATIENCE:
            let_others_run()


@entry_point
def help_team(net_i, net_f, veh_i, veh_f, offsets, team):  # type: ignore[no-untyped-def]
    """Take parts of the team's work until it has none any more."""
    looks = 0
    while True:
        ticket = load(team, TICKET)
        if ticket // KIND == QUIT:
            return
        if ticket % KIND >= PARTS:
            looks += 1
            if looks > _PATIENCE:
                let_others_run()
            continue
        looks = 0
        ticket = fetch_add(team, TICKET)
        if ticket // KIND != QUIT and ticket % KIND < PARTS:
            _work(net_i, net_f, veh_i, veh_f, offsets, team, ticket // KIND, ticket % KIND)
            fetch_add(team, DONE)


@helper
def _cut_by_vehicles(s, n_occupied, team):  # type: ignore[no-untyped-def]
    """Parts of listed[:n_occupied] with about as many vehicles each."""
    part = 0
    seen = 0
    for i in range(n_occupied):
        while part < PARTS and seen * PARTS >= part * s.counters[N_RUNNING]:
            team[FIRST + part] = i
            team[MOVERS + part] = seen
            part += 1
        seen += s.n_vehicles[index(s.listed[i])]
    while part < PARTS:
        team[FIRST + part] = n_occupied
        team[MOVERS + part] = seen
        part += 1
    team[FIRST + PARTS] = n_occupied


@helper
def _cut_evenly(n_occupied, team):  # type: ignore[no-untyped-def]
    for part in range(PARTS + 1):
        team[FIRST + part] = n_occupied * part // PARTS


@helper
def _join_movers(s, team):  # type: ignore[no-untyped-def]
    """(vehicle at a dead end or -1, number of movers), with the parts' entries of State.mover one behind the other."""
    n_movers = 0
    for part in range(PARTS):
        if team[STUCK + part] >= 0:
            return team[STUCK + part], 0
        for i in range(team[MOVERS + part], team[MOVERS_END + part]):
            s.mover[n_movers] = s.mover[i]
            s.mover_path_index[n_movers] = s.mover_path_index[i]
            s.mover_from[n_movers] = s.mover_from[i]
            s.mover_to[n_movers] = s.mover_to[i]
            n_movers += 1
    return -1, n_movers


@helper
def _one_step(net_i, net_f, veh_i, veh_f, offsets, team):  # type: ignore[no-untyped-def]
    """`step.one_step` by the team."""
    s = unpack(net_i, net_f, veh_i, veh_f, offsets)
    fault = begin_step(s, 1, 0)
    if fault != OK:
        return fault
    flip = s.counters[FLIP]
    distance = s.distance_1 if flip else s.distance_0
    new_distance = s.distance_0 if flip else s.distance_1
    new_speed = s.speed_0 if flip else s.speed_1
    run_flows(s)
    plan_pending(s)
    enter_lanes(s, distance)
    _cut_by_vehicles(s, list_set_bits(s.occupied, s.listed), team)
    clear_announcing(s)
    _do_all(net_i, net_f, veh_i, veh_f, offsets, team, MARK)
    _do_all(net_i, net_f, veh_i, veh_f, offsets, team, ACT)
    stuck, n_movers = _join_movers(s, team)
    if stuck >= 0:
        s.counters[FAULT_SLOT] = stuck
        s.counters[BROKEN] = 1
        return FAULT_DEAD_END
    move(s, n_movers, new_distance, new_speed)
    _cut_evenly(list_set_bits(s.occupied, s.listed), team)
    _do_all(net_i, net_f, veh_i, veh_f, offsets, team, LEAD)
    end_step(s)
    return OK


@entry_point
def team_steps(net_i, net_f, veh_i, veh_f, offsets, team, n_steps):  # type: ignore[no-untyped-def]
    """`step.step_many` by the team: int64[TEAM_SIZE], with NOTHING_YET as its ticket. At the end its helpers go."""
    fault = OK
    for _ in range(n_steps):
        fault = _one_step(net_i, net_f, veh_i, veh_f, offsets, team)
        if fault != OK:
            break
    store(team, TICKET, QUIT * KIND)
    return fault
