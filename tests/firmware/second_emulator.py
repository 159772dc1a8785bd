"""The kernels' cycles in avr8js, another emulator, beside those that simavr counts.

    npm install --prefix tests/firmware/avr8js
    python -m tests.firmware.second_emulator --out docs/results/kernel_cycles.json

The result holds, for each policy and kernel: cycles of the whole decision (scaling, layers, argmax; the stopwatch's own
figure), of the kernel's call in both emulators, and of what follows the scaling: least, median and largest over the inputs.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hil.boards import open_board
from hil.boards.elf_image import read_elf
from hil.build.firmware import Firmware, build_firmware
from hil.wire.link import Link
from hil.wire.protocol import (
    DecideRequest,
    Frame,
    MessageType,
    decode_decide_reply,
    decode_frame,
    encode_decide,
    encode_frame,
    logits_checksum,
)
from model import pretrained_policy
from model.policy.file import IntersectionPolicy, Policy, load_policy, save_policy
from model.policy.integer import IntegerPolicy
from tests.firmware.kernel_equality import parsed
from tests.firmware.test_firmware_kernel import inputs
from tests.helpers.random_policy import make_random_policy

FOLDER = Path(__file__).with_name("avr8js")
DRAWS = range(1, 8)  # seeds of random weights with the paper's dimensions
MISSING = "needs node and avr8js: npm install --prefix tests/firmware/avr8js"


class Answer(NamedTuple):
    """What avr8js gave for one request."""

    logits_crc: int
    cycles: int  # of the kernel's call
    layer_cycles: int  # of them, after the scaling


def is_installed() -> bool:
    return shutil.which("node") is not None and (FOLDER / "node_modules" / "avr8js").is_dir()


def run(firmware: Firmware, values: list[list[int]]) -> list[Answer]:
    """Decisions of intersection 0 in avr8js."""
    assert firmware.hex is not None
    requests = [
        encode_frame(Frame(MessageType.DECIDE, n % 256, 0, encode_decide(DecideRequest(x)))) for n, x in enumerate(values)
    ]
    symbols = read_elf(firmware.elf).symbols
    job = {
        "hex": firmware.hex.read_text(),
        "kernel": symbols["infer_kernel"],
        "layers": symbols["layers_0"],
        "requests": ["00", encode_frame(Frame(MessageType.HELLO, 0, 0)).hex(), *(request.hex() for request in requests)],
    }
    command = ["node", str(FOLDER / "run.js")]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, check=True, timeout=600)
    answers = []
    for result in json.loads(done.stdout)[2:]:
        reply = decode_decide_reply(decode_frame(bytes.fromhex(result["reply"])[:-1]).payload)
        answers.append(Answer(reply.logits_crc, result["cycles"], result["layers"]))
    return answers


def compare(policy: Policy, part: IntersectionPolicy, kernel: str, count: int) -> dict[str, Any]:
    """One intersection by itself on both emulators."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.json"
        save_policy(policy, file)
        firmware = build_firmware(file, kernel=kernel)
    values = [x.tolist() for x in inputs(part, count)]
    theirs = run(firmware, values)
    reference = IntegerPolicy(part)
    ours = []
    with open_board("simavr", firmware, f_cpu_hz=16_000_000, baud=115_200) as board:
        link = Link(board)
        link.hello()
        for x, answer in zip(values, theirs, strict=True):
            decision = link.decide(0, x)
            assert decision.logits_crc == answer.logits_crc == logits_checksum(reference.logits(np.array(x)))
            ours.append(decision.compute_cycles)
    overheads = {mine - answer.cycles for mine, answer in zip(ours, theirs, strict=True)}
    return {
        "decisions": len(ours),
        "compute_cycles": _spread(ours),
        "kernel_cycles": _spread([answer.cycles for answer in theirs]),
        "layer_cycles": _spread([answer.layer_cycles for answer in theirs]),
        "stopwatch_cycles": sorted(overheads),  # one value: both emulators count the same for every input
    }


def _spread(values: list[int]) -> dict[str, int]:
    return {"least": min(values), "median": int(np.median(values)), "largest": max(values)}


def main() -> int:
    parser = argparse.ArgumentParser(description="Cycle counts of the kernels in two emulators.")
    parser.add_argument("--count", type=int, default=300, help="decisions per policy and kernel")
    parser.add_argument("--out", type=Path, help="write the result as JSON to this file")
    arguments = parsed(parser)
    if not is_installed():
        parser.error(MISSING)
    policies = {f"paper's dimensions, draw {seed}": make_random_policy(seed) for seed in DRAWS}
    policies |= {name: load_policy(pretrained_policy(name)).alone(0) for name in ("crossing", "arterial", "Hangzhou1")}
    result: dict[str, dict[str, Any]] = {}
    for name, policy in policies.items():
        result[name] = {}
        for kernel in ("unrolled", "table"):
            result[name][kernel] = compare(policy, policy.intersections[0], kernel, arguments.count)
            print(f"{name}, {kernel}: {result[name][kernel]}", flush=True)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="ascii")
    return 0 if all(len(row["stopwatch_cycles"]) == 1 for rows in result.values() for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
