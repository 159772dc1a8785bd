"""Runs of a controller on a network's flows: the rows of `tinylight evaluate` and of the result files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from model.baselines.file import BaselineFile, is_baseline_file, load_baseline
from model.planning.planner import Planner
from model.policy.agent import PolicyAgent, SaturationCount
from model.policy.file import Policy, load_policy
from model.policy.provenance import file_sha256
from streetflow.control.clearance import require_clearance
from streetflow.control.conditions import FINE, Conditions
from streetflow.control.controllers import Controller, interval_of, run
from streetflow.control.engines import require_engine
from streetflow.control.environment import Environment
from streetflow.control.own_agent import OwnAgent, is_own_agent, offered_agents
from streetflow.control.own_program import OwnProgram
from streetflow.control.tuned import RULES
from streetflow.errors import InputError
from streetflow.near import did_you_mean
from streetflow.networks.catalogue import Network, find_network
from streetflow.roadnet.flow import Flow

AGENTS: dict[str, Callable[[], Controller]] = RULES | {
    "OwnProgram": OwnProgram,
    "Planner": Planner,
    "Planner.blind": lambda: Planner(blind_seed=0),
}
"""What an agent may be beside a file: the rules, SUMO's own programs, and the planners, which are bounds and no opponents."""


@dataclass(frozen=True)
class EvaluationRow:
    """One run: one flow file with its engine seed, to the network's horizon."""

    network: str
    flow: int
    seed: int
    agent: str  # the controller's name, or the policy file's
    arithmetic: str  # "integer" or "float" for a policy, "" for a rule
    clearance: str
    engine: str
    policy_sha256: str | None
    average_travel_time_s: float
    throughput_veh_per_min: float
    decisions_beyond_range: int | None = None  # in which an input was beyond its range; None: not decided in integers
    decisions_at_limit: int | None = None  # in which a hidden unit was at its limit
    decisions: int | None = None  # in all: one at each light each time
    trained_on: bool | None = None  # whether the policy was trained on this very flow; None: no policy file's network


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run, beside network, flow and agent."""

    engine: str = "builtin"  # see `streetflow.control.engines.ENGINES`
    seed: int | None = None  # of the engine, for all flows; None: each flow's own (RUN_SEEDS)
    clearance: str | None = None  # None: the policy's; for a rule "hold", or on SUMO "yellow"
    measure_queues: bool = False  # look at the queues every second, see `Environment.measures`
    conditions: Conditions = FINE  # what goes wrong at the crossings
    demand: Sequence[Flow] | None = None  # vehicles in place of those of every flow file


def evaluate(
    network: str | Network,
    agent: str | Path | Policy,
    flows: Iterable[int],
    *,
    integer: bool = False,
    settings: RunSettings | None = None,
    progress: Callable[[EvaluationRow], None] | None = None,
    at_end: Callable[[Environment], None] | None = None,
) -> list[EvaluationRow]:
    """Runs an agent over flows of a network, each to its horizon.

    Args:
        network: a name, or the network itself.
        agent: a name in `AGENTS`, an agent of the user's own as `module:Class`, a policy or baseline file, or a policy.
        flows: numbers of the demand files.
        integer: whether a policy decides as the chip does, else in float.
        settings: engine, seed, clearance, queues; by default the paper's.
        progress: gets each row as soon as it is complete.
        at_end: gets each run's environment at its horizon, for its measures and trips.

    Returns:
        One row a flow.

    Raises:
        InputError: an agent, flow or network is missing, or the policy is made for another network.
    """
    settings = settings or RunSettings()
    require_engine(settings.engine)
    if settings.clearance is not None:
        require_clearance(settings.clearance)
    controller, name, default_clearance = make_controller(agent, integer=integer)
    if isinstance(network, str):
        network = find_network(network)
    policy: Policy | BaselineFile | None = getattr(controller, "policy", None)
    clearance = settings.clearance or default_clearance
    if settings.clearance is None and policy is None and settings.engine == "sumo":
        clearance = "yellow"  # a rule goes with any, and SUMO needs one that can be shown
    rows = []
    for flow in flows:
        environment = Environment(
            network,
            flow,
            seed=settings.seed,
            engine=settings.engine,
            features=controller.features,
            clearance=clearance,
            conditions=settings.conditions,
            demand=settings.demand,
            decision_interval_s=interval_of(controller),
        )
        environment.measures_queues = settings.measure_queues
        run(environment, controller)
        if at_end is not None:
            at_end(environment)
        rows.append(
            EvaluationRow(
                network=network.name,
                flow=flow,
                seed=environment.seed,
                agent=name,
                arithmetic="" if policy is None else "integer" if integer else "float",
                clearance=clearance,
                engine=settings.engine,
                policy_sha256=None if policy is None else policy.sha256,
                average_travel_time_s=environment.average_travel_time_s(),
                throughput_veh_per_min=environment.throughput_veh_per_min(),
                trained_on=_trained_on(policy, network, flow),
                **_range_counts(controller),
            )
        )
        if progress is not None:
            progress(rows[-1])
    return rows


def _trained_on(policy: Policy | BaselineFile | None, network: Network, flow: int) -> bool | None:
    if not isinstance(policy, Policy) or policy.network != network.name:
        return None
    origin = policy.provenance
    if flow == origin.flow:
        return file_sha256(network.flow_file(flow)) == origin.flow_sha256
    also_flows = origin.settings.get("also_flows")
    return isinstance(also_flows, list) and flow in also_flows


def _range_counts(controller: Controller) -> dict[str, int]:
    """The fields of a row on the integers' range; none where the controller doesn't decide in integers."""
    count: SaturationCount | None = getattr(controller, "saturated", None)
    if count is None:
        return {}
    return {"decisions_beyond_range": count.inputs, "decisions_at_limit": count.units, "decisions": count.decisions}


def require_agent(agent: str | Path, *, integer: bool = False) -> None:
    """InputError for an agent that is missing, is not a policy, or has no integer form where that is asked for."""
    make_controller(agent, integer=integer)


def make_controller(agent: str | Path | Policy, *, integer: bool | None) -> tuple[Controller, str, str]:
    """A controller for `streetflow.control.controllers.run`.

    Args:
        agent: a name in `AGENTS`, an agent of the user's own as `module:Class`, a policy or baseline file, or a policy.
        integer: decide as the chip does, or in float; None: as the chip does, where the agent is a policy.

    Returns:
        The controller, its name (or its file's) and its clearance.

    Raises:
        InputError: the agent is missing, or integers are asked for and it is a rule or a baseline.
    """
    if not isinstance(agent, Policy):
        name = str(agent)
        if name in AGENTS:
            if integer:
                raise InputError(name, "", "a rule has no integer form; only a policy file has one")
            return AGENTS[name](), name, "hold"
        if is_own_agent(name):
            if integer:
                raise InputError(name, "", "an agent of your own has no integer form; only a policy file has one")
            return OwnAgent(name), name, "hold"
        if not os.path.isfile(agent):
            known = [*AGENTS, *offered_agents()]
            hint = " (it is a folder)" if os.path.isdir(agent) else did_you_mean(name, known, files=True)
            raise InputError(name, "", f"neither a policy file nor one of {', '.join(known)} or module:Class{hint}")
        if is_baseline_file(Path(agent)):
            if integer:
                raise InputError(name, "", "a baseline has no integer form; only a policy file has one")
            return _baseline(Path(agent))
    policy = agent if isinstance(agent, Policy) else load_policy(agent)
    name = "policy" if isinstance(agent, Policy) else Path(agent).name
    return PolicyAgent(policy, integer=integer is not False, source=name), name, policy.clearance


def _baseline(file: Path) -> tuple[Controller, str, str]:
    """A trained baseline; InputError where torch is missing."""
    content = load_baseline(file)
    try:
        from model.baselines.agent import BaselineAgent
    except ImportError as fault:
        raise InputError(file, "", "a baseline needs PyTorch: pip install 'tinylight-hil[train]'") from fault
    return BaselineAgent(content, file.name), file.name, content.clearance
