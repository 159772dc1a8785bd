"""Everything behind `tinylight train --method planned`: distil, calibrate on hard traffic, measure, write the policy file."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from model.planning.distil import Distillation, Driver, Progress, observed, shared
from model.planning.settings import PlanConfig
from model.policy.file import Policy, Provenance
from model.policy.provenance import tool_version
from model.quantise.calibration import Calibrated, calibrate
from model.search.subgraph import fitting_features
from model.search.supergraph import GraphShape
from model.train.checkpoint import load_checkpoint, save_checkpoint
from model.train.finish import changed, input_hashes, measured_on, require_writable_phases
from streetflow.control.conditions import Conditions
from streetflow.control.environment import Environment
from streetflow.control.features import feature_list, resolve_features
from streetflow.errors import FieldError
from streetflow.kernels.sources import Source
from streetflow.networks.catalogue import Network
from streetflow.networks.variations import Variation, Varied, varied_network

METHOD = "planned"
CHECKPOINT_KEYS = {"identity", "round", "records", "student"}
HARD = (
    (Variation(1.5), Conditions()),
    (Variation(1.5, turns=1.0, shift_s=60), Conditions()),
    (Variation(1.3), Conditions(shut_s=600, seed=1)),
    (Variation(1.3), Conditions(stuck_lanes=1, seed=2)),
    (Variation(1.3), Conditions(dead_lanes=1, seed=3)),
)
"""Traffic on which the integers must keep their range, beside that of the training."""
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
        InputError: an unknown network, flow or feature, impossible settings, or a checkpoint of another run.
    """
    settings = settings or PlannedSettings()
    hashes = input_hashes(network, flow)
    names = plannable_features(network, flow, settings)
    work = Distillation(network, flow, names, settings.clearance, seed, settings.config)
    require_writable_phases(network, work.environment)
    run_rounds(work, checkpoint, _identity(hashes, seed, settings), progress)
    parts = finished_parts(work, network, flow, settings.clearance)
    draft = Policy.sealed(
        network=network.name,
        decision_interval_s=work.environment.decision_interval_s,
        clearance=settings.clearance,
        provenance=_provenance(
            work, network, flow, seed, settings, hashes, planned_command(network.name, flow, seed, settings, out_name), parts
        ),
        measured=[],
        intersections=[each.part for each in parts],
    )
    flows = range(len(network.flow_files)) if measure_flows is None else measure_flows
    return changed(draft, measured=measured_on(network, draft, flows))


def run_rounds(
    work: Distillation, checkpoint: Path | None, identity: dict[str, Any], progress: Callable[[Progress], None] | None
) -> None:
    """All rounds, or those that a checkpoint leaves."""
    if checkpoint is not None and checkpoint.is_file():
        work.restore(load_checkpoint(checkpoint, identity, CHECKPOINT_KEYS))
    while work.round < work.settings.rounds:
        work.play(progress)
        work.learn(progress)
        if checkpoint is not None:
            save_checkpoint(checkpoint, {"identity": identity} | work.state())


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
            text += f" --set {each.name}={value}".replace(", ", ",")
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
    if not visible or len(names) < fit.kept_features:
        held = len(names) if visible else 0
        fault = f"only {held} of {settings.features} can be seen by rollouts and fit; {fit.kept_features} are kept"
        raise FieldError("features", fault)
    return names


def finished_parts(work: Distillation, network: Network, flow: int, clearance: str) -> list[Calibrated]:
    """The student in integers, calibrated on what the training saw and on hard traffic, so that they keep their range there."""
    hard = hard_states(work, network, flow, clearance)
    rng = np.random.default_rng(0)
    result: list[Calibrated] = []
    for light, intersection in enumerate(work.environment.intersections):
        if work.settings.share and result:
            result.append(dataclasses.replace(result[0], part=shared(result[0].part, intersection)))
            continue
        seen = work.records.seen(light).inputs[:, work.student.columns(light)].astype(np.int64)
        own = hard if work.settings.share else [hard[light]]
        states = np.concatenate([_some(rng, seen), _some(rng, np.concatenate(own))])
        weights = work.student.weights(light)
        result.append(calibrate(intersection.id, intersection.phases, work.kept(light), weights, states))
    return result


def hard_states(work: Distillation, network: Network, flow: int, clearance: str) -> list[npt.NDArray[np.int64]]:
    """int64[T, inputs] of each light: what the student, in float, meets in hard traffic."""
    assert work.parts is not None  # after the rounds
    states: list[list[npt.NDArray[np.int64]]] = [[] for _ in work.parts]
    with tempfile.TemporaryDirectory(prefix="tinylight-") as folder:
        hard = varied_network(network, [Varied(flow, variation, k) for k, (variation, _) in enumerate(HARD)], Path(folder))
        for k, (_, conditions) in enumerate(HARD):
            features = observed(work.names)
            environment = Environment(hard, k, features=features, clearance=clearance, conditions=conditions)
            driver = Driver(environment, work.parts, integer=False)
            observation, done = environment.reset(), False
            while not done:
                for light, inputs in enumerate(driver.inputs(observation)):
                    states[light].append(inputs)
                observation, _, done = environment.step(driver.act(observation))
    return [np.stack(each) for each in states]


def _some(rng: np.random.Generator, states: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """At most ROWS_A_SOURCE of the states, those with the greatest numbers of each column among them."""
    if len(states) <= ROWS_A_SOURCE:
        return states
    extremes = np.concatenate([states.argmax(axis=0), states.argmin(axis=0)])
    return states[np.unique(np.concatenate([extremes, rng.choice(len(states), ROWS_A_SOURCE, replace=False)]))]


def _provenance(
    work: Distillation, network: Network, flow: int, seed: int, settings: PlannedSettings, hashes: dict[str, str], command: str,
    parts: Sequence[Calibrated],
) -> Provenance:  # fmt: skip
    distil = settings.config
    per_round = distil.episodes_a_round
    held = dataclasses.asdict(distil)
    return Provenance(
        command=command,
        tool_version=tool_version(),
        torch_version=str(torch.__version__),
        numpy_version=np.__version__,
        network=network.name,
        flow=flow,
        engine="builtin",
        engine_seed=work.environment.seed,
        train_seed=seed,
        search_episodes=per_round * min(distil.search_rounds, distil.rounds),
        refine_episodes=per_round * max(distil.rounds - distil.search_rounds, 0),
        **hashes,
        feature_preset=settings.features,
        settings={
            "method": METHOD,
            **{name: list(value) if isinstance(value, tuple) else value for name, value in held.items()},
            "calibration_agreement": [round(each.agreement, 5) for each in parts],
            "input_headroom": [each.headroom.inputs for each in parts],
            "hidden_headroom": [each.headroom.hidden for each in parts],
        },
        notes=[],
    )
