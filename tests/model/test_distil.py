"""Distillation on a short run: seeded, resumable, within its budget, and better than the rule that it starts from."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from model.evaluate import evaluate

torch = pytest.importorskip("torch", reason="torch is not installed (extra: train)")

from model.planning.distil import Distillation, Driver, Progress  # noqa: E402
from model.planning.settings import PlanConfig  # noqa: E402
from model.policy.file import Policy, load_policy, save_policy  # noqa: E402
from model.train import planned_policy as planned  # noqa: E402
from model.train.hard_traffic import hard_states  # noqa: E402
from model.train.planned_log import planned_rows  # noqa: E402
from model.train.planned_policy import PlannedSettings, plan_policy  # noqa: E402
from streetflow.control.environment import Environment  # noqa: E402
from streetflow.errors import InputError  # noqa: E402
from streetflow.networks.catalogue import Network, find_network  # noqa: E402
from tests.helpers.run_cli import tinylight  # noqa: E402

NAMES = "inlane_2_num_vehicle,inlane_2_num_waiting_vehicle,inter_2_current_phase,inter_2_pressure"
SHORT = PlanConfig(
    rounds=2,
    search_rounds=1,
    own=1,
    varied=1,
    horizon=5,
    planned_share=1.0,
    search_steps=60,
    refine_steps=150,
    last_steps=300,
    kept_features=2,
)


@pytest.fixture(scope="module")
def crossing() -> Network:
    return dataclasses.replace(find_network("crossing"), horizon_s=900)


@pytest.fixture(scope="module")
def made(crossing: Network) -> tuple[Policy, list[Progress]]:
    states: list[Progress] = []
    policy = plan_policy(crossing, 0, 3, PlannedSettings(NAMES, config=SHORT), progress=states.append)
    return policy, states


def test_the_same_seed_gives_the_same_policy_in_one_go_or_resumed(
    crossing: Network, made: tuple[Policy, list[Progress]], tmp_path: Path
) -> None:
    checkpoint, settings = tmp_path / "checkpoint", PlannedSettings(NAMES, config=SHORT)

    def stop(state: Progress) -> None:
        if state.round == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan_policy(crossing, 0, 3, settings, progress=stop, checkpoint=checkpoint)
    resumed: list[Progress] = []
    policy = plan_policy(crossing, 0, 3, settings, progress=resumed.append, checkpoint=checkpoint)
    assert {state.round for state in resumed} == {1}
    assert policy.sha256 == made[0].sha256


def test_a_checkpoint_of_another_run_is_refused(crossing: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned, "saturated_share", lambda *_, **__: 0.0)  # so short a training may leave it
    checkpoint = tmp_path / "checkpoint"
    one_round = PlannedSettings(NAMES, config=dataclasses.replace(SHORT, rounds=1, varied=0, refine_steps=5, search_steps=5))
    plan_policy(crossing, 0, 3, one_round, checkpoint=checkpoint, measure_flows=[0])
    with pytest.raises(InputError, match="seed: the checkpoint has 3, this run 4"):
        plan_policy(crossing, 0, 4, one_round, checkpoint=checkpoint)


def test_the_policy_is_better_than_the_rule_that_it_starts_from(crossing: Network, made: tuple[Policy, list[Progress]]) -> None:
    policy, _ = made
    flows = range(3)
    rule_s = np.mean([row.average_travel_time_s for row in evaluate(crossing, "MaxQueue", flows)])
    own_s = np.mean([row.average_travel_time_s for row in evaluate(crossing, policy, flows, integer=True)])
    assert own_s < rule_s


def test_the_policy_says_what_it_is(made: tuple[Policy, list[Progress]], tmp_path: Path) -> None:
    policy, _ = made
    (part,) = policy.intersections
    assert part.n_parameters <= 1001 and len(part.features) == 2
    provenance = policy.provenance
    assert provenance.settings["method"] == "planned" and provenance.settings["rounds"] == 2
    assert "--method planned --network crossing --flow 0 --seed 3" in provenance.command
    assert "--set kept_features=2" in provenance.command and "--set horizon=5" in provenance.command
    assert [row.flow for row in policy.measured] == list(range(10))
    save_policy(policy, tmp_path / "policy.json")
    assert load_policy(tmp_path / "policy.json") == policy


def test_narrow_integers_are_learnt_kept_and_told(crossing: Network) -> None:
    narrow = dataclasses.replace(SHORT, weight_limit=7, shifts_only=True, narrow_sums=True, drop_silent=True)
    policy = plan_policy(crossing, 0, 3, PlannedSettings(NAMES, config=narrow), measure_flows=[0])
    (part,) = policy.intersections
    layers = [*part.layer1.weights, part.layer2.weights, part.layer3.weights]
    assert max(abs(weight) for rows in layers for row in rows for weight in row) == 7
    assert all(m & (m - 1) == 0 for layer in (part.layer1, part.layer2) for m in layer.multipliers)
    command = policy.provenance.command
    for setting in ("weight_limit=7", "shifts_only=True", "narrow_sums=True", "drop_silent=True"):
        assert f"--set {setting}" in command
    assert policy.provenance.settings["weight_limit"] == 7


def test_a_log_has_a_row_an_episode(made: tuple[Policy, list[Progress]]) -> None:
    rows = planned_rows(made[1], 3, SHORT)
    assert [(row.stage, row.episode) for row in rows] == [("search", 0), ("search", 1), ("refine", 0), ("refine", 1)]
    assert all(sum(layer) == pytest.approx(1.0, abs=1e-5) for layer in rows[0].alphas) and rows[2].alphas == ()
    assert rows[0].epsilon == 1.0 and rows[2].epsilon == SHORT.planner_share


def test_the_integers_keep_their_range_in_hard_traffic(crossing: Network) -> None:
    """What calibration adds: inputs of hard traffic, beyond those of the training."""
    config = dataclasses.replace(SHORT, rounds=1, search_rounds=1, varied=0)
    work = Distillation(crossing, 0, NAMES.split(","), "hold", 0, config)
    planned.run_rounds(work, None, {}, None)
    (hard,) = hard_states(work, seed=0)
    seen = work.records.seen(0).inputs[:, work.student.columns(0)]
    assert hard.max() > seen.max()
    (part,) = planned.finished_parts(work, [hard])
    for feature in part.part.features:
        q = (hard.max() - feature.offset) * feature.multiplier >> feature.shift
        assert q <= 255 or feature.width == 1 or "phase" in feature.name


def test_integers_that_leave_their_range_are_calibrated_again_and_then_refused(
    crossing: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_round = PlannedSettings(NAMES, config=dataclasses.replace(SHORT, rounds=1, varied=0, refine_steps=5, search_steps=5))
    tried = []

    def narrow(policy: Policy, *_: object, seed: int) -> float:
        tried.append(policy.sha256)
        return 0.02

    monkeypatch.setattr(planned, "saturated_share", narrow)
    with pytest.raises(InputError, match=r"leave their range in 2\.0% of the decisions in hard traffic, after 3"):
        plan_policy(crossing, 0, 3, one_round)
    assert len(tried) == 3


def test_lights_that_differ_share_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before the training."""
    monkeypatch.setattr(planned, "run_rounds", lambda *_: pytest.fail("it trained"))
    uneven = Environment("arterial", 0, features=NAMES.split(","))
    uneven.feature_widths[1] += 1
    monkeypatch.setattr("model.planning.distil.Environment", lambda *_, **__: uneven)
    with pytest.raises(InputError, match="the intersections differ in phases or lanes"):
        plan_policy(find_network("arterial"), 0, 0, PlannedSettings(NAMES, config=dataclasses.replace(SHORT, share=True)))


