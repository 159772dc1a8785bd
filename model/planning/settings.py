"""The settings of a policy's distillation, and the range of each."""

from __future__ import annotations

from dataclasses import dataclass

from model.policy.file import CHIP_INPUTS
from model.quantise.quantise import WEIGHT_MAX, Grid
from model.search.budget import Budget
from model.search.config import LAYER_DIMS
from model.search.ranges import MOST, require_possible, setting
from streetflow.errors import FieldError


@dataclass(frozen=True)
class PlanConfig:
    """How a policy is distilled. FieldError for a value that is of another kind or out of range.

    Attributes:
        rounds: of planning and learning.
        search_rounds: the first of them, in which the super-graph is searched anew; then the sub-graph learns on.
        own: episodes of each round on the flow itself.
        varied: episodes of each round on variations of it, new ones each time.
        horizon: decisions of a rollout.
        cut_s: a rollout so far behind its base's is ended, vehicle-seconds.
        worth: of what vehicles have still to go at a rollout's end (`model.planning.rollouts.Rollouts`).
        planner_share: of the planned decisions from the second round on, that the planner drives.
        planned_share: of the decisions that are planned, and so recorded, drawn at random: with fewer of each episode the same
            time goes into more episodes.
        lights: how many lights are planned at a decision, drawn at random; 0: all.
        share: one network for all lights, which must be alike.
        judged: variations, always the same and none of them learnt from, on which the students of the rounds after the search
            are judged: the best one stays. 0: the last one stays.
        volume_least, volume_most: of a variation's vehicles, as factors.
        turns, shift_s: how far a variation goes, at most (`streetflow.networks.variations.Variation`).
        faulty: the share of the variations with faulty detectors or a shut lane, too.
        kept_features, max_parameters: of the sub-graph.
        weight_limit: the greatest |weight| of its integers; below 127 the sub-graph learns through the chip's rounding.
        shifts_only: hidden units' multipliers are powers of two, so that a shift requantises them; it learns so, too.
        narrow_sums: no sum of its integers can leave 16 bits, whatever the inputs; it learns so, too.
        drop_silent: take out, in the end, what is the same in all traffic of the calibration, the hard one included.
        search_steps, refine_steps: minibatches that the super-graph learns from, and the sub-graph in each round.
        last_steps: the same of the last round.
        batch: states of each light in a minibatch; half as many in the search.
        learning_rate: of the sub-graph, at most (one cycle); the super-graph's is half of it.
        alpha_rate: learning rate of the alphas.
        weight_decay: of the weights (AdamW).
        entropy: weight of the alphas' entropies at the end of the search. It rises from 0 after three tenths of the steps.
        temperature_s: T in the loss (`model/planning/student.py`), vehicle-seconds.
    """

    rounds: int = setting(6, 1)
    search_rounds: int = setting(2, 1)
    own: int = setting(1, 0)
    varied: int = setting(7, 0)
    horizon: int = setting(11, 1, 1000)
    cut_s: float = setting(300.0, 0)
    worth: float = setting(1.5, 0, 100)
    planner_share: float = setting(0.2, 0, 1)
    planned_share: float = setting(0.5, 0, 1, above=True)
    lights: int = setting(0, 0)
    share: bool = False
    judged: int = setting(8, 0)
    volume_least: float = setting(0.7, 0, 10, above=True)
    volume_most: float = setting(1.3, 0, 10, above=True)
    turns: float = setting(0.5, 0, 1)
    shift_s: int = setting(60, 0)
    faulty: float = setting(0.3, 0, 1)
    kept_features: int = setting(3, 1)
    max_parameters: int = setting(1001, 1)
    weight_limit: int = setting(WEIGHT_MAX, 1, WEIGHT_MAX)
    shifts_only: bool = False
    narrow_sums: bool = False
    drop_silent: bool = False
    search_steps: int = setting(400, 1)
    refine_steps: int = setting(600, 1)
    last_steps: int = setting(1500, 1)
    batch: int = setting(256, 2)
    learning_rate: float = setting(6e-3, 0, 1, above=True)
    alpha_rate: float = setting(1e-2, 0, 1, above=True)
    weight_decay: float = setting(0.0, 0, 1000)
    entropy: float = setting(0.07, 0)
    temperature_s: float = setting(100.0, 0, MOST, above=True)
    layer2_dims: tuple[int, ...] = setting(LAYER_DIMS, 1, 1000)
    layer3_dims: tuple[int, ...] = setting(LAYER_DIMS, 1, 1000)

    def __post_init__(self) -> None:
        require_possible(self)
        if self.own + self.varied < 1:
            raise FieldError("varied", "0, and no episode on the flow itself either")
        if self.volume_least > self.volume_most:
            raise FieldError("volume_least", f"{self.volume_least:g} is more than volume_most, {self.volume_most:g}")

    @property
    def budget(self) -> Budget:
        """Of an intersection's sub-graph: its parameters, and the inputs that a request to the chip carries."""
        return Budget(self.max_parameters, max_inputs=CHIP_INPUTS)

    @property
    def grid(self) -> Grid:
        """Of the policy's integers."""
        return Grid(self.weight_limit, self.shifts_only, self.narrow_sums)

    @property
    def episodes_a_round(self) -> int:
        return self.own + self.varied
