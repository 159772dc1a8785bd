"""Exploring the safety shell: a small crossing is sound, and faults planted in tables and code are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware.generator.light.tables import header_of
from hil.build.project import project_root
from streetflow.control.signal_groups import SignalPlan, signal_plans
from streetflow.networks.generate_roadnet import Grid, roadnet
from streetflow.networks.write import json_bytes
from streetflow.roadnet.network_tables import load_network
from tests.firmware.shell.build import compile_program, programs_tables
from tests.firmware.shell.planted import planted_tables
from tests.firmware.shell.prove import run, unbounded

SHELL = project_root() / "firmware/src/light/shell.c"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SignalPlan:
    """Four phases: straights and lefts of either road, and right turns that are never red."""
    file = tmp_path_factory.mktemp("small") / "roadnet.json"
    file.write_bytes(json_bytes(roadnet(Grid(phases=4, lanes=2))))
    return signal_plans(load_network(file))[0]


@pytest.mark.parametrize("crosswalks", [False, True])
def test_all_states_of_a_small_crossing_keep_every_promise(small: SignalPlan, tmp_path: Path, crosswalks: bool) -> None:
    tables, judge = programs_tables(small, crosswalks)
    found = run(compile_program("explore", tables, judge, tmp_path))
    assert "fault" not in found and unbounded(found) == ""
    assert found["states"] > (20_000 if crosswalks else 5_000) and found["transitions"] > 5 * found["states"]
    bounds = [str(ticks) for ticks in found["due_to_green"] + found["due_to_yellow"]]
    driven = run(compile_program("hostile", tables, judge, tmp_path, sanitize=True), "200000", "1", *bounds)
    assert driven["fault"] == "fine" and driven["changes"] > 100
    assert 100 * small.longest_red_s < driven["longest_wait"], "the bound was put to the test"


@pytest.mark.parametrize("number", range(3))
def test_a_fault_planted_in_the_tables_is_found(small: SignalPlan, tmp_path: Path, number: int) -> None:
    name, values = list(planted_tables(small).items())[number]
    _, judge = programs_tables(small, False)
    found = run(compile_program("explore", header_of(values), judge, tmp_path), "--no-bounds")
    assert found.get("fault") == ("red clearance too short", "yellow time", "green too short")[number], name


@pytest.mark.parametrize(
    ("sound", "planted", "fault"),
    [
        ("if (!may_end(s)) {", "if (false) {", "green too short"),
        ("return SHELL_PHASE_ENDED | (change_is_over(s)", "return SHELL_PHASE_ENDED | (true", "skipped yellow"),
        ("!SHELL_REACHED(s->timer, shell_tables.yellow_ticks[group])", "!SHELL_REACHED(s->timer, 1)", "yellow time"),
        ("phase_groups(s->next) & ~phase_groups(s->phase);", "0;", "red clearance too short"),
        ("if (s->due != 0) {", "if (s->due != 0 && wish >= shell_tables.phases) {", "due_to_green"),
        (
            "phase = phase + 1 < shell_tables.phases ? phase + 1 : 0;\n        if",
            "phase = count - 1;\n        if",
            "due_to_green",
        ),
        ("too_late | in_conflict(s->called, too_green)", "too_late", "due_to_yellow"),
        ("wish < shell_tables.phases && wish", "wish <= shell_tables.phases && wish", "wish class"),
        ("enter(s, SHELL_FLASH);", "enter(s, SHELL_START_FLASH);", "flash"),
        ("!SHELL_REACHED(s->timer, shell_tables.walk_clear_ticks[group])", "false", "walk"),
    ],
)
def test_a_fault_planted_in_the_code_is_found(small: SignalPlan, tmp_path: Path, sound: str, planted: str, fault: str) -> None:
    code = SHELL.read_text(encoding="utf-8")
    assert sound in code
    tables, judge = programs_tables(small, True)
    found = run(compile_program("explore", tables, judge, tmp_path, shell=code.replace(sound, planted, 1)))
    said = found.get("fault") or unbounded(found)
    assert said.startswith(fault), found
