"""A network that was trained elsewhere, as a policy file: the same integers, kernels and verdicts as for our own."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from model.policy.file import CHIP_INPUTS, Policy, Provenance
from model.policy.float_policy import GroupWeights
from model.policy.inputs import Indices
from model.policy.provenance import file_sha256, input_hashes, tool_version
from model.quantise.calibration import Calibrated, calibrate
from model.quantise.network_file import read_network
from model.quantise.onnx_file import Linear
from model.quantise.quantise import KeptFeature
from model.train.finish import changed, measured_on, require_writable_phases
from model.train.hard_traffic import HARD
from streetflow.control.conditions import FINE, Conditions
from streetflow.control.environment import Environment
from streetflow.control.features import feature_list
from streetflow.errors import FieldError, InputError
from streetflow.networks.catalogue import Network, default_seed
from streetflow.networks.variations import UNCHANGED, Varied

MOST_UNITS = 255  # of a layer: the firmware counts in bytes
METHOD = "quantised"
Ints = npt.NDArray[np.int64]


class NetworkAgent:
    """The network as it is, in float32, at every light of an environment: it decides, and keeps what it saw."""

    def __init__(self, layers: Sequence[Linear], indices: Sequence[Indices], lsb_per_unit: npt.NDArray[np.float32]) -> None:
        self._layers, self._indices, self._lsb = layers, indices, lsb_per_unit
        self.seen: list[list[Ints]] = [[] for _ in indices]

    def act(self, observation: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        actions = []
        for light, (flat, indices) in enumerate(zip(observation.reshape(len(observation), -1), self._indices, strict=True)):
            inputs = flat[indices].astype(np.int64)
            self.seen[light].append(inputs)
            values = (inputs / self._lsb).astype(np.float32)
            for weights, biases in self._layers[:-1]:
                values = np.maximum(weights @ values + biases, 0)
            actions.append(int((self._layers[-1].weights @ values + self._layers[-1].biases).argmax()))
        return np.array(actions, np.int32)


def quantise_network(
    file: Path, network: Network, features: str, *, flow: int = 0, clearance: str = "hold", out: str = ""
) -> Policy:
    """Makes a policy of a trained network.

    The ranges of the integers are fitted to what the network meets when it drives the flow, and hard traffic made of it.

    Args:
        file: see `read_network`; its inputs are the features' values in their units, one feature after the other, its outputs
            the actions' values.
        network: whose lights it is for: each gets the same network, so they must be alike.
        features: a preset, or names separated by commas, in the order of the inputs.
        flow: number of the demand file.
        clearance: what the lights show between two phases.
        out: the policy file's name, for its provenance.

    Raises:
        InputError: the network can't go onto the chip, or doesn't fit the lights.
    """
    layers = read_network(file)
    names = feature_list(features)
    environment = Environment(network, flow, features=names, clearance=clearance)
    require_writable_phases(network, environment)
    _require_fit(file, layers, environment)
    weights = _group_weights(file, layers, environment)
    kept = [
        KeptFeature(name, int(width), lsb)
        for name, width, lsb in zip(
            environment.feature_names, environment.feature_widths[0], environment.lsb_per_unit, strict=True
        )
    ]
    states = _visited(layers, environment, network, flow, clearance)
    made = calibrate("", environment.intersections[0].phases, kept, weights, states)
    parts = [made.part.model_copy(update={"id": each.id, "phases": list(each.phases)}) for each in environment.intersections]
    provenance = _provenance(file, environment, features, out, made, len(states))
    policy = Policy.sealed(
        network=network.name,
        decision_interval_s=environment.decision_interval_s,
        clearance=clearance,
        provenance=provenance,
        measured=[],
        intersections=parts,
    )
    return changed(policy, measured=measured_on(network, policy, [flow]))


def _require_fit(file: Path, layers: Sequence[Linear], environment: Environment) -> None:
    """InputError unless the layers are of the lights' and the chip's dimensions."""
    if len(layers) not in (2, 3):
        raise InputError(file, "", f"has {len(layers)} linear layers; the chip takes two or three")
    for number, (weights, _) in enumerate(layers[:-1], 1):
        if len(weights) > MOST_UNITS:
            raise InputError(file, f"layer {number}", f"has {len(weights)} units; the chip takes up to {MOST_UNITS}")
    inputs, outputs = layers[0].weights.shape[1], len(layers[-1].weights)
    for light, each in enumerate(environment.intersections):
        widths = environment.feature_widths[light].tolist()
        if sum(widths) != inputs:
            named = ", ".join(f"{name} {width}" for name, width in zip(environment.feature_names, widths, strict=True))
            raise FieldError("features", f"have {sum(widths)} values at {each.id} ({named}); {file} has {inputs} inputs")
        if each.action_count != outputs:
            raise InputError(
                file, "", f"has {outputs} outputs; {each.id} of {environment.network.name} has {each.action_count} phases"
            )
        if widths != environment.feature_widths[0].tolist():
            raise FieldError("features", f"are not as wide at {each.id} as at the other lights, which share the network")
    if inputs > CHIP_INPUTS:
        raise FieldError("features", f"have {inputs} values; the chip's link carries {CHIP_INPUTS}")


def _group_weights(file: Path, layers: Sequence[Linear], environment: Environment) -> GroupWeights:
    """The layers as a policy has them: layer 1 by features, and a second layer that hands on what is the only hidden one's."""
    first, *_, last = layers
    hidden = len(first.weights)
    second = layers[1] if len(layers) == 3 else Linear(np.eye(hidden, dtype=np.float32), np.zeros(hidden, np.float32))
    ends = np.cumsum(environment.feature_widths[0])[:-1]
    by_feature = np.split(first.weights, ends, axis=1)
    biases = [first.biases, *(np.zeros_like(first.biases) for _ in by_feature[1:])]
    return GroupWeights(
        by_feature, biases, second.weights, second.biases, last.weights, last.biases, joined=len(by_feature) > 1
    )


