"""`tinylight train --sweep`: docs/cluster.md as its readers use it, and one clear line for what is wrong with a file."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: train)")

from model.policy.file import load_policy
from model.report.run import run_jobs
from model.report.sweep import Sweep
from model.report.sweep_table import SweepRow, setting_rows, sweep_rows
from streetflow.errors import InputError
from tests.helpers.page_code import code_blocks, commands
from tests.helpers.run_cli import tinylight
from tests.helpers.short_network import SHORT, write_short_crossing

PAGE = "cluster.md"
GRID, DRAWN = code_blocks(PAGE, "toml")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_short_crossing(tmp_path / "data", 400, flows=3)
    monkeypatch.setenv("TINYLIGHT_DATA", str(tmp_path / "data"))


def written(text: str, name: str = "sweep.toml") -> Path:
    Path(name).write_text(text)
    return Path(name)


def test_the_page_does_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """All commands; those with --cluster find everything done (test_cluster.py has what Ray does)."""
    monkeypatch.setattr("model.report.cluster.find_spec", lambda _name: object())
    shorter = GRID.replace("search_episodes = 4", "search_episodes = 1").replace("refine_episodes = 8", "refine_episodes = 1")
    assert shorter != GRID
    written(shorter.replace("seed = [0, 1]", "seed = [0]").replace('"crossing"', f'"{SHORT}"'))
    sweep, table, again = commands(PAGE)
    assert tinylight(*sweep, "--processes", "1") == 0
    kept = {file: file.stat().st_mtime_ns for file in Path("sweep").glob("*.policy.json")}
    assert len(kept) == 2
    assert tinylight(*table[:-2], "--processes", "1") == 0
    assert tinylight(*table) == 0 and tinylight(*again) == 0
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    with Path("sweep/sweep.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["double_q"] for row in rows] == ["false", "true"]
    settings = json.loads(Path("sweep/sweep.json").read_text())["settings"]
    for row, setting in zip(rows, settings, strict=True):
        policy = load_policy(Path("sweep") / row["policy"])
        assert policy.sha256 == row["policy_sha256"] and policy.provenance.settings["double_q"] == setting["point"]["double_q"]
        assert policy.measured[0].integer_average_travel_time_s == float(row["integer_s"]) == setting["integer_s"]["mean"]
        held_out = [run.integer_average_travel_time_s for run in policy.measured[1:]]
        assert float(row["held_out_s"]) == pytest.approx(sum(held_out) / len(held_out)) and len(held_out) == 2


def test_drawn_points_meet_the_whole_grid_and_are_the_same_each_time() -> None:
    file = written(DRAWN)
    found = Sweep(file)
    assert len(found.trainings) == 3 * 2 and found.varied == ["learning_rate", "kept_features", "seed"]
    for first, second in zip(found.points[::2], found.points[1::2], strict=True):
        assert (first["seed"], second["seed"]) == (0, 1) and first | {"seed": 1} == second
        assert 1e-4 <= first["learning_rate"] <= 1e-2 and first["kept_features"] in (1, 2)
    assert len({point["learning_rate"] for point in found.points}) == 3
    assert Sweep(file).points == found.points
    assert Sweep(written(DRAWN.replace("draws_seed = 7", "draws_seed = 8"))).points != found.points


def test_json_says_the_same() -> None:
    same = {"fixed": {"network": "crossing", "method": "planned"}, "grid": {"rounds": [1, 2], "flow": [0, 3]}}
    found = Sweep(written(json.dumps(same), "sweep.json"))
    assert [(each.flow, each.settings.plan_config().rounds) for each in found.trainings] == [(0, 1), (3, 1), (0, 2), (3, 2)]
    assert {each.settings.features for each in found.trainings} == {"all"}


def test_equal_points_are_trained_once() -> None:
    assert len(Sweep(written(GRID.replace("seed = [0, 1]", "seed = [1, 1]"))).trainings) == 2


def test_settings_are_means_over_seeds() -> None:
    rows = [SweepRow({"tau": t, "seed": s}, "", "", 1, 0.0, 10.0 * t + s, 5.0) for t in (1, 2) for s in (0, 4)]
    first, second = setting_rows(rows)
    assert (first.point, first.seeds, first.integer_s.mean, first.integer_s.deviation) == ({"tau": 1}, 2, 12.0, 2.0)
    assert second.integer_s.mean == 22.0


def test_planned_trainings_too_and_a_result_of_other_inputs_is_made_again() -> None:
    small = {"rounds": 1, "search_rounds": 1, "own": 1, "varied": 0, "horizon": 1, "planned_share": 0.1, "judged": 0}
    small |= {"search_steps": 2, "refine_steps": 2, "last_steps": 2}
    found = Sweep(written(json.dumps({"fixed": {"network": SHORT, "method": "planned"} | small}), "sweep.json"))
    (training,) = found.trainings
    training.run(Path(), lambda _fraction: None)
    assert training.is_done(Path()) and not list(Path().glob("*.checkpoint"))
    (row,) = sweep_rows(found, Path())
    assert load_policy(row.policy).sha256 == row.policy_sha256
    run_jobs([training], Path(), processes=1, progress=lambda state: None if state.found else pytest.fail("it ran"))
    result = training.result_file(Path())
    result.write_text(result.read_text().replace('"flow_sha256": "', '"flow_sha256": "0'))
    assert not training.is_done(Path())
    result.write_text("{}")
    with pytest.raises(InputError, match="not a sweep's result of version 1"):
        training.is_done(Path())


FAULTS = {
    "syntax": ("x = ", "sweep.toml: Invalid value (at end of document)"),
    "table": ("[gird]\nseed = [1]", "sweep.toml: gird: Extra inputs are not permitted"),
    "no list": ("[grid]\nseed = 1", "sweep.toml: grid.seed: Input should be a valid list"),
    "empty": ('[fixed]\nnetwork = "crossing"\n[grid]\nseed = []', "sweep.toml: grid.seed: has no value to choose from"),
    "field": ('[fixed]\nnetwork = "crossing"\n[grid]\ngama = [1]', "gama (gama 1): no field of the method dqn; did you mean"),
    "value": ('[fixed]\nnetwork = "crossing"\n[grid]\ngamma = [2.0]', "gamma (gamma 2.0): "),
    "other method's": ('[fixed]\nnetwork = "crossing"\nrounds = 3', "rounds: no field of the method dqn"),
    "method": ('[fixed]\nnetwork = "crossing"\nmethod = "ppo"', "method: Input should be 'dqn' or 'planned', not 'ppo'"),
    "no network": ("[grid]\nseed = [1]", "network (seed 1): is missing"),
    "network": ('[fixed]\nnetwork = "crosing"', "sweep.toml: crosing: unknown network; did you mean crossing?"),
    "kind": ('[fixed]\nnetwork = "crossing"\nflow = "0"', "flow: must be a whole number, is '0'"),
    "flow": ('[fixed]\nnetwork = "crossing"\nflow = 99', "flow 99: no such flow; there are 0 to 9"),
    "seed": ('[fixed]\nnetwork = "crossing"\nseed = -1', "seed: Input should be greater than or equal to 0, not -1"),
    "features": ('[fixed]\nnetwork = "crossing"\nfeatures = "relase"', "features: relase: unknown"),
    "clearance": ('[fixed]\nnetwork = "crossing"\nclearance = "holt"', "clearance: holt: unknown; did you mean hold?"),
    "replicas": ('[fixed]\nnetwork = "crossing"\nmethod = "planned"\nreplicas = 2', "the method planned has one seed"),
    "twice": ("[fixed]\nseed = 1\n[grid]\nseed = [1]", "sweep.toml: seed: is in fixed and grid"),
    "no draws": ("[random]\ntau = [0.1]", "sweep.toml: draws: is missing, how often to draw"),
    "nothing to draw": ("draws = 3", "sweep.toml: draws: needs fields in random to draw"),
    "range": ("draws = 3\n[random]\ntau = {least = 2, most = 1}", "random.tau: least must be below most, is 2 with 1"),
    "log": ("draws = 3\n[random]\ntau = {least = 0, most = 1, log = true}", "random.tau: log needs a least above 0, is 0"),
    "many": (f"[grid]\nseed = {list(range(101))}\nflow = {list(range(100))}", "10100 trainings; a sweep has 10000"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_one_line_says_what_is_wrong(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, message = FAULTS[fault]
    written(text)
    assert tinylight("train", "--sweep", "sweep.toml", "--out", "sweep") == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and "sweep.toml" in error
    assert not Path("sweep").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sweep", "none.toml"], "none.toml: there is no such file"),
        (["--sweep", "sweep.toml", "--seed", "3"], "--seed: --sweep has this from its file: leave it out"),
        (["--network", "crossing", "--processes", "2"], "--processes: is for the jobs of --sweep"),
        ([], "--network: is missing; see tinylight train --help"),
        (["--network", "crossing", "--cluster", "auto", "--log", "x.csv"], "--log: a node trains with --cluster"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    written(GRID)
    assert tinylight("train", "--out", "sweep", *options) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
