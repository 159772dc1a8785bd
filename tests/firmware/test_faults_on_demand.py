"""The faults that a firmware can be built with (firmware/include/faults.h), and that none is in it otherwise.

Most of these builds are those of tests/hil/test_hil_verdicts.py, too: the same policy and flags, so each is made once.
"""

from pathlib import Path

import numpy as np
import pytest

from hil.boards import Board, open_board
from hil.build.firmware import Target, build_firmware
from hil.build.footprint import measure
from hil.wire.link import GarbageAnswer, Link, NoAnswer
from hil.wire.protocol import (
    DecideReply,
    DecideRequest,
    Frame,
    MessageType,
    decode_decide_reply,
    decode_frame,
    encode_decide,
    encode_frame,
)
from model import pretrained_policy
from model.policy.file import load_policy
from model.policy.integer import IntegerPolicy
from tests.helpers.emulated_chip import emulated
from tests.helpers.random_policy import write_random_policy

VALUES = [30] * 28
WATCHDOG_RESET = 1 << 3  # WDRF in MCUSR
OVERFLOW_CYCLES = 21  # that counting an overflow of the stopwatch's timer takes, itself timed


@pytest.fixture
def policy_file() -> Path:
    return pretrained_policy("crossing")


def patiently_decided(board: Board) -> DecideReply:
    """One request, and the reply whenever it comes."""
    board.write(encode_frame(Frame(MessageType.DECIDE, 99, 0, encode_decide(DecideRequest(VALUES)))))
    received = b""
    while not received.endswith(b"\0"):
        received += board.read(board.now_us() + 1e6)
    return decode_decide_reply(decode_frame(received[:-1]).payload)


@pytest.mark.parametrize("slowdown_cycles", [100_000, 300_000, 1_760_000])
def test_a_slowed_kernel_takes_that_much_longer(policy_file: Path, slowdown_cycles: int) -> None:
    """However often the 16 bits of the stopwatch's timer overflow, it reports the right count."""
    policy, cycles = load_policy(policy_file), []
    for flags in ([], [f"-DTL_SLOWDOWN_CYCLES={slowdown_cycles}"]):
        link, close = emulated(build_firmware(policy_file, extra_flags=flags), policy)
        cycles.append(patiently_decided(link.board).compute_cycles)
        assert link.stats().largest_compute_cycles == cycles[-1]
        close()
    overflows = slowdown_cycles // 65_536
    assert cycles[1] - cycles[0] == pytest.approx(slowdown_cycles + OVERFLOW_CYCLES * overflows, abs=100)


def test_the_stopwatch_is_right_around_an_overflow(tmp_path: Path) -> None:
    """Decisions that end some cycles before one, and after: the same delay makes each longer by the same."""
    policy_file = tmp_path / "policy.json"
    policy, rng = write_random_policy(policy_file), np.random.default_rng(1)
    inputs = rng.integers(-100, 400, (600, 21)).tolist()
    series = []
    for flags in ([], ["-DTL_SLOWDOWN_CYCLES=59350"]):
        link, close = emulated(build_firmware(policy_file, extra_flags=flags), policy)
        series.append([link.decide(0, values).compute_cycles for values in inputs])
        close()
    longer = {slowed: slowed - plain for plain, slowed in zip(*series, strict=True)}
    delay = longer[min(longer)]
    assert len({slowed for slowed in longer if abs(slowed - 65_536) < 8}) > 8
    for slowed, more in longer.items():
        assert more == delay if slowed < 65_536 else more == delay + OVERFLOW_CYCLES or (more == delay and slowed < 65_550)


def test_a_flipped_weight_changes_just_the_logit_that_it_belongs_to(policy_file: Path) -> None:
    policy = load_policy(policy_file)
    reference = IntegerPolicy(policy.intersections[0])
    action, unit = 0, 3
    values = next([value] * 28 for value in range(100) if reference.activations([value] * 28).h2[unit] > 0)
    weight = action * 18 + unit
    boards: dict[str, Target] = {"simavr": "uno_system", "host": "native"}
    for board_name, target in boards.items():
        firmware = build_firmware(policy_file, target=target, extra_flags=[f"-DTL_FLIP_WEIGHT={weight}"])
        with open_board(board_name, firmware, f_cpu_hz=16_000_000, baud=115_200) as board:
            link = Link(board)
            link.hello(policy.sha256)
            logits = link.decide(0, values, logits=True).logits
        different = [a for a, expected in enumerate(reference.logits(values)) if logits[a] != expected]
        assert different == [action]


def test_garbage_and_silence_begin_after_that_many_decisions(policy_file: Path) -> None:
    policy = load_policy(policy_file)
    for flag, failure in (("TL_GARBAGE_AFTER", GarbageAnswer), ("TL_SILENT_AFTER", NoAnswer)):
        link, close = emulated(build_firmware(policy_file, extra_flags=[f"-D{flag}=20"]), policy)
        for _ in range(20):
            link.decide(0, VALUES)
        with pytest.raises(failure):
            link.decide(0, VALUES)
        close()


def test_the_watchdog_ends_a_hang_and_the_chip_says_so(policy_file: Path) -> None:
    policy = load_policy(policy_file)
    link, close = emulated(build_firmware(policy_file, extra_flags=["-DTL_HANG_AFTER=1"]), policy)
    assert link.greeting is not None and link.greeting.reset_cause & WATCHDOG_RESET == 0
    link.decide(0, VALUES)
    with pytest.raises(NoAnswer):
        link.decide(0, VALUES)
    again = link.hello(policy.sha256, patience_s=3.0)
    assert again.reset_cause & WATCHDOG_RESET
    assert link.stats().decisions == 0
    close()


def test_a_quiet_chip_is_not_reset(policy_file: Path) -> None:
    """Nothing to do for five seconds: the sleep is ended often enough to feed the watchdog."""
    policy = load_policy(policy_file)
    link, close = emulated(build_firmware(policy_file), policy)
    link.decide(0, VALUES)
    assert link.board.read(link.board.now_us() + 5e6) == b""
    stats = link.stats()
    close()
    assert stats.decisions == 1


def test_ballast_takes_flash(policy_file: Path) -> None:
    plain, heavy = (measure(build_firmware(policy_file, extra_flags=flags)) for flags in ([], ["-DTL_BALLAST_BYTES=30000"]))
    assert 0 <= heavy.flash_bytes - plain.flash_bytes - 30_000 < 4
    assert heavy.static_ram_bytes == plain.static_ram_bytes


def test_the_default_firmware_has_no_faults_in_it(policy_file: Path) -> None:
    assert not any("faults" in symbol for symbol in measure(build_firmware(policy_file)).per_symbol)
