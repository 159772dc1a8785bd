"""The log of a training: written, read, drawn; and what isn't one is refused with file, line and column."""

from __future__ import annotations

import csv
import math
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.helpers.toy_environment import ToyEnvironment

pytest.importorskip("torch", reason="torch is not installed (extra: train)")

from model.train.log import read_log, write_log
from model.train.search_and_refine import EpisodeRow, TrainingConfig, train
from streetflow.errors import InputError

CONFIG = TrainingConfig(search_episodes=3, refine_episodes=2, layer2_dims=(4, 6), layer3_dims=(5, 3), batch=8)


@pytest.fixture(scope="module")
def rows() -> list[EpisodeRow]:
    trained = train([ToyEnvironment(seed=0), ToyEnvironment(seed=1)], [4, 9], ToyEnvironment.lsb_per_unit, CONFIG)
    assert trained is not None
    return trained.rows


@pytest.fixture()
def log(rows: list[EpisodeRow], tmp_path: Path) -> Path:
    file = tmp_path / "log.csv"
    write_log(rows, file, ToyEnvironment.feature_names, CONFIG.layer2_dims, CONFIG.layer3_dims)
    return file


def test_what_is_written_is_read(rows: list[EpisodeRow], log: Path) -> None:
    replicas = read_log(log)
    assert [(each.replica, each.train_seed, each.searched) for each in replicas] == [(0, 4, 3), (1, 9, 3)]
    for each in replicas:
        mine = [row for row in rows if row.replica == each.replica]
        assert each.columns["average_travel_time_s"] == [row.average_travel_time_s for row in mine]
        for f, name in enumerate(ToyEnvironment.feature_names):
            curve = each.columns[f"alpha_feature:{name}"]
            assert curve[:3] == pytest.approx([row.alphas[0][f] for row in mine[:3]], rel=1e-5)
            assert all(math.isnan(value) for value in curve[3:])
        last = sum(each.columns[f"alpha_layer3:{width}"][2] for width in CONFIG.layer3_dims)
        assert last == pytest.approx(1.0, abs=1e-5)


def test_the_picture_is_drawn(log: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: plot)")
    from tinylight.cli import app

    result = CliRunner().invoke(app, ["plot", str(log), "--out", str(log.with_suffix(".svg"))])
    assert result.exit_code == 0, result.output
    text = log.with_suffix(".svg").read_text(encoding="utf-8")
    assert "<svg" in text and len(text) > 20_000


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("text", ["nan", "inf", ""])
def test_gaps_are_drawn_and_reported(text: str, everywhere: bool, log: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: plot)")
    from tinylight.cli import app

    with log.open(newline="") as stream:
        heading, *lines = csv.reader(stream)
    for line in lines if everywhere else lines[2:3]:
        line[heading.index("average_travel_time_s")] = text
    with log.open("w", newline="") as stream:
        csv.writer(stream).writerows([heading, *lines])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = CliRunner().invoke(app, ["plot", str(log)])
    assert result.exit_code == 0, result.output
    gaps = [line for line in result.output.splitlines() if ": gaps" in line]
    seeds, count = ([4, 9], 5) if everywhere else ([4], 1)
    fault = "has no average_travel_time_s in {} episodes: gaps in the curve"
    assert gaps == [f"{log}: seed {seed} {fault.format(count)}" for seed in seeds]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("\n0,4,", "\nnan,4,", 1), "line 2, replica: must be a whole number, is nan"),
        (lambda text: text.replace("\n0,4,", "\n0,inf,", 1), "line 2, train_seed: must be a whole number, is inf"),
        (lambda text: text.rsplit("\n", 2)[0], "replica 1 has other episodes than replica 0"),
        (lambda text: text.replace("entropy_layer2", "entropy", 1), "no column entropy_layer2"),
        (lambda text: text.replace("loss", "lots", 1), "line 1: not a training log: no column loss"),
        (lambda text: text.splitlines()[0], "line 2: the log holds no episode"),
        (lambda text: text.replace("\n0,4,", "\nzero,4,", 1), "line 2, replica: 'zero' is no number"),
        (lambda text: text + "1,2,3\n", "more or fewer columns"),
    ],
)
def test_what_is_no_log_is_refused(log: Path, change: object, message: str) -> None:
    log.write_text(change(log.read_text(encoding="utf-8")), encoding="utf-8")  # type: ignore[operator]
    with pytest.raises(InputError, match=message):
        read_log(log)
