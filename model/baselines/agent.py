"""A trained baseline as a controller: `streetflow.control.controllers`. Needs torch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from model.baselines.file import BaselineFile
from model.baselines.registry import BASELINES, build_graph
from model.baselines.training import feature_scale, load_arrays
from model.dqn.learner import greedy_actions
from model.dqn.value_graph import ValueGraph
from model.policy.agent import check_interval
from streetflow.control.environment import Environment
from streetflow.errors import InputError


class BaselineAgent:
    """Decides at all intersections of the file's network."""

    def __init__(self, content: BaselineFile, source: str) -> None:
        """source: the file's name, for errors."""
        self.policy, self.source = content, source
        self.baseline = BASELINES[content.model]
        self.features = self.baseline.features
        self._graph: ValueGraph | None = None

    def reset(self, environment: Environment) -> None:
        """Prepares for a run; InputError if the weights aren't for this network."""
        if environment.network.name != self.policy.network:
            raise InputError(self.source, "network", f"trained on {self.policy.network}, not {environment.network.name}")
        check_interval(self.policy.decision_interval_s, environment, self.source)
        self.baseline.require(environment.intersections, environment.network.name)
        self._environment, self._columns = environment, environment.feature_columns(self.features)
        widths = environment.feature_widths[:, self._columns]
        self._width = int(widths.max())
        self._scale = feature_scale([environment.lsb_per_unit[column] for column in self._columns], self._width)
        graph = build_graph(self.baseline, environment.intersections, widths, self._width, [0])
        load_arrays(graph, self.policy.arrays, self.source)
        self._graph = graph

    def act(self, observation: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Actions int32[N] for the coming decision, from the environment's observation int32[N, F, W]."""
        assert self._graph is not None
        frame = observation[:, self._columns, : self._width]
        actions = greedy_actions(self._graph, frame.reshape(len(frame), -1) * self._scale)
        return self.baseline.phases(actions, self._environment).astype(np.int32)
