"""Every decision of the networks' closed loops on the emulated chip against numpy, with both kernels.

    TINYLIGHT_DATA=... python -m tests.firmware.network_equality --out docs/results/network_equality.json

A network without a trained policy gets one of random weights that keeps two of its features: 18 and 20 hidden units, as the
paper's example. The result holds, for each network and kernel: decisions, how many were equal in every logit, and the figures
of the run. Exit code 1 unless all are equal.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from hil.build.firmware import KERNELS
from hil.loop.job import Job, run_job
from model import pretrained_policies, pretrained_policy
from model.policy.file import FeatureInput, IntersectionPolicy, Policy, load_policy, save_policy
from model.policy.synthetic import random_intersection, random_policy
from streetflow.control.environment import Environment
from streetflow.networks.catalogue import find_network, list_networks
from tests.firmware.kernel_equality import finished, parsed

FEATURES = ("inlane_2_num_vehicle", "phase_2_num_vehicle")
SCALE = {"offset": 0, "multiplier": 6, "shift": 0}


def network_policy(name: str, seed: int = 1) -> Policy:
    """The trained policy, or one of random weights for the network's intersections."""
    if name in pretrained_policies():
        return load_policy(pretrained_policy(name))
    environment = Environment(find_network(name), 0, features=list(FEATURES))
    parts = []
    for number, intersection in enumerate(environment.intersections):
        widths = [int(width) for width in environment.feature_widths[number]]
        part = random_intersection(
            seed + number, intersection_id=intersection.id, n_phases=len(intersection.phases), widths=widths, hidden=(18, 20)
        )
        fields = part.model_dump()
        fields["phases"] = [int(phase) for phase in intersection.phases]
        fields["features"] = [
            FeatureInput(name=feature, width=width, lsb_per_unit=lsb, **SCALE).model_dump()
            for feature, width, lsb in zip(environment.feature_names, widths, environment.lsb_per_unit, strict=True)
        ]
        parts.append(IntersectionPolicy(**fields))
    return random_policy(parts, network=name)


def compare(name: str, kernel: str) -> dict[str, Any]:
    """One closed loop of flow 0; `kernel` auto, unrolled or table."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.json"
        save_policy(network_policy(name), file)
        boards = "per-intersection" if kernel == "unrolled" else "one"
        verdict = run_job(Job.named(name, 0, file, kernel=kernel, boards=boards, logits=True))
    traffic, latency, footprint = (verdict.figures.get(key, {}) for key in ("traffic", "latency", "footprint"))
    assert isinstance(traffic, dict) and isinstance(latency, dict)
    return {
        "boards": boards,
        "decisions": len(verdict.records),
        "equal": sum(record.answered and record.equal for record in verdict.records),
        "passed": verdict.passed,
        "average_travel_time_s": traffic["average_travel_time_s"],
        "largest_compute_cycles": latency["compute_cycles"]["max"],
        "largest_round_trip_us": latency["round_trip_us"]["max"],
        "footprint": footprint,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Closed loops on the emulated chip against numpy, with both kernels.")
    parser.add_argument("--out", type=Path, help="write the result as JSON to this file")
    parser.add_argument("--network", action="append", help="only this one; may be given more than once")
    arguments = parsed(parser)
    result: dict[str, dict[str, Any]] = {}
    for name in arguments.network or [network.name for network in list_networks()]:
        result[name] = {}
        for kernel in reversed(KERNELS[1:]):
            result[name][kernel] = compare(name, kernel)
            print(f"{name}, {kernel}: {result[name][kernel]}", flush=True)
    return finished(result, arguments.out)


if __name__ == "__main__":
    sys.exit(main())
