"""FixedTime, MaxPressure and SOTL against the paper's released experiment on the real CityFlow, all 90 rows."""

from __future__ import annotations

import csv

import pytest

from streetflow.control.controllers import CONTROLLERS, run
from streetflow.control.environment import Environment
from streetflow.networks.catalogue import RUN_SEEDS, find_network
from tests.helpers.golden import HERE
from tests.helpers.shared_data import needs_data_set

TOLERANCE = 1e-6
ROWS = list(csv.DictReader((HERE / "rule_based.csv").read_text().splitlines()))


def identity(row: dict[str, str]) -> str:
    return f"{row['model']}-{row['network']}-{row['flow']}"


def test_the_table_holds_all_ninety_rows() -> None:
    assert len({identity(row) for row in ROWS}) == 90


@pytest.mark.parametrize("row", [pytest.param(row, id=identity(row), marks=needs_data_set(row["network"])) for row in ROWS])
def test_row(row: dict[str, str]) -> None:
    flow = int(row["flow"])
    assert int(row["seed"]) == RUN_SEEDS[flow]
    controller = CONTROLLERS[row["model"]]()
    environment = Environment(find_network(row["network"]), flow, features=controller.features, clearance="hold")
    run(environment, controller)
    assert environment.average_travel_time_s() == pytest.approx(float(row["average_travel_time_s"]), abs=TOLERANCE)
    assert environment.throughput_veh_per_min() == pytest.approx(float(row["throughput_veh_per_min"]), abs=TOLERANCE)
