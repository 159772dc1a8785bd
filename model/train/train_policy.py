"""Everything behind `tinylight train`: train, quantise, choose, measure, write the policy file with its
provenance."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import torch

from model.evaluate import evaluate
from model.policy.file import CHIP_PHASES, PHASES, Measured, Policy, Provenance, save_policy
from model.policy.provenance import file_sha256, tool_version
from model.quantise.calibration import Calibrated, calibrate
from model.quantise.quantise import KeptFeature
from model.search.config import TRAINING, TrainingConfig
from model.search.subgraph import fitting_features
from model.search.supergraph import GraphShape
from model.train.flow_rotation import FlowRotation
from model.train.search_and_refine import Snapshot, TrafficEnvironment, Trained, TrainingProgress, train
from streetflow.control.environment import Environment
from streetflow.control.features import PRESETS, resolve_features
from streetflow.errors import InputError
from streetflow.networks.catalogue import Network, find_network

OPTIONS = (
    *("replicas", "features", "clearance", "search-episodes", "refine-episodes", "halve-every", "updates-per-decision"),
    *("max-parameters", "max-cycles", "max-flash-bytes", "kept-features", "kept-episodes", "also-flows", "share", "double-q"),
    "rounded-episodes",
)
"""What has an option of its own in `tinylight train`; other fields of the config go by --set."""


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
    progress: Callable[[TrainingProgress], None] | None = None,
    checkpoint: Path | None = None,
    resume_from: Path | None = None,
    measure_flows: Sequence[int] | None = None,
    threads: int = 1,
    device: str = "cpu",
) -> Policy:
    """Trains on one flow of a network and writes the policy file `out`.

    With replicas R > 1 the seeds seed .. seed + R - 1 train side by side, and the best on the training flow is kept (see
    `train_policies`); no other flow is looked at before.
    measure_flows: flows to run the finished policy on, for the file's `measured` (default: all of the
    network). InputError on an unknown network, flow or feature and on a foreign checkpoint.
    """
    if isinstance(network, str):
        network = find_network(network)
    policy = train_policies(
        network,
        [flow],
        seed,
        replicas=replicas,
        features=features,
        clearance=clearance,
        config=config,
        progress=progress,
        checkpoint=checkpoint,
        resume_from=resume_from,
        threads=threads,
        device=device,
        out_name=out.name,
    )[0]
    measured = _measure(network, policy, range(len(network.flow_files)) if measure_flows is None else measure_flows)
    policy = _changed(policy, measured=measured)
    save_policy(policy, out)
    return policy


def train_policies(
    network: str | Network,
    flows: Sequence[int],
    seed: int | Sequence[int],
    *,
    replicas: int = 1,
    features: str = "release",
    clearance: str = "hold",
    config: TrainingConfig | None = None,
    progress: Callable[[TrainingProgress], None] | None = None,
    checkpoint: Path | None = None,
    resume_from: Path | None = None,
    threads: int = 1,
    device: str = "cpu",
    out_name: str = "policy.json",
) -> list[Policy]:
    """One policy for each flow, each trained on its flow alone, all side by side in one batch; each `measured` on its flow.

    seed: of all flows, or one a flow. Flow by flow, the candidates are the seeds seed .. seed + replicas - 1, and of each
    the final weights and those after its best `config.kept_episodes` episodes. The one is taken whose travel time on the flow
    is least, in integers or in float, whichever is worse: what is good in one only is luck that won't last. A flow's policy is
    the same, whatever other flows train beside it (but for the rounding of sums where a single network trains alone).
    """
    if isinstance(network, str):
        network = find_network(network)
    config = config or TrainingConfig()
    features = features if features in PRESETS else ",".join(name.strip() for name in features.split(","))
    names = searched_features(network, flows[0], features, config)
    lsb_per_unit = [spec.lsb_per_unit for spec in resolve_features(names)]
    hashes = {flow: _hashes(network, flow) for flow in flows}
    first_seeds = [seed] * len(flows) if isinstance(seed, int) else list(seed)
    seeds = [s for first in first_seeds for s in range(first, first + replicas)]
    environments = [Environment(network, flow, features=names, clearance=clearance) for flow in flows for _ in range(replicas)]
    _require_writable_phases(network, environments[0])
    if set(config.also_flows).intersection(flows):
        raise InputError(TRAINING, "also_flows", f"{config.also_flows} holds a flow that is trained on already")
    traffic: list[TrafficEnvironment] = list(environments)
    if config.also_flows:
        others = [[Environment(network, k, features=names, clearance=clearance) for k in config.also_flows] for _ in seeds]
        traffic = [FlowRotation([own, *rest]) for own, rest in zip(environments, others, strict=True)]
    trained = train(
        traffic,
        seeds,
        lsb_per_unit,
        config,
        task={"roadnet": file_sha256(network.roadnet_file), "flows": [hashes[flow]["flow_sha256"] for flow in flows]}
        | {
            "features": features,
            "clearance": clearance,
            "also_flows": [file_sha256(network.flow_file(k)) for k in config.also_flows],
        },
        progress=progress,
        checkpoint=checkpoint,
        resume_from=resume_from,
        threads=threads,
        device=device,
    )
    assert trained is not None  # train stops early only when asked to
    policies = []
    for f, flow in enumerate(flows):
        command = _command(network.name, flow, first_seeds[f], replicas, features, clearance, config, out_name)
        candidates = []
        for replica in range(f * replicas, (f + 1) * replicas):
            environment = environments[replica]
            for snapshot in trained.snapshots[replica]:
                calibrated = _calibrated(trained, environment, lsb_per_unit, replica, snapshot)
                provenance = Provenance(
                    command=command,
                    tool_version=tool_version(),
                    torch_version=str(torch.__version__),
                    numpy_version=np.__version__,
                    network=network.name,
                    flow=flow,
                    engine="builtin",
                    engine_seed=environment.seed,
                    train_seed=seeds[replica],
                    search_episodes=config.search_episodes,
                    refine_episodes=config.refine_episodes,
                    **hashes[flow],
                    feature_preset=features,
                    settings=_settings(config, replicas, snapshot, calibrated),
                    notes=[],
                )
                draft = Policy.sealed(
                    network=network.name,
                    decision_interval_s=environment.decision_interval_s,
                    clearance=clearance,
                    provenance=provenance,
                    measured=[],
                    intersections=[each.part for each in calibrated],
                )
                runs = _measure(network, draft, [flow, *config.also_flows])
                candidates.append(_Candidate(draft, seeds[replica], snapshot.episode, _judged_s(runs)))
        best = min(candidates, key=lambda candidate: candidate.time_s)
        notes = [_note(best, candidates, [flow, *config.also_flows])] if len(candidates) > 1 else []
        provenance = best.policy.provenance.model_copy(update={"notes": notes})
        policies.append(_changed(best.policy, provenance=provenance, measured=_measure(network, best.policy, [flow])))
    return policies


def _require_writable_phases(network: Network, environment: Environment) -> None:
    """InputError for an intersection with phases that a policy file can't name, or with more than the chip can decide among:
    better said now than after the training."""
    for each in environment.intersections:
        fault = None
        if max(each.phases) >= PHASES:
            fault = f"phases up to number {max(each.phases)}; a policy chooses among the numbers 0 to {PHASES - 1}"
        elif len(each.phases) > CHIP_PHASES:
            fault = f"{len(each.phases)} phases; the chip's link carries the values of {CHIP_PHASES}"
        if fault is not None:
            raise InputError(network.roadnet_file, "intersections", f"{each.id} has {fault}")


class _Candidate(NamedTuple):
    policy: Policy
    train_seed: int
    episode: int  # of the refinement
    time_s: float  # on the training flows


def _judged_s(runs: Sequence[Measured]) -> float:
    """The mean travel time over the runs, in integers or in float, whichever is worse."""
    in_integers, in_float = zip(*((r.integer_average_travel_time_s, r.float_average_travel_time_s) for r in runs), strict=True)
    return max(fmean(in_integers), fmean(in_float))


def _note(best: _Candidate, candidates: Sequence[_Candidate], flows: Sequence[int]) -> str:
    """How the policy was chosen."""
    by_seed = {seed: min(c.time_s for c in candidates if c.train_seed == seed) for seed in {c.train_seed for c in candidates}}
    listed = ", ".join(f"{seed}: {time_s:.2f}" for seed, time_s in sorted(by_seed.items()))
    return (
        f"kept train seed {best.train_seed}, weights after refinement episode {best.episode}, of {len(candidates)} candidates "
        f"with {len(by_seed)} seeds, for the least average travel time on training flow {', '.join(map(str, flows))} alone, "
        f"the worse of integers and float (best of each seed, s: {listed})"
    )


def searched_features(network: Network, flow: int, features: str, config: TrainingConfig) -> list[str]:
    """The names, of a preset or separated by commas, that some intersection could keep within the budget of parameters: the
    others needn't be searched."""
    environment = Environment(network, flow, features=features if features in PRESETS else features.split(","))
    names = list(environment.feature_names)
    n_actions = np.array([each.action_count for each in environment.intersections])
    shape = GraphShape(environment.feature_widths.astype(np.int64), n_actions, config.layer2_dims, config.layer3_dims)
    by_intersection = fitting_features(shape, config.kept_features, config.budget)
    fits = [bool(column.any()) for column in by_intersection.T]
    return [name for name, fitting in zip(names, fits, strict=True) if fitting] if sum(fits) >= config.kept_features else names


