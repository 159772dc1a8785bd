"""What a training's settings may be: one place knows it, and options, --set and the table's settings file are held to it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from model.report.paper_table import PAPER_NETWORKS
from model.report.settings import settings_names, tinylight_settings
from model.search.config import TrainingConfig
from streetflow.errors import InputError
from tests.helpers.run_cli import tinylight

COUNT = "must be a whole number from 1 to 1,000,000,000, is"
IMPOSSIBLE = [
    ("batch=0", f"{COUNT} 0"),
    ("batch=True", f"{COUNT} True"),
    ("batch=2.5", f"{COUNT} 2.5"),
    ("batch=1000000", "1000000 is more than replay_capacity, 100000"),
    ("batch=50000", "50000, but there are only 34560 decisions to learn from"),
    ("tau=7", "must be a number above 0 and at most 1, is 7"),
    ("tau=0", "must be a number above 0 and at most 1, is 0"),
    ("epsilon_last_episode=0", f"{COUNT} 0"),
    ("halve_every=0", f"{COUNT} 0"),
    ("replay_capacity=0", f"{COUNT} 0"),
    ("layer2_dims=(0,)", "must be a tuple of whole numbers from 1 to 1,000, is (0,)"),
    ("layer2_dims=()", "must be a tuple of whole numbers from 1 to 1,000, is ()"),
    ("layer3_dims=(4,'x')", "must be a tuple of whole numbers from 1 to 1,000, is (4, 'x')"),
    ("layer3_dims=16", "must be a tuple of whole numbers from 1 to 1,000, is 16"),
    ("gamma=2", "must be a number from 0 to 1, is 2"),
    ("gamma=-1", "must be a number from 0 to 1, is -1"),
    ("gamma=1e999", "must be a number from 0 to 1, is inf"),
    ("gamma=1e999-1e999", "is neither a number nor a tuple"),
    ("gamma=nan", "is neither a number nor a tuple"),
    ("gamma=inf", "is neither a number nor a tuple"),
    ("gamma", "needs a value: gamma=VALUE"),
    ("learning_rate=-1", "must be a number above 0 and at most 1, is -1"),
    ("learning_rate=0", "must be a number above 0 and at most 1, is 0"),
    ("learning_rate='x'", "must be a number above 0 and at most 1, is 'x'"),
    ("beta=-5", "must be a number from 0 to 1,000,000,000, is -5"),
    ("beta=1e999", "must be a number from 0 to 1,000,000,000, is inf"),
    ("epsilon=5", "must be a number from 0 to 1, is 5"),
    ("reward_scale=0", "must be a number above 0 and at most 1,000,000,000, is 0"),
    ("updates_per_decision=0", f"{COUNT} 0"),
    ("search_episodes=0", f"{COUNT} 0"),
    ("refine_episodes=0", f"{COUNT} 0"),
    ("rounded_episodes=129", "129, of 128 to refine"),
    ("kept_episodes=-1", "must be a whole number from 0 to 1,000,000,000, is -1"),
    ("kept_features=0", f"{COUNT} 0"),
    ("kept_features=12", "12, but only 11 are searched"),
    ("max_parameters=0", f"{COUNT} 0"),
    ("share=1", "must be True or False, is 1"),
    ("also_flows=(-1,)", "must be a tuple of whole numbers from 0 to 1,000,000,000, is (-1,)"),
]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a training that is refused before anything is written."""
    pytest.importorskip("torch", reason="torch is not installed (extra: train)")
    assert tinylight("train", "--network", "crossing", "--out", "x.json", *arguments) == 2
    out, error = capsys.readouterr()
    assert out == "" and error.startswith("tinylight: ") and error.count("\n") == 1
    assert list(Path.cwd().iterdir()) == []
    return error.removeprefix("tinylight: ").strip()


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("setting", "fault"), IMPOSSIBLE, ids=[setting for setting, _ in IMPOSSIBLE])
def test_an_impossible_setting_is_one_line(setting: str, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "--set", setting)
    assert line.startswith(f"--set: {setting.partition('=')[0]}: ") and fault in line


