"""The job as it is asked for: which network's flow is decided by which policy, on which board, how."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hil.boards import require_board
from hil.build.firmware import Target
from hil.loop.job_settings import JobSettings
from hil.wire.expected_firmware import Setting
from model import pretrained_policy
from model.policy.agent import PolicyAgent, kept_features
from model.policy.file import Policy, load_policy
from streetflow.control.controllers import Controller
from streetflow.control.environment import Environment
from streetflow.control.signal_times import LIGHT_RULES, SignalRules
from streetflow.errors import FieldError
from streetflow.networks.catalogue import Network, find_network


@dataclass(frozen=True)
class Job(JobSettings):
    """The job: a network's flow, decided by a policy on a board."""

    network: Network
    flow: int
    policy_file: Path

    @classmethod
    def named(cls, network: str, flow: int, policy_file: Path | None, **options: object) -> "Job":
        """A job on a network found by its name, with the network's trained policy unless a file is given. InputError where
        there is no such network or policy; FieldError, before those are looked for, for an impossible setting."""
        settings = JobSettings(**options)  # type: ignore[arg-type]
        for board in settings.board_names:
            require_board(board)
        if policy_file is not None:
            load_policy(policy_file)
        return cls(find_network(network), flow, policy_file or trained_policy(network, settings.mode), **vars(settings))

    @property
    def target(self) -> Target:
        """Which of the builds in platformio.ini the firmware is."""
        return "native" if self.board == "host" else "uno_system"

    @property
    def setting(self) -> Setting:
        """What the board's firmware must report about itself."""
        kernel = None if self.kernel == "auto" else self.kernel
        return Setting(self.f_cpu_hz, self.baud, kernel, self.min_green_s or None)

    @property
    def rules(self) -> SignalRules:
        """Of the crossings' times and limits, in modes light and alone."""
        return replace(LIGHT_RULES, max_green_s=self.max_green_s, longest_red_s=self.longest_red_s)

    def environment(self, policy: Policy, *, has_limits: bool = False) -> Environment:
        """Of the traffic. `has_limits`: its own lights have the longest green and red of a chip that drives lamps."""
        own = "shell" if has_limits else policy.clearance if self.mode == "answer" else "computed"
        return Environment(
            self.network,
            self.flow,
            engine=self.engine,
            features=kept_features(policy, str(self.policy_file)),
            clearance=own if has_limits else self.clearance or own,
            min_green_s=self.min_green_s,
            rules=self.rules,
        )

    @property
    def decided_by(self) -> dict[str, str]:
        """What decides, as the provenance names it."""
        return {"policy_file": str(self.policy_file)}

    def controller(self, policy: Policy) -> Controller:
        """What decides where no chip does: the policy, in the chip's integers."""
        return PolicyAgent(policy, integer=True, source=str(self.policy_file))

    def decider(self, policy: Policy, crossings: Sequence[Any]) -> Any:
        """What decides in the policy's place in mode ``light``; None: the policy. See `hil.light.host_agent`."""
        return None


def trained_policy(network: str, mode: str = "answer") -> Path:
    """The network's pretrained policy. UnknownNetwork where the name may be mistyped, InputError where there is none."""
    try:
        return pretrained_policy(network, mode)
    except FileNotFoundError as fault:
        find_network(network)
        raise FieldError("policy_file", f"{fault}; name a policy file, or train one with `tinylight train`") from None
