"""Everything behind `tinylight train --model NAME`: train a baseline on flows of a network, write a weights file for each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from model.baselines.file import BaselineFile, save_baseline
from model.baselines.registry import BASELINES, require_baseline
from model.baselines.training import BaselineProgress, replica_arrays, train_baseline
from model.dqn.learner import BaselineConfig
from model.policy.provenance import file_sha256, tool_version
from streetflow.control.environment import Environment
from streetflow.networks.catalogue import Network


def train_baseline_files(
    model: str,
    network: Network,
    runs: Sequence[tuple[int, int, Path]],
    *,
    clearance: str = "hold",
    config: BaselineConfig | None = None,
    progress: Callable[[BaselineProgress], None] | None = None,
) -> list[BaselineFile]:
    """runs: (flow, training seed, file) of each replica; they train side by side. InputError for an unknown model and for a
    network that it can't control."""
    require_baseline(model)
    baseline = BASELINES[model]
    config = config or BaselineConfig()
    environments = [Environment(network, flow, features=baseline.features, clearance=clearance) for flow, _, _ in runs]
    graph = train_baseline(baseline, environments, [seed for _, seed, _ in runs], config, progress)
    files = []
    for replica, ((flow, seed, file), environment) in enumerate(zip(runs, environments, strict=True)):
        content = BaselineFile(
            model=model,
            network=network.name,
            clearance=clearance,
            decision_interval_s=environment.decision_interval_s,
            arrays=replica_arrays(graph, replica, len(runs)),
            provenance={
                "command": f"tinylight train --model {model} --network {network.name} --flow {flow} --seed {seed}",
                "tool_version": tool_version(),
                "torch_version": str(torch.__version__),
                "numpy_version": np.__version__,
                "flow": flow,
                "engine_seed": environment.seed,
                "train_seed": seed,
                "replica": f"{replica + 1} of {len(runs)} trained side by side",
                "settings": dataclasses.asdict(config),
                "features": list(environment.feature_names),
                "roadnet_sha256": file_sha256(network.roadnet_file),
                "flow_sha256": file_sha256(network.flow_file(flow)),
            },
        )
        save_baseline(content, file)
        files.append(content)
    return files
