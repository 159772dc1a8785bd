"""The table: the paper's rule-based cells, figures, files, and resuming after a kill."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from model import pretrained_policy
from model.evaluate import RunSettings, evaluate
from model.policy.file import load_policy
from model.report.bootstrap import mean_interval
from model.report.cells import Cell, Outcome, cell_file, load_cell, save_cell
from model.report.compare import by_network, paired, paired_with_strongest, sign_flip_p, strongest_rule, table_rows
from model.report.paper_table import PAPER_NETWORKS, paper_cell, paper_models
from model.report.settings import settings_names, tinylight_settings
from model.report.tasks import expand_models, identity, is_done, plan, planned_cells, run_task
from model.report.write import write_report
from streetflow.control.controllers import PAPER_RULES
from streetflow.control.measures import summarise
from streetflow.control.tuned import TUNED
from streetflow.errors import InputError
from streetflow.networks.catalogue import find_network
from tests.helpers.places import ROOT
from tests.helpers.processes import PATIENCE_S
from tests.helpers.run_cli import tinylight
from tests.helpers.shared_data import needs_data_set

COMMITTED = ROOT / "docs" / "results" / "table1.json"
QUICK = [name for name in PAPER_NETWORKS if name != "Jinan"]  # Jinan's thirty runs take as long as all others together


@pytest.mark.parametrize("model", PAPER_RULES)
@pytest.mark.parametrize("network", [pytest.param(name, marks=needs_data_set(name)) for name in QUICK])
def test_rules_equal_the_papers_table_to_the_hundredth(network: str, model: str) -> None:
    paper = paper_cell(network, model)
    assert paper is not None
    rows = evaluate(network, model, range(10))
    times_s = summarise([row.average_travel_time_s for row in rows])
    rates = summarise([row.throughput_veh_per_min for row in rows])
    ours = [times_s.mean, times_s.deviation, rates.mean, rates.deviation]
    papers = [paper.travel_time_s.mean, paper.travel_time_s.deviation]
    papers += [paper.throughput_veh_per_min.mean, paper.throughput_veh_per_min.deviation]
    assert [f"{value:.2f}" for value in ours] == [f"{value:.2f}" for value in papers]


def test_the_committed_table_has_all_rule_cells_and_they_are_the_papers() -> None:
    rows = [row for row in json.loads(COMMITTED.read_text())["rows"] if row["model"] in PAPER_RULES]
    assert {(row["network"], row["model"]) for row in rows} == {(n, m) for n in PAPER_NETWORKS for m in PAPER_RULES}
    for row in rows:
        assert row["flows"] == list(range(10))
        assert row["travel_time_s"] == pytest.approx(_as_dict(summarise(row["travel_times_s"])))
        for measure in ("travel_time_s", "throughput_veh_per_min"):
            for figure in ("mean", "deviation"):
                assert f"{row[measure][figure]:.2f}" == f"{row['paper'][measure][figure]:.2f}"


def test_the_papers_table_is_complete() -> None:
    """Table 1 has 54 places, 9 of them dashes."""
    models = ["EcoLight", *PAPER_RULES, "CoLight", "FRAP", "MPLight", "TLRP", "TinyLight"]
    dashes = {(n, m) for n in PAPER_NETWORKS for m in models if paper_cell(n, m) is None}
    assert dashes == {(n, "CoLight") for n in PAPER_NETWORKS if n != "Jinan"} | {
        ("Atlanta", "MPLight"),
        ("LosAngeles", "MPLight"),
    }
    paper = paper_cell("LosAngeles", "SOTL")
    assert paper is not None
    assert (paper.travel_time_s.mean, paper.throughput_veh_per_min.deviation) == (624.19, 3.99)


def _as_dict(summary: object) -> dict[str, float]:
    return dict(vars(summary))


def cell(network: str, model: str, flow: int, **seconds: float) -> Cell:
    outcomes = {arithmetic: Outcome(value, value / 10) for arithmetic, value in seconds.items()}
    return Cell(network, model, flow, seed=flow, identity={}, outcomes=outcomes, wall_s=1.0)


def test_rows_and_pairs_by_hand() -> None:
    cells = [cell("net", "A", k, rule=value) for k, value in enumerate([10.0, 12.0, 14.0])]
    cells += [cell("net", "B", k, float=value, integer=value + 1) for k, value in enumerate([9.0, 12.5, 11.5])]
    rows = table_rows(cells)
    assert [row.label for row in rows] == ["A", "B, float", "B, integer"]
    assert rows[0].travel_time_s.mean == 12.0
    assert rows[0].travel_time_s.deviation == pytest.approx((8 / 3) ** 0.5)
    assert rows[0].throughput_veh_per_min.mean == pytest.approx(1.2)
    first, second = paired(rows, "A")
    assert (first.label, first.runs, first.better_runs) == ("B, float", 3, 2)
    assert first.mean_difference_s == pytest.approx((-1.0 + 0.5 - 2.5) / 3)
    assert second.mean_difference_s == pytest.approx(first.mean_difference_s + 1)
    assert (first.mean_difference_s, first.low_s, first.high_s) == pytest.approx(mean_interval([-1.0, 0.5, -2.5]))
    assert rows[0].travel_time_interval_s == mean_interval([10.0, 12.0, 14.0])


def test_the_strongest_rule_of_each_network_is_a_rule_with_all_runs() -> None:
    """The planner is a bound and no rule; SOTL.tuned is one, but wasn't run on every flow."""
    cells = [cell("one", "Planner", k, rule=1.0) for k in (0, 1)] + [cell("one", "SOTL.tuned", 0, rule=2.0)]
    cells += [cell("one", "MaxQueue", k, rule=5.0 + k) for k in (0, 1)]
    cells += [cell("one", "MaxQueue.tuned", k, rule=5.5 - k) for k in (0, 1)]
    cells += [cell("two", "MaxQueue", k, rule=5.0) for k in (0, 1)] + [cell("three", "EcoLight", 0, float=1.0)]
    rows = table_rows(cells)
    best = {network: strongest_rule(members) for network, members in by_network(rows).items()}
    assert {network: row and row.label for network, row in best.items()} == {
        "one": "MaxQueue.tuned", "two": "MaxQueue", "three": None,
    }  # fmt: skip
    pairs = paired_with_strongest(rows)
    assert {(pair.network, pair.label, pair.reference, pair.mean_difference_s) for pair in pairs} == {
        ("one", "Planner", "MaxQueue.tuned", -4.0),
        ("one", "SOTL.tuned", "MaxQueue.tuned", -3.5),
        ("one", "MaxQueue", "MaxQueue.tuned", 0.5),
    }


