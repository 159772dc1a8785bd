"""Episode after episode of a network's lights, for the environments of this package; it needs no library of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streetflow.control.environment import Environment
from streetflow.control.features import find_feature, resolve_features
from streetflow.errors import FieldError
from streetflow.gym.rewards import Reward, RewardSum
from streetflow.networks.catalogue import Network

Float32 = NDArray[np.float32]
SEED_RANGE = 1 << 31


class Layout(NamedTuple):
    """What one light observes, value by value: one feature after the other, each as wide as it is at this light."""

    indices: NDArray[np.int64]
    """[D]: positions in the light's observation int32[F, W], flat."""
    lsb_per_unit: Float32
    """[D]: a value is the integer divided by it, in the feature's unit."""
    low: Float32
    """[D]: the least values, and the greatest, ``high``."""
    high: Float32


class Episodes:
    """One replica of a network.

    Args:
        network: its name, or itself.
        features: what the lights observe: a preset or names, as for `Environment`.
        flows: the demand files; each episode's is drawn from these.
        reward: see `streetflow.gym.rewards`.
        options: further arguments of `Environment`, such as clearance, min_green_s, horizon_s.

    Attributes:
        environment: of the present episode.
        lights: the intersections' ids.
        layouts: one a light.
        action_counts: one a light.
    """

    def __init__(
        self,
        network: str | Network,
        features: str | Sequence[str],
        flows: Sequence[int],
        reward: Reward,
        options: dict[str, Any],
    ) -> None:
        specs = resolve_features(features)
        self._reward = RewardSum(reward)
        self._flows = tuple(flows)
        if not self._flows:
            raise FieldError("flows", "must name at least one")
        names = [spec.name for spec in specs]
        self._observed = [*names, *(name for name in self._reward.features if name not in names)]
        self._options = {"network": network} | options
        self._environments: dict[int, Environment] = {}
        self.environment = self._of_flow(self._flows[0])
        for flow in self._flows:
            self.environment.network.flow_file(flow)
        self.lights = tuple(each.id for each in self.environment.intersections)
        self.action_counts = tuple(each.action_count for each in self.environment.intersections)
        self.layouts = [_layout(self.environment, light, names) for light in range(len(self.lights))]

    def begin(self, rng: np.random.Generator) -> list[Float32]:
        """A new episode: the flow and the engine's seed are drawn. Returns each light's observation float32[D]."""
        self.environment = self._of_flow(self._flows[rng.integers(len(self._flows))])
        return self._seen(self.environment.reset(int(rng.integers(SEED_RANGE))))

    def step(self, actions: ArrayLike) -> tuple[list[Float32], NDArray[np.float64], bool]:
        """One decision of all lights, int[lights]: their observations and rewards, and whether the horizon is reached."""
        observation, _, done = self.environment.step(actions)
        return self._seen(observation), self._reward.of(self.environment, observation), done

    def figures(self) -> dict[str, Any]:
        """Of the run so far, for `info`: its flow, and the two measures of the paper."""
        environment = self.environment
        return {
            "flow": environment.flow,
            "average_travel_time_s": environment.average_travel_time_s(),
            "throughput_veh_per_min": environment.throughput_veh_per_min(),
        }

    def _seen(self, observation: NDArray[np.int32]) -> list[Float32]:
        flat = observation.reshape(len(observation), -1)
        return [(flat[light, each.indices] / each.lsb_per_unit).astype(np.float32) for light, each in enumerate(self.layouts)]

    def _of_flow(self, flow: int) -> Environment:
        if flow not in self._environments:
            self._environments[flow] = Environment(flow=flow, features=self._observed, **self._options)
        return self._environments[flow]


def _layout(environment: Environment, light: int, names: Sequence[str]) -> Layout:
    indices, columns = [], []
    for name, column in zip(names, environment.feature_columns(names), strict=True):
        width = int(environment.feature_widths[light, column])
        spec = find_feature(name)
        indices.append(column * environment.max_width + np.arange(width))
        columns.append(np.tile([[spec.lsb_per_unit], [spec.minimum], [spec.maximum]], width))
    lsb, low, high = np.concatenate(columns, axis=1).astype(np.float32)
    return Layout(np.concatenate(indices), lsb, low / lsb, high / lsb)
