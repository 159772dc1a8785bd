"""Small networks, demand and step lengths drawn by hypothesis from a fixed seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.helpers.small_network import demand, grid, write

STEP_LENGTHS_S = (0.25, 0.5, 1.0)  # binary fractions: times are exact sums


def drawn(max_examples: int) -> settings:
    """For tests that run an engine for each example; the same selection of tests draws the same examples."""
    slow = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    return settings(max_examples=max_examples, derandomize=True, database=None, deadline=None, suppress_health_check=slow)


@st.composite
def vehicles(draw: st.DrawFn) -> dict[str, float]:
    """Parameters of a vehicle kind, from a motorcycle's to a slow lorry's."""
    braking = draw(st.sampled_from([3.0, 4.5, 6.0]))
    return {
        "length": draw(st.sampled_from([2.0, 5.0, 12.0])),
        "width": 2.0,
        "maxPosAcc": draw(st.sampled_from([1.2, 2.0, 3.5])),
        "maxNegAcc": braking,
        "usualPosAcc": draw(st.sampled_from([1.0, 2.0])),
        "usualNegAcc": draw(st.sampled_from([2.0, braking])),
        "minGap": draw(st.sampled_from([0.5, 2.5])),
        "maxSpeed": draw(st.sampled_from([6.0, 11.11, 16.0])),
        "headwayTime": draw(st.sampled_from([1.0, 1.5, 2.0])),
    }


@dataclass(frozen=True)
class Case:
    """One simulation: the content of its files, and how it is run."""

    roadnet: Any
    flows: Any
    interval_s: float
    seed: int
    own_lights: bool
    signals: tuple[str, ...]

    def write(self, folder: Path, **config: Any) -> Path:
        """Write its files to a folder; returns the config's path."""
        lights = not self.own_lights
        return write(
            folder, self.roadnet, self.flows, interval=self.interval_s, seed=self.seed, rlTrafficLight=lights, **config
        )


@st.composite
def cases(draw: st.DrawFn, most_crossings: int = 4, vehicles_a_crossing: int = 30, steps: int = 100) -> Case:
    """A grid of 1 to 4 crossings, roads of one to three lanes, with streams and single vehicles of three kinds."""
    n_columns, n_rows = draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2)][: most_crossings + (most_crossings == 4)]))
    layout = draw(st.integers(0, 10**6))
    roadnet = grid(
        n_columns, n_rows, seed=layout, n_lanes=draw(st.integers(1, 3)), length_m=draw(st.sampled_from([50.0, 80.0, 140.0]))
    )
    interval_s = draw(st.sampled_from(STEP_LENGTHS_S))
    horizon_s = max(int(steps * interval_s / 2), 1)
    flows = demand(roadnet, vehicles_a_crossing * n_columns * n_rows, horizon_s, seed=layout)
    kinds = draw(st.lists(vehicles(), min_size=3, max_size=3))
    for number, flow in enumerate(flows):
        flow["vehicle"] = kinds[number % 3]
    signals = tuple(each["id"] for each in roadnet["intersections"] if not each["virtual"])
    return Case(roadnet, flows, interval_s, draw(st.integers(-(2**31), 2**31 - 1)), draw(st.booleans()), signals)
