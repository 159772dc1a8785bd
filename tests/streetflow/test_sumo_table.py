"""scripts/sumo_table.py on the drawn scenario: the benchmark's delay, SUMO's actuated programs, a table that goes on."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from streetflow.networks.catalogue import network_of
from tests.helpers.places import ROOT
from tests.helpers.sumo_files import DRAWN, needs_sumo

pytestmark = needs_sumo


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with the drawn scenario as the only one and two seeds."""
    spec = importlib.util.spec_from_file_location("sumo_table", ROOT / "scripts" / "sumo_table.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    shutil.copytree(DRAWN, tmp_path / "datasets-sumo" / "two_lights")
    monkeypatch.setenv("TINYLIGHT_SHARED", str(tmp_path))
    monkeypatch.setenv("SUMO_TABLE_WORK", str(tmp_path / "work"))
    changes = {
        "NAMES": ("two_lights",),
        "SETTINGS": {"two_lights": ""},
        "SEEDS": (1, 2),
        "FILE": tmp_path / "sumo.json",
        "POLICIES": tmp_path / "policies",
        "RULES": {name: script.RULES[name] for name in (script.FIXED, script.SUMO_ACTUATED)},
    }
    for name, value in changes.items():
        monkeypatch.setattr(script, name, value)
    return script


def test_delay_is_time_lost_and_wait_to_enter_of_every_vehicle(table: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "trips.xml"
    trips = '<tripinfo id="a" timeLoss="4.5" departDelay="1"/><tripinfo id="b" departDelay="20" depart="-1"/>'
    file.write_text(f"<tripinfos>{trips}</tripinfos>")
    assert table.benchmark_delay(file) == (12.75, 2)


def test_the_table_counts_all_vehicles_and_goes_on_where_it_stopped(table: ModuleType, tmp_path: Path) -> None:
    table.main(["two_lights"])
    kept = json.loads((tmp_path / "sumo.json").read_bytes())
    rows = {(row["agent"], row["seed"]): row for row in kept["rows"]}
    assert set(rows) == {(agent, seed) for agent in table.RULES for seed in (1, 2)}
    for row in rows.values():
        assert row["trips"] == rows[table.FIXED, row["seed"]]["trips"] and 150 < row["arrived"] <= row["trips"]
        assert row["average_travel_time_s"] > row["delay_s"] > 0 < row["queue_vehicles"]
    assert rows[table.FIXED, 1]["delay_s"] != rows[table.SUMO_ACTUATED, 1]["delay_s"]
    text = (tmp_path / "sumo.md").read_text()
    assert "## two_lights" in text and "(the strongest)" in text

    gone = kept["rows"].pop()
    (tmp_path / "sumo.json").write_text(json.dumps(kept))
    table.main(["two_lights"])
    again = json.loads((tmp_path / "sumo.json").read_bytes())["rows"]
    assert again == [*kept["rows"], gone]


def test_both_engines_side_by_side(table: ModuleType, tmp_path: Path) -> None:
    table.main(["--sides", "two_lights"])
    rows = json.loads((tmp_path / "sumo.json").read_bytes())["sides"]
    assert [row["engine"] for row in rows] == ["builtin", "sumo"] and rows[0]["created_vehicles"] < rows[1]["created_vehicles"]
    text = (tmp_path / "sumo.md").read_text()
    assert f"| two_lights | builtin | {rows[0]['travel_time_s']:.2f} |" in text


def test_actuated_programs_keep_the_network_s_phases(table: ModuleType) -> None:
    fixed, actuated = table.Variant("two_lights").network(), table.Variant("two_lights", actuated=True).network()
    programs = (actuated.roadnet_file.parent / "sumo" / "actuated.add.xml").read_text()
    assert programs.count('type="actuated"') == 2 and programs.count('minDur="5"') == 5
    assert json.loads(actuated.roadnet_file.read_bytes()) == json.loads(fixed.roadnet_file.read_bytes())
    assert network_of(str(fixed.roadnet_file.parent)).decision_interval_s == table.Variant("two_lights").times_s[0] == 5