def test_a_tuned_rule_has_no_row_in_the_paper() -> None:
    (row,) = table_rows([cell("Hangzhou1", "SOTL.tuned", 0, rule=200.0)])
    assert row.paper is None and row.verdict == "-"


def test_a_table_of_another_clearance(tmp_path: Path) -> None:
    """Runs are made under it, kept apart from those of hold, and not compared with the paper's."""
    tasks, _ = plan(["crossing"], ["VehicleActuated"], [1], "computed")
    run_task(tasks[0], tmp_path, lambda _fraction: None)
    assert is_done(tasks[0], tmp_path) and planned_cells(tasks, tmp_path)
    (made,) = planned_cells(tasks, tmp_path)
    (row,) = evaluate("crossing", "VehicleActuated", [1], settings=RunSettings(clearance="computed"))
    assert made.outcomes["rule"].average_travel_time_s == row.average_travel_time_s
    others, _ = plan(["crossing"], ["VehicleActuated"], [1])
    assert not is_done(others[0], tmp_path) and planned_cells(others, tmp_path) == []
    assert table_rows([replace(cell("Hangzhou1", "SOTL", 0, rule=200.0), identity={"clearance": "computed"})])[0].paper is None


def test_pairs_use_the_flows_that_both_have() -> None:
    rows = table_rows(
        [cell("net", "A", k, rule=float(k)) for k in (0, 1, 3)] + [cell("net", "B", k, rule=5.0) for k in (1, 2, 3)]
    )
    (pair,) = paired(rows, "A")
    assert (pair.runs, pair.mean_difference_s) == (2, pytest.approx(3.0))


