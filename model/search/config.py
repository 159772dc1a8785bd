"""The settings of a training: the release's by default, those that go beyond the paper, and the range of each."""

from __future__ import annotations

from dataclasses import dataclass

from model.search.budget import Budget
from model.search.ranges import require_possible, setting
from streetflow.errors import FieldError

LAYER_DIMS = (16, 18, 20, 22, 24)  # paper, Appendix B: D_L2 and D_L3
KEPT_FEATURES = 2  # the paper keeps two, as many as its baselines use; and one component in each of layers 2 and 3


@dataclass(frozen=True)
class TrainingConfig:
    """The release's settings (shared design page "How the paper's numbers are made"; paper, Appendix B). FieldError for a value
    that is of another kind or out of range."""

    search_episodes: int = setting(64, 1)
    refine_episodes: int = setting(128, 1)
    epsilon: float = setting(0.1, 0, 1)  # of the first search episode; falls linearly, 0 in refinement
    epsilon_last_episode: int = setting(59, 1)
    learning_rate: float = setting(1e-3, 0, 1, above=True)  # RMSprop, both for the weights and for the alphas
    halve_every: int = setting(10, 1)  # refinement episodes
    gamma: float = setting(0.9, 0, 1)
    tau: float = setting(0.1, 0, 1, above=True)
    batch: int = setting(32, 1)
    replay_capacity: int = setting(100_000, 1)
    beta: float = setting(16.0, 0)  # weight of the entropies
    kept_features: int = setting(KEPT_FEATURES, 1)
    max_parameters: int | None = setting(None, 1)  # of an intersection's sub-graph; None: the strongest of any size
    max_cycles: int | None = setting(None, 1)  # of a decision on the chip
    max_flash_bytes: int | None = setting(None, 1)  # of the firmware with one intersection
    layer2_dims: tuple[int, ...] = setting(LAYER_DIMS, 1, 1000)
    layer3_dims: tuple[int, ...] = setting(LAYER_DIMS, 1, 1000)
    # beyond the paper
    also_flows: tuple[int, ...] = setting((), 0)  # trained on in turn with the policy's own; the network's others are held out
    share: bool = False  # one network for all intersections of a replica, which must be alike
    double_q: bool = False  # the online network chooses the next action, the target network gives its value
    reward_scale: float = setting(1.0, 0, above=True)
    updates_per_decision: int = setting(1, 1)
    rounded_episodes: int = setting(0, 0)  # the refinement's last, in which it acts and learns through the chip's rounding
    kept_episodes: int = setting(0, 0)  # refined weights to choose from, beside the last: after a replica's best so many

    def __post_init__(self) -> None:
        require_possible(self)
        if self.batch > self.replay_capacity:
            raise FieldError("batch", f"{self.batch} is more than replay_capacity, {self.replay_capacity}")
        if self.rounded_episodes > self.refine_episodes:
            raise FieldError("rounded_episodes", f"{self.rounded_episodes}, of {self.refine_episodes} to refine")

    @property
    def budget(self) -> Budget:
        return Budget(self.max_parameters, self.max_cycles, self.max_flash_bytes)
