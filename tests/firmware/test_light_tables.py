"""The shell's tables from a signal plan: ticks, sets, bytes, and what doesn't fit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firmware.generator.flash_crc import crc
from firmware.generator.light.plan import plan_of
from firmware.generator.light.tables import fields, generate, table_bytes, tables_header
from firmware.generator.policy import PolicyError
from hil.build.project import project_root
from hil.build.signal_plan import plan_document
from streetflow.control.signal_groups import signal_plans
from streetflow.networks.catalogue import find_network
from streetflow.roadnet.network_tables import load_network


@pytest.fixture
def document() -> dict[str, Any]:
    return plan_document(signal_plans(load_network(find_network("crossing").roadnet_file))[0])


def test_times_become_whole_ticks_and_none_gets_shorter(document: dict[str, Any]) -> None:
    plan = plan_of(document)
    for number, group in enumerate(document["groups"]):
        for name, ticks in (("yellow_s", plan.yellow), ("red_clearance_s", plan.red), ("min_green_s", plan.min_green)):
            assert 0 <= ticks[number] - 100 * group[name] < 1
    assert (plan.walk, plan.longest_red, plan.yellow[0]) == (700, 12_000, 300)
    document["groups"][0]["yellow_s"] = 3.14  # in binary a little more than 314 ticks
    assert plan_of(document).yellow[0] == 314


def test_sets_and_the_least_green_of_a_phase(document: dict[str, Any]) -> None:
    plan = plan_of(document)
    assert plan.phase_groups[0] == 0b1000110 and plan.served == 0b111111011
    for a, b in document["conflicts"]:
        assert plan.conflicts[a] >> b & 1 and plan.conflicts[b] >> a & 1
    assert sum(row.bit_count() for row in plan.conflicts) == 2 * len(document["conflicts"])
    assert plan.phase_least[0] == max(plan.min_green[1], plan.min_green[2], plan.min_green[6], plan.red[0])
    document["groups"][0]["red_clearance_s"] = 25.0
    assert plan_of(document).phase_least[0] == 2_500, "a change into phase 0 may not have waited for group 0's red clearance"


def test_same_plan_same_bytes_and_the_crc_of_them(document: dict[str, Any], tmp_path: Path) -> None:
    text = tables_header(plan_of(document))
    assert text == tables_header(plan_of(json.loads(json.dumps(document))))
    content = table_bytes(fields(plan_of(document)))
    assert f".crc = {crc(content)}," in text and len(content) == 2 + 2 * (3 + 7 * 16)
    (tmp_path / "plan.json").write_text(json.dumps(document))
    generate(tmp_path / "plan.json", tmp_path)
    written = tmp_path / "shell_tables.h"
    stamp = written.stat().st_mtime_ns
    generate(tmp_path / "plan.json", tmp_path)
    assert written.read_text() == text and written.stat().st_mtime_ns == stamp


def test_the_compiler_lays_the_same_bytes(document: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "shell_tables.h").write_text(tables_header(plan_of(document)))
    (tmp_path / "main.c").write_text(
        '#include "light/shell.h"\n#include <stdio.h>\n'
        "int main(void) { return fwrite(&shell_tables, sizeof shell_tables, 1, stdout) == 1 ? 0 : 1; }\n"
    )
    firmware = project_root() / "firmware"
    flags = ["-std=gnu11", "-Werror", f"-I{tmp_path}", f"-I{firmware / 'include'}"]
    sources = [str(tmp_path / "main.c"), str(firmware / "src/light/tables.c")]
    subprocess.run(["gcc", *flags, *sources, "-o", str(tmp_path / "program")], check=True)
    laid = subprocess.run([tmp_path / "program"], capture_output=True, check=True).stdout
    content = table_bytes(fields(plan_of(document)))
    assert laid == content + crc(content).to_bytes(2, "little") and crc(laid) == 0


def more(document: dict[str, Any], part: str, count: int) -> None:
    document[part] = [document[part][0]] * count


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda d: more(d, "groups", 17), "groups: 17 signal groups, the lamps' wires carry 1 to 16"),
        (lambda d: more(d, "phases", 17), "phases: 17 phases, the shell holds 1 to 16"),
        (lambda d: more(d, "lanes", 33), "lanes: 33 lanes, the detectors' wires carry 1 to 32"),
        (lambda d: d["phases"][2].append(9), "phases[2]: [0, 2, 5, 9] aren't some of 9 groups"),
        (lambda d: d["phases"][2].append(1), "phases[2]: opens group 1 and one in conflict with it"),
        (lambda d: d["conflicts"].append([1, 1]), "conflicts[20]: [1, 1] aren't two groups of 9"),
        (lambda d: d["groups"][3].update(yellow_s=0), "groups[3].yellow_s: 0 s, must be 0.01 to 300 s"),
        (lambda d: d["groups"][3].update(min_green_s=1e9), "groups[3].min_green_s: 1e+09 s, must be 0.01 to 300 s"),
        (lambda d: d["groups"][3].update(max_green_s=float("nan")), "groups[3].max_green_s: nan s isn't a time"),
        (lambda d: d["groups"][1].update(walk_and_clearance_s=6), "groups[1].walk_and_clearance_s: shorter than the walk"),
        (
            lambda d: d["groups"][2].update(walk_and_clearance_s=20),
            "groups[2].walk_and_clearance_s: a crosswalk beside a group that is never called",
        ),
        (lambda d: d.update(format=2), "format: 2, this firmware reads 1"),
        (lambda d: d["groups"][4].pop("yellow_s"), "not a signal plan (KeyError: 'yellow_s')"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    document: dict[str, Any], tmp_path: Path, change: Callable[[dict[str, Any]], None], fault: str
) -> None:
    change(document)
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises(PolicyError, match=f"^{re.escape(fault)}$"):
        generate(tmp_path / "plan.json", tmp_path)


def test_the_command_says_what_is_wrong_with_which_file(document: dict[str, Any], tmp_path: Path) -> None:
    """-S: it needs the standard library alone, as in PlatformIO's Python."""

    def run(text: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "plan.json").write_text(text)
        command = [
            sys.executable,
            "-S",
            "-E",
            "-m",
            "firmware.generator.light",
            str(tmp_path / "plan.json"),
            str(tmp_path / "out"),
        ]
        return subprocess.run(command, capture_output=True, text=True, cwd=project_root())

    assert run(json.dumps(document)).returncode == 0
    assert (tmp_path / "out" / "shell_tables.h").is_file()
    refused = run("[]")
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert refused.stderr.startswith(f"{tmp_path / 'plan.json'}: not a signal plan")
