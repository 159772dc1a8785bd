"""What is random by an engine's seed (docs/engine.md), and what isn't."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from streetflow import Engine
from streetflow.kernels import tables as t
from tests.helpers.small_network import CAR, demand, grid, line, write


def test_the_seed_draws_entry_lanes_and_priorities_but_no_demand(tmp_path: Path) -> None:
    net = grid(2, 1, n_lanes=3)
    engines = [Engine(write(tmp_path / str(seed), net, demand(net, 60, 200), seed=seed)) for seed in (1, 2)]
    lanes: list[list[tuple[str, str]]] = [[], []]
    for engine, entered in zip(engines, lanes, strict=True):
        for _ in range(250):
            engine.next_step()
            vehicles = {name for name, _ in entered}
            for lane, names in engine.get_lane_vehicles().items():
                entered += [(name, lane) for name in names if name not in vehicles]
    one, two = engines
    priorities = [set(each.state.priority[each.state.status >= t.PENDING].tolist()) for each in engines]
    assert priorities[0] and priorities[0].isdisjoint(priorities[1])
    created = [sorted(zip(each.trips().ids, each.trips().created_s.tolist(), strict=True)) for each in engines]
    assert created[0] == created[1] and len(created[0]) > 60
    first = [dict(reversed(entered)) for entered in lanes]  # the first lane of each
    both = first[0].keys() & first[1].keys()
    roads = [{name: lane.rpartition("_")[0] for name, lane in each.items()} for each in first]
    assert all(roads[0][name] == roads[1][name] for name in both)
    assert 0 < sum(first[0][name] != first[1][name] for name in both) < len(both)
    assert one.demand.routes == two.demand.routes


def test_where_nothing_is_to_choose_every_seed_gives_the_same_run(tmp_path: Path) -> None:
    flow = {"vehicle": CAR, "route": ["in_0", "out"], "interval": 3.0, "startTime": 0, "endTime": -1}
    engines = [Engine(write(tmp_path / str(seed), line(), [flow], seed=seed)) for seed in (1, 2)]
    for _ in range(200):
        for engine in engines:
            engine.next_step()
        assert engines[0].get_vehicle_distance() == engines[1].get_vehicle_distance()


def test_reset_continues_the_generator_unless_it_is_seeded(tmp_path: Path) -> None:
    net = grid(n_lanes=3)
    engine = Engine(write(tmp_path, net, demand(net, 40, 60)))

    def run() -> np.ndarray:
        engine.step_many(100)
        return np.sort(engine.state.priority[engine.state.status >= t.PENDING])

    first = run()
    engine.reset()
    assert set(run().tolist()).isdisjoint(first.tolist())
    engine.reset(True)
    np.testing.assert_array_equal(run(), first)
