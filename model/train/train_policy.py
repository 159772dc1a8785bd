"""Everything behind `tinylight train`: train, quantise, choose, measure, write the policy file with its
provenance."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import torch

from model.policy.file import Measured, Policy, Provenance, save_policy
from model.policy.provenance import file_sha256, input_hashes, tool_version
from model.quantise.calibration import Calibrated, calibrate
from model.quantise.quantise import KeptFeature
from model.search.config import TrainingConfig
from model.search.subgraph import fitting_features
from model.search.supergraph import GraphShape
from model.train.finish import changed, measured_on, require_writable_phases
from model.train.flow_rotation import FlowRotation
from model.train.search_and_refine import Execution, Snapshot, TrafficEnvironment, Trained, TrainingProgress, train
from streetflow.control.environment import Environment
from streetflow.control.features import feature_list, resolve_features
from streetflow.errors import FieldError
from streetflow.networks.catalogue import Network, find_network

OPTIONS = (
    *("replicas", "features", "clearance", "search-episodes", "refine-episodes", "halve-every", "updates-per-decision"),
    *("max-parameters", "max-cycles", "max-flash-bytes", "kept-features", "kept-episodes", "also-flows", "share", "double-q"),
    "rounded-episodes",
)
"""Fields with their own option in `tinylight train`; other fields of the config are set by --set."""


@dataclass(frozen=True)
class PolicySettings:
    """How a policy is trained, beside network, flow and seed."""

    replicas: int = 1  # so many seeds train side by side; the best on the training flow is kept
    features: str = "release"  # that are searched: a preset, or names separated by commas
    clearance: str = "hold"
    config: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        chosen = feature_list(self.features)
        object.__setattr__(self, "features", chosen if isinstance(chosen, str) else ",".join(chosen))


def train_policy(
    network: str | Network,
    flow: int,
    seed: int,
    out: Path,
    settings: PolicySettings | None = None,
    *,
    execution: Execution | None = None,
    progress: Callable[[TrainingProgress], None] | None = None,
    measure_flows: Sequence[int] | None = None,
) -> Policy:
    """Trains on one flow of a network and writes the policy file `out`.

    With replicas R > 1 the seeds seed .. seed + R - 1 train side by side, and the best on the training flow is kept (see
    `train_policies`); no other flow is looked at before.

    Args:
        network: a name, or the network itself.
        flow: number of the demand file.
        seed: of the training.
        out: the file; its folder is made where it isn't there.
        settings: the paper's where none are given.
        execution: checkpoints, threads, device.
        progress: called after every episode.
        measure_flows: flows to run the finished policy on, for the file's `measured`; all of the network by default.

    Returns:
        The policy as written.

    Raises:
        InputError: an unknown network, flow or feature, impossible settings, or a checkpoint of another run.
    """
    if isinstance(network, str):
        network = find_network(network)
    (policy,) = train_policies(network, [flow], seed, settings, execution=execution, progress=progress, out_name=out.name)
    measured = measured_on(network, policy, range(len(network.flow_files)) if measure_flows is None else measure_flows)
    policy = changed(policy, measured=measured)
    save_policy(policy, out)
    return policy


def train_policies(
    network: str | Network,
    flows: Sequence[int],
    seed: int | Sequence[int],
    settings: PolicySettings | None = None,
    *,
    execution: Execution | None = None,
    progress: Callable[[TrainingProgress], None] | None = None,
    out_name: str = "policy.json",
) -> list[Policy]:
    """One policy for each flow, each trained on its flow alone, all side by side in one batch; each `measured` on its flow.

    Flow by flow, the candidates are the seeds seed .. seed + replicas - 1, and of each the final weights and those after its
    best `config.kept_episodes` episodes. The one with the least travel time on the flow is taken, in integers or in float,
    whichever is worse: a result that is good in only one is luck. A flow's policy is the same, whatever other flows train
    beside it (except for the rounding of sums where a single network trains alone).

    Args:
        network: a name, or the network itself.
        flows: numbers of demand files.
        seed: of all flows, or one a flow.
        settings: the paper's where none are given.
        execution: checkpoints, threads, device.
        progress: called after every episode.
        out_name: the file's name in the command that the policy carries as its provenance.

    Raises:
        InputError: as `train_policy`.
    """
    if isinstance(network, str):
        network = find_network(network)
    settings = settings or PolicySettings()
    first_seeds = [seed] * len(flows) if isinstance(seed, int) else list(seed)
    training = _prepared(network, flows, first_seeds, settings)
    trained = train(
        training.traffic,
        training.seeds,
        training.lsb_per_unit,
        settings.config,
        task=_task(training, flows),
        execution=execution,
        progress=progress,
    )
    assert trained is not None  # train stops early only when asked to
    policies = []
    for f, flow in enumerate(flows):
        command = _command(network.name, flow, first_seeds[f], settings, out_name)
        replicas = range(f * settings.replicas, (f + 1) * settings.replicas)
        candidates = [
            _candidate(training, trained, replica, snapshot, command)
            for replica in replicas
            for snapshot in trained.snapshots[replica]
        ]
        best = min(candidates, key=lambda candidate: candidate.time_s)
        judged_on = [flow, *settings.config.also_flows]
        notes = [_note(best, candidates, judged_on)] if len(candidates) > 1 else []
        provenance = best.policy.provenance.model_copy(update={"notes": notes})
        policies.append(changed(best.policy, provenance=provenance, measured=measured_on(network, best.policy, [flow])))
    return policies


class _Training(NamedTuple):
    """What is trained: lists by replica, flow by flow."""

    network: Network
    settings: PolicySettings
    seeds: list[int]
    environments: list[Environment]  # of the replica's own flow
    traffic: list[TrafficEnvironment]  # the replica trains on these
    lsb_per_unit: list[int]  # by feature
    hashes: dict[int, dict[str, str]]  # by flow, as they were when the training began


def _prepared(network: Network, flows: Sequence[int], first_seeds: Sequence[int], settings: PolicySettings) -> _Training:
    """InputError for a training that is impossible, or has a result that can't be written afterwards."""
    names = searched_features(network, flows[0], settings.features, settings.config)
    also_flows = settings.config.also_flows
    hashes = {flow: input_hashes(network, flow) for flow in flows}
    seeds = [s for first in first_seeds for s in range(first, first + settings.replicas)]

    def environment(flow: int) -> Environment:
        return Environment(network, flow, features=names, clearance=settings.clearance)

    environments = [environment(flow) for flow in flows for _ in range(settings.replicas)]
    require_writable_phases(network, environments[0])
    if set(also_flows).intersection(flows):
        raise FieldError("also_flows", f"{also_flows} holds a flow that is trained on already")
    traffic: list[TrafficEnvironment] = list(environments)
    if also_flows:
        traffic = [FlowRotation([own, *(environment(flow) for flow in also_flows)]) for own in environments]
    lsb_per_unit = [spec.lsb_per_unit for spec in resolve_features(names)]
    return _Training(network, settings, seeds, environments, traffic, lsb_per_unit, hashes)