def test_sign_flip_test_by_hand() -> None:
    """Of the 8 sign patterns of (1, 2, 3), sums of size 6 or more: +++ and ---."""
    assert sign_flip_p([1.0, 2.0, 3.0]) == 2 / 8
    assert sign_flip_p([1.0, 2.0, -3.0]) == 1.0
    assert sign_flip_p([-1.0] * 10) == 2 / 1024
    assert sign_flip_p([1.0] * 17) < 0.001 and sign_flip_p([1.0, -1.0] * 9) == 1.0


def test_a_learned_row_is_judged_by_the_papers_deviation() -> None:
    paper = paper_cell("Hangzhou1", "TinyLight")
    assert paper is not None
    verdicts = []
    for offset in (-3.0, -1.9, 1.9, 3.0):
        value = paper.travel_time_s.mean + offset * paper.travel_time_s.deviation
        verdicts.append(table_rows([cell("Hangzhou1", "TinyLight.best", 0, integer=value)])[0].verdict)
    assert verdicts == ["better", "within 2 sd", "within 2 sd", "worse"]


def test_a_rule_row_that_differs_says_in_what() -> None:
    (row,) = table_rows([cell("Hangzhou1", "SOTL", 0, rule=250.58)])
    assert row.verdict == "differs: its deviation, throughput, its deviation"


def test_unknown_names_are_named() -> None:
    with pytest.raises(InputError, match=r"unknown model 'SOLT'; did you mean SOTL\? There are rules, .*MaxPressure"):
        expand_models("rules,SOLT")
    with pytest.raises(InputError, match="unknown settings 'worst'; there are paper, best"):
        tinylight_settings("worst", "Hangzhou1")
    assert expand_models("SOTL,rules") == ["SOTL", "FixedTime", "MaxPressure"]
    assert {"Actuated", "Webster", "VehicleActuated", "WebsterSeconds"} < set(
        expand_models("opponents")
    ) and "SOTL" not in expand_models("opponents")
    assert expand_models("tuned") == list(TUNED)


