"""The closed loop on SUMO: every decision by the firmware, the traffic SUMO's, the verdict as on our own engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hil.loop.job import Job, run_job
from model.policy.file import FeatureInput, Policy, save_policy
from model.policy.synthetic import random_intersection, random_policy
from streetflow.control.environment import Environment
from streetflow.control.features import find_feature
from streetflow.networks.catalogue import Network, network_of
from tests.helpers.sumo_files import CONFIG, import_to, needs_sumo

pytestmark = [needs_sumo, pytest.mark.hil]

FEATURES = ("inlane_2_num_vehicle", "phase_2_pressure")


def write_policy(network: Network, file: Path) -> Policy:
    """A random policy for a network's lights, with yellow."""
    environment = Environment(network, features=FEATURES, clearance="yellow")
    parts = []
    for i, each in enumerate(environment.intersections):
        widths = environment.feature_widths[i].tolist()
        part = random_intersection(i + 1, intersection_id=each.id, n_phases=each.action_count, widths=widths, hidden=(8, 8))
        inputs = [
            FeatureInput(name=name, width=width, lsb_per_unit=find_feature(name).lsb_per_unit, offset=0, multiplier=8, shift=0)
            for name, width in zip(FEATURES, widths, strict=True)
        ]
        parts.append(part.model_copy(update={"features": inputs, "phases": list(each.phases)}))
    content = dict(random_policy(parts, network=network.name)) | {"clearance": "yellow"}
    policy = Policy.sealed(**{name: value for name, value in content.items() if name not in ("format", "version", "sha256")})
    save_policy(policy, file)
    return policy


def test_the_chip_decides_and_the_verdict_is_made(hil_job: Job, tmp_path: Path) -> None:
    import_to(CONFIG, tmp_path / "two")
    network = network_of(str(tmp_path / "two"))
    policy = write_policy(network, tmp_path / "policy.json")
    board = hil_job.board if hil_job.board in ("simavr", "host") else "simavr"
    budget_s = 30.0 if board == "host" else 0.1
    job = Job(network, 0, tmp_path / "policy.json", board=board, engine="sumo", budget_s=budget_s)
    verdict = run_job(job)
    failed = [check for check in verdict.checks if check.outcome == "fail" and check.name != "range"]  # its inputs have none
    assert not failed and {check.name for check in verdict.checks} >= {"equality", "latency", "traffic", "sweep"}
    assert verdict.provenance["engine"] == "sumo"
    assert len(verdict.records) == 30 * len(policy.intersections)
    assert len({record.phase for record in verdict.records}) > 1
    traffic = verdict.figures["traffic"]
    assert isinstance(traffic, dict) and np.isfinite(traffic["average_travel_time_s"])
