"""Everything behind `tinylight train`: train, quantise, measure, write the policy file with its
provenance."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

import numpy as np
import torch

from model.calibration import Calibrated, calibrate, visited_states
from model.evaluate import evaluate
from model.policy import Measured, Policy, Provenance, save_policy
from model.quantise import KeptFeature
from model.subgraph import group_weights
from model.training import Progress, Trained, TrainingConfig, train
from streetflow.environment import Environment
from streetflow.features import PRESETS, resolve_features
from streetflow.network import Network, find_network

CALIBRATION_EPSILONS = (0.0, 0.02, 0.05, 0.1)  # one episode each


def train_policy(
    network: str | Network,
    flow: int,
    seed: int,
    out: Path,
    *,
    replicas: int = 1,
    features: str = "release",
    clearance: str = "hold",
    config: TrainingConfig | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: Path | None = None,
    resume_from: Path | None = None,
    measure_flows: Sequence[int] | None = None,
) -> Policy:
    """Trains on one flow of a network and writes the policy file `out`.

    With replicas R > 1 the seeds seed .. seed + R - 1 train side by side, and the one whose *integers* have
    the least average travel time on the training flow is kept; no other flow is looked at before.
    measure_flows: flows to run the finished policy on, for the file's `measured` (default: all of the
    network). InputError on an unknown network, flow or feature and on a foreign checkpoint.
    """
    if isinstance(network, str):
        network = find_network(network)
    config = config or TrainingConfig()
    names = features if features in PRESETS else [name.strip() for name in features.split(",")]
    features = names if isinstance(names, str) else ",".join(names)
    lsb_per_unit = [spec.lsb_per_unit for spec in resolve_features(names)]
    hashes = {
        "roadnet_sha256": _file_sha256(network.roadnet_file),
        "flow_sha256": _file_sha256(network.flow_file(flow)),
    }
    seeds = list(range(seed, seed + replicas))
    environments = [Environment(network, flow, features=names, clearance=clearance) for _ in seeds]
    trained = train(
        environments,
        seeds,
        lsb_per_unit,
        config,
        task=hashes | {"flow": flow, "features": features, "clearance": clearance},
        progress=progress,
        checkpoint=checkpoint,
        resume_from=resume_from,
    )
    assert trained is not None  # train stops early only when asked to

    states = visited_states(environments, trained.graph, trained.choice, lsb_per_unit, seeds, CALIBRATION_EPSILONS)
    first = environments[0]
    count = len(first.intersections)
    candidates = []
    for replica, train_seed in enumerate(seeds):
        calibrated = [_calibrated(trained, first, states, lsb_per_unit, replica * count + n, n) for n in range(count)]
        settings = {
            **dataclasses.asdict(config),
            "layer2_dims": list(config.layer2_dims),
            "layer3_dims": list(config.layer3_dims),
            "replicas": replicas,
            "calibration_epsilons": list(CALIBRATION_EPSILONS),
            "calibration_agreement": [round(each.agreement, 5) for each in calibrated],
            "input_headroom": [each.headroom.inputs for each in calibrated],
            "hidden_headroom": [each.headroom.hidden for each in calibrated],
        }
        provenance = Provenance(
            command=_command(network.name, flow, seed, replicas, features, clearance, config, out),
            tool_version=_tool_version(),
            torch_version=str(torch.__version__),
            numpy_version=np.__version__,
            network=network.name,
            flow=flow,
            engine="builtin",
            engine_seed=first.seed,
            train_seed=train_seed,
            search_episodes=config.search_episodes,
            refine_episodes=config.refine_episodes,
            **hashes,
            feature_preset=features,
            settings=settings,
            notes=[],
        )
        draft = Policy.sealed(
            network=network.name,
            decision_interval_s=first.decision_interval_s,
            clearance=clearance,
            provenance=provenance,
            measured=[],
            intersections=[each.part for each in calibrated],
        )
        candidates.append((evaluate(network, draft, [flow], integer=True)[0].average_travel_time_s, draft))

    best = min(range(replicas), key=lambda replica: candidates[replica][0])
    draft = candidates[best][1]
    flows = range(len(network.flow_files)) if measure_flows is None else measure_flows
    notes = []
    if replicas > 1:
        listed = ", ".join(f"{s}: {tt:.2f}" for s, (tt, _) in zip(seeds, candidates, strict=True))
        notes.append(
            f"kept train seed {seeds[best]} of {replicas} for the least average travel time of its integers on the "
            f"training flow {flow} alone (seed: seconds; {listed})"
        )
    fields = {name: getattr(draft, name) for name in Policy.model_fields if name not in ("format", "version", "sha256")}
    fields["measured"] = _measure(network, draft, flows)
    fields["provenance"] = draft.provenance.model_copy(update={"notes": notes})
    policy = Policy.sealed(**fields)
    save_policy(policy, out)
    return policy


def _calibrated(
    trained: Trained, environment: Environment, states: np.ndarray, lsb_per_unit: list[int], group: int, n: int
) -> Calibrated:
    """Intersection n of the replica whose groups start at group - n, quantised."""
    choice, intersection = trained.choice, environment.intersections[n]
    kept = [int(feature) for feature in choice.features[group]]
    widths = [int(environment.feature_widths[n, feature]) for feature in kept]
    features = [
        KeptFeature(environment.feature_names[feature], width, lsb_per_unit[feature])
        for feature, width in zip(kept, widths, strict=True)
    ]
    inputs = np.concatenate([states[:, group, k, :width] for k, width in enumerate(widths)], axis=1)
    weights = group_weights(trained.graph, choice, group, widths, len(intersection.phases))
    return calibrate(intersection.id, intersection.phases, features, weights, inputs)


def _measure(network: Network, policy: Policy, flows: Sequence[int]) -> list[Measured]:
    in_float, in_integers = (evaluate(network, policy, flows, integer=integer) for integer in (False, True))
    return [
        Measured(
            flow=f.flow,
            seed=f.seed,
            float_average_travel_time_s=f.average_travel_time_s,
            integer_average_travel_time_s=i.average_travel_time_s,
            float_throughput_veh_per_min=f.throughput_veh_per_min,
            integer_throughput_veh_per_min=i.throughput_veh_per_min,
        )
        for f, i in zip(in_float, in_integers, strict=True)
    ]


def _command(
    network: str, flow: int, seed: int, replicas: int, features: str, clearance: str, config: TrainingConfig, out: Path
) -> str:
    """The command line that makes this policy again (options at their defaults are left out)."""
    default = TrainingConfig()
    options = {
        "replicas": (replicas, 1),
        "features": (features, "release"),
        "clearance": (clearance, "hold"),
        "max-parameters": (config.max_parameters, default.max_parameters),
        "search-episodes": (config.search_episodes, default.search_episodes),
        "refine-episodes": (config.refine_episodes, default.refine_episodes),
    }
    changed = [f" --{name} {value}" for name, (value, usual) in options.items() if value != usual]
    return f"tinylight train --network {network} --flow {flow} --seed {seed}{''.join(changed)} --out {out.name}"


def _tool_version() -> str:
    try:
        return metadata.version("tinylight-hil")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"


def _file_sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
