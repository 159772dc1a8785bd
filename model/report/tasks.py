"""The tasks of a table, and how one is run: a model on some flows of a network, trained and run per flow."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.baselines.registry import BASELINES
from model.evaluate import AGENTS, EvaluationRow, RunSettings, evaluate
from model.policy.file import Policy
from model.report.cells import Cell, Outcome, artefact_file, cell_file, file_hashes, load_cell, save_cell
from model.report.compare import row_label
from model.report.jobs import OnFraction
from model.report.settings import TinyLightSettings, settings_named, settings_names, tinylight_settings
from streetflow.control.controllers import CONTROLLERS, PAPER_RULES, SECOND_BY_SECOND
from streetflow.control.intersection import signalled_intersections
from streetflow.control.own_agent import OwnAgent, is_own_agent, offered_agents
from streetflow.control.tuned import SUFFIX, TUNED, refusal, tuned_parameters
from streetflow.errors import FieldError
from streetflow.near import or_else
from streetflow.networks.catalogue import Network, default_seed, find_network
from streetflow.roadnet.reader import read_roadnet

TINYLIGHT = "TinyLight"
# Intersections that train side by side, at most; fixed, so that results don't depend on the number of cores.
BASELINE_GROUPS_PER_TASK, TINYLIGHT_GROUPS_PER_TASK = 12, 48
FLOWS_PER_TASK = 5
# Raise with every change of a learned model that changes its figures; models with times as inputs got another unit for them.
LEARNING_VERSION = 1
FEATURES_VERSION = 2
SEARCHING = ("TLRP", TINYLIGHT)
TRAINING_STEP_WORK = 10.0  # a decision in training takes about as long as so many without, for the forecast only
PLANNED_STEP_WORK = 100.0  # the same of a decision that is planned


@dataclass(frozen=True)
class TableTask:
    """The runs of one model on some flows of one network, done in one go."""

    network: str
    model: str
    flows: tuple[int, ...]
    work_units: float  # for the forecast
    clearance: str = "hold"  # between two phases, in training and in the run

    def __str__(self) -> str:
        flows = ", ".join(map(str, self.flows))
        return f"{self.model} on {self.network}, flow{'s' if len(self.flows) > 1 else ''} {flows}"

    def is_done(self, work: Path) -> bool:
        return is_done(self, work)

    def inputs(self) -> dict[str, Any]:
        network = find_network(self.network)
        known = {flow: identity(network, self.model, flow, self.clearance) for flow in self.flows}
        return {f"flow {flow}: {name}": value for flow, each in known.items() for name, value in each.items()}

    def checkpoints(self, work: Path) -> list[Path]:
        if not self.model.startswith(f"{TINYLIGHT}."):
            return []
        if _is_planned(self.model, self.network):
            return [_checkpoint(self, work, str(flow)) for flow in self.flows]
        return [_checkpoint(self, work, f"{self.flows[0]}-{self.flows[-1]}")]

    def run(self, work: Path, report: OnFraction) -> None:
        run_task(self, work, report)


def _checkpoint(task: TableTask, work: Path, flows: str) -> Path:
    """flows: 3, or 0-4 of flows that train together."""
    name = f"flow{'s' if '-' in flows else ''}_{flows}.checkpoint"
    return cell_file(work, task.network, task.model, task.flows[0]).with_name(name)


def table_models() -> list[str]:
    """Names that a table's rows may have: rules, baselines, and TinyLight with each of its settings."""
    return [*AGENTS, *BASELINES, *(f"{TINYLIGHT}.{name}" for name in settings_names())]


def expand_models(text: str) -> list[str]:
    """Row names of a list such as `rules,TinyLight.best,my_agent:MyAgent`; FieldError for an unknown one, InputError for an
    agent of the user's own that can't be made."""
    known = table_models()
    opponents = [*(name for name in CONTROLLERS if name not in PAPER_RULES), *SECOND_BY_SECOND]
    several = {"rules": list(PAPER_RULES), "opponents": opponents, "tuned": list(TUNED)}
    several |= {"baselines": list(BASELINES), "all": known}
    models = []
    for name in (part.strip() for part in text.split(",")):
        if name not in known and is_own_agent(name):
            OwnAgent(name)
        elif name not in known and name not in several:
            raise FieldError("models", f"unknown model {name!r}{or_else(name, [*several, *known, *offered_agents()])}")
        models += several.get(name, [name])
    return list(dict.fromkeys(models))


Dashes = dict[tuple[str, str], str]  # (network, model): why the model can't control the network


