"""An agent on the host whose wishes the chip shows: mode ``light`` with any agent in the policy's place.

The chip's program is the usual one of mode ``light``; its network answers with the phase in its input (`wish_policy`). So an
agent's decision takes the way of every decision: a request, the network, the shell, which alone moves the lamps and keeps
their times; the lamps rule the traffic, and the verdicts are those of the mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hil.boards.bench import Seen
from hil.light.crossing import Crossing
from hil.loop.job_spec import Job
from model.evaluate import make_controller
from model.policy.agent import Inference, PolicyAgent
from model.policy.file import (
    BranchLayer,
    FeatureInput,
    HiddenLayer,
    IntersectionPolicy,
    OutputLayer,
    Policy,
    Provenance,
    save_policy,
)
from model.policy.integer import IntegerPolicy
from model.policy.provenance import input_hashes, tool_version
from streetflow.control.controllers import Controller, interval_of
from streetflow.control.environment import Environment
from streetflow.control.intersection import Intersection
from streetflow.control.own_program import OwnProgram
from streetflow.errors import FieldError
from streetflow.networks.catalogue import default_seed, find_network
from streetflow.sumo.engine import SumoEngine

WISH = "inter_2_current_phase"
"""The feature that carries the wish: 1 for one action, 0 for the others."""
ON = 255


@dataclass(frozen=True)
class AgentJob(Job):
    """A job of mode ``light`` that an agent decides; ``policy_file`` holds the network that repeats its wishes."""

    agent: str
    agent_controller: Controller = field(repr=False)

    @classmethod
    def deciding(cls, agent: str, network: str, flow: int, folder: Path, **options: Any) -> AgentJob:
        """The job; its policy file is written into the folder.

        Raises:
            InputError: there is no such agent or network, or the agent isn't one for it.
            FieldError: a policy in place of an agent, an impossible setting, or another mode than ``light``.
        """
        if options.get("mode") != "light":
            raise FieldError("agent", "decides on the host, and the chip drives the lamps: mode light")
        controller, name, _ = make_controller(agent, integer=None)
        if isinstance(controller, PolicyAgent):
            raise FieldError("agent", f"{name} is a policy, which the chip itself decides by: name it as the policy")
        if isinstance(controller, OwnProgram):
            raise FieldError("agent", f"{name} leaves the lights to SUMO: it has no wishes that a chip could show")
        found, file = find_network(network), folder / f"{network}.json"
        environment = Environment(
            found,
            flow,
            engine=options.get("engine", "builtin"),
            features=controller.features,
            clearance="computed",
            decision_interval_s=interval_of(controller),
        )
        environment.reset()
        controller.reset(environment)
        save_policy(wish_policy(environment, agent), file)
        return cls(network=found, flow=flow, policy_file=file, agent=agent, agent_controller=controller, **options)

    def environment(self, policy: Policy, *, has_limits: bool = False) -> Environment:
        return Environment(
            self.network,
            self.flow,
            engine=self.engine,
            features=self.agent_controller.features,
            clearance="shell" if has_limits else "computed",
            decision_interval_s=policy.decision_interval_s,
            rules=self.rules,
        )

    @property
    def decided_by(self) -> dict[str, str]:
        return {"agent": self.agent}

    def controller(self, policy: Policy) -> Controller:
        return self.agent_controller

    def decider(self, policy: Policy, crossings: Sequence[Crossing]) -> HostAgent:
        return HostAgent(self.agent_controller, policy, crossings)


def wish_policy(environment: Environment, agent: str) -> Policy:
    """A policy whose action is the one that its only feature names, at every light of the environment."""
    network, flow = environment.network, environment.flow
    provenance = Provenance(
        command=f"tinylight hil --agent {agent}",
        tool_version=tool_version(),
        torch_version="none",
        numpy_version=np.__version__,
        network=network.name,
        flow=flow,
        engine="sumo" if isinstance(environment.engine, SumoEngine) else "builtin",
        engine_seed=default_seed(flow),
        train_seed=0,
        search_episodes=0,
        refine_episodes=0,
        **input_hashes(network, flow),
        feature_preset=WISH,
        settings={},
        notes=[f"repeats the wishes of the agent {agent}, which decides on the host"],
    )
    return Policy.sealed(
        network=network.name,
        decision_interval_s=environment.decision_interval_s,
        clearance="computed",
        provenance=provenance,
        measured=[],
        intersections=[_repeating(each) for each in environment.intersections],
    )


def _repeating(light: Intersection) -> IntersectionPolicy:
    """Each unit has one input, and one output each unit: 255 for the wish, 0 for the rest."""
    count = light.action_count
    identity, zeros = np.eye(count, dtype=int).tolist(), [0] * count
    return IntersectionPolicy(
        id=light.id,
        phases=list(light.phases),
        features=[FeatureInput(name=WISH, width=count, lsb_per_unit=1, offset=0, multiplier=ON, shift=0)],
        hidden=[count, count],
        layer1=BranchLayer(weights=[identity], biases=[zeros], multipliers=[2] * count, shifts=[1] * count),
        layer2=HiddenLayer(weights=identity, biases=zeros, multipliers=[2] * count, shifts=[1] * count),
        layer3=OutputLayer(weights=identity, biases=zeros),
    )


class HostAgent:
    """Stands where `PolicyAgent` does in the loop; what it sends each chip is the agent's wish."""

    def __init__(self, controller: Controller, policy: Policy, crossings: Sequence[Crossing]) -> None:
        self._controller, self._crossings = controller, crossings
        self._repeat = [IntegerPolicy(part) for part in policy.intersections]

    def reset(self, environment: Environment) -> None:
        self._controller.reset(cast(Environment, LampView(environment, self._crossings)))

    def infer(self, observation: NDArray[np.int32]) -> list[Inference]:
        """One inference an intersection, from the environment's observation int32[N, F, W]."""
        found = []
        for action, decider, crossing in zip(self._controller.act(observation), self._repeat, self._crossings, strict=True):
            x = np.zeros(len(crossing.plan.phase_numbers), np.int64)
            x[action] = 1
            activations = decider.activations(x)
            found.append(Inference(x, activations.logits, decider.saturation(x, activations)))
        return found


class LampView:
    """The environment as the agent finds it, but the lights are the lamps at the chips' pins."""

    def __init__(self, environment: Environment, crossings: Sequence[Crossing]) -> None:
        self._environment, self._crossings = environment, crossings

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)

    @property
    def time_s(self) -> int:
        return int(self._environment.engine.get_current_time())

    @property
    def decision(self) -> int:
        return self.time_s // self._environment.decision_interval_s

    @property
    def current_action(self) -> NDArray[np.int32]:
        """The actions that were last shown in full."""
        return np.array([crossing.action for crossing in self._crossings], np.int32)

    @property
    def elapsed_s(self) -> NDArray[np.int32]:
        """Whole seconds since each crossing's lamps have changed."""
        return np.array([_since_change_s(crossing) for crossing in self._crossings], np.int32)

    green_s = elapsed_s


def _since_change_s(crossing: Crossing) -> int:
    last_us = next((each.time_us for each in reversed(crossing.changes) if each.what == Seen.LAMPS), crossing.start_us)
    return round((crossing.bench.now_us() - last_us) / 1e6)
