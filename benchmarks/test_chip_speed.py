"""How long the harness takes for a closed loop, without start-up. Chip time is counted in cycles, not timed: see the tests."""

import pytest

from hil.boards import open_board
from hil.loop.closed_loop import run_closed_loop, run_reference
from hil.loop.job import Job, build
from hil.wire.link import Link
from model import pretrained_policy
from model.policy.file import load_policy


@pytest.mark.benchmark(group="closed loop of the crossing: 3600 s of traffic, 180 decisions")
@pytest.mark.parametrize("board", ["simavr", "host", "reference only"])
def test_closed_loop(board: str, benchmark) -> None:
    job = Job.named("crossing", 0, pretrained_policy("crossing"), board=board if board != "reference only" else "simavr")
    policy = load_policy(job.policy_file)
    environment = job.environment(policy)
    if board == "reference only":
        benchmark.pedantic(run_reference, args=(environment, policy), rounds=5, warmup_rounds=1)
        return
    firmware, _ = build(job)
    with open_board(job.board, firmware, f_cpu_hz=job.f_cpu_hz, baud=job.baud) as opened:
        link = Link(opened)
        link.hello(policy.sha256)
        benchmark.pedantic(run_closed_loop, args=(environment, policy, link), rounds=5, warmup_rounds=1)
