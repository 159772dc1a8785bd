"""The example of docs/arithmetic.md, asked from the real firmware: on this machine and on the emulated chip."""

from pathlib import Path

import pytest

from hil.boards import open_board
from hil.build.firmware import build_firmware
from hil.wire.link import Link
from hil.wire.protocol import Light
from model.policy.file import IntersectionPolicy, save_policy
from model.policy.synthetic import random_policy
from tests.helpers.arithmetic_page import read_example


@pytest.mark.parametrize("kernel", ["host", "unrolled"])
def test_the_chip_gives_the_pages_example(kernel: str, tmp_path: Path) -> None:
    example = read_example()
    policy = random_policy([IntersectionPolicy.model_validate(example.part)])
    save_policy(policy, tmp_path / "policy.json")
    name, target, built = ("host", "native", "c") if kernel == "host" else ("simavr", "uno_system", kernel)
    firmware = build_firmware(
        tmp_path / "policy.json",
        target=target,  # type: ignore[arg-type]
        kernel=built,  # type: ignore[arg-type]
        min_green_s=example.minimum_green_s,
    )
    with open_board(name, firmware, f_cpu_hz=16_000_000, baud=115_200) as board:
        link = Link(board, budget_s=30.0 if name == "host" else 0.1)
        link.hello(policy.sha256)
        reply = link.decide(0, example.values, logits=True)
        assert (list(reply.logits or ()), reply.action, reply.phase) == (example.logits, example.action, example.phase)
        kept = link.decide(0, example.values, logits=True, light=Light(example.in_force, example.seconds))
        assert (list(kept.logits or ()), kept.action, kept.phase) == (example.logits, example.kept_action, example.kept_phase)
        stats = link.stats()
        assert (stats.beyond_range, stats.at_limit) == (2, 2), "each of the two decisions counts once"