def _visited(layers: Sequence[Linear], environment: Environment, network: Network, flow: int, clearance: str) -> Ints:
    """int64[T, inputs]: what the network meets, at all lights together, as it drives the flow and hard traffic."""
    lsb = np.repeat(environment.lsb_per_unit, environment.feature_widths[0]).astype(np.float32)
    width = environment.max_width
    ranges = [f * width + np.arange(each) for f, each in enumerate(environment.feature_widths[0])]
    agent = NetworkAgent(layers, [np.concatenate(ranges)] * len(environment.intersections), lsb)
    for variation, conditions in ((UNCHANGED, FINE), *HARD):
        driven = (
            environment
            if variation is UNCHANGED
            else _hard(environment, network, Varied(flow, variation, 0), conditions, clearance)
        )
        observation, done = driven.reset(), False
        while not done:
            observation, _, done = driven.step(agent.act(observation))
    return np.concatenate([np.stack(each) for each in agent.seen])


def _hard(environment: Environment, network: Network, varied: Varied, conditions: Conditions, clearance: str) -> Environment:
    return Environment(
        network,
        environment.flow,
        features=environment.feature_names,
        clearance=clearance,
        conditions=conditions,
        demand=varied.of(network),
    )


def _provenance(file: Path, environment: Environment, features: str, out: str, made: Calibrated, states: int) -> Provenance:
    network, flow = environment.network, environment.flow
    options = ["--network", network.name, "--features", features, "--flow", str(flow), "--clearance", environment.clearance]
    return Provenance(
        command=shlex.join(["tinylight", "quantise", file.name, *options, "--out", out]),
        tool_version=tool_version(),
        torch_version="",
        numpy_version=np.__version__,
        network=network.name,
        flow=flow,
        engine="builtin",
        engine_seed=default_seed(flow),
        train_seed=0,
        search_episodes=0,
        refine_episodes=0,
        **input_hashes(network, flow),
        feature_preset=features,
        settings={
            "method": METHOD,
            "model_sha256": file_sha256(file),
            "calibration_states": states,
            "calibration_agreement": round(made.agreement, 5),
            "input_headroom": made.headroom.inputs,
            "hidden_headroom": made.headroom.hidden,
        },
        notes=[f"trained elsewhere: {file.name}"],
    )
