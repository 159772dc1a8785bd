"""The scorecard: columns, draws that all agents share, scores, files, and runs that a stopped scorecard finds again."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from model import pretrained_policy
from model.evaluate import RunSettings, evaluate
from model.report.stress import COLUMNS, Column, Contestant, Kept, StressRun, contestants, find_columns, labels, scores, stress
from model.report.stress_write import write_scorecard
from streetflow.control.conditions import Conditions
from streetflow.control.controllers import CONTROLLERS
from streetflow.control.tuned import rules_for
from streetflow.errors import FieldError, InputError
from streetflow.networks.catalogue import Network, default_seed, find_network
from streetflow.networks.variations import Variation
from tests.helpers.run_cli import tinylight

FEW = [each for each in COLUMNS if each.name in ("as is", "volume 1.3", "shut lane", "stuck lane", "yellow")]


@pytest.fixture(scope="module")
def short() -> Network:
    return replace(find_network("crossing"), horizon_s=900)


@pytest.fixture(scope="module")
def entered() -> list[Contestant]:
    return contestants([pretrained_policy("crossing"), "MaxQueue"])


@pytest.fixture(scope="module")
def runs(short: Network, entered: list[Contestant]) -> list[StressRun]:
    return stress(short, entered, FEW, seeds=2)


def of(runs: list[StressRun], column: str, agent: str) -> list[float]:
    return [run.average_travel_time_s for run in runs if (run.column, run.agent) == (column, agent)]


def test_all_rules_enter_and_each_once(entered: list[Contestant]) -> None:
    assert [each.name for each in entered[:2]] == [str(pretrained_policy("crossing")), "MaxQueue"]
    assert len(entered) == 1 + len(CONTROLLERS) and {each.name for each in entered[1:]} == set(CONTROLLERS)
    assert [each.arithmetic for each in entered] == ["integer"] + [""] * len(CONTROLLERS)
    assert contestants([pretrained_policy("crossing")], integer=False)[0].arithmetic == "float"
    with_tuned = contestants(["MaxQueue"], "crossing")
    assert {each.name for each in with_tuned} == set(rules_for("crossing")) > set(CONTROLLERS)
    assert all((each.policy_sha256 is not None) == each.name.endswith(".tuned") for each in with_tuned)


def test_every_agent_runs_in_every_draw_of_every_column(runs: list[StressRun], entered: list[Contestant]) -> None:
    assert len({run.key for run in runs}) == len(runs) == len(FEW) * 2 * len(entered)
    assert {run.column: run.clearance for run in runs} == {each.name: each.clearance or "hold" for each in FEW}


def test_as_is_is_what_evaluate_gives(short: Network, runs: list[StressRun]) -> None:
    policy = str(pretrained_policy("crossing"))
    for agent, integer in (("MaxQueue", False), (policy, True)):
        rows = evaluate(short, agent, [0, 1], integer=integer)
        assert of(runs, "as is", agent) == [row.average_travel_time_s for row in rows]
        rows = evaluate(short, agent, [0, 1], integer=integer, settings=RunSettings(clearance="yellow"))
        assert of(runs, "yellow", agent) == [row.average_travel_time_s for row in rows]


def test_troubles_change_the_runs_and_their_seeds_differ(short: Network, runs: list[StressRun]) -> None:
    for column in FEW[1:]:
        assert of(runs, column.name, "MaxQueue") != of(runs, "as is", "MaxQueue")
    same = Column("twice", conditions=Conditions(stuck_lanes=1, miscount=0.9))
    twice = replace(short, flow_files=short.flow_files[:1] * 2)
    rule = [each for each in contestants([]) if each.name == "MaxQueue"]
    first, second = of(stress(twice, rule, [same]), "twice", "MaxQueue")
    assert first != second


def test_there_are_no_more_draws_than_flows(short: Network, tmp_path: Path) -> None:
    """More would repeat the flows, and make intervals narrower than they are."""
    few = replace(short, flow_files=short.flow_files[:2])
    runs = stress(few, contestants([])[3:4], COLUMNS[:1])
    assert [run.seed for run in runs] == [0, 1] and len(short.flow_files) == 10
    with pytest.raises(FieldError, match="seeds: must be from 1 to 2, the number of crossing's flows, is 3"):
        stress(few, contestants([]), COLUMNS[:1], 3)


def run_of(column: str, agent: str, seed: int, time_s: float) -> StressRun:
    return StressRun("n", column, seed, "hold", "sha", agent, "", None, time_s, 30.0)


def test_scores_are_paired_with_the_columns_best_rule() -> None:
    times = {"mine.json": [90.0, 120.0, 60.0], "MaxQueue": [100.0, 110.0, 90.0], "SOTL": [100.0, 150.0, 40.0]}
    runs = [run_of("as is", agent, seed, time_s) for agent, row in times.items() for seed, time_s in enumerate(row)]
    runs += [run_of("turns", agent, 0, 200.0 - row[0]) for agent, row in times.items()]
    found = {(score.column, score.agent): score for score in scores(runs)}
    assert list(found) == [(column, agent) for column in ("as is", "turns") for agent in times]
    assert {score.best_rule for (column, _), score in found.items() if column == "as is"} == {"SOTL"}  # a mean of 96.67
    mine = found["as is", "mine.json"]
    assert mine.travel_time_s.mean == 90.0 and mine.loss_s.mean == pytest.approx(-20 / 3)
    assert (mine.loss_s.low, mine.loss_s.high) == pytest.approx((-30, 20)) and not mine.loss.excludes_zero
    assert mine.loss.mean == pytest.approx(270 / 290 - 1) and mine.loss.low == pytest.approx(-0.2)
    assert found["as is", "SOTL"].loss == (0.0, 0.0, 0.0)
    assert found["turns", "mine.json"].best_rule == "MaxQueue" and found["turns", "mine.json"].loss.mean == pytest.approx(0.1)


def test_scores_compare_the_draws_that_all_have() -> None:
    runs = [run_of("as is", "MaxQueue", 0, 100.0), run_of("as is", "MaxQueue", 1, 900.0), run_of("as is", "mine.json", 0, 90.0)]
    assert [score.travel_time_s.mean for score in scores(runs)] == [100.0, 90.0]


def test_a_stopped_scorecard_goes_on(short: Network, entered: list[Contestant], runs: list[StressRun], tmp_path: Path) -> None:
    """Whole lines are found again, a half one is run again and doesn't spoil the next."""
    file = tmp_path / "work" / "runs.jsonl"
    kept = Kept(file)
    for run in runs[:5]:
        kept.keep(run)
    lines = file.read_text().splitlines(keepends=True)
    file.write_bytes("".join(lines[:4]).encode() + b"\xff\n" + lines[4][:40].encode())
    made: list[StressRun] = []

    class Noting(Kept):
        def keep(self, run: StressRun) -> None:
            made.append(run)
            super().keep(run)

    assert stress(short, entered, FEW, seeds=1, kept=Noting(file)) == [run for run in runs if run.seed == 0]
    assert len(made) == len(FEW) * len(entered) - 4 and made[0] == runs[4]
    made.clear()
    assert stress(short, entered, FEW, seeds=1, kept=Noting(file)) == [run for run in runs if run.seed == 0] and made == []


