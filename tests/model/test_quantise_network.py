"""`tinylight quantise`: networks of stable-baselines3, PyTorch and ONNX as policies, and one clear line for all others."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from model.evaluate import evaluate
from model.policy.file import load_policy
from model.policy.float_policy import FloatPolicy
from model.quantise.network_file import read_network
from streetflow.errors import InputError
from tests.helpers.places import ROOT
from tests.helpers.run_cli import tinylight
from tests.helpers.short_network import SHORT, write_short_crossing

FEATURES = "phase_2_num_vehicle,inlane_2_delay,inter_2_current_phase"
EXPORTED = ROOT / "tests/model/networks"  # written by torch.onnx and onnx.helper; the same weights, as arrays
WEIGHTS = list(np.load(EXPORTED / "same_weights.npz").values())


@pytest.fixture(autouse=True)
def short_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crossing (8 phases, 12 in-lanes) for some minutes."""
    write_short_crossing(tmp_path / "data", 600)
    monkeypatch.setenv("TINYLIGHT_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def network(*sizes: int) -> nn.Sequential:
    torch.manual_seed(0)
    layers = [nn.Linear(size, after) for size, after in pairwise(sizes)]
    return nn.Sequential(*(each for layer in layers for each in (layer, nn.ReLU())))[:-1]


def saved(content: Any, name: str = "net.pt") -> Path:
    torch.save(content, name)
    return Path(name)


def sb3_file(state: dict[str, Any], policy_kwargs: object = None) -> Path:
    """As stable-baselines3 lays its files out."""
    stream = io.BytesIO()
    torch.save(state, stream)
    with zipfile.ZipFile("model.zip", "w") as archive:
        archive.writestr("data", json.dumps({"policy_kwargs": policy_kwargs}))
        archive.writestr("policy.pth", stream.getvalue())
    return Path("model.zip")


def quantise(file: Path | str, *more: str, features: str = FEATURES, name: str = SHORT) -> int:
    return tinylight("quantise", str(file), "--network", name, "--features", features, "--out", "policy.json", *more)


@pytest.mark.parametrize("sizes", [(28, 20, 16, 8), (28, 24, 8)], ids=["two hidden layers", "one"])
def test_a_network_becomes_a_policy_that_decides_as_it(sizes: tuple[int, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """In float exactly as PyTorch; in integers nearly always. Travel times are those that `evaluate` gives."""
    net = network(*sizes)
    assert quantise(saved(net), "--clearance", "yellow") == 0
    policy = load_policy("policy.json")
    (part,) = policy.intersections
    assert [each.name for each in part.features] == FEATURES.split(",") and part.layer1.joined
    assert part.n_inputs == 28 and policy.clearance == "yellow"
    states = np.random.default_rng(0).integers(0, 30, (200, 28))
    lsb = np.repeat([1, 256, 1], [8, 12, 8])
    expected = net(torch.tensor(states / lsb, dtype=torch.float32)).detach().numpy()
    assert np.allclose(FloatPolicy(part).logits(states), expected, atol=1e-5)
    assert policy.provenance.settings["calibration_agreement"] > 0.9
    (run,) = policy.measured
    (row,) = evaluate(SHORT, policy, [0], integer=True)
    assert row.average_travel_time_s == run.integer_average_travel_time_s
    assert f"integers {row.average_travel_time_s:.2f} s" in capsys.readouterr().out


def test_one_feature_alone_has_nothing_to_join() -> None:
    assert quantise(saved(network(8, 6, 8)), features="phase_2_num_vehicle") == 0
    assert not load_policy("policy.json").intersections[0].layer1.joined


def test_all_lights_of_a_network_share_it_where_they_are_alike() -> None:
    assert quantise(saved(network(16, 6, 8)), features="phase_2_num_vehicle,phase_2_pressure", name="arterial") == 0
    parts = load_policy("policy.json").intersections
    assert len(parts) > 1 and len({part.id for part in parts}) == len(parts)
    assert all(part.layer1 == parts[0].layer1 for part in parts)


@pytest.mark.parametrize("file", ["torch_exported.onnx", "matmul_and_add.onnx"])
def test_onnx_files_hold_what_was_exported(file: str) -> None:
    layers = read_network(EXPORTED / file)
    assert [each.tolist() for layer in layers for each in layer] == [each.tolist() for each in WEIGHTS]


@pytest.mark.parametrize("file", ["torch_exported.onnx", "matmul_and_add.onnx"])
def test_a_damaged_onnx_file_is_refused_or_read_otherwise(file: str) -> None:
    """Cut off anywhere, or with any byte changed: an InputError or other numbers, never another exception."""
    content = (EXPORTED / file).read_bytes()
    rng = np.random.default_rng(0)
    damaged = [content[:end] for end in range(0, len(content), 11)]
    for place, byte in zip(rng.integers(0, len(content), 150), rng.integers(1, 256, 150), strict=True):
        damaged.append(content[:place] + bytes([content[place] ^ byte]) + content[place + 1 :])
    refused = 0
    for each in damaged:
        Path("damaged.onnx").write_bytes(each)
        try:
            read_network("damaged.onnx")
        except InputError as fault:
            assert str(fault).startswith("damaged.onnx: ")
            refused += 1
    assert refused > len(damaged) // 4


def test_state_dicts_and_files_of_stable_baselines3_hold_the_same() -> None:
    net = network(28, 20, 16, 8)
    state = net.state_dict()
    tensors = list(state.values())
    ppo_names = [f"mlp_extractor.policy_net.{n}.{kind}" for n in (0, 2) for kind in ("weight", "bias")]
    ppo = dict(zip([*ppo_names, "action_net.weight", "action_net.bias"], tensors, strict=True))
    others = {"mlp_extractor.value_net.0.weight": torch.zeros(3, 28), "value_net.bias": torch.zeros(1)}
    dqn = {f"{part}.{name}": value for part in ("q_net.q_net", "q_net_target.q_net") for name, value in state.items()}
    relu = {"activation_fn": "<class 'torch.nn.modules.activation.ReLU'>"}
    for file in (saved(state, "state.pth"), sb3_file(dqn), sb3_file(others | ppo, relu)):
        layers = read_network(file)
        assert [each.tolist() for layer in layers for each in layer] == [tensor.tolist() for tensor in tensors]


class Executed(nn.Module):
    """A class that no file may bring along."""


def odd_sb3(state: dict[str, Any], kwargs: object = None) -> Callable[[], Path]:
    return lambda: sb3_file(state, kwargs)


PPO = {"mlp_extractor.policy_net.0.weight": torch.zeros(4, 28), "mlp_extractor.policy_net.0.bias": torch.zeros(4),
       "action_net.weight": torch.zeros(8, 4), "action_net.bias": torch.zeros(8)}  # fmt: skip
FAULTS: dict[str, tuple[Callable[[], Path | str], str]] = {
    "no file": (lambda: "nowhere.pt", "nowhere.pt: there is no such file"),
    "text": (lambda: str(ROOT / "README.md"), "neither a file of stable-baselines3 or PyTorch nor one that ends in .onnx"),
    "own class": (lambda: saved(Executed()), "holds a tests.model.test_quantise_network.Executed; must"),
    "a tensor": (lambda: saved(torch.zeros(3)), "net.pt: holds a Tensor; must hold a Seq"),
    "tanh": (lambda: saved(nn.Sequential(nn.Linear(28, 9), nn.Tanh(), nn.Linear(9, 8))), "a torch.nn.modules.activation.Tanh"),
    "no relu": (lambda: saved(nn.Sequential(nn.Linear(28, 9), nn.Linear(9, 8))), "[1]: Linear where there must be ReLU"),
    "ends": (lambda: saved(nn.Sequential(nn.Linear(28, 9), nn.ReLU())), "must end with a Linear"),
    "norm": (lambda: saved(nn.Sequential(nn.Linear(28, 9), nn.BatchNorm1d(9)).state_dict()), "1.weight: only the weights"),
    "linear": (lambda: saved(network(28, 8)), "has 1 linear layers; must have at least two"),
    "deep": (lambda: saved(network(28, 9, 9, 9, 8)), "has 4 linear layers; the chip takes two or three"),
    "wide": (lambda: saved(network(28, 300, 8)), "layer 1: has 300 units; the chip takes up to 255"),
    "inputs": (lambda: saved(network(27, 9, 8)), "--features: have 28 values at intersection_1_1 (phase_2_num_vehicle 8"),
    "outputs": (lambda: saved(network(28, 9, 7)), "has 7 outputs; intersection_1_1 of short has 8 phases"),
    "infinite": (lambda: saved({"0.weight": torch.full((9, 28), torch.inf), "1.weight": torch.zeros(8, 9)}), "are not finite"),
    "misfit": (lambda: saved({"0.weight": torch.zeros(9, 28), "1.weight": torch.zeros(8, 10)}), "layer 2: weights (8, 10) and"),
    "ppo": (odd_sb3(PPO), "policy_kwargs: the units are Tanh; train with policy_kwargs=dict(activation_fn=torch.nn.ReLU, ...)"),
    "cnn": (odd_sb3({"features_extractor.cnn.0.weight": torch.zeros(1)}), "no network of DQN, PPO or A2C with an MlpPolicy"),
    "matrix": (lambda: str(EXPORTED / "matmul_and_add.onnx"), "has 5 inputs"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_one_line_says_what_is_wrong(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    make, message = FAULTS[fault]
    assert quantise(make()) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1
    assert not Path("policy.json").exists()


def test_nothing_in_a_file_is_executed(capsys: pytest.CaptureFixture[str]) -> None:
    """A pickle that would make a file."""

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (Path("executed"),)

    assert quantise(saved({"0.weight": Bomb()})) == 2
    assert not Path("executed").exists()
    assert "must hold a Sequential of Linear and ReLU, or a state dict" in capsys.readouterr().err
