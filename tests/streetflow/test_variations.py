"""Varied demands: as many vehicles as they say, routes of the same entry roads, starts within bounds; same seed, same bytes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from streetflow.control.controllers import SOTL, run
from streetflow.control.environment import Environment
from streetflow.errors import FieldError, InputError
from streetflow.networks.catalogue import Network, find_network
from streetflow.networks.variations import COPY_SHIFT_S, UNCHANGED, Variation, Varied, varied_flow, varied_network
from tests.helpers.shared_data import needs_data_set

HORIZON_S = 1000


def vehicle(number: int, route: tuple[str, ...], start_s: int) -> dict[str, Any]:
    return {"vehicle": {"number": number}, "route": list(route), "interval": 1.0, "startTime": start_s, "endTime": start_s}


@pytest.fixture(scope="module")
def demand() -> list[dict[str, Any]]:
    """3,000 vehicles, three a second, on seven routes of two entry roads, and 100 that come after the horizon."""
    routes = [("a", "x"), ("a", "y"), ("a", "z"), ("a", "y", "w"), ("b", "x"), ("b", "y"), ("b", "x")]
    return [vehicle(k, routes[k % 7 if k % 3 else 0], k // 3) for k in range(3 * HORIZON_S + 100)]


def numbers(flow: list[dict[str, Any]]) -> Counter[int]:
    return Counter(each["vehicle"]["number"] for each in flow)


@pytest.mark.parametrize("volume", [0.3, 0.85, 1.0, 1.3, 2.0, 2.6])
def test_as_many_vehicles_as_the_volume_says(volume: float, demand: list[dict[str, Any]]) -> None:
    """Over many draws: the mean number is within four standard errors, as of thinning each vehicle by itself."""
    counts = [len(varied_flow(demand, Variation(volume), HORIZON_S, seed)) for seed in range(40)]
    left = volume - int(volume)
    error = (3 * HORIZON_S * left * (1 - left) / len(counts)) ** 0.5
    assert abs(mean(counts) - 3 * HORIZON_S * volume) <= 4 * error + 1e-6
    assert (stdev(counts) > 0) == (left > 0)


def test_every_vehicle_comes_as_often_as_any_other(demand: list[dict[str, Any]]) -> None:
    total = sum((numbers(varied_flow(demand, Variation(1.5), HORIZON_S, seed)) for seed in range(60)), Counter())
    each = [total[number] / 60 for number in range(3 * HORIZON_S)]
    assert sum(total.values()) == sum(total[number] for number in range(3 * HORIZON_S)), "none from after the horizon"
    assert (
        min(each) > 1.2
        and max(each) < 1.8
        and set(numbers(varied_flow(demand, Variation(1.5), HORIZON_S, 0)).values()) == {1, 2}
    )


def test_less_volume_leaves_out_of_what_more_has(demand: list[dict[str, Any]]) -> None:
    flows = [numbers(varied_flow(demand, Variation(volume), HORIZON_S, 7)) for volume in (0.5, 0.7, 1.0, 1.3, 1.5)]
    assert all(less <= more for less, more in pairwise(flows))
    few, many = (varied_flow(demand, Variation(volume), HORIZON_S, 7) for volume in (1.3, 1.5))
    keys = [Counter((each["vehicle"]["number"], each["startTime"]) for each in flow) for flow in (few, many)]
    assert keys[0] <= keys[1], "and an added vehicle starts at the same second"


def test_added_vehicles_start_near_the_one_that_they_copy(demand: list[dict[str, Any]]) -> None:
    flow = varied_flow(demand, Variation(2.0), HORIZON_S, 1)
    shifts = [each["startTime"] - each["vehicle"]["number"] // 3 for each in flow]
    assert shifts.count(0) >= 3 * HORIZON_S and max(shifts) == COPY_SHIFT_S and min(shifts) == -COPY_SHIFT_S
    assert abs(mean(shifts)) < 4 * 70 / (3 * HORIZON_S) ** 0.5


def test_starts_shift_within_their_bound_and_none_is_lost(demand: list[dict[str, Any]]) -> None:
    flow = varied_flow(demand, Variation(shift_s=60), HORIZON_S, 3)
    assert numbers(flow) == Counter(range(3 * HORIZON_S))
    shifts = {each["startTime"] - each["vehicle"]["number"] // 3 for each in flow}
    assert shifts == set(range(-60, 61))
    starts = [each["startTime"] for each in flow]
    assert starts == sorted(starts) and starts[0] >= 0 and starts[-1] < HORIZON_S
    assert all(each["endTime"] == each["startTime"] for each in flow)
    crowd = max(Counter(starts[:30] + starts[-30:]).values())
    assert crowd < 15, "no crowd at the beginning or the end"


def test_a_shift_beyond_the_run_stays_in_it() -> None:
    flow = varied_flow([vehicle(k, ("a", "b"), 5) for k in range(500)], Variation(shift_s=400), 10, 0)
    assert {each["startTime"] for each in flow} <= set(range(10))


def test_turns_change_the_shares_within_each_entry_road(demand: list[dict[str, Any]]) -> None:
    flow = varied_flow(demand, Variation(turns=0.5), HORIZON_S, 5)
    for old, new in zip(demand, flow, strict=False):
        assert new["vehicle"] == old["vehicle"] and new["startTime"] == old["startTime"] and new["route"][0] == old["route"][0]
    old_routes, new_routes = (Counter(tuple(each["route"]) for each in demands) for demands in (demand[: len(flow)], flow))
    assert new_routes.keys() == old_routes.keys()
    factors = {route: new_routes[route] / old_routes[route] for route in old_routes}
    assert max(factors.values()) > 1.1 and min(factors.values()) < 0.9
    assert all(1 / 3 - 0.1 < factor < 3.1 for factor in factors.values())  # 0.5 / 1.5 to 1.5 / 0.5, and chance


def test_turns_are_unbiased(demand: list[dict[str, Any]]) -> None:
    """Over many draws a route keeps its share, since all factors are drawn alike."""
    runs = [
        Counter(tuple(each["route"]) for each in varied_flow(demand, Variation(turns=0.3), HORIZON_S, k)) for k in range(60)
    ]
    usual = Counter(tuple(each["route"]) for each in demand[: 3 * HORIZON_S])
    for route, count in usual.items():
        assert mean(run[route] for run in runs) == pytest.approx(count, rel=0.1)


def test_vehicles_of_a_stream_are_varied_one_by_one() -> None:
    stream = [{"vehicle": {}, "route": ["a", "b"], "interval": 2.5, "startTime": 10, "endTime": -1}]
    flow = varied_flow(stream, Variation(0.5), HORIZON_S, 0)
    assert {each["startTime"] for each in flow} <= {10 + -(-5 * n // 2) for n in range(400)}
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


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    arterial = find_network("arterial")
    files = []
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        network = varied_network(arterial, [Varied(2, MUCH, 4), Varied(2, MUCH, 5), Varied(1)], tmp_path / folder)
        assert network == replace(arterial, flow_files=network.flow_files)
        files.append([file.read_bytes() for file in network.flow_files])
    assert files[0] == files[1] and len(set(files[0])) == 3


def travel_time_s(network: Network, flow: int) -> float:
    environment = Environment(network, flow, features=SOTL.features, seed=1)
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
def test_an_unchanged_demand_gives_the_same_run(name: str, tmp_path: Path) -> None:
    """Jinan's file isn't in order of its starts, and Atlanta's has vehicles after the horizon."""
    network = replace(find_network(name), horizon_s=900)
    again = varied_network(network, [Varied(3, UNCHANGED, 9)], tmp_path)
    assert travel_time_s(again, 0) == travel_time_s(network, 3)


def test_a_demand_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    crossing = find_network("crossing")
    flow = json.loads(crossing.flow_file(0).read_bytes())
    del flow[1]["interval"]
    bad = tmp_path / "flow_0.json"
    bad.write_text(json.dumps(flow))
    with pytest.raises(InputError) as error:
        varied_network(replace(crossing, flow_files=(bad,)), [Varied(0)], tmp_path / "out")
    assert str(bad) in str(error.value) and "interval" in str(error.value)
    with pytest.raises(InputError, match="no such flow"):
        varied_network(crossing, [Varied(99)], tmp_path)
