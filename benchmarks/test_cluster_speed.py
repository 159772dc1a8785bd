"""What a second node is worth: the same trainings on a Ray cluster of one node and of two, a core each, both on this machine.

pytest benchmarks/test_cluster_speed.py --benchmark-only

A round connects, starts its worker processes (they import PyTorch) and trains, as a command does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="Ray is not installed (extra: cluster)")
pytest.importorskip("torch", reason="torch is not installed (extra: train)")

from model.report.run import run_jobs
from model.report.training import Training

FIELDS = {"network": "crossing", "features": "inlane_2_num_vehicle,phase_2_delay", "search_episodes": 6, "refine_episodes": 6}
TRAININGS = 6


@pytest.fixture(params=[1, 2], ids=["one node", "two nodes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[str]:
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(1, request.param):
        found.add_node(num_cpus=1)
    yield str(found.address)
    found.shutdown()


def test_trainings(cluster: str, benchmark: Any, tmp_path: Path) -> None:
    jobs = [Training.of(FIELDS | {"seed": seed}, "benchmark") for seed in range(TRAININGS)]
    folders = iter(range(10))
    benchmark.pedantic(lambda: run_jobs(jobs, tmp_path / str(next(folders)), cluster=cluster), rounds=1)
