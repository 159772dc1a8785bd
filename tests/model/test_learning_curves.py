"""Logs for TensorBoard, and the picture of several logs: its figures against the logs', and what can't be drawn is refused."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.run_cli import tinylight

pytest.importorskip("torch", reason="torch is not installed (extra: train)")

from model.report.bootstrap import mean_interval
from model.report.curves_figure import learning_curve, require_alike
from model.train.events import EventLog
from model.train.log import read_log, write_log
from model.train.search_and_refine import EpisodeRow
from streetflow.errors import InputError

SEARCH, REFINE = 2, 3
PLANNED = "rounds=2 search_rounds=1 own=1 varied=0 horizon=2 search_steps=20 refine_steps=20 last_steps=20"
PLANNED_SETS = tuple(word for name in PLANNED.split() for word in ("--set", name))


def rows(seeds: tuple[int, ...], refine: int = REFINE) -> list[EpisodeRow]:
    """Travel times are 100 + 10 * seed - episode; the loss of the first episode isn't a number."""
    made = []
    for number in range(SEARCH + refine):
        searching = number < SEARCH
        for replica, seed in enumerate(seeds):
            stage, episode = ("search", number) if searching else ("refine", number - SEARCH)
            loss, entropies = math.nan if number == 0 else 2.0 + number, [0.5] * 3 if searching else [math.nan] * 3
            alphas = ((0.5, 0.5), (1.0,), (1.0,)) if searching else ()
            time_s = 100.0 + 10 * seed - number
            made.append(EpisodeRow(replica, seed, stage, episode, 0.1, 0.001, loss, *entropies, time_s, alphas))
    return made


def written(file: Path, seeds: tuple[int, ...], refine: int = REFINE) -> Path:
    write_log(rows(seeds, refine), file, ("a", "b"), (16,), (18,))
    return file


def test_the_curve_is_the_mean_over_all_seeds(tmp_path: Path) -> None:
    replicas = [*read_log(written(tmp_path / "a.csv", (0, 3))), *read_log(written(tmp_path / "b.csv", (7,)))]
    curve = learning_curve(replicas)
    assert len(curve) == SEARCH + REFINE
    assert curve[3] == mean_interval([97.0, 127.0, 167.0])
    replicas[1].columns["average_travel_time_s"][3] = math.inf
    assert learning_curve(replicas)[3] == mean_interval([97.0, 167.0])
    for each in replicas:
        each.columns["average_travel_time_s"][0] = math.nan
    assert all(math.isnan(value) for value in learning_curve(replicas)[0])


def test_logs_with_other_episodes_have_no_common_mean(tmp_path: Path) -> None:
    files = [written(tmp_path / "a.csv", (0,)), written(tmp_path / "b.csv", (1,)), written(tmp_path / "c.csv", (2,), refine=9)]
    logs = {file: read_log(file) for file in files}
    require_alike({file: logs[file] for file in files[:2]})
    with pytest.raises(InputError, match=r"c\.csv: has 11 episodes, 2 of them of the search, but .*a\.csv has 5 .*--apart"):
        require_alike(logs)


def test_plot_of_several_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: plot)")
    first, second = written(tmp_path / "a.csv", (0, 3)), written(tmp_path / "b.csv", (7,))
    other, out = written(tmp_path / "c.csv", (2,), refine=9), tmp_path / "curves.svg"
    assert tinylight("plot", str(first), str(second), "--out", str(out)) == 0
    assert capsys.readouterr().out == f"{out}: 3 replicas, 5 episodes\n"
    together = out.read_text()
    assert tinylight("plot", str(first), str(second), str(other), "--apart", "--out", str(out)) == 0
    assert "5 and 11 episodes" in capsys.readouterr().out
    assert together != out.read_text() and "<svg" in together
    assert tinylight("plot", str(first), str(other), "--out", str(out)) == 2
    assert "c.csv: has 11 episodes" in capsys.readouterr().err
    assert tinylight("plot", str(first), str(tmp_path / "none.csv"), "--out", str(out)) == 2
    assert "none.csv" in capsys.readouterr().err


def test_a_log_is_not_drawn_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: plot)")
    log = written(tmp_path / "a.svg", (0,))
    assert tinylight("plot", str(log), str(written(tmp_path / "b.csv", (1,))), "--out", str(log)) == 2
    assert "is a log" in capsys.readouterr().err and len(read_log(log)) == 1


def test_tensorboard_reads_what_was_trained(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (extra: tensorboard)")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events, own = EventLog(tmp_path), rows((4, 9))
    for begin in range(0, len(own), 2):  # an episode at a time, as a training gives them
        events.add(own[begin : begin + 2])
    assert events.rows == len(own)
    events.close()
    for seed in (4, 9):
        read = EventAccumulator(str(tmp_path / f"seed_{seed}"))
        read.Reload()
        times = read.Scalars("average_travel_time_s")
        assert [(each.step, each.value) for each in times] == [(n, 100.0 + 10 * seed - n) for n in range(SEARCH + REFINE)]
        assert [each.step for each in read.Scalars("loss")] == [1, 2, 3, 4]  # the first isn't a number
        assert [each.step for each in read.Scalars("entropy_layer2")] == [0, 1]
    again = EventLog(tmp_path)
    again.add([replace(row, average_travel_time_s=1.0) for row in own[:4]])
    again.close()
    read = EventAccumulator(str(tmp_path / "seed_4"))
    read.Reload()
    assert [(each.step, each.value) for each in read.Scalars("average_travel_time_s")] == [(0, 1.0), (1, 1.0)]


def test_without_tensorboard_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    train = (
        "train",
        "--network",
        "crossing",
        "--out",
        str(tmp_path / "policy.json"),
        "--tensorboard",
        str(tmp_path / "events"),
    )
    for more in ((), ("--method", "planned")):
        assert tinylight(*train, *more) == 2
        fault = "--tensorboard: needs TensorBoard: pip install 'tinylight-hil[tensorboard]'"
        assert capsys.readouterr().err == f"tinylight: {fault}\n"
    EventLog(None).add(rows((1,)))


@pytest.mark.parametrize("method", ["dqn", "planned"])
def test_both_methods_write_events(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (extra: tensorboard)")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setattr("streetflow.networks.scenarios.HORIZON_S", 300)
    short = {
        "dqn": ("--search-episodes", "1", "--refine-episodes", "1", "--set", "batch=8"),
        "planned": ("--features", "phase_2_num_vehicle,inter_2_current_phase", "--kept-features", "2", *PLANNED_SETS),
    }[method]
    log, events = tmp_path / "log.csv", tmp_path / "events"
    files = ("--out", str(tmp_path / "policy.json"), "--log", str(log), "--tensorboard", str(events))
    assert tinylight("train", "--network", "crossing", "--method", method, "--seed", "5", *short, *files) == 0
    read = EventAccumulator(str(events / "seed_5"))
    read.Reload()
    (own,) = read_log(log)
    times = own.columns["average_travel_time_s"]
    assert [each.value for each in read.Scalars("average_travel_time_s")] == pytest.approx(times) and len(times) == 2