def _calibrated(
    trained: Trained, environment: Environment, lsb_per_unit: list[int], replica: int, snapshot: Snapshot
) -> list[Calibrated]:
    """All intersections of a replica, quantised."""
    result = []
    shared: Calibrated | None = None
    for n, intersection in enumerate(environment.intersections):
        group = replica if trained.share else replica * len(environment.intersections) + n
        if shared is None:
            features = [
                KeptFeature(environment.feature_names[feature], width, lsb_per_unit[feature])
                for feature, width in zip(trained.choice.features[group], trained.kept_widths(group), strict=True)
            ]
            weights = trained.weights(group, snapshot.theta[0 if trained.share else n])
            each = calibrate(intersection.id, intersection.phases, features, weights, trained.frames[group])
            shared = each if trained.share else None
        else:
            part = shared.part.model_copy(update={"id": intersection.id, "phases": list(intersection.phases)})
            each = dataclasses.replace(shared, part=part)
        result.append(each)
    return result


def _settings(config: TrainingConfig, replicas: int, snapshot: Snapshot, calibrated: Sequence[Calibrated]) -> dict[str, Any]:
    return {
        **dataclasses.asdict(config),
        "layer2_dims": list(config.layer2_dims),
        "layer3_dims": list(config.layer3_dims),
        "also_flows": list(config.also_flows),
        "replicas": replicas,
        "refinement_episode": snapshot.episode,
        "calibration_agreement": [round(each.agreement, 5) for each in calibrated],
        "input_headroom": [each.headroom.inputs for each in calibrated],
        "hidden_headroom": [each.headroom.hidden for each in calibrated],
    }


