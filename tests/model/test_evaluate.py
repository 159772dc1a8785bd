"""Policies and rules as controllers on real (built-in) networks, and the whole of `train_policy` in small."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model import pretrained_policy
from model.evaluate import RunSettings, evaluate
from model.policy.agent import PolicyAgent
from model.policy.file import IntersectionPolicy, Policy, load_policy, save_policy
from model.policy.inputs import gather_inputs, input_indices
from model.policy.integer import IntegerPolicy
from model.policy.synthetic import random_intersection, random_policy
from model.report.bootstrap import mean_interval
from streetflow.control.controllers import SECOND_BY_SECOND, MaxPressure, run
from streetflow.control.environment import Environment
from streetflow.control.features import FEATURES
from streetflow.errors import InputError
from streetflow.networks.catalogue import find_network
from tests.helpers.run_cli import tinylight
from tests.helpers.short_network import SHORT, write_short_crossing
from tests.helpers.small_network import grid, write


def fitting_policy(network: str, features: tuple[str, ...] = ("inlane_2_num_vehicle", "inter_2_current_phase")) -> Policy:
    """A random policy with the network's intersections, phases and features."""
    environment = Environment(network, 0, features=features)
    parts = []
    for n, intersection in enumerate(environment.intersections):
        part = random_intersection(
            n,
            intersection_id=intersection.id,
            n_phases=len(intersection.phases),
            widths=environment.feature_widths[n].tolist(),
        )
        inputs = [
            feature.model_copy(update={"name": name, "lsb_per_unit": FEATURES[name].lsb_per_unit})
            for feature, name in zip(part.features, features, strict=True)
        ]
        parts.append(part.model_copy(update={"features": inputs, "phases": list(intersection.phases)}))
    return random_policy(parts, network=network)


def test_rules_with_a_time_of_their_own_decide_each_second() -> None:
    for name, rule in SECOND_BY_SECOND.items():
        decided = []
        (row,) = evaluate("crossing", name, [2], settings=RunSettings(clearance="computed"), at_end=decided.append)
        (environment,) = decided
        assert environment.decision == environment.horizon_s == 3600
        own = Environment("crossing", 2, features=rule.features, clearance="computed", decision_interval_s=1)
        run(own, rule())
        assert row.average_travel_time_s == own.average_travel_time_s() and row.clearance == "computed"
    with pytest.raises(InputError, match="decision_interval_s: must be above 0, is 0"):
        Environment("crossing", decision_interval_s=0)


def test_inputs_are_the_kept_features_in_the_policys_order() -> None:
    part = fitting_policy("crossing").intersections[0]
    first, second = part.features
    names = (second.name, "other", first.name)
    widths = (second.width, 1, first.width)
    indices = input_indices(part, names, widths, 20)
    observation = np.arange(60).reshape(3, 20)
    expected = np.concatenate([observation[2, : first.width], observation[0, : second.width]])
    assert np.array_equal(gather_inputs(observation, indices), expected)
    assert np.array_equal(gather_inputs(np.stack([observation, observation + 100]), indices)[1], expected + 100)
    with pytest.raises(ValueError, match="needs the feature"):
        input_indices(part, names[:2], widths[:2], 20)
    with pytest.raises(ValueError, match="the policy has"):
        input_indices(part, names, (second.width + 1, 1, first.width), 20)


def test_integer_agent_decides_as_the_reference_on_what_it_saw() -> None:
    policy = fitting_policy("arterial")
    agent = PolicyAgent(policy, integer=True)
    environment = Environment("arterial", 0, features=["phase_2_delay", *agent.features[::-1]], horizon_s=400)
    observation = environment.reset()
    agent.reset(environment)
    reference = [IntegerPolicy(part) for part in policy.intersections]
    lanes_seen = 0
    for _ in range(environment.n_decisions):
        actions, inferences = agent.act(observation), agent.infer(observation)
        assert actions.tolist() == [each.act(seen.inputs) for each, seen in zip(reference, inferences, strict=True)]
        for intersection, (x, logits, _) in zip(environment.intersections, inferences, strict=True):
            assert len(logits) == intersection.action_count
            counts = environment.engine.lane_vehicle_counts()[list(intersection.in_lanes)]
            assert x[: len(counts)].tolist() == counts.tolist()
            lanes_seen += int(counts.sum())
        observation, _, _ = environment.step(actions)
    assert lanes_seen > 0


