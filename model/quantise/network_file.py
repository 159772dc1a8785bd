"""The linear layers of a trained network in a file of stable-baselines3, PyTorch or ONNX. Nothing in a file is executed."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from model.quantise.onnx_file import Linear, read_onnx
from streetflow.errors import InputError
from streetflow.input_file import read_input

SB3_NETWORKS = (r"q_net\.q_net\.\d+", r"mlp_extractor\.policy_net\.\d+|action_net")  # of DQN; of PPO and A2C
SB3_ALL = r"q_net\.|mlp_extractor\.|action_net"


def read_network(file: str | Path) -> list[Linear]:
    """Reads a network that is linear layers with a ReLU between two of them.

    Args:
        file: saved by stable-baselines3 (`model.save`: the network that acts), by PyTorch (`torch.save` of a `Sequential`, or
            of a state dict, whose layers are taken in order, with a ReLU between) or as ONNX.

    Returns:
        Two layers or more, each with as many inputs as the one before has outputs, all numbers finite.

    Raises:
        InputError: it is no such file, or another network.
    """
    file = Path(file)
    content = read_input(file)
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            is_sb3 = "policy.pth" in archive.namelist()
            layers = _of_sb3(file, archive) if is_sb3 else _of_torch(file, content)
    elif file.suffix == ".onnx":
        layers = read_onnx(file, content)
    else:
        raise InputError(file, "", "neither a file of stable-baselines3 or PyTorch nor one that ends in .onnx")
    return _checked(file, layers)


def _checked(file: Path, layers: list[Linear]) -> list[Linear]:
    if len(layers) < 2:
        raise InputError(file, "", f"has {len(layers)} linear layers; must have at least two")
    for number, (weights, biases) in enumerate(layers):
        if (
            weights.ndim != 2
            or biases.shape != weights.shape[:1]
            or (number and weights.shape[1] != len(layers[number - 1].biases))
        ):
            raise InputError(file, f"layer {number + 1}", f"weights {weights.shape} and biases {biases.shape} don't fit")
        if not (np.isfinite(weights).all() and np.isfinite(biases).all()):
            raise InputError(file, f"layer {number + 1}", "has weights that are not finite")
    return layers


def _of_sb3(file: Path, archive: zipfile.ZipFile) -> list[Linear]:
    state = _loaded(file, archive.read("policy.pth"))
    if not isinstance(state, Mapping):
        raise InputError(file, "policy.pth", "not a state dict")
    for pattern in SB3_NETWORKS:
        own = {name: value for name, value in state.items() if re.fullmatch(rf"({pattern})\.(weight|bias)", name)}
        if own:
            _require_relu(file, archive, "ReLU" if "q_net" in pattern else "Tanh")
            return _of_state(file, own)
    raise InputError(file, "policy.pth", "no network of DQN, PPO or A2C with an MlpPolicy")


def _require_relu(file: Path, archive: zipfile.ZipFile, usual: str) -> None:
    """InputError unless the units are ReLUs: so says `policy_kwargs`, or the algorithm's default."""
    try:
        settings = json.loads(archive.read("data")).get("policy_kwargs") or {}
    except (KeyError, ValueError):
        raise InputError(file, "data", "can't be read") from None
    named = re.search(r"\.(\w+)'>$", str(settings.get("activation_fn", f".{usual}'>")))
    kind = named.group(1) if named else "unknown"
    if kind != "ReLU":
        fault = f"the units are {kind}; train with policy_kwargs=dict(activation_fn=torch.nn.ReLU, ...)"
        raise InputError(file, "policy_kwargs", fault)


def _of_torch(file: Path, content: bytes) -> list[Linear]:
    from torch import nn

    found = _loaded(file, content)
    if isinstance(found, nn.Sequential):
        _require_chain(file, found)
        found = found.state_dict()
    if not isinstance(found, Mapping):
        raise InputError(
            file, "", f"holds a {type(found).__name__}; must hold a Sequential of Linear and ReLU, or a state dict"
        )
    return _of_state(file, found)


def _require_chain(file: Path, network: Any) -> None:
    """InputError unless a Sequential is linear layers with a ReLU between two of them."""
    from torch import nn

    kinds = [each for each in network if not isinstance(each, nn.Flatten | nn.Identity)]
    for number, each in enumerate(kinds):
        wanted = nn.ReLU if number % 2 else nn.Linear
        if not isinstance(each, wanted):
            raise InputError(file, f"[{number}]", f"{type(each).__name__} where there must be {wanted.__name__}")
    if len(kinds) % 2 == 0:
        raise InputError(file, "", "must end with a Linear")


def _of_state(file: Path, state: Mapping[str, Any]) -> list[Linear]:
    layers: dict[str, dict[str, Any]] = {}
    for name, value in state.items():
        layer, _, kind = str(name).rpartition(".")
        if kind not in ("weight", "bias") or not hasattr(value, "detach") or value.ndim != (2 if kind == "weight" else 1):
            raise InputError(file, str(name), "only the weights and biases of linear layers can go onto the chip")
        layers.setdefault(layer, {})[kind] = value.detach().float().numpy()
    found = []
    for layer, each in layers.items():
        if "weight" not in each:
            raise InputError(file, layer, "has biases but no weights")
        found.append(Linear(each["weight"], each.get("bias", np.zeros(len(each["weight"]), np.float32))))
    return found


def _loaded(file: Path, content: bytes) -> Any:
    """What `torch.save` wrote, without running anything in it; InputError where that can't be."""
    try:
        import torch
        from torch import nn
    except ImportError as error:
        raise InputError(file, "", "needs PyTorch: pip install 'tinylight-hil[train]'") from error
    known: list[Any] = [nn.Sequential, nn.Linear, nn.ReLU, nn.Flatten, nn.Identity, set]
    try:
        with torch.serialization.safe_globals(known):
            return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:
        text = str(error).strip().partition("\n")[0] or type(error).__name__
        odd = re.search(r"GLOBAL (\S+)", str(error))
        what = (
            f"holds a {odd.group(1)}; must hold a Sequential of Linear and ReLU, or a state dict"
            if odd
            else f"can't be read: {text}"
        )
        raise InputError(file, "", what) from None
