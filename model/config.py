"""What a training does: the release's settings by default, and what goes beyond the paper."""

from __future__ import annotations

from dataclasses import dataclass

from model.budget import Budget
from model.supergraph import LAYER_DIMS

KEPT_FEATURES = 2  # the paper keeps two, as many as its baselines use; and one component in each of layers 2 and 3


@dataclass(frozen=True)
class TrainingConfig:
    """The release's settings (shared design page "How the paper's numbers are made"; paper, Appendix B)."""

    search_episodes: int = 64
    refine_episodes: int = 128
    epsilon: float = 0.1  # of the first search episode; falls linearly, 0 in refinement
    epsilon_last_episode: int = 59
    learning_rate: float = 1e-3  # RMSprop, both for the weights and for the alphas
    halve_every: int = 10  # refinement episodes
    gamma: float = 0.9
    tau: float = 0.1
    batch: int = 32
    replay_capacity: int = 100_000
    beta: float = 16.0  # weight of the entropies
    kept_features: int = KEPT_FEATURES
    max_parameters: int | None = None  # of an intersection's sub-graph; None: the strongest components whatever their size
    max_cycles: int | None = None  # of a decision on the chip
    max_flash_bytes: int | None = None  # of the firmware with one intersection
    layer2_dims: tuple[int, ...] = LAYER_DIMS
    layer3_dims: tuple[int, ...] = LAYER_DIMS
    # beyond the paper
    also_flows: tuple[int, ...] = ()  # trained on in turn with the policy's own flow; the network's others are held out
    share: bool = False  # one network for all intersections of a replica, which must be alike
    double_q: bool = False  # the online network chooses the next action, the target network says what it is worth
    reward_scale: float = 1.0
    updates_per_decision: int = 1
    rounded_episodes: int = 0  # the refinement's last ones, in which it acts and learns through the chip's rounding
    kept_episodes: int = 0  # refined weights to choose from, beside the last: those after a replica's best so many episodes

    @property
    def budget(self) -> Budget:
        return Budget(self.max_parameters, self.max_cycles, self.max_flash_bytes)