def plan(
    networks: Sequence[str], models: Sequence[str], flows: Sequence[int], clearance: str = "hold"
) -> tuple[list[TableTask], Dashes]:
    """All tasks of a table, network by network, and its dashes. InputError for an unknown network or flow."""
    tasks: list[TableTask] = []
    dashes: Dashes = {}
    for name in networks:
        network = find_network(name)
        for flow in flows:
            network.flow_file(flow)
        intersections = signalled_intersections(read_roadnet(network.roadnet_file))
        count = len(intersections)
        for model in models:
            why = BASELINES[model].refusal(intersections) if model in BASELINES else refusal(model, name)
            if why is not None:
                dashes[name, model] = why
                continue
            step = _task_flows(model, name, count, len(flows))
            units = _work_units(model, network, count)
            for first in range(0, len(flows), step):
                some = tuple(flows[first : first + step])
                tasks.append(TableTask(name, model, some, units * len(some), clearance))
    return tasks, dashes


def row_labels(models: Iterable[str]) -> list[str]:
    """Labels of the rows that the models will have, each once."""
    labels: list[str] = []
    for model in dict.fromkeys(models):
        two = model.startswith(f"{TINYLIGHT}.")
        labels += [row_label(model, arithmetic) for arithmetic in ("float", "integer")] if two else [model]
    return labels


def identity(network: Network, model: str, flow: int, clearance: str = "hold") -> dict[str, Any]:
    """Everything that a cell's figures depend on; a cell with another identity is made again."""
    known: dict[str, Any] = {"clearance": clearance, "horizon_s": network.horizon_s} | file_hashes(network, flow)
    if model in TUNED:
        known["parameters"] = tuned_parameters()[network.name][model.removesuffix(SUFFIX)]
    if is_own_agent(model):
        known["agent_sha256"] = OwnAgent(model).sha256
    if _learns(model):
        known["learning_version"] = LEARNING_VERSION
    if model.partition(".")[0] in SEARCHING:
        known["features_version"] = FEATURES_VERSION
    if model.startswith(f"{TINYLIGHT}."):
        known["settings"] = tinylight_settings(_settings_name(model), network.name).identity()
    return known


def is_done(task: TableTask, work: Path) -> bool:
    network = find_network(task.network)
    return all(
        load_cell(work, task.network, task.model, flow, identity(network, task.model, flow, task.clearance)) is not None
        for flow in task.flows
    )


def planned_cells(tasks: Sequence[TableTask], work: Path) -> list[Cell]:
    """The cells of finished tasks, in the tasks' order; none of another clearance."""
    cells = [(load_cell(work, task.network, task.model, flow), task.clearance) for task in tasks for flow in task.flows]
    return [cell for cell, clearance in cells if cell is not None and cell.identity.get("clearance", "hold") == clearance]


def run_task(task: TableTask, work: Path, report: OnFraction) -> None:
    """Makes the task's cells and writes them to the work folder."""
    network = find_network(task.network)
    started_s = time.monotonic()
    if not _learns(task.model):
        outcomes = _rule(task, network, report)
    elif task.model in BASELINES:
        outcomes = _baseline(task, network, work, report)
    else:
        outcomes = _tinylight(task, network, work, report)
    wall_s = time.monotonic() - started_s
    for flow, by_arithmetic in outcomes.items():
        cell = Cell(
            network=task.network,
            model=task.model,
            flow=flow,
            seed=default_seed(flow),
            identity=identity(network, task.model, flow, task.clearance),
            outcomes=by_arithmetic,
            wall_s=round(wall_s / len(task.flows), 3),
        )
        save_cell(work, cell)


def _rule(task: TableTask, network: Network, report: OnFraction) -> dict[int, dict[str, Outcome]]:
    done = 0

    def report_progress(_row: EvaluationRow) -> None:
        nonlocal done
        done += 1
        report(done / len(task.flows))

    settings = RunSettings(clearance=task.clearance)
    rows = evaluate(network, task.model, task.flows, settings=settings, progress=report_progress)
    return {row.flow: {"rule": _outcome(row)} for row in rows}


def _baseline(task: TableTask, network: Network, work: Path, report: OnFraction) -> dict[int, dict[str, Outcome]]:
    """The task's flows side by side, one weights file each."""
    from model.baselines.train_baseline import train_baseline_files
    from model.baselines.training import BaselineProgress

    def report_progress(state: BaselineProgress) -> None:
        report(state.done_episodes / state.total_episodes)

    files = {flow: artefact_file(work, task.network, task.model, flow, "npz") for flow in task.flows}
    for file in files.values():
        file.parent.mkdir(parents=True, exist_ok=True)
    runs = [(flow, default_seed(flow), file) for flow, file in files.items()]
    train_baseline_files(task.model, network, runs, clearance=task.clearance, progress=report_progress)
    return {flow: {"float": _outcome(evaluate(network, file, [flow])[0])} for flow, file in files.items()}


