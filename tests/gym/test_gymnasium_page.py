"""docs/gymnasium.md as its readers use it: a script of stable-baselines3 as it is, from training to the verdict of the chip."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium")
pytest.importorskip("pettingzoo")
pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import PPO

from model.policy.file import load_policy
from streetflow.gym import REWARDS, SignalEnv
from tests.helpers.page_code import code_blocks, commands
from tests.helpers.places import ROOT
from tests.helpers.run_cli import tinylight

PAGE = "gymnasium.md"
STEPS = 400  # of the 16,000: that all of it works, not how well it drives


@pytest.mark.hil
def test_a_dqn_goes_from_the_script_to_the_chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of its decisions on the chip are those of the integers, and the float network's values are the model's."""
    monkeypatch.chdir(tmp_path)
    script = code_blocks(PAGE, "python")[0]
    shorter = script.replace("learn(16_000)", f"learn({STEPS})").replace("learning_starts=500", "learning_starts=100")
    assert shorter.count(str(STEPS)) == 1 and "learning_starts=100" in shorter
    names: dict = {}
    exec(compile(shorter, PAGE, "exec"), names)
    quantise, hil = commands(PAGE)
    assert tinylight(*quantise) == 0
    part = load_policy("dqn.json").intersections[0]
    assert [each.name for each in part.features] == names["FEATURES"] and part.hidden == [20, 16]
    model, env = names["model"], names["env"]
    observation, _ = env.reset(seed=1)
    for action in range(5):
        observation = env.step(action)[0]
    with torch.no_grad():
        expected = model.q_net(torch.tensor(observation)[None])[0].numpy()
    floats = part.float_weights
    assert floats is not None
    h1 = np.maximum(np.concatenate(floats.layer1_weights, axis=1) @ observation + np.sum(floats.layer1_biases, axis=0), 0)
    h2 = np.maximum(np.array(floats.layer2_weights) @ h1 + floats.layer2_biases, 0)
    assert np.allclose(np.array(floats.layer3_weights) @ h2 + floats.layer3_biases, expected, atol=1e-3)
    tinylight(*hil, "--no-sweep", "--json", "verdict.json")  # so short a training may leave the integers' range
    (verdict,) = json.loads(Path("verdict.json").read_text())["runs"]
    passed = {check["name"] for check in verdict["checks"] if check["outcome"] == "pass"}
    assert {"equality", "latency", "flash", "RAM", "traffic"} <= passed


def test_ppo_trains_with_its_defaults() -> None:
    env = SignalEnv("crossing", horizon_s=400)
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu")
    before = [each.clone() for each in model.policy.parameters()]
    model.learn(64)
    assert any(not torch.equal(one, other) for one, other in zip(before, model.policy.parameters(), strict=True))


def test_the_environments_of_the_page_do_what_it_says() -> None:
    names: dict = {}
    exec(compile(code_blocks(PAGE, "python")[1], PAGE, "exec"), names)
    assert names["observation"].shape == names["env"].observation_space.shape
    assert set(names["rewards"].shape) == {32}
    assert names["env"].episodes.environment.clearance == "yellow"
    names["batch"].close()


def test_the_pages_rewards_are_those_there_are() -> None:
    rows = re.findall(r"^\| `([a-z]+)` \| ([^|]*) \| (.*) \|$", (ROOT / "docs" / PAGE).read_text(), re.MULTILINE)
    assert rows == [(name, spec.unit, spec.definition) for name, spec in REWARDS.items()]