def test_decisions_that_leave_the_integers_range_are_counted_run_by_run(tmp_path: Path) -> None:
    """As one counts them by hand from the same states; in float and for a rule there is no such count."""
    policy = fitting_policy("arterial")
    environment = Environment("arterial", 1, features=PolicyAgent(policy, integer=True).features)
    agent = PolicyAgent(policy, integer=True)
    seen: list[tuple[bool, bool]] = []
    observation, done = environment.reset(), False
    agent.reset(environment)
    while not done:
        inferences = agent.infer(observation)
        for part, each in zip(policy.intersections, inferences, strict=True):
            limits = [feature.covered for feature in part.features for _ in range(feature.width)]
            inside = all(low <= x <= high for x, (low, high) in zip(each.inputs.tolist(), limits, strict=True))
            activations = IntegerPolicy(part).activations(each.inputs)
            seen.append((not inside, 255 in activations.h1 or 255 in activations.h2))
        observation, _, done = environment.step(np.array([each.action for each in inferences]))
    beyond, at_limit = map(sum, zip(*seen, strict=True))
    assert beyond > 0 and 0 < at_limit < len(seen) == 3 * environment.n_decisions
    rows = evaluate("arterial", policy, [0, 1], integer=True)
    assert (rows[1].decisions_beyond_range, rows[1].decisions_at_limit, rows[1].decisions) == (beyond, at_limit, len(seen))
    assert rows[0].decisions == rows[1].decisions
    for row in (*evaluate("arterial", "SOTL", [1]), *evaluate("crossing", pretrained_policy("crossing"), [1])):
        assert row.decisions_beyond_range is row.decisions_at_limit is row.decisions is None


def test_evaluate_says_how_often_the_integers_left_their_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "policy.json", tmp_path / "out.json"
    save_policy(fitting_policy("arterial"), file)
    command = ("evaluate", "--network", "arterial", "--agent", str(file), "--flows", "0")
    assert tinylight(*command, "--integer", "--json", str(out)) == 0
    (row,) = json.loads(out.read_text())
    beyond, at_limit = row["decisions_beyond_range"], row["decisions_at_limit"]
    said = f"of {row['decisions']} decisions, inputs beyond their range in {beyond} "
    assert said in (shown := capsys.readouterr().out) and f"units at their limit in {at_limit} (" in shown


def test_evaluate_equals_a_run_by_hand() -> None:
    environment = Environment("crossing", 1)
    run(environment, MaxPressure())
    row = evaluate("crossing", "MaxPressure", [1])[0]
    assert (row.network, row.flow, row.seed, row.agent) == ("crossing", 1, environment.seed, "MaxPressure")
    assert row.average_travel_time_s == environment.average_travel_time_s()
    assert row.throughput_veh_per_min == environment.throughput_veh_per_min()
    assert row.policy_sha256 is None and row.clearance == "hold"


def changed(policy: Policy, **fields: object) -> Policy:
    return policy.model_copy(update={"intersections": [policy.intersections[0].model_copy(update=fields)]})


