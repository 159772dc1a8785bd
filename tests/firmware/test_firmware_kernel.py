"""The firmware's kernel against the numpy reference: every logit, on random and extreme policies and inputs.

The host build runs with sanitizers, so an index out of a buffer or a signed overflow ends it. The emulated chip runs
what avr-gcc has made of the same C (24-bit sums, tables in flash), and the two kernels in assembly.
"""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from hil.boards import open_board
from hil.build.firmware import KERNELS, Firmware, build_firmware
from hil.build.footprint import measure
from hil.loop.latency import line_time_us, most_decision_cycles
from hil.loop.verdict import FLASH_LIMIT_BYTES
from hil.wire import protocol
from hil.wire.link import Link
from hil.wire.protocol import DecideRequest, Frame, MessageType
from model.policy.file import FeatureInput, IntersectionPolicy, Policy, save_policy
from model.policy.integer import IntegerPolicy
from model.policy.synthetic import random_intersection, random_policy
from tests.helpers.processes import PATIENCE_S
from tests.helpers.random_policy import make_random_policy

INPUTS_PER_PART = 120  # on the host; a fifth of it on the emulated chip
SUM_MAX = (1 << 23) - 1
# Cycles of one decision 12+9 -> 18 -> 20 -> 9, scaling included; a faster kernel skips work, a slower one breaks the budget.
CYCLES_WINDOWS = {"unrolled": (5_900, 6_500), "table": (7_000, 11_600), "c": (20_000, 30_000)}

Int64 = npt.NDArray[np.int64]