@pytest.mark.parametrize("option", ["halve-every", "search-episodes", "updates-per-decision", "max-cycles", "kept-features"])
def test_an_impossible_option_is_named(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, f"--{option}", "0") == f"--{option}: {COUNT} 0"
    assert refused(capsys, f"--{option}", "5", "--set", f"{option.replace('-', '_')}=-1").startswith("--set: ")


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        # two features 8 wide, 16 units twice, 8 phases: 2 * 9 * 16 + 17 * 16 + 17 * 8
        ("--max-parameters 300", "--max-parameters: 300 is too little for 2 features at an intersection: at least 696"),
        ("--set max_cycles=9", "--set: max_cycles: 9 is too little for 2 features at an intersection: at least "),
        ("--max-parameters 1 --max-flash-bytes 2 --kept-features 3", "(also --max-flash-bytes: 2 is too little for 3 feature"),
    ],
)
def test_a_budget_that_nothing_fits_tells_the_least_that_would_do(
    options: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(capsys, *options.split())
    assert fault in line and "None" not in line


@pytest.mark.parametrize(("setting", "fault"), [({"gamma": 2}, "must be a number from 0 to 1, is 2"), ({"gama": 1}, "gamma?")])
def test_the_tables_settings_file_is_held_to_the_same(setting: dict[str, object], fault: str) -> None:
    file = Path("settings.json")
    (name,) = setting
    file.write_text(json.dumps({"x": {"training": {"batch": 8}, "networks": {"Jinan": {"training": setting}}}}))
    assert tinylight_settings("x", "Atlanta", file).config() == TrainingConfig(batch=8)
    with pytest.raises(InputError) as refused:
        tinylight_settings("x", "Jinan", file)
    assert str(refused.value).startswith(f"settings.json: x.training.{name}: ") and fault in str(refused.value)


@pytest.mark.parametrize("name", settings_names())
@pytest.mark.parametrize("network", PAPER_NETWORKS)
def test_the_tables_settings_are_possible(name: str, network: str) -> None:
    settings = tinylight_settings(name, network)
    assert settings.method == ("planned" if name == "planned" else "dqn")
    assert "method" in settings.identity() or settings.method == "dqn"


def test_a_planned_setting_is_held_to_its_own_config() -> None:
    file = Path("settings.json")
    file.write_text(json.dumps({"x": {"method": "planned", "training": {"rounds": 0}}}))
    with pytest.raises(InputError, match=r"^settings\.json: x\.training\.rounds: must be a whole number from 1"):
        tinylight_settings("x", "Jinan", file)


@pytest.mark.parametrize("text", ["", "[]", '{"x": 3}', '{"x": {"networks": {"Jinan": {"training": 3}}}}'])
def test_a_settings_file_that_is_none_is_refused(text: str) -> None:
    Path("settings.json").write_text(text)
    with pytest.raises(InputError, match=r"^settings\.json: "):
        tinylight_settings("x", "Jinan", Path("settings.json"))


def test_numpys_numbers_and_whole_numbers_for_real_ones_will_do() -> None:
    config = TrainingConfig(batch=np.int64(8), gamma=1, beta=np.float32(0.5))  # type: ignore[arg-type]
    assert dataclasses.replace(config, layer2_dims=(4,)).layer2_dims == (4,)


@pytest.mark.parametrize(("flows", "fault"), [("1-", "'1-' is not a number"), ("77", "no flow '77'"), ("3-1", "backwards")])
def test_faulty_flows_name_their_option(flows: str, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "--also-flows", flows)
    assert line.startswith("--also-flows: ") and fault in line


@pytest.mark.parametrize("given", ["--set gamma=1", "--kept-features 3", "--json o.json"])
def test_a_baseline_names_the_option_that_it_does_not_take(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "--model", "FRAP", *given.split())
    assert line == f"{given.split()[0]}: a baseline has the paper's settings and doesn't take this"


def test_a_fault_is_told_alone_beside_a_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    """Then there is nothing to resume from."""
    pytest.importorskip("torch", reason="torch is not installed (extra: train)")
    Path("x.json.checkpoint").write_bytes(b"nonsense")
    for arguments in (["--max-parameters", "3"], ["--features", "relase"], []):
        assert tinylight("train", "--network", "crossing", "--out", "x.json", *arguments) == 2
        out, error = capsys.readouterr()
        assert out == "" and error.count("\n") == 1


def test_what_goes_on_from_a_checkpoint_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Once, when the checkpoint has been read."""
    training = pytest.importorskip("model.train.search_and_refine", reason="torch is not installed (extra: train)")
    row = training.EpisodeRow(0, 0, "search", 0, 0.1, 1e-3, 2.0, 1.0, 1.0, 1.0, 50.0, ())

    def stopped_again(*_: object, progress: Callable[[object], None], **__: object) -> None:
        for done in (16, 17):
            progress(training.TrainingProgress(done, 192, 0.0, 0.0, [row]))
        raise KeyboardInterrupt

    monkeypatch.setattr("model.train.train_policy.train_policy", stopped_again)
    for expected in ("", "resuming from x.json.checkpoint\n"):
        assert tinylight("train", "--network", "crossing", "--out", "x.json") == 130
        assert capsys.readouterr().out == expected
        Path("x.json.checkpoint").touch()
