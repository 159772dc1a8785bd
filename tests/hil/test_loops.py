"""Loop detectors from simulated vehicles: what they count is what the engine counts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hil.light.loops import LOOP_M, Loops
from streetflow.control.environment import Environment
from streetflow.control.signal_groups import signal_plans
from streetflow.roadnet.network_tables import load_network

VEHICLE_M = 5.0


@pytest.fixture(scope="module", params=["crossing", "arterial"])
def drive(request: pytest.FixtureRequest) -> tuple[list[tuple[float, int, int]], Any, int]:
    """The network under random phases for ten minutes, or twenty with queues from light to light: edges in time, how often
    counts differed, and how many lanes; those that lead out, to the network's end, are among them."""
    environment = Environment(request.param, clearance="computed")
    environment.reset()
    engine = environment.engine
    plans = signal_plans(load_network(environment.network.roadnet_file))
    lanes = sorted({lane for each in environment.intersections for lane in (*each.in_lanes, *each.out_lanes)})
    loops, draw = Loops(environment, lanes), np.random.default_rng(3)
    counts, edges, wrong = np.zeros(len(lanes), int), [], []
    for second in range(600 * min(len(plans), 2)):
        if second % 15 == 0:
            phases = np.full(len(engine.intersection_ids), -1, np.int32)
            for plan in plans:
                phases[plan.number] = draw.choice(plan.phase_numbers)
            engine.set_phases(phases)
        engine.step_many(1)
        for edge in loops.step():
            edges.append((second + edge.at_s, edge.loop, edge.level))
            counts[edge.loop // 2] += edge.level * (1 if edge.loop % 2 == 0 else -1)
        wrong.append(int((counts != engine.lane_vehicle_counts()[lanes]).sum()))
    return edges, wrong, len(lanes)


def test_entries_less_departures_are_the_engines_counts_in_every_second(drive: Any) -> None:
    edges, wrong, _ = drive
    assert sum(level for _, loop, level in edges if loop % 2 == 0) > 100
    assert sum(level for _, loop, level in edges if loop % 2 == 1) > 100
    assert set(wrong) == {0}


def test_each_loop_turns_on_and_off_in_turn_and_leaves_a_gap_between_vehicles(drive: Any) -> None:
    edges, _, lanes = drive
    for loop in range(2 * lanes):
        own = [(at_s, level) for at_s, number, level in edges if number == loop]
        assert [level for _, level in own] == [1 - n % 2 for n in range(len(own))]
        assert all(earlier[0] <= later[0] for earlier, later in pairwise(own))
        gaps_s = [on[0] - off[0] for off, on in zip(own[1::2], own[2::2], strict=False)]
        lasted_s = [off[0] - on[0] for on, off in zip(own[::2], own[1::2], strict=False)]
        assert all(each_s > 0.03 for each_s in gaps_s + lasted_s), "two ticks of debounce must fit"


def test_a_vehicle_that_drives_freely_covers_a_loop_for_its_length_and_the_loops_at_its_speed(drive: Any) -> None:
    edges, *_ = drive
    on, lasted_s = {}, []
    for at_s, loop, level in edges:
        if level:
            on[loop] = at_s
        elif loop % 2 == 0:
            lasted_s.append(at_s - on[loop])
    fastest_mps = 16.67
    assert min(lasted_s) >= (VEHICLE_M + LOOP_M) / fastest_mps - 0.05
    assert np.median(lasted_s) < 3.0, "most have just entered the network, from standing"
