"""What the chip counts of decisions that leave the integers' range, against the reference: each kernel, and the host."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from firmware.generator.policy import span
from hil.boards import open_board
from hil.build.firmware import build_firmware
from hil.wire.deadline import Deadline
from hil.wire.link import Link
from hil.wire.parts import decide_in_parts
from hil.wire.protocol import DecideRequest, Frame, MessageType, encode_decide, encode_frame
from model.policy.file import FeatureInput, IntersectionPolicy, Policy, save_policy
from model.policy.integer import IntegerPolicy
from model.policy.synthetic import random_intersection, random_policy
from tests.firmware.test_boards_firmware import exchange

KERNELS = ("unrolled", "table", "c", "host")  # the last: portable C on this machine
SAME = {"multipliers": 2, "shifts": 1}  # a unit is its sum, if that fits


def diagonal(widths: Sequence[int], second: int, offset: int = 0) -> IntersectionPolicy:
    """Unit k of layer 1 is input k less the offset, and unit k of layer 2 is `second` times that and 1."""
    n = sum(widths)
    part = random_intersection(1, intersection_id=f"{n}", widths=widths, hidden=(n, n), n_phases=3)
    one = np.eye(n, dtype=int)
    ends = np.cumsum(widths)
    branches = [one[:, end - width : end].tolist() for end, width in zip(ends, widths, strict=True)]
    scale = {name: [value] * n for name, value in SAME.items()}
    layer1 = {"weights": branches, "biases": [[0] * n for _ in widths]} | scale
    layer2 = {"weights": (second * one).tolist(), "biases": [1] * n} | scale
    inputs = [feature.model_copy(update={"offset": offset, "multiplier": 1, "shift": 0}) for feature in part.features]
    layers = {"layer1": part.layer1.model_copy(update=layer1), "layer2": part.layer2.model_copy(update=layer2)}
    return part.model_copy(update={"features": inputs} | layers)


@contextmanager
def linked(policy: Policy, folder: Path, kernel: str) -> Iterator[Link]:
    file = folder / "policy.json"
    save_policy(policy, file)
    host = kernel == "host"
    firmware = build_firmware(file, target="native" if host else "uno_system", kernel="c" if host else kernel, baud=500_000)
    with open_board("host" if host else "simavr", firmware, f_cpu_hz=16_000_000, baud=500_000) as board:
        link = Link(board, budget_s=30.0 if host else 0.1)
        link.hello(policy.sha256)
        yield link


def counted(link: Link) -> tuple[int | None, int | None]:
    stats = link.stats(30.0 if link.board.name == "host" else None)
    return stats.beyond_range, stats.at_limit


DOUBLED = {(1,): 2, (5,): 2, (3, 3): 0, (9, 12): 2, (22,): 2, (15, 15): 0}


def diagonals() -> Policy:
    """A light for each of DOUBLED, its offset -3."""
    return random_policy([diagonal(widths, second, offset=-3) for widths, second in DOUBLED.items()])


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_input_and_each_unit_is_judged(kernel: str, tmp_path: Path) -> None:
    """One of them at a time, just inside and just outside: 254 and 255 as a unit of layer 1, 253 and 255 as one of layer 2."""
    policy = diagonals()
    beyond = at_limit = 0
    with linked(policy, tmp_path, kernel) as link:
        for number, (part, second) in enumerate(zip(policy.intersections, DOUBLED.values(), strict=True)):
            reference = IntegerPolicy(part)
            for place in range(part.n_inputs):
                for value in (126, 127, 254, 255, 256, -1, 32767 - 3, -32768 + 3):
                    x = np.full(part.n_inputs, -3)
                    x[place] += value
                    link.decide(number, x.tolist())
                    saturation = reference.saturation(x, reference.activations(x))
                    least_at_limit = 127 if second else 255
                    assert tuple(saturation) == (not 0 <= value <= 255, value >= least_at_limit)
                    beyond, at_limit = beyond + bool(saturation.inputs), at_limit + bool(saturation.units)
                    assert counted(link) == (beyond, at_limit), f"light {number}, input {place}, {value} above its offset"


@pytest.mark.parametrize("kernel", KERNELS)
def test_drawn_policies_are_judged_as_the_reference_does(kernel: str, tmp_path: Path) -> None:
    """Lights of many dimensions in turn on one chip, each with its own limits: no unit of the light before counts."""
    shapes = [((12, 9), (18, 20), 9), ((3,), (24, 7), 2), ((8, 1, 4), (5, 24), 4), ((1,), (1, 1), 1)]
    if kernel == "unrolled":
        shapes = shapes[1:]
    parts = [
        random_intersection(n, intersection_id=f"{n}", widths=w, hidden=h, n_phases=a) for n, (w, h, a) in enumerate(shapes)
    ]
    policy, rng = random_policy(parts), np.random.default_rng(5)
    references = [IntegerPolicy(part) for part in parts]
    expected = np.zeros(2, int)
    seen = set()
    with linked(policy, tmp_path, kernel) as link:
        for _ in range(60):
            for number, part in enumerate(parts):
                limits = [feature.covered for feature in part.features for _ in range(feature.width)]
                share = rng.choice([0.05, 0.3, 1.0, 1.1])  # of the covered range; now and then more than it
                x = np.array([low + rng.random() * share * (high - low) for low, high in limits]).astype(int)
                x = np.clip(x, -32768, 32767)
                link.decide(number, x.tolist())
                saturation = references[number].saturation(x, references[number].activations(x))
                expected += saturation
                seen.add((number, *map(bool, saturation)))
        assert counted(link) == tuple(expected)
    assert len(seen) >= 2 * len(parts)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_decision_is_counted_once_however_it_was_asked_for(kernel: str, tmp_path: Path) -> None:
    """In one piece, in parts (whose values the decision overwrites), again from memory, and refused."""
    policy, light = diagonals(), list(DOUBLED).index((9, 12))
    with linked(policy, tmp_path, kernel) as link:
        far = [300] * 21
        request = encode_frame(Frame(MessageType.DECIDE, 77, light, encode_decide(DecideRequest(far))))
        assert exchange(link.board, request) == exchange(link.board, request)
        assert counted(link) == (1, 1)
        for values, expected in ((far, (2, 2)), ([124] * 21, (2, 3)), ([*[0] * 20, -4], (3, 3)), ([9] * 21, (3, 3))):
            decide_in_parts(link._exchanger, light, DecideRequest(values), Deadline.after(link.board, 30e6))
            assert counted(link) == expected
        wrong = encode_frame(Frame(MessageType.DECIDE, 78, len(policy.intersections), encode_decide(DecideRequest(far))))
        assert exchange(link.board, wrong).type == MessageType.ERROR
        link.hello()
        assert counted(link) == (3, 3)


@pytest.mark.parametrize("shift", range(17))
def test_the_generators_span_is_what_the_reference_covers(shift: int) -> None:
    rng = np.random.default_rng(shift)
    for offset in (-32768, -40, 0, 7, 32767, *rng.integers(-32768, 32768, 20).tolist()):
        for multiplier in (1, 2, 255, 32767, *rng.integers(1, 32768, 20).tolist()):
            scale = {"offset": offset, "multiplier": multiplier, "shift": shift}
            feature = FeatureInput(name="f", width=1, lsb_per_unit=1, **scale)
            assert feature.covered == (offset, offset + span(scale))
