"""Renumbering vehicles changes where they are in memory, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from streetflow import Engine
from streetflow.engine import tidy
from streetflow.kernels import tables as t
from tests.helpers.small_network import demand, grid, write


@pytest.fixture(params=[False, True], ids=["keeping lanes", "changing lanes"])
def config(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    roadnet = grid(3, 2, seed=8, length_m=250)
    flows = demand(roadnet, 160, 200, seed=8)
    return write(tmp_path, roadnet, flows, seed=3, rlTrafficLight=False, laneChange=request.param)


def seen(engine: Engine) -> tuple[object, ...]:
    vehicles = engine.get_vehicles(include_waiting=True)
    return (
        vehicles,
        engine.get_vehicle_speed(),
        engine.get_vehicle_distance(),
        engine.get_lane_vehicles(),
        [engine.get_leader(v) for v in vehicles],
        engine.get_average_travel_time(),
        engine.finished_vehicle_count,
        engine.lane_waiting_time_sums_s().tolist(),
    )


def test_any_order_of_slots_gives_the_same_run(config: Path) -> None:
    plain, shuffled = Engine(config), Engine(config)
    random = np.random.default_rng(0)
    for step in range(300):
        plain.next_step()
        shuffled.next_step()
        if step % 5 == 0:  # a difference stays one: the slots are shuffled after every step
            assert seen(plain) == seen(shuffled), f"step {step}"
        tidy.renumber(shuffled._tables, random.permutation(shuffled._tables.sizes["slots"]))
    assert plain.finished_vehicle_count > 100
    assert (plain._tables.state.serial.max() > plain.trips().flow.size) == plain.config.lane_change  # shadows were made


def test_a_large_network_is_tidied_by_itself(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, tidied = Engine(config), Engine(config)
    plain.step_many(700)
    monkeypatch.setattr(tidy, "_LEAST_SLOTS", 1)
    tidied.step_many(2 * tidy.TIDY_STEPS - 1)
    before = _scatter(tidied)
    tidied.step_many(2)
    assert _scatter(tidied) < before
    tidied.step_many(700 - 2 * tidy.TIDY_STEPS - 1)
    assert seen(plain) == seen(tidied)


def test_neighbours_get_neighbouring_slots(config: Path) -> None:
    engine = Engine(config)
    engine.step_many(150)
    tidy.renumber(engine._tables, tidy._by_place(engine._tables.state))
    state = engine._tables.state
    slots = []
    for drivable in range(state.head.size):
        v = int(state.head[drivable])
        while v >= 0:
            slots.append(v)
            v = int(state.behind[v])
    assert slots == list(range(engine.get_vehicle_count())) and len(slots) > 30
    assert (state.status[: len(slots)] == t.RUNNING).all()


def _scatter(engine: Engine) -> int:
    """How far apart in memory the vehicles of a list are, summed."""
    state = engine._tables.state
    running = np.flatnonzero(state.status == t.RUNNING)
    behind = state.behind[running]
    return int(np.abs(running - behind)[behind >= 0].sum())
