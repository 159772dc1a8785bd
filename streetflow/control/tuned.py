"""Rules with parameters that were tuned for a network, on its flow 0 alone (``scripts/tune_rules.py``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streetflow.control.controllers import CONTROLLERS, SECOND_BY_SECOND, Controller
from streetflow.control.environment import Environment
from streetflow.errors import InputError

PARAMETERS_FILE = Path(__file__).resolve().with_name("tuned_rules.json")
SUFFIX = ".tuned"
Parameters = Mapping[str, float]
TUNABLE = ("SOTL", "MaxQueue", "MaxCount", "MaxPressure0", "EfficientPressure", "EfficientQueue", "Actuated", "Webster")


class Tuned:
    """A rule with the parameters of the network that it runs on.

    Args:
        rule: one of ``TUNABLE``.
    """

    def __init__(self, rule: str) -> None:
        self._rule = rule
        self.features = CONTROLLERS[rule]().features

    def reset(self, environment: Environment) -> None:
        why = refusal(self._rule + SUFFIX, environment.network.name)
        if why is not None:
            raise InputError(self._rule + SUFFIX, "", why)
        self._controller = CONTROLLERS[self._rule](**tuned_parameters()[environment.network.name][self._rule])
        self._controller.reset(environment)

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        return self._controller.act(observation)


TUNED: dict[str, Callable[[], Controller]] = {rule + SUFFIX: partial(Tuned, rule) for rule in TUNABLE}
"""By name, such as MaxQueue.tuned."""
RULES: dict[str, Callable[[], Controller]] = CONTROLLERS | SECOND_BY_SECOND | TUNED
"""All rules there are."""


@cache
def tuned_parameters() -> dict[str, dict[str, Parameters]]:
    """By network, then by rule: what differs from the rule's defaults."""
    found: dict[str, dict[str, Parameters]] = json.loads(PARAMETERS_FILE.read_text(encoding="utf-8"))
    return found


def refusal(name: str, network: str) -> str | None:
    """Why a rule can't control a network: it isn't tuned for it; None if it can."""
    if name in TUNED and name.removesuffix(SUFFIX) not in tuned_parameters().get(network, {}):
        return f"not tuned for {network} (scripts/tune_rules.py does that)"
    return None


def rules_for(network: str) -> list[str]:
    """All rules of a network, the tuned ones where tuning changed anything."""
    return [*CONTROLLERS, *(rule + SUFFIX for rule, own in tuned_parameters().get(network, {}).items() if own)]
