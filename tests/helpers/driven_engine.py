"""An engine driven by changing lights, and all that it says of its vehicles, for tests of its interface."""

from __future__ import annotations

import numpy as np

from streetflow import Engine

SIGNAL = "i_0_0"  # of `small_network.grid`
ROUTE = ["r_-1_0_0", "r_0_0_0"]


def everything(engine: Engine) -> tuple[object, ...]:
    return (
        engine.get_vehicles(include_waiting=True),
        engine.get_vehicle_speed(),
        engine.get_vehicle_distance(),
        engine.get_lane_vehicles(),
        engine.get_average_travel_time(),
        engine.get_current_time(),
        engine.finished_vehicle_count,
        engine.phase_indices.tolist(),
        engine.lane_waiting_time_sums_s().tolist(),
    )


def run(engine: Engine, n_steps: int, seed: int = 0) -> list[tuple[object, ...]]:
    rng = np.random.RandomState(seed)
    seen = []
    for step in range(n_steps):
        if step % 10 == 0:
            engine.set_tl_phase(SIGNAL, int(rng.randint(8)))
        engine.next_step()
        seen.append(everything(engine))
    return seen
