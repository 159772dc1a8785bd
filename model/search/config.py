"""The settings of a training: the release's by default, those that go beyond the paper, and the range of each."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from model.search.budget import Budget
from streetflow.errors import FieldError

LAYER_DIMS = (16, 18, 20, 22, 24)  # paper, Appendix B: D_L2 and D_L3
KEPT_FEATURES = 2  # the paper keeps two, as many as its baselines use; and one component in each of layers 2 and 3
MOST = 1_000_000_000  # of any number that has no natural bound


@dataclass(frozen=True)
class Range:
    """Range of a number: from least to most, or with `above` anything above least."""

    least: int
    most: int = MOST
    above: bool = False

    def __contains__(self, value: float) -> bool:
        return (value > self.least if self.above else value >= self.least) and value <= self.most

    def __str__(self) -> str:
        return f"above {self.least} and at most {self.most:,}" if self.above else f"from {self.least} to {self.most:,}"


def _setting(default: Any, least: int, most: int = MOST, *, above: bool = False) -> Any:
    """A field of numbers within a range; its default says which kind (None: a whole number, or none)."""
    return dataclasses.field(default=default, metadata={"range": Range(least, most, above)})


@dataclass(frozen=True)
class TrainingConfig:
    """The release's settings (shared design page "How the paper's numbers are made"; paper, Appendix B). FieldError for a value
    that is of another kind or out of range."""

    search_episodes: int = _setting(64, 1)
    refine_episodes: int = _setting(128, 1)
    epsilon: float = _setting(0.1, 0, 1)  # of the first search episode; falls linearly, 0 in refinement
    epsilon_last_episode: int = _setting(59, 1)
    learning_rate: float = _setting(1e-3, 0, 1, above=True)  # RMSprop, both for the weights and for the alphas
    halve_every: int = _setting(10, 1)  # refinement episodes
    gamma: float = _setting(0.9, 0, 1)
    tau: float = _setting(0.1, 0, 1, above=True)
    batch: int = _setting(32, 1)
    replay_capacity: int = _setting(100_000, 1)
    beta: float = _setting(16.0, 0)  # weight of the entropies
    kept_features: int = _setting(KEPT_FEATURES, 1)
    max_parameters: int | None = _setting(None, 1)  # of an intersection's sub-graph; None: the strongest of any size
    max_cycles: int | None = _setting(None, 1)  # of a decision on the chip
    max_flash_bytes: int | None = _setting(None, 1)  # of the firmware with one intersection
    layer2_dims: tuple[int, ...] = _setting(LAYER_DIMS, 1, 1000)
    layer3_dims: tuple[int, ...] = _setting(LAYER_DIMS, 1, 1000)
    # beyond the paper
    also_flows: tuple[int, ...] = _setting((), 0)  # trained on in turn with the policy's own; the network's others are held out
    share: bool = False  # one network for all intersections of a replica, which must be alike
    double_q: bool = False  # the online network chooses the next action, the target network gives its value
    reward_scale: float = _setting(1.0, 0, above=True)
    updates_per_decision: int = _setting(1, 1)
    rounded_episodes: int = _setting(0, 0)  # the refinement's last, in which it acts and learns through the chip's rounding
    kept_episodes: int = _setting(0, 0)  # refined weights to choose from, beside the last: after a replica's best so many

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            _require_possible(each, getattr(self, each.name))
        if self.batch > self.replay_capacity:
            raise FieldError("batch", f"{self.batch} is more than replay_capacity, {self.replay_capacity}")
        if self.rounded_episodes > self.refine_episodes:
            raise FieldError("rounded_episodes", f"{self.rounded_episodes}, of {self.refine_episodes} to refine")

    @property
    def budget(self) -> Budget:
        return Budget(self.max_parameters, self.max_cycles, self.max_flash_bytes)


def _require_possible(setting: dataclasses.Field[Any], value: object) -> None:
    """FieldError unless the value is of the default's kind and within the setting's range."""
    usual, within = setting.default, setting.metadata.get("range")
    if isinstance(usual, bool):
        possible, wanted = isinstance(value, bool), "True or False"
    elif isinstance(usual, tuple):
        held = value if isinstance(value, tuple) else (None,)
        possible = all(_is(each, Integral, within) for each in held) and len(held) >= min(len(usual), 1)
        wanted = f"a tuple of whole numbers {within}"
    elif isinstance(usual, float):
        possible, wanted = _is(value, Real, within), f"a number {within}"
    else:
        possible = _is(value, Integral, within) or value is usual is None
        wanted = f"a whole number {within}"
    if not possible:
        raise FieldError(setting.name, f"must be {wanted}, is {repr(value)[:60]}")


def _is(value: Any, kind: type, within: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and value in within