def _task(training: _Training, flows: Sequence[int]) -> dict[str, Any]:
    """The data that a checkpoint must have been trained on, to resume from it."""
    network, settings = training.network, training.settings
    return {
        "roadnet": file_sha256(network.roadnet_file),
        "flows": [training.hashes[flow]["flow_sha256"] for flow in flows],
        "features": settings.features,
        "clearance": settings.clearance,
        "also_flows": [file_sha256(network.flow_file(k)) for k in settings.config.also_flows],
    }


class _Candidate(NamedTuple):
    policy: Policy
    train_seed: int
    episode: int  # of the refinement
    time_s: float  # on the training flows


def _candidate(training: _Training, trained: Trained, replica: int, snapshot: Snapshot, command: str) -> _Candidate:
    """One replica's weights at one time, quantised and run on the training flows."""
    network, settings, environment = training.network, training.settings, training.environments[replica]
    calibrated = _calibrated(trained, environment, training.lsb_per_unit, replica, snapshot)
    provenance = Provenance(
        command=command,
        tool_version=tool_version(),
        torch_version=str(torch.__version__),
        numpy_version=np.__version__,
        network=network.name,
        flow=environment.flow,
        engine="builtin",
        engine_seed=environment.seed,
        train_seed=training.seeds[replica],
        search_episodes=settings.config.search_episodes,
        refine_episodes=settings.config.refine_episodes,
        **training.hashes[environment.flow],
        feature_preset=settings.features,
        settings=_settings(settings, snapshot, calibrated),
        notes=[],
    )
    draft = Policy.sealed(
        network=network.name,
        decision_interval_s=environment.decision_interval_s,
        clearance=settings.clearance,
        provenance=provenance,
        measured=[],
        intersections=[each.part for each in calibrated],
    )
    runs = measured_on(network, draft, [environment.flow, *settings.config.also_flows])
    return _Candidate(draft, training.seeds[replica], snapshot.episode, _judged_s(runs))


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
    """The features (of a preset, or names separated by commas) that some intersection could keep within the budget of
    parameters: the others needn't be searched."""
    environment = Environment(network, flow, features=feature_list(features))
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


def _settings(settings: PolicySettings, snapshot: Snapshot, calibrated: Sequence[Calibrated]) -> dict[str, Any]:
    """The policy file's record of its training."""
    config = settings.config
    return {
        **dataclasses.asdict(config),
        "layer2_dims": list(config.layer2_dims),
        "layer3_dims": list(config.layer3_dims),
        "also_flows": list(config.also_flows),
        "replicas": settings.replicas,
        "refinement_episode": snapshot.episode,
        "calibration_agreement": [round(each.agreement, 5) for each in calibrated],
        "input_headroom": [each.headroom.inputs for each in calibrated],
        "hidden_headroom": [each.headroom.hidden for each in calibrated],
    }


def _command(network: str, flow: int, seed: int, settings: PolicySettings, out: str) -> str:
    """The command line that reproduces this policy (options at their defaults are left out)."""
    usual = PolicySettings()
    given = {name: (getattr(settings, name), getattr(usual, name)) for name in ("replicas", "features", "clearance")}
    given |= {
        each.name.replace("_", "-"): (getattr(settings.config, each.name), getattr(usual.config, each.name))
        for each in dataclasses.fields(TrainingConfig)
    }
    changed = "".join(_option(name, value) for name, (value, default) in given.items() if value != default)
    return f"tinylight train --network {network} --flow {flow} --seed {seed}{changed} --out {out}"


def _option(name: str, value: object) -> str:
    if name not in OPTIONS:
        return f" --set {name.replace('-', '_')}={value}".replace(", ", ",")
    if isinstance(value, tuple):
        value = ",".join(map(str, value))
    return f" --{name}" if value is True else f" --{name} {value}"
