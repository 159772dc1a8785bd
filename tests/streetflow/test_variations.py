"""Varied demands: as many vehicles as they say, routes of the same entry roads, starts within bounds; same seed, same flow."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from streetflow.control.controllers import SOTL, run
from streetflow.control.engines import make_engine
from streetflow.control.environment import Environment
from streetflow.errors import FieldError, InputError
from streetflow.networks.catalogue import Network, find_network
from streetflow.networks.variations import COPY_SHIFT_S, UNCHANGED, Variation, Varied, varied_flow
from streetflow.roadnet.flow import Flow, VehicleKind
from streetflow.roadnet.network_tables import load_network
from tests.helpers.shared_data import needs_data_set

HORIZON_S = 1000


def vehicle(number: int, route: tuple[int, ...], start_s: int) -> Flow:
    """One that is known by its length."""
    return Flow(VehicleKind(number + 1.0, *[1.0] * 8), route, 1.0, start_s, start_s)


def number(vehicle: Flow) -> int:
    return int(vehicle.kind.length_m) - 1


@pytest.fixture(scope="module")
def demand() -> Sequence[Flow]:
    """3,000 vehicles, three a second, on seven routes of two entry roads, and 100 that come after the horizon."""
    routes = [(0, 2), (0, 3), (0, 4), (0, 3, 5), (1, 2), (1, 3), (1, 2)]
    return [vehicle(k, routes[k % 7 if k % 3 else 0], k // 3) for k in range(3 * HORIZON_S + 100)]


def numbers(flow: Sequence[Flow]) -> Counter[int]:
    return Counter(number(each) for each in flow)


@pytest.mark.parametrize("volume", [0.3, 0.85, 1.0, 1.3, 2.0, 2.6])
def test_as_many_vehicles_as_the_volume_says(volume: float, demand: Sequence[Flow]) -> None:
    """Over many draws: the mean number is within four standard errors, as of thinning each vehicle by itself."""
    counts = [len(varied_flow(demand, Variation(volume), HORIZON_S, seed)) for seed in range(40)]
    left = volume - int(volume)
    error = (3 * HORIZON_S * left * (1 - left) / len(counts)) ** 0.5
    assert abs(mean(counts) - 3 * HORIZON_S * volume) <= 4 * error + 1e-6
    assert (stdev(counts) > 0) == (left > 0)


def test_every_vehicle_comes_as_often_as_any_other(demand: Sequence[Flow]) -> None:
    total = sum((numbers(varied_flow(demand, Variation(1.5), HORIZON_S, seed)) for seed in range(60)), Counter())
    each = [total[k] / 60 for k in range(3 * HORIZON_S)]
    assert sum(total.values()) == sum(total[k] for k in range(3 * HORIZON_S)), "none from after the horizon"
    assert (
        min(each) > 1.2
        and max(each) < 1.8
        and set(numbers(varied_flow(demand, Variation(1.5), HORIZON_S, 0)).values()) == {1, 2}
    )


def test_less_volume_leaves_out_of_what_more_has(demand: Sequence[Flow]) -> None:
    flows = [numbers(varied_flow(demand, Variation(volume), HORIZON_S, 7)) for volume in (0.5, 0.7, 1.0, 1.3, 1.5)]
    assert all(less <= more for less, more in pairwise(flows))
    few, many = (varied_flow(demand, Variation(volume), HORIZON_S, 7) for volume in (1.3, 1.5))
    keys = [Counter((number(each), each.start_s) for each in flow) for flow in (few, many)]
    assert keys[0] <= keys[1], "and an added vehicle starts at the same second"


def test_added_vehicles_start_near_the_one_that_they_copy(demand: Sequence[Flow]) -> None:
    flow = varied_flow(demand, Variation(2.0), HORIZON_S, 1)
    shifts = [each.start_s - number(each) // 3 for each in flow]
    assert shifts.count(0) >= 3 * HORIZON_S and max(shifts) == COPY_SHIFT_S and min(shifts) == -COPY_SHIFT_S
    assert abs(mean(shifts)) < 4 * 70 / (3 * HORIZON_S) ** 0.5


def test_starts_shift_within_their_bound_and_none_is_lost(demand: Sequence[Flow]) -> None:
    flow = varied_flow(demand, Variation(shift_s=60), HORIZON_S, 3)
    assert numbers(flow) == Counter(range(3 * HORIZON_S))
    shifts = {each.start_s - number(each) // 3 for each in flow}
    assert shifts == set(range(-60, 61))
    starts = [each.start_s for each in flow]
    assert starts == sorted(starts) and starts[0] >= 0 and starts[-1] < HORIZON_S
    assert all(each.end_s == each.start_s for each in flow)
    crowd = max(Counter(starts[:30] + starts[-30:]).values())
    assert crowd < 15, "no crowd at the beginning or the end"


def test_a_shift_beyond_the_run_stays_in_it() -> None:
    flow = varied_flow([vehicle(k, (0, 1), 5) for k in range(500)], Variation(shift_s=400), 10, 0)
    assert {each.start_s for each in flow} <= set(range(10))


def test_turns_change_the_shares_within_each_entry_road(demand: Sequence[Flow]) -> None:
    flow = varied_flow(demand, Variation(turns=0.5), HORIZON_S, 5)
    for old, new in zip(demand, flow, strict=False):
        assert new.kind == old.kind and new.start_s == old.start_s and new.anchors[0] == old.anchors[0]
    old_routes, new_routes = (Counter(each.anchors for each in demands) for demands in (demand[: len(flow)], flow))
    assert new_routes.keys() == old_routes.keys()
    factors = {route: new_routes[route] / old_routes[route] for route in old_routes}
    assert max(factors.values()) > 1.1 and min(factors.values()) < 0.9
    assert all(1 / 3 - 0.1 < factor < 3.1 for factor in factors.values())  # 0.5 / 1.5 to 1.5 / 0.5, and chance


def test_turns_are_unbiased(demand: Sequence[Flow]) -> None:
    """Over many draws a route keeps its share, since all factors are drawn alike."""
    runs = [Counter(each.anchors for each in varied_flow(demand, Variation(turns=0.3), HORIZON_S, k)) for k in range(60)]
    usual = Counter(each.anchors for each in demand[: 3 * HORIZON_S])
    for route, count in usual.items():
        assert mean(run[route] for run in runs) == pytest.approx(count, rel=0.1)


def test_vehicles_of_a_stream_are_varied_one_by_one() -> None:
    stream = [replace(vehicle(0, (0, 1), 10), interval_s=2.5, end_s=-1)]
    flow = varied_flow(stream, Variation(0.5), HORIZON_S, 0)
    assert {each.start_s for each in flow} <= {10 + -(-5 * n // 2) for n in range(400)}
    assert 140 < len(flow) < 260


@pytest.mark.parametrize(
    ("values", "field"),
    [({"volume": 0.0}, "volume"), ({"volume": float("nan")}, "volume"), ({"volume": 11.0}, "volume"), ({"turns": 1.5}, "turns"),
     ({"turns": -0.1}, "turns"), ({"shift_s": -1}, "shift_s")],
)  # fmt: skip
def test_values_that_make_no_demand(values: dict[str, Any], field: str) -> None:
    with pytest.raises(FieldError) as error:
        Variation(**values)
    assert error.value.field == field


MUCH = Variation(1.3, turns=0.5, shift_s=60)


def test_same_seed_same_vehicles() -> None:
    arterial = find_network("arterial")
    first, again = ([each.of(arterial) for each in (Varied(2, MUCH, 4), Varied(2, MUCH, 5), Varied(1))] for _ in range(2))
    assert first == again and len(set(first)) == 3


def travel_time_s(network: Network, demand: Sequence[Flow] | None) -> float:
    environment = Environment(network, 3, features=SOTL.features, seed=1, demand=demand)
    run(environment, SOTL())
    return environment.average_travel_time_s()


@pytest.mark.parametrize(
    "name",
    [
        "arterial",
        pytest.param("Jinan", marks=needs_data_set("Jinan")),
        pytest.param("Atlanta", marks=needs_data_set("Atlanta")),
    ],
)
def test_an_unchanged_demand_gives_the_same_run(name: str) -> None:
    """Jinan's file isn't in order of its starts, and Atlanta's has vehicles after the horizon."""
    network = replace(find_network(name), horizon_s=900)
    assert travel_time_s(network, Varied(3, UNCHANGED, 9).of(network)) == travel_time_s(network, None)


def test_an_environment_runs_the_demand_that_it_is_given() -> None:
    crossing = replace(find_network("crossing"), horizon_s=900)
    few = Varied(3, Variation(0.5), 1).of(crossing)
    assert travel_time_s(crossing, few) != travel_time_s(crossing, None)
    environment = Environment(crossing, 3, demand=few)
    assert environment.demand == few and len(Environment(crossing, 3).demand) > 1.5 * len(few)
    with pytest.raises(FieldError, match="file"):
        make_engine("cityflow", load_network(crossing.roadnet_file), crossing.flow_file(3), seed=0, demand=few)


def test_a_demand_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    crossing = find_network("crossing")
    flow = json.loads(crossing.flow_file(0).read_bytes())
    del flow[1]["interval"]
    bad = tmp_path / "flow_0.json"
    bad.write_text(json.dumps(flow))
    with pytest.raises(InputError) as error:
        Varied(0).of(replace(crossing, flow_files=(bad,)))
    assert str(bad) in str(error.value) and "interval" in str(error.value)
    with pytest.raises(InputError, match="no such flow"):
        Varied(99).of(crossing)
