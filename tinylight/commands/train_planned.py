"""`tinylight train --method planned`: a policy distilled from the planner."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tinylight.commands.train_result import show_policy
from tinylight.console import progress_bar, require_writable, say

USUAL_FEATURES = "all"


def train_by_planning(
    network: str,
    flow: int,
    seed: int,
    out: Path,
    *,
    features: str | None,
    clearance: str,
    config: Mapping[str, Any],
    log: Path | None,
    tensorboard: Path | None,
    json_file: Path | None,
) -> None:
    """Trains a policy and writes its files.

    Args:
        network, flow, seed, out, features, clearance, log, tensorboard, json_file: as the command's.
        config: the fields of `PlanConfig` that are given.
    """
    from model.planning.distil import Progress
    from model.planning.settings import PlanConfig
    from model.policy.file import save_policy
    from model.train.events import EventLog
    from model.train.log import write_log
    from model.train.planned_log import planned_rows
    from model.train.planned_policy import PlannedSettings, plan_policy, plannable_features
    from streetflow.networks.catalogue import find_network

    settings = PlannedSettings(features or USUAL_FEATURES, clearance, PlanConfig(**config))
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    require_writable(out, checkpoint, log, json_file)
    events = EventLog(tensorboard)
    found = find_network(network)
    found.flow_file(flow)
    resuming = checkpoint.is_file()
    states: list[Progress] = []
    with progress_bar() as bar:
        total = settings.config.rounds * settings.config.episodes_a_round
        task = bar.add_task(f"planning on {network}, flow {flow}", total=total)

        def on_progress(state: Progress) -> None:
            if resuming and not states:  # the checkpoint has been read
                say(f"resuming from {checkpoint}", style="dim")
            states.append(state)
            label = f"round {state.round + 1} of {settings.config.rounds}"
            if state.regret_s is not None:
                label += f": mean regret {state.regret_s:.1f} veh s"
                events.add(planned_rows(states, seed, settings.config)[events.rows :])
            bar.update(task, description=label, completed=state.done_episodes)

        policy = plan_policy(
            found,
            flow,
            seed,
            settings,
            progress=on_progress,
            checkpoint=checkpoint,
            out_name=out.name,
        )
    events.close()
    save_policy(policy, out)
    checkpoint.unlink(missing_ok=True)
    show_policy(policy, out, json_file)
    if log is not None:
        names = plannable_features(found, flow, settings)
        write_log(
            planned_rows(states, seed, settings.config), log, names, settings.config.layer2_dims, settings.config.layer3_dims
        )
