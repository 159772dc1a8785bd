"""Every logit of a kernel on the emulated chip against numpy, on many random and extreme inputs.

    python -m tests.firmware.kernel_equality --count 100000 --out docs/results/kernel_equality.json

Each kernel computes `count` decisions, spread over policies of many shapes (up to 24-wide layers and 64 inputs). The result
holds, for each kernel and policy: decisions, how many were equal, and the least, median and largest compute cycles. Exit code 1
unless all are equal.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hil.boards import open_board
from hil.build.firmware import build_firmware
from hil.wire.link import Link
from model.policy.file import Policy, save_policy
from model.policy.integer import IntegerPolicy
from model.policy.synthetic import random_policy
from streetflow.errors import InputError
from streetflow.files import require_writable
from streetflow.networks.catalogue import find_network
from tests.firmware.test_firmware_kernel import extreme_intersection, requests
from tests.helpers.random_policy import make_random_policy

BAUD = 1_000_000
POLICIES: dict[str, Callable[[], Policy]] = {
    "paper, seed 1": lambda: make_random_policy(1),
    "paper, seed 2": lambda: make_random_policy(2, bias_size=60_000),
    "paper, seed 3": lambda: make_random_policy(3, bias_size=0),
    "one feature": lambda: make_random_policy(4, shapes=[((23,), (24, 20), 8)]),
    "64 inputs": lambda: make_random_policy(5, shapes=[((24, 24, 16), (20, 18), 9)]),
    "five features": lambda: make_random_policy(6, shapes=[((4, 9, 1, 12, 3), (17, 24), 6)]),
    "narrow": lambda: make_random_policy(7, shapes=[((1,), (1, 1), 1), ((2, 3), (7, 2), 3), ((5,), (13, 11), 15)]),
    "24 wide": lambda: make_random_policy(8, shapes=[((12, 8), (24, 24), 9)]),
    "extreme, low shifts": lambda: random_policy([extreme_intersection(sign, (9, 8), 16) for sign in (1, -1)]),
    "extreme, high shifts": lambda: random_policy([extreme_intersection(sign, (9, 8), 16, 16) for sign in (1, -1)]),
}


def compare(policy: Policy, kernel: str, count: int, folder: Path) -> dict[str, int]:
    """About `count` decisions on simavr."""
    file = folder / "policy.json"
    save_policy(policy, file)
    firmware = build_firmware(file, kernel=kernel, baud=BAUD)
    references = [IntegerPolicy(part) for part in policy.intersections]
    cycles, equal = [], 0
    with open_board("simavr", firmware, f_cpu_hz=16_000_000, baud=BAUD) as board:
        link = Link(board)
        link.hello(policy.sha256)
        for intersection, values in requests(policy, count):
            decision = link.decide(intersection, values.tolist(), logits=True)
            logits = references[intersection].logits(values)
            action = int(np.argmax(logits))
            phase = policy.intersections[intersection].phases[action]
            equal += (decision.logits, decision.action, decision.phase) == (tuple(logits.tolist()), action, phase)
            cycles.append(decision.compute_cycles)
    return {
        "decisions": len(cycles),
        "equal": equal,
        "least_cycles": min(cycles),
        "median_cycles": int(np.median(cycles)),
        "largest_cycles": max(cycles),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Kernels on the emulated chip against numpy.")
    parser.add_argument("--count", type=int, default=100_000, help="decisions per kernel")
    parser.add_argument("--out", type=Path, help="write the result as JSON to this file")
    arguments = parsed(parser)
    result: dict[str, dict[str, dict[str, int]]] = {}
    for kernel in ("unrolled", "table"):
        started = time.monotonic()
        result[kernel] = {}
        with tempfile.TemporaryDirectory() as folder:
            for name, make in POLICIES.items():
                share = -(-arguments.count // len(POLICIES))
                policy = make()
                share = -(-share // len(policy.intersections)) * len(policy.intersections)
                result[kernel][name] = compare(policy, kernel, share, Path(folder))
                print(f"{kernel}, {name}: {result[kernel][name]}", flush=True)
        total, equal = (sum(row[key] for row in result[kernel].values()) for key in ("decisions", "equal"))
        print(f"{kernel}: {equal} of {total} equal, {time.monotonic() - started:.0f} s", flush=True)
    return finished(result, arguments.out)


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments; one line and exit code 2 before anything is run where they can't be used."""
    arguments = parser.parse_args()
    try:
        if getattr(arguments, "count", 1) < 1:
            raise InputError("--count", "", f"must be at least 1, is {arguments.count}")
        for name in getattr(arguments, "network", None) or []:
            find_network(name)
        if arguments.out is not None:
            require_writable(arguments.out)
    except InputError as fault:
        parser.exit(2, f"{parser.prog}: {fault}\n")
    return arguments


def finished(result: Mapping[str, Mapping[str, Mapping[str, Any]]], out: Path | None) -> int:
    """Writes the result where it is wanted; the exit code: 1 unless all decisions were equal."""
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n", encoding="ascii")
    return 0 if all(row["equal"] == row["decisions"] for rows in result.values() for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
