"""The kernels' cycles in avr8js, another emulator, against those that simavr counts: the same, to the cycle.

Needs node and the package: npm install --prefix tests/avr8js (see docs/firmware.md).
"""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hil.boards import open_board
from hil.boards.elf_image import read_elf
from hil.build import build_firmware
from hil.link import Link
from hil.protocol import DecideRequest, Frame, MessageType, decode_decide_reply, decode_frame, encode_decide, encode_frame
from model.integer import IntegerPolicy
from tests.random_policy import write_random_policy

FOLDER = Path(__file__).with_name("avr8js")
STOPWATCH_CYCLES = (5, 60)  # from the timer's start to the kernel and from there to its stop
DECISIONS = 25

needs_avr8js = pytest.mark.skipif(
    shutil.which("node") is None or not (FOLDER / "node_modules" / "avr8js").is_dir(),
    reason="needs node and avr8js: npm install --prefix tests/avr8js",
)


@needs_avr8js
@pytest.mark.parametrize("kernel", ["unrolled", "table"])
def test_both_emulators_count_the_same_cycles(tmp_path: Path, kernel: str) -> None:
    policy = write_random_policy(tmp_path / "policy.json")
    firmware = build_firmware(tmp_path / "policy.json", kernel=kernel)
    assert firmware.hex is not None
    rng = np.random.default_rng(3)
    inputs = [rng.integers(-50, 10 ** rng.integers(2, 5), 21).clip(-32768, 32767).tolist() for _ in range(DECISIONS)]
    requests = [encode_frame(Frame(MessageType.DECIDE, n, 0, encode_decide(DecideRequest(x)))) for n, x in enumerate(inputs)]
    job = {
        "hex": firmware.hex.read_text(),
        "kernel": read_elf(firmware.elf).symbols["infer_kernel"],
        "requests": ["00", *(request.hex() for request in requests)],
    }
    command = ["node", str(FOLDER / "run.js")]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, check=True, timeout=300)
    theirs = json.loads(done.stdout)[1:]
    reference = IntegerPolicy(policy.intersections[0])
    overheads = set()
    with open_board("simavr", firmware, f_cpu_hz=16_000_000, baud=115_200) as board:
        link = Link(board)
        link.hello()
        for values, answer in zip(inputs, theirs, strict=True):
            ours = link.decide(0, values)
            reply = decode_decide_reply(decode_frame(bytes.fromhex(answer["reply"])[:-1]).payload)
            assert reply.logits == ours.logits == tuple(reference.logits(np.array(values)).tolist())
            overheads.add(ours.compute_cycles - answer["cycles"])
    assert len(overheads) == 1, "the stopwatch's own cycles are always the same, so the kernel's are equal"
    assert STOPWATCH_CYCLES[0] <= overheads.pop() <= STOPWATCH_CYCLES[1]