def test_settings_of_one_network_override_the_common_ones(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    own = {"replicas": 4, "training": {"tau": 0.2}}
    file.write_text(json.dumps({"x": {"replicas": 2, "training": {"batch": 64}, "networks": {"Jinan": own}}, "y": {"z": 1}}))
    assert tinylight_settings("x", "Atlanta", file).replicas == 2
    jinan = tinylight_settings("x", "Jinan", file)
    assert (jinan.replicas, jinan.training, jinan.features) == (4, {"batch": 64, "tau": 0.2}, "release")
    with pytest.raises(InputError, match=r"settings.json: y.z: Extra inputs"):
        tinylight_settings("y", "Jinan", file)


@pytest.mark.parametrize("name", settings_names())
def test_shipped_settings_are_trainable(name: str) -> None:
    for network in PAPER_NETWORKS:
        settings = tinylight_settings(name, network)
        config = settings.plan_config() if settings.method == "planned" else settings.config()
        given = {field: tuple(value) if isinstance(value, list) else value for field, value in settings.training.items()}
        assert given.items() <= vars(config).items()


def test_a_cell_of_other_files_is_made_again(tmp_path: Path) -> None:
    network = find_network("crossing")
    (task,), _ = plan(["crossing"], ["FixedTime"], [3])
    run_task(task, tmp_path, lambda _fraction: None)
    assert is_done(task, tmp_path)
    made = load_cell(tmp_path, "crossing", "FixedTime", 3)
    assert made is not None and made.identity == identity(network, "FixedTime", 3)
    assert made.outcomes["rule"].average_travel_time_s == evaluate("crossing", "FixedTime", [3])[0].average_travel_time_s
    save_cell(tmp_path, replace(made, identity=made.identity | {"flow_sha256": "0"}))
    assert not is_done(task, tmp_path)


def test_a_trained_cell_has_both_arithmetics_and_its_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    settings = tmp_path / "settings.json"
    training = {"search_episodes": 1, "refine_episodes": 1}
    settings.write_text(json.dumps({"quick": {"seed": 3, "training": training}}))
    monkeypatch.setattr("model.report.settings.SETTINGS_FILE", settings)
    (task,), _ = plan(["crossing"], ["TinyLight.quick"], [0, 1])
    reported: list[float] = []
    run_task(task, tmp_path, reported.append)
    assert reported == [0.5, 1.0] and is_done(task, tmp_path)
    for flow in (0, 1):
        made = load_cell(tmp_path, "crossing", "TinyLight.quick", flow)
        assert made is not None and made.identity["settings"]["training"] == training
        policy = cell_file(tmp_path, "crossing", "TinyLight.quick", flow).with_suffix(".policy.json")
        for arithmetic, outcome in made.outcomes.items():
            (row,) = evaluate("crossing", policy, [flow], integer=arithmetic == "integer")
            assert outcome == Outcome(row.average_travel_time_s, row.throughput_veh_per_min)
    assert set(made.outcomes) == {"float", "integer"}
    assert not list(tmp_path.rglob("*.checkpoint"))
    settings.write_text(json.dumps({"quick": {"seed": 4, "training": training}}))
    assert not is_done(task, tmp_path)


def test_a_baselines_cell_is_what_its_weights_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_baseline = pytest.importorskip("model.baselines.train_baseline")
    short = train_baseline.BaselineConfig(episodes=1)
    monkeypatch.setattr(train_baseline, "BaselineConfig", lambda: short)
    tasks, dashes = plan(["crossing"], ["EcoLight", "CoLight"], [2])
    assert list(dashes) == [("crossing", "CoLight")]
    run_task(tasks[0], tmp_path, lambda _fraction: None)
    made = load_cell(tmp_path, "crossing", "EcoLight", 2)
    assert made is not None
    (row,) = evaluate("crossing", cell_file(tmp_path, "crossing", "EcoLight", 2).with_suffix(".npz"), [2])
    assert made.outcomes == {"float": Outcome(row.average_travel_time_s, row.throughput_veh_per_min)}


def test_a_tuned_rules_cell_depends_on_its_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (task,), dashes = plan(["crossing"], ["MaxQueue.tuned"], [0])
    run_task(task, tmp_path, lambda _fraction: None)
    assert is_done(task, tmp_path) and not dashes
    monkeypatch.setattr("model.report.tasks.tuned_parameters", lambda: {"crossing": {"MaxQueue": {"lead": 99}}})
    assert not is_done(task, tmp_path)
    monkeypatch.setattr("model.report.tasks.refusal", lambda model, network: f"{model} on {network}")
    assert plan(["crossing"], ["MaxQueue.tuned"], [0])[1] == {("crossing", "MaxQueue.tuned"): "MaxQueue.tuned on crossing"}


def test_jobs_are_the_same_whatever_the_cores() -> None:
    """Ten flows of one light: two tasks of five; of three lights with twelve groups: four, four, two."""
    tasks, _ = plan(["crossing", "arterial"], ["FixedTime", "FRAP"], range(10))
    assert [(task.network, task.model, task.flows) for task in tasks] == [
        ("crossing", "FixedTime", tuple(range(10))),
        ("crossing", "FRAP", (0, 1, 2, 3, 4)),
        ("crossing", "FRAP", (5, 6, 7, 8, 9)),
        ("arterial", "FixedTime", tuple(range(10))),
        ("arterial", "FRAP", (0, 1, 2, 3)),
        ("arterial", "FRAP", (4, 5, 6, 7)),
        ("arterial", "FRAP", (8, 9)),
    ]


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    file = cell_file(tmp_path, "crossing", "SOTL", 0)
    file.parent.mkdir(parents=True)
    for text, fault in (("{", "not a cell"), ("{}", "version"), ('{"version": 1, "outcomes": {}}', "not a cell")):
        file.write_text(text)
        with pytest.raises(InputError, match=f"flow_0.json: .*{fault}"):
            load_cell(tmp_path, "crossing", "SOTL", 0)


def test_reports_hold_every_run(tmp_path: Path) -> None:
    cells = [cell("Hangzhou1", "MaxPressure", k, rule=121.0 + k) for k in range(2)]
    cells += [cell("Hangzhou1", "TinyLight.best", k, float=100.0, integer=101.0) for k in range(2)]
    dashes = {("Atlanta", "MPLight"): "not alike"}
    write_report(tmp_path / "out", cells, dashes, "TinyLight.best, integer", "tinylight table")
    with (tmp_path / "out.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert [(line["model"], line["arithmetic"], line["flow"]) for line in lines] == [
        ("MaxPressure", "rule", "0"), ("MaxPressure", "rule", "1"),
        ("TinyLight.best", "float", "0"), ("TinyLight.best", "integer", "0"),
        ("TinyLight.best", "float", "1"), ("TinyLight.best", "integer", "1"),
    ]  # fmt: skip
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["dashes"] == [{"network": "Atlanta", "model": "MPLight", "why": "not alike"}]
    assert len(content["made_from"]) == 2 and len(content["rows"]) == 3 and len(content["pairs"]) == 2
    text = (tmp_path / "out.md").read_text()
    assert "| TinyLight.best, integer | 101.00 ± 0.00 | 101.00 to 101.00 | 102.87 ± 2.98 |" in text
    low, high = mean_interval([20.0, 21.0])[1:]
    line = f"| +20.50 ± 0.50 | {low:+.2f} to {high:+.2f} | 0/2 | 0.500 |"
    assert f"| Hangzhou1 | MaxPressure | TinyLight.best, integer {line}" in text
    assert "Strongest rule: MaxPressure, 121.50 s." in text
    assert "| Hangzhou1 | TinyLight.best, float | MaxPressure | -21.50 ± 0.50 |" in text
    (row,) = (row for row in content["rows"] if row["label"] == "MaxPressure")
    assert row["travel_time_interval_s"] == list(mean_interval([121.0, 122.0])[1:])
    assert [(pair["label"], pair["reference"]) for pair in content["pairs_with_strongest_rule"]] == [
        ("TinyLight.best, float", "MaxPressure"), ("TinyLight.best, integer", "MaxPressure"),
    ]  # fmt: skip


def table_command(work: Path, *more: str) -> list[str]:
    runs = ["--models", "FixedTime,SOTL", "--networks", "crossing,arterial", "--flows", "0-2"]
    return [sys.executable, "-m", "tinylight.cli", "table", *runs, "--work", str(work), "--processes", "1", *more]


def figures(file: Path) -> list[tuple[str, ...]]:
    with file.open() as stream:
        return [tuple(value for name, value in line.items() if name != "wall_s") for line in csv.DictReader(stream)]


def test_killed_in_the_middle_it_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    work = tmp_path / "killed"
    process = subprocess.Popen(table_command(work), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline_s = time.monotonic() + PATIENCE_S
    while not list(work.rglob("flow_2.json")):
        assert time.monotonic() < deadline_s and process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = {file: file.stat().st_mtime_ns for file in work.rglob("flow_*.json")}
    assert 0 < len(kept) < 12
    finished = {file for file in kept if (file.parent / "flow_2.json").is_file()}
    assert subprocess.run(table_command(work), capture_output=True).returncode == 0
    assert len(list(work.rglob("flow_*.json"))) == 12
    assert all(file.stat().st_mtime_ns == kept[file] for file in finished)
    whole = tmp_path / "whole"
    assert tinylight(*table_command(whole)[3:]) == 0
    assert figures(work / "table.csv") == figures(whole / "table.csv")
    assert len(figures(work / "table.csv")) == 12


def test_report_only_shows_what_is_there_and_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = tmp_path / "work"
    report = table_command(work, "--report-only")[3:]
    assert tinylight(*report) == 2 and "holds no finished run" in capsys.readouterr().err
    save_cell(work, cell("crossing", "SOTL", 2, rule=100.0))
    assert tinylight(*report) == 0
    assert figures(work / "table.csv") == [("crossing", "SOTL", "rule", "2", "2", "100.0", "10.0")]
    assert len(list(work.rglob("flow_*.json"))) == 1


def test_bad_input_ends_with_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in (["--models", "Nobody"], ["--networks", "nowhere"], ["--flows", "9-12"], ["--reference", "Nobody"]):
        assert tinylight(*table_command(tmp_path, "--flows", "0", *more)[3:]) == 2, more
        assert more[1].split("-")[-1] in capsys.readouterr().err


@pytest.mark.parametrize("name", PAPER_NETWORKS)
def test_a_papers_network_comes_with_a_planned_policy_of_flow_0(name: str) -> None:
    """Of one seed, within the limit of weights, and measured on all flows."""
    policy = load_policy(pretrained_policy(name))
    provenance = policy.provenance
    assert provenance.settings["method"] == "planned" and (provenance.flow, provenance.train_seed) == (0, 0)
    assert max(part.n_parameters for part in policy.intersections) <= 1001
    assert [run.flow for run in policy.measured] == list(range(10))


@pytest.mark.parametrize("reference", ["Nobody", "TinyLight.paper", "CoLight"])
def test_a_reference_that_will_not_be_is_refused_before_the_runs(
    reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """CoLight can't control the crossing; TinyLight has two rows."""
    monkeypatch.setattr("model.report.run.run_jobs", lambda *_, **__: pytest.fail("it ran"))
    models = "FixedTime,CoLight,TinyLight.paper"
    options = ["--models", models, "--networks", "crossing", "--flows", "0", "--work", str(tmp_path / "w")]
    assert tinylight("table", *options, "--reference", reference) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"tinylight: --reference: no row '{reference}'") and line.count("\n") == 1
    rows = "FixedTime, TinyLight.paper, float" if reference == "CoLight" else "FixedTime, CoLight, TinyLight.paper, float"
    assert line.endswith(f" {rows}, TinyLight.paper, integer\n")


def test_the_committed_policies_are_those_that_ran_on_the_chip_and_beat_the_papers_table() -> None:
    runs = json.loads((COMMITTED.parent / "on_chip.json").read_text())["runs"]
    assert all(run["passed"] and run["unequal"] == 0 for run in runs)
    for name in PAPER_NETWORKS:
        mine = {run["flow"]: run for run in runs if run["network"] == name}
        assert sorted(mine) == list(range(10))
        for flow, run in mine.items():
            policy = load_policy(COMMITTED.parent / "policies" / name / f"flow_{flow}.json")
            assert (policy.network, policy.provenance.flow, policy.sha256) == (name, flow, run["policy_sha256"])
            assert policy.provenance.settings["max_parameters"] == 1001
            assert policy.measured[0].integer_average_travel_time_s == run["average_travel_time_s"]
        time_s = summarise([run["average_travel_time_s"] for run in mine.values()])
        assert time_s.mean < min(cell.travel_time_s.mean for cell in paper_models(name).values())