def test_a_policy_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    policy = fitting_policy("crossing")
    part: IntersectionPolicy = policy.intersections[0]
    unknown = [part.features[0].model_copy(update={"name": "colour"}), part.features[1]]
    scaled = [part.features[0].model_copy(update={"lsb_per_unit": 2}), part.features[1]]
    narrow = [part.features[1], part.features[0]]  # right sum of widths, wrong ones
    for broken, fault in (
        (fitting_policy("arterial"), "made for arterial"),
        (changed(policy, id="elsewhere"), "made for crossing"),
        (changed(policy, phases=part.phases[::-1]), r"intersections\[0\].phases"),
        (changed(policy, features=unknown), r"features\[0\].name: unknown feature colour"),
        (changed(policy, features=scaled), r"features\[0\].lsb_per_unit: 2, not 1"),
        (
            changed(policy, features=[narrow[0].model_copy(update={"name": part.features[0].name}), part.features[1]]),
            "numbers at",
        ),
        (policy.model_copy(update={"decision_interval_s": 10}), "decision_interval_s"),
    ):
        with pytest.raises(InputError, match=fault):
            evaluate("crossing", broken, [0], integer=True)
    with pytest.raises(InputError, match="no float weights"):
        evaluate("crossing", policy, [0])
    with pytest.raises(InputError, match="neither a policy file nor one of FixedTime"):
        evaluate("crossing", "FixedTimes", [0])
    with pytest.raises(InputError, match="no integer form"):
        evaluate("crossing", "SOTL", [0], integer=True)
    save_policy(policy, tmp_path / "policy.json")
    with pytest.raises(InputError, match="no such flow"):
        evaluate("crossing", tmp_path / "policy.json", [99], integer=True)


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A network on which training is quick: the crossing, with 20 minutes of traffic."""
    write_short_crossing(tmp_path / "data", horizon_s=1200, flows=3)
    monkeypatch.setenv("TINYLIGHT_DATA", str(tmp_path / "data"))
    return SHORT


def test_train_policy_in_small(short: str, tmp_path: Path) -> None:
    """Two replicas of two episodes: a valid file with its provenance, the same bytes again; measured means run."""
    pytest.importorskip("torch", reason="torch is not installed (extra: train)")
    from model.train.search_and_refine import TrainingConfig
    from model.train.train_policy import PolicySettings, train_policy

    config = TrainingConfig(search_episodes=1, refine_episodes=1)
    settings = PolicySettings(2, "inlane_2_num_vehicle, phase_2_delay, inter_2_current_phase", config=config)
    for folder in ("a", "b"):
        train_policy(short, 2, 5, tmp_path / folder / "policy.json", settings, measure_flows=[2])
    assert (tmp_path / "a/policy.json").read_bytes() == (tmp_path / "b/policy.json").read_bytes()
    policy = load_policy(tmp_path / "a/policy.json")
    provenance = policy.provenance
    assert provenance.command == (
        "tinylight train --network short --flow 2 --seed 5 --replicas 2 --features "
        "inlane_2_num_vehicle,phase_2_delay,inter_2_current_phase --search-episodes 1 --refine-episodes 1 --out policy.json"
    )
    assert provenance.train_seed in (5, 6) and "of 2" in provenance.notes[0]
    assert (provenance.flow, provenance.search_episodes, provenance.refine_episodes) == (2, 1, 1)
    measured = policy.measured[0]
    for integer in (False, True):
        row = evaluate(short, tmp_path / "a/policy.json", [2], integer=integer)[0]
        name = f"{row.arithmetic}_average_travel_time_s"
        assert row.average_travel_time_s == getattr(measured, name)
        assert row.policy_sha256 == policy.sha256 and row.agent == "policy.json"
    assert json.loads((tmp_path / "a/policy.json").read_text())["provenance"]["settings"]["replicas"] == 2


def test_flows_in_turn_leave_others_unseen(short: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed (extra: train)")
    from model.train.flow_rotation import FlowRotation
    from model.train.search_and_refine import TrainingConfig
    from model.train.train_policy import PolicySettings, train_policies

    environments = [Environment("crossing", flow, horizon_s=200) for flow in (1, 2, 4)]
    rotation, times_s = FlowRotation(environments), []
    rotation.episode = 2
    for _ in range(4):
        rotation.reset()
        rotation.step(np.array([1]))
        times_s.append(rotation.average_travel_time_s())
    expected = [environment.average_travel_time_s() for environment in environments]
    assert times_s == [expected[2], expected[0], expected[1], expected[2]] and len(set(expected)) == 3

    config = TrainingConfig(search_episodes=1, refine_episodes=2, also_flows=(2,))
    (policy,) = train_policies(short, [1], 0, PolicySettings(config=config))
    assert "--also-flows 2" in policy.provenance.command and policy.provenance.settings["also_flows"] == [2]
    whole = PolicySettings(config=TrainingConfig(search_episodes=1, refine_episodes=2))
    (alone,) = train_policies(short, [1], 0, whole)
    assert policy.intersections[0].float_weights != alone.intersections[0].float_weights
    with pytest.raises(InputError, match="trained on already"):
        train_policies(short, [2], 0, PolicySettings(config=config))


def test_a_run_without_a_vehicle_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "idle", grid(), [])
    (tmp_path / "idle" / "flow.json").rename(tmp_path / "idle" / "flow_0.json")
    monkeypatch.setenv("TINYLIGHT_DATA", str(tmp_path))
    assert tinylight("evaluate", "--network", "idle", "--agent", "SOTL", "--flows", "0") == 0
    out, err = capsys.readouterr()
    assert "0.000" in out
    assert "idle/flow_0.json: no vehicle was created in 3600 s, so that travel time and throughput are 0" in out + err


def test_own_and_unseen_flows_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.json"
    policy = str(pretrained_policy("crossing"))
    assert tinylight("evaluate", "--network", "crossing", "--agent", policy, "--flows", "1,0,2", "--json", str(out)) == 0
    rows = json.loads(out.read_text())
    assert [(row["flow"], row["trained_on"]) for row in rows] == [(1, False), (0, True), (2, False)]
    first, own, last = (row["average_travel_time_s"] for row in rows)
    every, unseen = mean_interval([first, own, last]), mean_interval([first, last])
    lines = [" ".join(word for word in line.replace("│", " ").split()) for line in capsys.readouterr().out.splitlines()]
    (at,) = (number for number, line in enumerate(lines) if line.startswith("own flow "))
    assert lines[at].startswith(f"own flow {own:.3f} ")
    assert any(line.startswith(f"unseen flows {unseen.mean:.3f} ") for line in lines[at:])
    assert any(line.startswith(f"95 % {unseen.low:.3f} to {unseen.high:.3f} ") for line in lines[at:])
    assert any(line.startswith(f"95 % {every.low:.3f} to {every.high:.3f} ") for line in lines[:at])
    assert tinylight("evaluate", "--network", "crossing", "--agent", policy, "--flows", "1,2") == 0
    assert "unseen" not in capsys.readouterr().out
    assert [row.trained_on for row in evaluate("crossing", "SOTL", [0])] == [None]


def test_flows_that_were_trained_on_are_known_by_number_and_content() -> None:
    policy = load_policy(pretrained_policy("crossing"))
    origin = policy.provenance
    settings = origin.settings | {"also_flows": [2, 3]}
    several = policy.model_copy(update={"provenance": origin.model_copy(update={"settings": settings})})
    short = replace(find_network("crossing"), horizon_s=60)
    assert [row.trained_on for row in evaluate(short, several, range(4))] == [True, False, True, True]
    other = policy.model_copy(update={"provenance": origin.model_copy(update={"flow_sha256": "0" * 64})})
    assert [row.trained_on for row in evaluate(short, other, [0])] == [False]
    elsewhere = replace(short, name="mine")
    assert [row.trained_on for row in evaluate(elsewhere, policy, [0])] == [None]