def _tinylight(task: TableTask, network: Network, work: Path, report: OnFraction) -> dict[int, dict[str, Outcome]]:
    """The task's flows side by side, one policy file each, with a checkpoint: a stopped training resumes from there."""
    from model.policy.file import save_policy
    from model.train.search_and_refine import Execution, TrainingProgress
    from model.train.train_policy import PolicySettings, train_policies

    settings = tinylight_settings(_settings_name(task.model), network.name)
    if settings.method == "planned":
        return _planned(task, network, settings, work, report)

    def report_progress(state: TrainingProgress) -> None:
        report(state.done_episodes / state.total_episodes)

    (checkpoint,) = task.checkpoints(work)
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    with settings_named(_settings_name(task.model)):
        policies = train_policies(
            network,
            task.flows,
            [settings.seed + default_seed(flow) for flow in task.flows],
            PolicySettings(settings.replicas, settings.features, task.clearance, settings.config()),
            execution=Execution(checkpoint, resume_from=checkpoint if checkpoint.is_file() else None),
            progress=report_progress,
        )
    outcomes = {}
    for flow, policy in zip(task.flows, policies, strict=True):
        save_policy(policy, artefact_file(work, task.network, task.model, flow, "policy.json"))
        outcomes[flow] = _outcomes(policy)
    checkpoint.unlink(missing_ok=True)
    return outcomes


def _planned(
    task: TableTask, network: Network, settings: TinyLightSettings, work: Path, report: OnFraction
) -> dict[int, dict[str, Outcome]]:
    """The task's flows one after the other, one policy file each, with a checkpoint."""
    from model.planning.distil import Progress
    from model.policy.file import save_policy
    from model.train.planned_policy import PlannedSettings, plan_policy

    outcomes = {}
    for number, (flow, checkpoint) in enumerate(zip(task.flows, task.checkpoints(work), strict=True)):

        def report_progress(state: Progress, number: int = number) -> None:
            report((number + state.done_episodes / state.total_episodes) / len(task.flows))

        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        with settings_named(_settings_name(task.model)):
            policy = plan_policy(
                network,
                flow,
                settings.seed + default_seed(flow),
                PlannedSettings(settings.features, task.clearance, settings.plan_config()),
                progress=report_progress,
                checkpoint=checkpoint,
                measure_flows=[flow],
            )
        save_policy(policy, artefact_file(work, task.network, task.model, flow, "policy.json"))
        outcomes[flow] = _outcomes(policy)
        checkpoint.unlink(missing_ok=True)
    return outcomes


def _outcomes(policy: Policy) -> dict[str, Outcome]:
    """Of a policy that was measured on one flow."""
    (run,) = policy.measured
    return {
        "float": Outcome(run.float_average_travel_time_s, run.float_throughput_veh_per_min),
        "integer": Outcome(run.integer_average_travel_time_s, run.integer_throughput_veh_per_min),
    }


def _outcome(row: EvaluationRow) -> Outcome:
    return Outcome(row.average_travel_time_s, row.throughput_veh_per_min)


def _learns(model: str) -> bool:
    """Whether a row is trained here: no rule, and no agent of the user's own."""
    return model not in AGENTS and not is_own_agent(model)


def _settings_name(model: str) -> str:
    return model.removeprefix(f"{TINYLIGHT}.")


def _task_flows(model: str, network: str, n_intersections: int, n_flows: int) -> int:
    """How many flows one task holds: rules all, learned models as many as train well side by side."""
    if not _learns(model):
        return n_flows
    if model.startswith(f"{TINYLIGHT}.") and _is_planned(model, network):
        return 1
    groups = BASELINE_GROUPS_PER_TASK if model in BASELINES else TINYLIGHT_GROUPS_PER_TASK
    return max(1, min(FLOWS_PER_TASK, groups // n_intersections))


def _is_planned(model: str, network: str) -> bool:
    return tinylight_settings(_settings_name(model), network).method == "planned"


def _work_units(model: str, network: Network, n_intersections: int) -> float:
    """Decisions of one flow, weighted: for the forecast."""
    decisions = network.horizon_s / network.decision_interval_s * n_intersections
    if not _learns(model):
        return decisions
    if model.startswith(f"{TINYLIGHT}."):
        return training_units(tinylight_settings(_settings_name(model), network.name), network, n_intersections)
    return decisions * TRAINING_STEP_WORK * 64


def training_units(settings: TinyLightSettings, network: Network, n_intersections: int) -> float:
    """The same of one training of TinyLight."""
    decisions = network.horizon_s / network.decision_interval_s * n_intersections
    if settings.method == "planned":
        plan = settings.plan_config()
        return decisions * PLANNED_STEP_WORK * plan.rounds * plan.episodes_a_round
    config = settings.config()
    return decisions * TRAINING_STEP_WORK * (config.search_episodes + config.refine_episodes) * settings.replicas
