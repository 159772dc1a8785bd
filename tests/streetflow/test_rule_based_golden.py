"""FixedTime, MaxPressure and SOTL against the paper's released experiment on the real CityFlow, all 90 rows."""

from __future__ import annotations

import csv

import pytest

from streetflow.control.controllers import CONTROLLERS
from streetflow.control.environment import Environment
from streetflow.networks.catalogue import HORIZONS_S, RUN_SEEDS, Network
from tests.helpers.shared_data import DATASETS, GOLDEN, needs_shared

TOLERANCE = 1e-6
TABLE = GOLDEN / "rule_based.csv"
ROWS = list(csv.DictReader(TABLE.read_text().splitlines())) if TABLE.is_file() else []


def data_set(name: str) -> Network:
    folder = DATASETS / name
    flows = tuple(folder / f"flow_{k}.json" for k in range(10))
    return Network(name, folder / "roadnet.json", flows, HORIZONS_S[name])


@needs_shared
def test_the_table_holds_all_ninety_rows() -> None:
    assert len({(row["model"], row["network"], row["flow"]) for row in ROWS}) == 90


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']}-{row['network']}-{row['flow']}")
def test_row(row: dict[str, str]) -> None:
    flow = int(row["flow"])
    assert int(row["seed"]) == RUN_SEEDS[flow]
    environment = Environment(data_set(row["network"]), flow, clearance="hold")
    controller = CONTROLLERS[row["model"]]()
    environment.reset()
    controller.reset(environment)
    done = False
    while not done:
        _, _, done = environment.step(controller.act(environment))
    assert environment.average_travel_time_s() == pytest.approx(float(row["average_travel_time_s"]), abs=TOLERANCE)
    assert environment.throughput_veh_per_min() == pytest.approx(float(row["throughput_veh_per_min"]), abs=TOLERANCE)
