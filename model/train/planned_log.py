"""The log of a distillation, in the columns of a training's (`model/train/log.py`): a row an episode."""

from __future__ import annotations

import math
from collections.abc import Sequence

from model.planning.distil import Progress
from model.planning.settings import PlanConfig
from model.train.search_and_refine import EpisodeRow


def planned_rows(states: Sequence[Progress], seed: int, config: PlanConfig) -> list[EpisodeRow]:
    """Rows of all episodes. "epsilon" is the planner's share of the decisions, "loss" the mean regret of the student's actions
    after the episode's round, in vehicle-seconds; rounds that search have the stage "search"."""
    after = {state.round: state for state in states if state.regret_s is not None}
    rows = []
    for state in states:
        if state.average_travel_time_s is None:
            continue
        end, searching = after.get(state.round), state.round < config.search_rounds
        alphas = end.alphas if end is not None and searching else ()
        entropies = [-sum(share * math.log(share) for share in layer if share > 0) for layer in alphas] or [math.nan] * 3
        first = 0 if searching else min(config.search_rounds, config.rounds) * config.episodes_a_round
        rows.append(
            EpisodeRow(
                replica=0,
                train_seed=seed,
                stage="search" if searching else "refine",
                episode=state.done_episodes - 1 - first,
                epsilon=1.0 if state.round == 0 else config.planner_share,
                learning_rate=config.learning_rate,
                loss=math.nan if end is None or end.regret_s is None else end.regret_s,
                entropy_features=entropies[0],
                entropy_layer2=entropies[1],
                entropy_layer3=entropies[2],
                average_travel_time_s=state.average_travel_time_s,
                alphas=alphas,
            )
        )
    return rows