def extreme_intersection(sign: int, widths: tuple[int, int], hidden: int, first_shift: int = 1) -> IntersectionPolicy:
    """All weights at the end of their range, biases that just keep the sums inside 24 bits, every shift there is."""
    part = random_intersection(7, widths=widths, hidden=(hidden, hidden), n_phases=9)
    weight = 127 * sign
    bias = (SUM_MAX // 2 - 255 * 127 * max(widths)) * sign  # two branches must fit 23 bits together
    fields = part.model_dump()
    fields["layer1"]["weights"] = [[[weight] * width] * hidden for width in widths]
    fields["layer1"]["biases"] = [[bias] * hidden] * 2
    fields["layer2"]["weights"] = [[weight * (-1) ** o] * hidden for o in range(hidden)]
    fields["layer2"]["biases"] = [(SUM_MAX - 255 * 127 * hidden) * (-1) ** o for o in range(hidden)]
    for layer in ("layer1", "layer2"):
        fields[layer]["multipliers"] = [255] * hidden
        fields[layer]["shifts"] = list(range(first_shift, first_shift + hidden))
    fields["layer3"]["weights"] = [[weight * (-1) ** a] * hidden for a in range(9)]
    fields["layer3"]["biases"] = [(SUM_MAX - 255 * 127 * hidden) * (-1) ** a for a in range(9)]
    offsets = (-32768, 32767 if sign < 0 else 0)
    scales = ((32767, 16), (1, 0))
    fields["features"] = [
        FeatureInput(name=name, width=width, lsb_per_unit=1, offset=offset, multiplier=multiplier, shift=shift).model_dump()
        for name, width, offset, (multiplier, shift) in zip("ab", widths, offsets, scales, strict=True)
    ]
    return IntersectionPolicy(**fields)


def scaling_intersections() -> list[IntersectionPolicy]:
    """Every input shift from 0 to 16, as features of one value each."""
    parts = []
    for seed, offset in enumerate((-32768, -1, 5)):
        part = random_intersection(seed, widths=(1,) * 17, hidden=(5, 4), n_phases=3)
        fields = part.model_dump()
        for shift, feature in enumerate(fields["features"]):
            feature |= {"offset": offset, "multiplier": (1, 32767, 1 << max(shift - 3, 0))[seed], "shift": shift}
        parts.append(IntersectionPolicy(**fields))
    return parts


def biases_at_the_ends(of: int) -> IntersectionPolicy:
    """The paper's dimensions, all biases -of or of - 1."""
    fields = random_intersection(2, n_phases=9).model_dump()
    for layer in ("layer1", "layer2", "layer3"):
        rows = fields[layer]["biases"]
        fields[layer]["biases"] = [ends(of, row) for row in rows] if layer == "layer1" else ends(of, rows)
    return IntersectionPolicy(**fields)


def ends(of: int, biases: Sequence[int]) -> list[int]:
    return [of - 1 if bias > 0 else -of for bias in biases]


def narrow_intersection(
    seed: int, most: int, widths: tuple[int, ...], hidden: tuple[int, int] = (14, 12)
) -> IntersectionPolicy:
    """Small weights, so that most sums stay in 16 bits; scales that are powers of two in every other row; branches that are
    always awake, never, and now and then; inputs without any weight."""
    rng = np.random.default_rng(seed)
    fields = random_intersection(seed, n_phases=5, widths=widths, hidden=hidden, bias_size=600).model_dump()
    layer1, layer2, layer3 = (fields[name] for name in ("layer1", "layer2", "layer3"))
    layer1["weights"] = [rng.integers(-most, most + 1, (hidden[0], width)) * rng.integers(0, 2, width) for width in widths]
    for branch, biases in zip(layer1["weights"], layer1["biases"], strict=True):
        for unit, kind in enumerate(rng.integers(0, 6, hidden[0])):
            if kind < 2:  # no negative weight or bias, or no positive one
                sign = (1, -1)[kind]
                branch[unit], biases[unit] = sign * np.abs(branch[unit]), sign * abs(biases[unit])
    layer1["weights"] = [branch.tolist() for branch in layer1["weights"]]
    layer2["weights"] = rng.integers(-most, most + 1, (hidden[1], hidden[0])).tolist()
    layer3["weights"] = rng.integers(-most, most + 1, (5, hidden[1])).tolist()
    for layer in (layer1, layer2):
        layer["multipliers"][::2] = [1 << int(rng.integers(8)) for _ in layer["multipliers"][::2]]
        layer["shifts"] = [int(rng.integers(1, 16)) for _ in layer["shifts"]]
    return IntersectionPolicy(**fields)


def narrow_intersections() -> list[IntersectionPolicy]:
    shapes = [(3, (12, 9)), (7, (30, 1, 1)), (15, (40,)), (15, (12, 8, 8)), (31, (32, 4, 1)), (1, (2, 3))]
    return [narrow_intersection(seed, most, widths) for seed, (most, widths) in enumerate(shapes)]


def shared_intersections() -> list[IntersectionPolicy]:
    """Two networks for four intersections, each with phases of its own."""
    parts = [random_intersection(seed, n_phases=4, widths=(5, 3), hidden=(7, 6)) for seed in (1, 2, 1, 1)]
    return [part.model_copy(update={"phases": list(range(n, n + 4)), "id": f"light_{n}"}) for n, part in enumerate(parts)]


def joined_intersections() -> list[IntersectionPolicy]:
    """One ReLU for all features, two to four of them, in blocks of full size and less; one feature joins nothing."""
    shapes = [((12, 9), (18, 20), 9), ((8, 1, 5), (7, 6), 4), ((3, 4, 2, 6), (13, 4), 3), ((6,), (5, 5), 2)]
    return [random_intersection(seed, widths=w, hidden=h, n_phases=n, joined=True) for seed, (w, h, n) in enumerate(shapes)]


ONE_BY_ONE = {
    "paper": lambda: make_random_policy(1),
    "many shapes": lambda: make_random_policy(
        3,
        shapes=[((12, 9), (18, 20), 9), ((3,), (24, 7), 2), ((8, 1, 20, 4), (5, 24), 4), ((1,), (1, 1), 1)],
        bias_size=60_000,
    ),
    "widest": lambda: make_random_policy(6, shapes=[((24, 24, 16), (24, 24), 9)]),
    "extreme, low shifts": lambda: random_policy([extreme_intersection(sign, (9, 8), 16) for sign in (1, -1)]),
    "extreme, high shifts": lambda: random_policy([extreme_intersection(sign, (9, 8), 16, 16) for sign in (1, -1)]),
    "biases of 16 and 17 bits": lambda: random_policy([biases_at_the_ends(1 << bits) for bits in (15, 16)]),
    "scaling": lambda: random_policy(scaling_intersections()),
    "narrow": lambda: random_policy(narrow_intersections()),
    "shared": lambda: random_policy(shared_intersections()),
    "joined": lambda: random_policy([*joined_intersections(), random_intersection(9, widths=(5, 3), hidden=(7, 6))]),
}  # for the unrolled kernel, which has room for little; the widest falls back to the table
LARGE = [extreme_intersection(sign, (33, 30), 31) for sign in (1, -1)]
TOGETHER = {
    "paper": ONE_BY_ONE["paper"],
    "largest frame": lambda: make_random_policy(
        5, shapes=[((98,), (8, 8), 4), ((4,), (8, 8), 48), ((24, 24, 16), (24, 24), 9)]
    ),
    "all parts": lambda: random_policy(
        [*LARGE, *(part for name in ONE_BY_ONE if name != "joined" for part in ONE_BY_ONE[name]().intersections)]
    ),
    "joined": ONE_BY_ONE["joined"],
}  # a build takes seconds, whatever the number of intersections


def made(policies: dict[str, Callable[[], Policy]], name: str, folder: Path) -> tuple[Policy, Path]:
    policy, file = policies[name](), folder / "policy.json"
    save_policy(policy, file)
    return policy, file


def inputs(part: IntersectionPolicy, count: int, seed: int = 0) -> Int64:
    """int64[count, n_inputs]: the ends of int16, values about the offset, small counts, anything."""
    rng = np.random.default_rng(seed)
    n, offsets = part.n_inputs, np.repeat([f.offset for f in part.features], [f.width for f in part.features])
    fixed = np.array([np.full(n, value) for value in (-32768, 32767, 0, 1, -1)])
    about = np.clip(offsets + rng.integers(-2, 3, (count // 5, n)), -32768, 32767)
    small = rng.integers(0, 60, (count // 3, n))
    ends = rng.choice([-32768, 32767], (count // 10, n))
    rest = count - sum(map(len, (fixed, about, small, ends)))
    anything = rng.integers(-32768, 32768, (max(0, rest), n))
    return np.concatenate([fixed, about, small, ends, anything])[:count]


def requests(policy: Policy, count: int) -> Iterator[tuple[int, Int64]]:
    """`count` pairs (intersection, values) for each intersection, the intersections in turn."""
    batches = [inputs(part, count, seed) for seed, part in enumerate(policy.intersections)]
    for values in zip(*batches, strict=True):
        yield from enumerate(values)


@pytest.mark.parametrize("name", TOGETHER)
def test_host_build_equals_the_reference(name: str, tmp_path: Path) -> None:
    policy, file = made(TOGETHER, name, tmp_path)
    asked = list(requests(policy, INPUTS_PER_PART))
    stream = protocol.encode_frame(Frame(MessageType.HELLO, 0, 0))
    for number, (intersection, values) in enumerate(asked):
        sequence = number % 256
        stream += protocol.encode_frame(Frame(MessageType.DECIDE, sequence, intersection, encoded(values)))
        get = protocol.encode_get(sequence, 0, 3 * len(policy.intersections[intersection].phases))
        stream += protocol.encode_frame(Frame(MessageType.GET, 255 - sequence, intersection, get))
    program = build_firmware(file, target="native").elf
    result = subprocess.run([str(program)], input=stream, capture_output=True, timeout=PATIENCE_S)
    assert (result.returncode, result.stderr) == (0, b"")
    replies = [protocol.decode_frame(part) for part in result.stdout.split(b"\0")[1:-1]]
    references = [IntegerPolicy(part) for part in policy.intersections]
    assert len(replies) == 2 * len(asked)
    for number, ((intersection, values), frame, gotten) in enumerate(zip(asked, replies[::2], replies[1::2], strict=True)):
        assert (frame.type, frame.sequence, frame.intersection) == (0x82, number % 256, intersection)
        reply = protocol.decode_decide_reply(frame.payload)
        logits = references[intersection].logits(values)
        assert protocol.decode_logits(gotten.payload) == tuple(logits), f"request {number}: {values}"
        assert (reply.logits, reply.logits_crc) == (len(logits), protocol.logits_checksum(logits))
        assert reply.action == int(np.argmax(logits))
        assert reply.phase == policy.intersections[intersection].phases[reply.action]


def encoded(values: Int64) -> bytes:
    return protocol.encode_decide(DecideRequest([int(value) for value in values]))


@pytest.mark.parametrize("kernel", ["c", "table"])
@pytest.mark.parametrize("name", TOGETHER)
def test_emulated_chip_equals_the_reference(name: str, kernel: str, tmp_path: Path) -> None:
    policy, file = made(TOGETHER, name, tmp_path)
    firmware = build_firmware(file, baud=500_000, kernel=kernel)
    assert firmware.kernel == kernel
    is_equal_on_the_chip(policy, firmware, kernel)


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_the_unrolled_kernel_equals_the_reference(name: str, tmp_path: Path) -> None:
    policy, file = made(ONE_BY_ONE, name, tmp_path)
    firmware = build_firmware(file, baud=500_000)
    assert firmware.kernel == ("table" if name == "widest" else "unrolled")
    if firmware.kernel == "table":
        assert measure(build_firmware(file, baud=500_000, kernel="unrolled")).flash_bytes > FLASH_LIMIT_BYTES - 1000
    is_equal_on_the_chip(policy, firmware, firmware.kernel)


def is_equal_on_the_chip(policy: Policy, firmware: Firmware, kernel: str) -> None:
    references = [IntegerPolicy(part) for part in policy.intersections]
    with open_board("simavr", firmware, f_cpu_hz=16_000_000, baud=500_000) as board:
        link = Link(board)
        assert link.hello(policy.sha256).kernel == KERNELS.index(kernel)
        for intersection, values in requests(policy, INPUTS_PER_PART // 5):
            decision = link.decide(intersection, [int(value) for value in values], logits=True)
            logits = references[intersection].logits(values)
            assert list(decision.logits) == list(logits)
            assert decision.action == int(np.argmax(logits))
            assert decision.phase == policy.intersections[intersection].phases[decision.action]


@pytest.mark.parametrize("kernel", CYCLES_WINDOWS)
@pytest.mark.parametrize("f_cpu_hz", [16_000_000, 8_000_000])
def test_a_decision_of_the_papers_size_takes_its_cycles(tmp_path: Path, f_cpu_hz: int, kernel: str) -> None:
    file, policy = tmp_path / "policy.json", make_random_policy(1)
    save_policy(policy, file)
    asked = "auto" if kernel == "unrolled" else kernel  # as the test above asks for it: the same build
    firmware = build_firmware(file, f_cpu_hz=f_cpu_hz, baud=500_000, kernel=asked)
    assert firmware.kernel == kernel
    with open_board("simavr", firmware, f_cpu_hz=f_cpu_hz, baud=500_000) as board:
        link = Link(board)
        link.hello(policy.sha256)
        cycles = [
            link.decide(0, [int(value) for value in values], logits=False).compute_cycles for _, values in requests(policy, 60)
        ]
        assert min(cycles) > CYCLES_WINDOWS[kernel][0]
        assert max(cycles) < CYCLES_WINDOWS[kernel][1]
        stats = link.stats()
        assert (stats.decisions, stats.largest_compute_cycles) == (60, max(cycles))


@pytest.mark.parametrize(
    "shape", [((12, 9), (18, 20), 9), ((1,) * 12, (24, 6), 2), ((12, 12), (6, 6), 2), ((12, 9), (60, 60), 9)], ids=str
)
def test_a_decision_takes_no_longer_than_it_is_waited_for(tmp_path: Path, shape: tuple) -> None:
    """Portable C on a line so fast that the chip is behind with the request's bytes; and the guess is no wild one."""
    file, policy = tmp_path / "policy.json", make_random_policy(1, shapes=[shape])
    save_policy(policy, file)
    firmware = build_firmware(file, f_cpu_hz=1_000_000, baud=125_000, kernel="c")
    with open_board("simavr", firmware, f_cpu_hz=1_000_000, baud=125_000) as board:
        link = Link(board, budget_s=0.5, most_decision_cycles=most_decision_cycles(policy))
        link.hello(policy.sha256)
        decisions = [link.decide(0, [int(value) for value in values]) for _, values in requests(policy, 30)]
    assert link.counters.retries == 0
    longest_us = max(decision.round_trip_us for decision in decisions) - line_time_us(policy, 125_000)
    assert 0.4 * most_decision_cycles(policy) < longest_us < most_decision_cycles(policy)


def test_a_repeated_request_is_answered_from_memory(tmp_path: Path) -> None:
    """Same sequence, intersection and CRC: the same bytes again and no new work; HELLO makes the chip forget."""
    file, policy = tmp_path / "policy.json", make_random_policy(1)
    save_policy(policy, file)
    values = encoded(inputs(policy.intersections[0], 20)[7])
    decide = protocol.encode_frame(Frame(MessageType.DECIDE, 5, 0, values))
    other = protocol.encode_frame(Frame(MessageType.DECIDE, 5, 0, values[:-1] + bytes([values[-1] ^ 1])))
    hello, stats = (protocol.encode_frame(Frame(kind, 1, 0)) for kind in (MessageType.HELLO, MessageType.STATS))
    broken = b"\x02\x02\0"
    stream = [hello, decide, decide, broken, decide, stats, other, hello, other, stats]
    program = build_firmware(file, target="native").elf
    result = subprocess.run([str(program)], input=b"".join(stream), capture_output=True, check=True, timeout=PATIENCE_S)
    replies = [protocol.decode_frame(part) for part in result.stdout.split(b"\0")[:-1]]
    assert replies[1] == replies[2] == replies[4]
    assert replies[3].type == MessageType.ERROR
    first, last = (protocol.decode_stats_reply(replies[number].payload) for number in (5, 9))
    assert (first.decisions, first.repeats_served) == (1, 2)
    assert (last.decisions, last.repeats_served) == (3, 2)