def _changed(policy: Policy, **changes: Any) -> Policy:
    fields = {name: getattr(policy, name) for name in Policy.model_fields if name not in ("format", "version", "sha256")}
    return Policy.sealed(**(fields | changes))


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
    network: str, flow: int, seed: int, replicas: int, features: str, clearance: str, config: TrainingConfig, out: str
) -> str:
    """The command line that makes this policy again (options at their defaults are left out)."""
    default = TrainingConfig()
    given = {"replicas": (replicas, 1), "features": (features, "release"), "clearance": (clearance, "hold")}
    given |= {
        field.name.replace("_", "-"): (getattr(config, field.name), getattr(default, field.name))
        for field in dataclasses.fields(config)
    }
    changed = "".join(_option(name, value) for name, (value, usual) in given.items() if value != usual)
    return f"tinylight train --network {network} --flow {flow} --seed {seed}{changed} --out {out}"


def _option(name: str, value: object) -> str:
    if name not in OPTIONS:
        return f" --set {name.replace('-', '_')}={value}".replace(", ", ",")
    if isinstance(value, tuple):
        value = ",".join(map(str, value))
    return f" --{name}" if value is True else f" --{name} {value}"


def _hashes(network: Network, flow: int) -> dict[str, str]:
    return {"roadnet_sha256": file_sha256(network.roadnet_file), "flow_sha256": file_sha256(network.flow_file(flow))}