def test_the_driver_before_the_first_round_is_max_queue(crossing: Network) -> None:
    environment = Environment(crossing, 0, features=[*NAMES.split(","), "phase_2_num_waiting_vehicle"])
    driver, observation = Driver(environment, None), environment.reset()
    for _ in range(5):
        observation, _, _ = environment.step(driver.act(observation))
    queues = observation[:, environment.feature_columns(["phase_2_num_waiting_vehicle"])[0]]
    assert driver.act(observation).tolist() == [int(np.argmax(row)) for row in queues]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--method", "dqm"], "--method: unknown method 'dqm'; did you mean dqn?"),
        (["--method", "planned", "--double-q"], "--double-q: --method planned doesn't take this"),
        (["--method", "planned", "--set", "rounds=0"], "rounds"),
        (["--method", "planned", "--set", "round=3"], "--set"),
        (["--method", "planned", "--set", "weight_limit=128"], "weight_limit: must be a whole number from 1 to 127, is 128"),
        (["--method", "planned", "--set", "drop_silent=2"], "drop_silent: must be True or False, is 2"),
        (["--method", "planned", "--set", "volume_least=2"], "volume_least"),
        (["--method", "planned", "--features", "inter_2_vehicle_position_image"], "can be seen by rollouts"),
        (["--method", "planned", "--kept-features", "0"], "0"),
        (["--kept-features", "0"], "0"),
        (["--method", "planned", "--max-parameters", "3"], "--max-parameters: 3: only 0 of all fit; 3 are kept"),
        (["--method", "planned", "--kept-features", "50"], "--kept-features: only 36 of all can be seen by rollouts"),
    ],
)
def test_bad_options_are_named(
    arguments: list[str], fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert tinylight("train", "--network", "crossing", "--out", "x.json", *arguments) == 2
    error = capsys.readouterr().err
    assert fault in error and error.count("\n") == 1 and not Path("x.json").exists()


def test_the_command_writes_policy_and_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("streetflow.networks.scenarios.HORIZON_S", 300)
    settings = {"rounds": 1, "own": 1, "varied": 0, "horizon": 3, "search_steps": 5, "last_steps": 5}
    sets = [text for name, value in settings.items() for text in ("--set", f"{name}={value}")]
    arguments = ["--method", "planned", "--features", NAMES, *sets, "--log", "log.csv", "--json", "x.out.json"]
    assert tinylight("train", "--network", "crossing", "--out", "x.json", *arguments) == 0
    assert load_policy(Path("x.json")).provenance.search_episodes == 1
    assert not Path("x.json.checkpoint").exists() and Path("x.out.json").is_file()
    assert len(Path("log.csv").read_text().splitlines()) == 2
    assert "parameters" in capsys.readouterr().out
    assert tinylight("plot", "log.csv", "--out", "log.svg") == 0
