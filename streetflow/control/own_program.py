"""The lights as the network's own programs have them: the fixed time (or actuated) control that came with a SUMO network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streetflow.control.environment import Environment
from streetflow.errors import InputError
from streetflow.sumo.engine import SumoEngine


class OwnProgram:
    """Decides nothing: SUMO runs its programs, of which the observation's current phases know nothing."""

    features = ("inter_2_current_phase",)  # unused: an environment observes at least one feature

    def reset(self, environment: Environment) -> None:
        """InputError on another engine than SUMO."""
        if not isinstance(environment.engine, SumoEngine):
            raise InputError("OwnProgram", "", "leaves the lights to SUMO's programs: it needs the engine 'sumo'")
        environment.engine.follow_own_programs()
        self._actions = environment.current_action

    def act(self, observation: NDArray[np.int32]) -> NDArray[np.int32]:
        return self._actions
