"""Everything behind `tinylight train --method planned`: distil, calibrate on hard traffic, measure, write the policy file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from model.planning.distil import Distillation, Progress, shared
from model.planning.settings import PlanConfig
from model.policy.file import Policy, Provenance
from model.policy.integer import SATURATED_LIMIT
from model.policy.provenance import input_hashes, tool_version
from model.quantise.calibration import Calibrated, agreement_and_regret, calibrate
from model.quantise.quantise import FULL_GRID, with_own_floats
from model.quantise.silent import without_silent
from model.search.subgraph import fitting_features
from model.search.supergraph import GraphShape
from model.train.checkpoint import load_checkpoint, save_checkpoint
from model.train.finish import changed, measured_on, require_writable_phases
from model.train.hard_traffic import hard_states, saturated_share
from model.train.search_and_refine import shared_streams
from streetflow.control.environment import Environment
from streetflow.control.features import feature_list, resolve_features
from streetflow.errors import FieldError, InputError
from streetflow.kernels.sources import Source
from streetflow.networks.catalogue import Network

METHOD = "planned"
CHECKPOINT_KEYS = {"identity", "round", "records", "student", "best"}
TRIES = 3  # calibrations
ROWS_A_SOURCE = 3000  # of calibration states: of the records, and of hard traffic


@dataclass(frozen=True)
class PlannedSettings:
    """How a policy is distilled, beside network, flow and seed."""

    features: str = "all"  # that are searched: a preset, or names separated by commas
    clearance: str = "hold"
    config: PlanConfig = field(default_factory=PlanConfig)

    def __post_init__(self) -> None:
        chosen = feature_list(self.features)
        object.__setattr__(self, "features", chosen if isinstance(chosen, str) else ",".join(chosen))


def plan_policy(
    network: Network,
    flow: int,
    seed: int,
    settings: PlannedSettings | None = None,
    *,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: Path | None = None,
    out_name: str = "policy.json",
    measure_flows: Sequence[int] | None = None,
) -> Policy:
    """One policy, distilled on one flow of a network and variations of it.

    Args:
        network: the network.
        flow: number of the demand file.
        seed: of everything random; nothing is chosen among seeds.
        settings: the defaults where none are given.
        progress: called after every episode and every round.
        checkpoint: written after every round; where it is there, the training goes on from it. The caller removes it.
        out_name: the file's name in the command that the policy carries as its provenance.
        measure_flows: flows to run the finished policy on, for the file's `measured`; all of the network by default.

    Raises:
        InputError: an unknown network, flow or feature, impossible settings, a checkpoint of another run, or integers
            that don't keep their range in hard traffic.
    """
    settings = settings or PlannedSettings()
    hashes = input_hashes(network, flow)
    names = plannable_features(network, flow, settings)
    work = Distillation(network, flow, names, settings.clearance, seed, settings.config)
    require_writable_phases(network, work.environment)
    if settings.config.share:
        shared_streams([work.environment])
    kept_round = run_rounds(work, checkpoint, _identity(hashes, seed, settings), progress)

    def seal(parts: Sequence[Calibrated]) -> Policy:
        return Policy.sealed(
            network=network.name,
            decision_interval_s=work.environment.decision_interval_s,
            clearance=settings.clearance,
            provenance=_provenance(work, settings, hashes, out_name, kept_round, parts),
            measured=[],
            intersections=[each.part for each in parts],
        )

    policy = finished_policy(work, seal)
    flows = range(len(network.flow_files)) if measure_flows is None else measure_flows
    return changed(policy, measured=measured_on(network, policy, flows))


def run_rounds(
    work: Distillation, checkpoint: Path | None, identity: dict[str, Any], progress: Callable[[Progress], None] | None
) -> int:
    """All rounds, or those that a checkpoint leaves. Returns the number of the round whose student stays."""
    torch.set_num_threads(1)  # the networks are small: more threads would wait for each other
    if checkpoint is not None and checkpoint.is_file():
        work.restore(load_checkpoint(checkpoint, identity, CHECKPOINT_KEYS))
    while work.round < work.settings.rounds:
        work.play(progress)
        work.learn(progress)
        if checkpoint is not None:
            save_checkpoint(checkpoint, {"identity": identity} | work.state())
    return work.finish()


def planned_command(network: str, flow: int, seed: int, settings: PlannedSettings, out: str) -> str:
    """The command line that reproduces a policy (options at their defaults are left out)."""
    usual = PlannedSettings()
    changed = {
        name: getattr(settings, name) for name in ("features", "clearance") if getattr(settings, name) != getattr(usual, name)
    }
    text = "".join(f" --{name} {value}" for name, value in changed.items())
    for each in dataclasses.fields(PlanConfig):
        value = getattr(settings.config, each.name)
        if value != getattr(usual.config, each.name):
            shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
            text += f" --set {each.name}={shown}"
    return f"tinylight train --method planned --network {network} --flow {flow} --seed {seed}{text} --out {out}"


def _identity(hashes: dict[str, str], seed: int, settings: PlannedSettings) -> dict[str, Any]:
    """What a checkpoint must have been trained with, to go on from it."""
    held = dataclasses.asdict(settings.config)
    return {"method": METHOD, "seed": seed, "features": settings.features, "clearance": settings.clearance, **hashes, **held}


def plannable_features(network: Network, flow: int, settings: PlannedSettings) -> list[str]:
    """The features to search that rollouts can see and some light could keep within the budget.

    Raises:
        InputError: an unknown feature, or fewer than a sub-graph keeps.
    """
    specs = resolve_features(feature_list(settings.features))
    visible = [spec.name for spec in specs if spec.source is not Source.IMAGE]
    fit = settings.config
    environment = Environment(network, flow, features=visible or [spec.name for spec in specs])
    counts = np.array([each.action_count for each in environment.intersections])
    shape = GraphShape(environment.feature_widths.astype(np.int64), counts, fit.layer2_dims, fit.layer3_dims)
    by_light = fitting_features(shape, fit.kept_features, fit.budget)
    names = [name for name, fits in zip(environment.feature_names, by_light.T, strict=True) if fits.any()]
    if len(visible) < fit.kept_features:
        fault = f"only {len(visible)} of {settings.features} can be seen by rollouts; {fit.kept_features} are kept"
        raise FieldError("kept_features" if len(visible) > 1 else "features", fault)
    if len(names) < fit.kept_features:
        fault = f"{fit.max_parameters}: only {len(names)} of {settings.features} fit; {fit.kept_features} are kept"
        raise FieldError("max_parameters", fault)
    return names


def finished_policy(work: Distillation, seal: Callable[[Sequence[Calibrated]], Policy]) -> Policy:
    """The student in integers that keep their range: calibrated on what the training saw and on hard traffic, and then tried on
    other hard traffic. Where more than one decision in a hundred leaves the range there, that traffic joins the calibration.

    Raises:
        InputError: after `TRIES` it still leaves the range.
    """
    hard = hard_states(work, seed=0)
    for attempt in range(1, TRIES + 1):
        policy = seal(finished_parts(work, hard))
        share = saturated_share(policy, work, seed=attempt)
        if share <= SATURATED_LIMIT:
            return policy
        more = hard_states(work, seed=attempt)
        hard = [np.concatenate(pair) for pair in zip(hard, more, strict=True)]
    fault = (
        f"the policy's integers leave their range in {share:.1%} of the decisions in hard traffic, after {TRIES} calibrations"
    )
    raise InputError("training", "range", fault)


def finished_parts(work: Distillation, hard: Sequence[npt.NDArray[np.int64]]) -> list[Calibrated]:
    """The student in integers, of every light, calibrated on its records and on the states of hard traffic."""
    rng = np.random.default_rng(0)
    result: list[Calibrated] = []
    for light, intersection in enumerate(work.environment.intersections):
        if work.settings.share and result:
            result.append(dataclasses.replace(result[0], part=shared(result[0].part, intersection)))
            continue
        seen = work.records.seen(light).inputs[:, work.student.columns(light)].astype(np.int64)
        own = hard if work.settings.share else [hard[light]]
        states = np.concatenate([_some(rng, seen), _some(rng, np.concatenate(own))])
        weights, grid = work.student.weights(light), work.settings.grid
        made = calibrate(intersection.id, intersection.phases, work.kept(light), weights, states, grid)
        if work.settings.drop_silent:
            made = dataclasses.replace(made, part=without_silent(made.part, states))
        if grid != FULL_GRID:  # what was trained is the rounded network
            part = with_own_floats(made.part)
            agreement, regret = agreement_and_regret(part, states)
            made = dataclasses.replace(made, part=part, agreement=agreement, regret=regret)
        result.append(made)
    return result


def _some(rng: np.random.Generator, states: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """At most ROWS_A_SOURCE of the states, those with the greatest numbers of each column among them."""
    if len(states) <= ROWS_A_SOURCE:
        return states
    extremes = np.concatenate([states.argmax(axis=0), states.argmin(axis=0)])
    return states[np.unique(np.concatenate([extremes, rng.choice(len(states), ROWS_A_SOURCE, replace=False)]))]


def _provenance(
    work: Distillation,
    settings: PlannedSettings,
    hashes: dict[str, str],
    out_name: str,
    kept_round: int,
    parts: Sequence[Calibrated],
) -> Provenance:
    distil = settings.config
    per_round = distil.episodes_a_round
    held = dataclasses.asdict(distil)
    return Provenance(
        command=planned_command(work.network.name, work.flow, work.seed, settings, out_name),
        tool_version=tool_version(),
        torch_version=str(torch.__version__),
        numpy_version=np.__version__,
        network=work.network.name,
        flow=work.flow,
        engine="builtin",
        engine_seed=work.environment.seed,
        train_seed=work.seed,
        search_episodes=per_round * min(distil.search_rounds, distil.rounds),
        refine_episodes=per_round * max(distil.rounds - distil.search_rounds, 0),
        **hashes,
        feature_preset=settings.features,
        settings={
            "method": METHOD,
            **{name: list(value) if isinstance(value, tuple) else value for name, value in held.items()},
            "kept_round": kept_round,
            "calibration_agreement": [round(each.agreement, 5) for each in parts],
            "input_headroom": [each.headroom.inputs for each in parts],
            "hidden_headroom": [each.headroom.hidden for each in parts],
        },
        notes=[],
    )
