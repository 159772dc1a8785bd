"""Short lanes at lights: the lanes before them count as part of them, on SUMO."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streetflow.networks.write import write_network
from streetflow.roadnet.network_tables import load_network
from streetflow.sumo.engine import SumoEngine
from streetflow.sumo.importing import import_scenario
from streetflow.sumo.scenario import read_scenario
from tests.helpers.run_cli import tinylight
from tests.helpers.sumo_files import CONFIG, needs_sumo


@pytest.mark.parametrize("least_m", [0.0, 108.0])
def test_long_lanes_have_no_further_parts(least_m: float) -> None:
    imported = import_scenario(read_scenario([CONFIG]), approach_m=least_m)
    assert json.loads(imported.files["sumo.json"])["approaches"] == []


def test_what_leads_to_a_short_lane_is_part_of_it(tmp_path: Path) -> None:
    """But not what leads elsewhere, too (the lane `lane_fork_0`), nor what ends at a light."""
    tinylight("import-sumo", str(CONFIG), str(tmp_path / "two"), "--approach", "110")
    binding = json.loads((tmp_path / "two" / "sumo.json").read_bytes())
    found = {part["lane"]: (binding["lanes"][part["number"]], part["before_m"]) for part in binding["approaches"]}
    before_m = pytest.approx(122.8 + 11.2, abs=0.1)
    assert found == {
        "fork_A_1": ("fork_A_1", before_m),
        "west_fork_0": ("fork_A_1", 0.0),
        "fork_A_2": ("fork_A_2", before_m),
        "west_fork_1": ("fork_A_2", 0.0),
    }
    lengths_m = dict(zip(binding["lanes"], binding["lane_lengths_m"], strict=True))
    assert lengths_m["fork_A_1"] == pytest.approx(108.8 + 122.8 + 11.2, abs=0.1)


@needs_sumo
def test_sumo_counts_the_vehicles_of_both_on_the_lane_at_the_light(tmp_path: Path) -> None:
    seen = []
    for name, least_m in (("plain", 0.0), ("approach", 110.0)):
        write_network(tmp_path / name, import_scenario(read_scenario([CONFIG]), approach_m=least_m).files)
        engine = SumoEngine(load_network(tmp_path / name / "roadnet.json"), tmp_path / name)
        lanes, counts = json.loads((tmp_path / name / "sumo.json").read_bytes())["lanes"], []
        for _ in range(30):
            engine.step_many(10)
            counts.append(dict(zip(lanes, engine.lane_vehicle_counts().tolist(), strict=True)))
        engine.close()
        seen.append(counts)
    before_count = 0
    for plain, whole in zip(*seen, strict=True):
        for lane, before in (("fork_A_1", "west_fork_0"), ("fork_A_2", "west_fork_1")):
            assert (whole.pop(lane), whole.pop(before)) == (plain.pop(lane) + plain[before], 0)
            before_count += plain.pop(before)
        assert whole == plain
    assert before_count > 0