@pytest.mark.parametrize("change", ["flow file", "column", "clearance", "policy", "arithmetic"])
def test_a_kept_run_of_other_inputs_is_not_found(change: str, short: Network, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_bytes(pretrained_policy("crossing").read_bytes())
    file, network, columns, clearance, integer = tmp_path / "runs", short, [Column("busy", Variation(1.2))], "hold", True
    stress(network, contestants([policy])[:1], columns, 1, kept=Kept(file))
    if change == "flow file":
        network = replace(short, flow_files=short.flow_files[1:])
    elif change == "column":
        columns = [Column("busy", Variation(1.25))]
    elif change == "clearance":
        clearance = "yellow"
    elif change == "arithmetic":
        integer = False
    entered = contestants([policy], integer=integer)[:1]
    if change == "policy":
        entered = [entered[0]._replace(policy_sha256="0" * 64)]
    before = len(file.read_text().splitlines())
    stress(network, entered, columns, 1, clearance=clearance, kept=Kept(file))
    assert len(file.read_text().splitlines()) == before + 1


def test_a_policy_of_another_network_is_refused_at_once(short: Network) -> None:
    with pytest.raises(InputError, match=r"Hangzhou1\.json"):
        stress(short, contestants(["MaxQueue", pretrained_policy("Hangzhou1")]), FEW, progress=lambda run: pytest.fail("ran"))


def test_columns_by_name() -> None:
    assert find_columns("all") == list(COLUMNS)
    assert [each.name for each in find_columns("volume 1.3, as is,volume 1.3")] == ["volume 1.3", "as is"]
    with pytest.raises(FieldError, match=r"unknown column 'volum 1\.3'; did you mean volume 1\.3"):
        find_columns("as is,volum 1.3")
    assert len({each.name for each in COLUMNS}) == len(COLUMNS) == 15


def test_labels_are_short_where_they_can_be() -> None:
    assert labels(["a/x.json", "b/y.json", "MaxQueue"]) == {"a/x.json": "x.json", "b/y.json": "y.json", "MaxQueue": "MaxQueue"}
    assert labels(["a/x.json", "b/x.json"]) == {"a/x.json": "a/x.json", "b/x.json": "b/x.json"}


def test_the_files_hold_what_was_run(runs: list[StressRun], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shown = [str(pretrained_policy("crossing")), "MaxQueue", "SOTL"]
    for stem in ("first.1", "second.1"):
        write_scorecard(tmp_path / stem, runs, FEW, shown, "tinylight stress")
    assert sorted(each.name for each in tmp_path.glob("first*")) == [
        f"first.1{end}" for end in (".csv", ".json", ".md", ".svg")
    ]
    for end in (".csv", ".json", ".md", ".svg"):
        assert (tmp_path / f"first.1{end}").read_bytes() == (tmp_path / f"second.1{end}").read_bytes()
    with (tmp_path / "first.1.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["average_travel_time_s"]) for row in rows] == [run.average_travel_time_s for run in runs]
    content = json.loads((tmp_path / "first.1.json").read_text())
    assert [StressRun(**run) for run in content["runs"]] == runs
    assert [entry["loss"]["mean"] for entry in content["scores"]] == [score.loss.mean for score in scores(runs)]
    assert content["columns"][1] == asdict(FEW[1])
    table = (tmp_path / "first.1.md").read_text()
    found = {(score.column, score.agent): score for score in scores(runs)}
    for column in FEW:
        (line,) = (each for each in table.splitlines() if each.startswith(f"| {column.name} |"))
        for agent, entry in zip(shown, line.split(" | ")[2:], strict=True):
            score = found[column.name, agent]
            mean, low, high = (f"{100 * share:+.1f}" for share in score.loss)
            loss = "best" if agent == score.best_rule else f"{mean} %, {low} to {high}"
            assert entry.removesuffix(" |") == f"{score.travel_time_s.mean:.1f} s ({loss})"


def test_the_figure_shows_each_loss_with_its_interval(runs: list[StressRun]) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    from model.report.stress_figure import figure_of

    shown = [str(pretrained_policy("crossing")), "MaxQueue", "SOTL"]
    found = scores(runs)
    figure = figure_of(found, "crossing", shown)
    (axes,) = figure.axes
    points = {line.get_label(): line for line in axes.lines if line.get_marker() not in ("None", "")}
    assert list(points) == ["crossing.json", "MaxQueue", "SOTL"]
    for agent, line in zip(shown, points.values(), strict=True):
        own = [score for score in found if score.agent == agent]
        assert line.get_xdata() == pytest.approx([100 * score.loss.mean for score in own])
        assert [round(row) for row in line.get_ydata()] == list(range(len(FEW)))
    low, high = axes.get_xlim()
    assert all(low < 100 * score.loss.low and 100 * score.loss.high < high for score in found if score.agent in shown)
    FigureCanvasAgg(figure).draw()
    texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    for number, (text, box) in enumerate(boxes):
        assert not [other for other, place in boxes[:number] if place.overlaps(box)], text
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, f"{text!r} is cut off"


def test_the_command_shows_and_writes_a_scorecard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("COLUMNS", "200")
    arguments = (
        "stress",
        "--network",
        "crossing",
        "--columns",
        "as is,dead lane",
        "--seeds",
        "1",
        "--work",
        str(tmp_path / "work"),
    )
    assert tinylight(*arguments, "--out", str(tmp_path / "card")) == 0
    first = capsys.readouterr().out
    assert re.search(r"as is +[\w.]+ \d+\.\d s +\d+\.\d s", first) and "crossing.json" in first and "MaxCount" in first
    assert {each.name for each in tmp_path.iterdir()} == {"work", "card.csv", "card.json", "card.md", "card.svg"}
    runs = [StressRun(**run) for run in json.loads((tmp_path / "card.json").read_text())["runs"]]
    seeds = {run.seed for run in runs}
    assert len(runs) == 2 * (1 + len(rules_for("crossing"))) and seeds == {0}
    (row,) = evaluate("crossing", "SOTL", [0], settings=RunSettings(seed=default_seed(0)))
    assert row.average_travel_time_s in of(runs, "as is", "SOTL")
    monkeypatch.setattr("model.report.stress.evaluate", lambda *_, **__: pytest.fail("found again"))
    assert tinylight(*arguments) == 0
    assert capsys.readouterr().out == first.rpartition("written: ")[0]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--agents", "MaxQueue,,SOTL"], "--agents: 'MaxQueue,,SOTL' leaves a name empty"),
        (["--agents", "MaxQeue"], "MaxQeue: neither a policy file nor one of"),
        (["--columns", "as is,incident"], "--columns: unknown column 'incident'"),
        (["--seeds", "0"], "--seeds"),
        (["--clearance", "red"], "--clearance: red"),
        (["--agents", str(pretrained_policy("Jinan"))], "Jinan.json"),
    ],
    ids=lambda each: each[1][-12:] if isinstance(each, list) else "",
)
def test_bad_arguments_are_one_line(arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tinylight("stress", "--network", "crossing", *arguments) == 2
    text = capsys.readouterr().err
    assert error in text and text.count("\n") == 1


def test_the_files_stem_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tinylight("stress", "--network", "crossing", "--out", str(tmp_path), "--seeds", "1") == 2
    assert f"{tmp_path}: can't be written: it is a folder" in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.parent.glob(f"{tmp_path.name}.*"))
