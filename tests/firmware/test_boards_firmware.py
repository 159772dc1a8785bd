"""The real firmware on the emulated chip and on this machine: the same tests on both, against the numpy reference."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hil.boards import Board, HostBoard, SimavrBoard, open_board
from hil.build.firmware import build_firmware
from hil.build.stack_bound import stack_bound
from hil.wire.link import BoardError, Link, LinkError, WrongPolicy
from hil.wire.protocol import (
    VERSION,
    DecideRequest,
    ErrorCode,
    ErrorReply,
    Frame,
    Light,
    MessageType,
    decode_decide_reply,
    decode_error_reply,
    decode_frame,
    encode_decide,
    encode_frame,
    logits_checksum,
)
from model.policy.file import Policy
from model.policy.integer import IntegerPolicy
from tests.helpers.bad_line import Meddler, damaged, once
from tests.helpers.random_policy import write_random_policy

BOARDS = ["simavr", "host"]
CLOCKS_HZ = (16_000_000, 8_000_000)
BAUDS = (115_200, 500_000)
NO_ZEROS = 0x0505  # a value without zero bytes: COBS leaves it as it is
SHAPES = [((12, 9), (18, 20), 9), ((7,), (9, 5), 4), ((3, 8, 2), (11, 6), 6)]


@pytest.fixture(scope="module")
def policy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("policy") / "policy.json"


@pytest.fixture(scope="module")
def policy(policy_file: Path) -> Policy:
    return write_random_policy(policy_file, 5, shapes=SHAPES)


def opened(name: str, policy_file: Path, f_cpu_hz: int = 16_000_000, baud: int = 115_200) -> Board:
    target = "native" if name == "host" else "uno_system"
    firmware = build_firmware(policy_file, target=target, f_cpu_hz=f_cpu_hz, baud=baud)  # type: ignore[arg-type]
    return open_board(name, firmware, f_cpu_hz=f_cpu_hz, baud=baud)


@pytest.fixture(params=BOARDS)
def real(request: pytest.FixtureRequest, policy_file: Path, policy: Policy) -> Iterator[Board]:
    with opened(request.param, policy_file) as board:
        yield board


def inputs(policy: Policy, count: int) -> Iterator[tuple[int, list[int]]]:
    """Intersections in turn, with feature values that use the whole int16 range, its ends included."""
    rng = np.random.default_rng(7)
    for k in range(count):
        number = k % len(policy.intersections)
        n = policy.intersections[number].n_inputs
        if k < 4 * len(policy.intersections):
            extreme = [-32768, 32767, 0, -1][k // len(policy.intersections)]
            yield number, [extreme] * n
        else:
            yield number, rng.integers(-200, 10 ** rng.integers(2, 5), n).clip(-32768, 32767).tolist()


def exchange(board: Board, data: bytes) -> Frame:
    """Send raw bytes and decode the frame that comes back."""
    board.write(data)
    received = b""
    while not received.endswith(b"\0"):
        part = board.read(board.now_us() + 5e6)
        assert part, f"no answer to {data.hex()}"
        received += part
    return decode_frame(received[:-1])


def test_hello(real: Board, policy: Policy) -> None:
    greeting = Link(real).hello(policy.sha256)
    assert greeting.policy_sha256 == policy.sha256
    assert greeting.intersections == len(SHAPES)
    on_chip = real.name == "simavr"
    assert (greeting.f_cpu_hz, greeting.baud) == ((16_000_000, 115_200) if on_chip else (0, 0))
    assert greeting.reset_cause == (1 if on_chip else 0), "power-on"
    assert greeting.max_payload_bytes == max(55, 4 + 2 * 21, 3 * 9)


def test_another_policy_is_refused(real: Board) -> None:
    with pytest.raises(WrongPolicy):
        Link(real).hello("cd" * 32)


def test_every_logit_is_the_references(real: Board, policy: Policy) -> None:
    link = Link(real)
    link.hello(policy.sha256)
    references = [IntegerPolicy(part) for part in policy.intersections]
    seen = set()
    for number, values in inputs(policy, 150):
        decision = link.decide(number, values, logits=True)
        logits = references[number].logits(np.array(values))
        assert decision.logits == tuple(logits.tolist())
        assert decision.logits_crc == logits_checksum(logits)
        assert decision.action == int(np.argmax(logits))
        assert decision.phase == policy.intersections[number].phases[decision.action]
        assert decision.tries == 1
        seen.add((number, decision.action))
    assert len(seen) > 2 * len(SHAPES), "the inputs must bring out several actions"
    stats = link.stats()
    assert (stats.decisions, stats.good_frames) == (150, 302)
    assert (stats.crc_errors, stats.malformed_frames, stats.ring_overruns, stats.uart_errors) == (0, 0, 0, 0)
    assert link.counters.as_dict() | {"requests": 0} == dict.fromkeys(link.counters.as_dict(), 0)


def test_logits_only_when_asked_for(real: Board, policy: Policy) -> None:
    link = Link(real)
    link.hello()
    values = [3] * policy.intersections[0].n_inputs
    full, brief = link.decide(0, values, logits=True), link.decide(0, values)
    assert brief.logits == ()
    assert (brief.action, brief.phase) == (full.action, full.phase)


def test_a_repeated_request_is_answered_from_memory(real: Board, policy: Policy) -> None:
    link = Link(real)
    link.hello()
    part = policy.intersections[1]
    request = encode_frame(Frame(MessageType.DECIDE, 77, 1, encode_decide(DecideRequest([9] * part.n_inputs))))
    first, again = exchange(real, request), exchange(real, request)
    assert first == again
    assert decode_decide_reply(first.payload).logits_crc == logits_checksum(IntegerPolicy(part).logits([9] * part.n_inputs))
    stats = link.stats()
    assert (stats.decisions, stats.repeats_served) == (1, 1)
    link.hello()
    assert decode_decide_reply(exchange(real, request).payload).action == decode_decide_reply(first.payload).action
    assert link.stats().decisions == 2, "HELLO starts a session: the same number is new work there"


def test_a_lost_reply_is_fetched_again_without_new_work(real: Board, policy: Policy) -> None:
    lossy = Meddler(real, on_read=once(lambda data: b"", when=1))
    link = Link(lossy)
    link.hello()
    decision = link.decide(0, [NO_ZEROS] * 21)
    assert decision.tries == 2
    assert decision.logits_crc == logits_checksum(IntegerPolicy(policy.intersections[0]).logits([NO_ZEROS] * 21))
    assert decision.round_trip_us > 33_000, "the first try's share of the budget is in it"
    assert decision.response_us is None if real.name == "simavr" else decision.response_us < 33_000, "it is from memory"
    stats = link.stats()
    assert (stats.decisions, stats.repeats_served) == (1, 1)


def test_a_damaged_request_is_refused_and_sent_again(real: Board, policy: Policy) -> None:
    link = Link(Meddler(real, on_write=once(damaged, when=1)))
    link.hello()
    decision = link.decide(0, [NO_ZEROS] * 21)
    assert decision.tries == 2
    assert decision.logits_crc == logits_checksum(IntegerPolicy(policy.intersections[0]).logits([NO_ZEROS] * 21))
    assert link.counters.error_replies == 1
    assert link.stats().crc_errors == 1


def test_a_damaged_reply_is_asked_for_again(real: Board) -> None:
    link = Link(Meddler(real, on_read=once(damaged, when=1)))
    link.hello()
    assert link.decide(0, [NO_ZEROS] * 21).tries == 2
    assert link.counters.bad_frames == 1
    assert link.stats().repeats_served == 1


def test_a_line_that_always_damages_is_reported(real: Board) -> None:
    Link(real).hello()
    link = Link(Meddler(real, on_write=lambda data: data if bytes((VERSION, 1)) in data[:4] else damaged(data)))
    link.hello()
    with pytest.raises(BoardError, match="BAD_CRC"):
        link.decide(0, [NO_ZEROS] * 21)


@pytest.mark.parametrize("rate", [0.0005, 0.003])
def test_no_wrong_decision_is_ever_taken_from_a_noisy_line(policy_file: Path, policy: Policy, rate: float) -> None:
    """Each bit flips with this probability, in both directions: decisions may get lost, but those that arrive are right."""
    rng = np.random.default_rng(11)

    def noise(data: bytes) -> bytes:
        flips = np.packbits(rng.random((len(data), 8)) < rate, axis=1)[:, 0]
        return bytes(np.frombuffer(data, np.uint8) ^ flips)

    references = [IntegerPolicy(part) for part in policy.intersections]
    answered = lost = 0
    with opened("simavr", policy_file) as board:
        Link(board).hello(policy.sha256)
        link = Link(Meddler(board, on_write=noise, on_read=noise))
        link.hello(policy.sha256)
        for number, values in inputs(policy, 120):
            try:
                decision = link.decide(number, values)
            except LinkError:
                lost += 1
                continue
            answered += 1
            assert decision.logits_crc == logits_checksum(references[number].logits(np.array(values)))
        assert answered > 10
        assert link.counters.retries > 20
        assert lost < 120
        quiet = Link(board)
        quiet.hello(policy.sha256)
        assert quiet.decide(0, [NO_ZEROS] * 21).tries == 1, "the chip is as good as before"


@pytest.mark.parametrize(
    ("frame", "code", "detail"),
    [
        (Frame(MessageType.DECIDE, 9, 3, encode_decide(DecideRequest([0] * 21))), ErrorCode.BAD_INTERSECTION, 3),
        (Frame(MessageType.DECIDE, 9, 0, encode_decide(DecideRequest([0] * 20))), ErrorCode.BAD_LENGTH, 44),
        (Frame(MessageType.DECIDE, 9, 0, b"\x01\x14" + bytes(42)), ErrorCode.BAD_LENGTH, 44),
        (Frame(MessageType.DECIDE, 9, 0), ErrorCode.BAD_LENGTH, 44),
        (Frame(MessageType.DECIDE, 9, 0, b"\x03\x15" + bytes(42)), ErrorCode.BAD_LENGTH, 46),
        (Frame(MessageType.DECIDE, 9, 0, b"\x03\x15" + bytes(42) + b"\x09\x00"), ErrorCode.BAD_PHASE, 9),
        (Frame(MessageType.HELLO, 9, 0, b"\x00"), ErrorCode.BAD_LENGTH, 0),
        (Frame(0x42, 9, 2), ErrorCode.UNKNOWN_TYPE, 0x42),
        (Frame(MessageType.HELLO, 9, 0, version=1), ErrorCode.BAD_VERSION, VERSION),
        (Frame(MessageType.DECIDE, 9, 0, bytes(100)), ErrorCode.TOO_LONG, 55),
    ],
)
def test_each_refusal_is_typed(real: Board, frame: Frame, code: ErrorCode, detail: int) -> None:
    Link(real).hello()
    reply = exchange(real, encode_frame(frame))
    assert (reply.type, reply.sequence, reply.intersection) == (MessageType.ERROR, 9, frame.intersection)
    assert decode_error_reply(reply.payload) == ErrorReply(code, detail)
    assert Link(real).hello(), "and the session goes on"


@pytest.mark.parametrize("data", [b"\x09\x01\x01\x00", b"\x02\x01\x00", b"\x05\x01\x01\x01\x01\x00"])
def test_malformed_frames_are_refused(real: Board, data: bytes) -> None:
    Link(real).hello()
    assert decode_error_reply(exchange(real, data).payload) == ErrorReply(ErrorCode.MALFORMED, 0)
    link = Link(real)
    link.hello()
    assert link.stats().malformed_frames == 1


@pytest.mark.parametrize("name", BOARDS)
def test_a_young_green_is_kept(name: str, policy_file: Path, policy: Policy) -> None:
    """Ten seconds at least: before that the answer is the action in force, with its phase; the logits are what they are."""
    target = "native" if name == "host" else "uno_system"
    firmware = build_firmware(policy_file, target=target, min_green_s=10)  # type: ignore[arg-type]
    part = policy.intersections[2]
    logits = IntegerPolicy(part).logits(np.full(13, 40))
    best = int(np.argmax(logits))
    with open_board(name, firmware, f_cpu_hz=16_000_000, baud=115_200) as board:
        link = Link(board)
        assert link.hello(policy.sha256).min_green_s == 10
        for action in range(len(part.phases)):
            young = link.decide(2, [40] * 13, logits=True, light=Light(action, 9))
            assert (young.action, young.phase, young.logits) == (action, part.phases[action], tuple(logits.tolist()))
            assert link.decide(2, [40] * 13, light=Light(action, 10)).action == best
            assert link.decide(2, [40] * 13, light=Light(action, 999)).action == best
        assert link.decide(2, [40] * 13).action == best


def test_boots_are_counted(policy_file: Path, policy: Policy) -> None:
    with opened("simavr", policy_file) as board:
        link = Link(board)
        counts = [link.hello().boot_count]
        for _ in range(3):
            board.reset()
            counts.append(link.hello().boot_count)
    assert counts == [1, 2, 3, 4]


def test_a_flipped_bit_in_flash_is_found_at_boot(policy_file: Path, policy: Policy, tmp_path: Path) -> None:
    """Any byte of the program: here one of the policy's hash, which no instruction stumbles over."""
    firmware = build_firmware(policy_file)
    content = bytearray(firmware.elf.read_bytes())
    at = content.index(bytes.fromhex(policy.sha256))
    content[at + 5] ^= 0x10
    elf = tmp_path / "flipped.elf"
    elf.write_bytes(content)
    with SimavrBoard(elf, f_cpu_hz=16_000_000, baud=115_200) as board:
        link = Link(board)
        link.hello()
        with pytest.raises(BoardError, match="FLASH_CORRUPT") as refused:
            link.decide(0, [3] * 21)
        assert refused.value.tries == 1, "asking again would not help"
        assert link.stats().decisions == 0


def test_the_boards_reset(real: Board, policy: Policy) -> None:
    link = Link(real)
    link.hello(policy.sha256)
    link.decide(0, [1] * 21)
    real.reset()
    greeting = link.hello(policy.sha256)
    assert greeting.reset_cause == (2 if isinstance(real, SimavrBoard) else 0), "the reset pin"
    assert link.stats().decisions == 0


def test_the_host_build_ends_cleanly(policy_file: Path, policy: Policy) -> None:
    board = opened("host", policy_file)
    assert isinstance(board, HostBoard)
    Link(board).hello(policy.sha256)
    board.close()


class TestEmulatedTimes:
    @pytest.mark.parametrize("f_cpu_hz", CLOCKS_HZ)
    @pytest.mark.parametrize("baud", BAUDS)
    def test_the_three_latencies(self, policy_file: Path, policy: Policy, f_cpu_hz: int, baud: int) -> None:
        """Windows, not limits: too fast would mean skipped work."""
        with opened("simavr", policy_file, f_cpu_hz, baud) as board:
            link = Link(board)
            greeting = link.hello(policy.sha256)
            assert (greeting.f_cpu_hz, greeting.baud) == (f_cpu_hz, baud)
            bytes_back = len(encode_frame(Frame(2, 0, 0, bytes(8))))
            for number, values in inputs(policy, 30):
                decision = link.decide(number, values)
                compute_us = decision.compute_cycles / f_cpu_hz * 1e6
                if number == 0:
                    assert 5_000 <= decision.compute_cycles <= 7_000
                    assert decision.response_us <= compute_us + 4_000 / f_cpu_hz * 1e6
                    payloads = [encode_decide(DecideRequest(values, packed=packed)) for packed in (False, True)]
                    bytes_out = len(encode_frame(Frame(2, 0, 0, min(payloads, key=len))))
                    # The chip's own rate is up to 3.6 % off.
                    wire_us = (bytes_out + bytes_back / 1.036) * 10e6 / baud
                    assert wire_us <= decision.round_trip_us - decision.response_us
                    # Where a byte takes 160 cycles, the chip makes the reply a little slower than the line could carry it.
                    slack = 1.25 if f_cpu_hz * 10 // baud == 160 else 1.1
                    assert decision.round_trip_us - decision.response_us <= slack * wire_us
                assert decision.response_us > compute_us
                assert decision.round_trip_us < 100_000

    def test_runs_repeat_to_the_cycle(self, policy_file: Path, policy: Policy) -> None:
        def run() -> list[tuple[int, int, float, float]]:
            with opened("simavr", policy_file) as board:
                assert isinstance(board, SimavrBoard)
                link = Link(board)
                link.hello(policy.sha256)
                rows = []
                for number, values in inputs(policy, 20):
                    decision = link.decide(number, values)
                    rows.append((board.cycle, decision.compute_cycles, decision.response_us, decision.round_trip_us))
                return rows

        assert run() == run()

    def test_the_stack_mark_is_what_the_chip_itself_reads(self, policy_file: Path, policy: Policy) -> None:
        with opened("simavr", policy_file) as board:
            link = Link(board)
            link.hello(policy.sha256)
            for number, values in inputs(policy, 10):
                link.decide(number, values)
            assert isinstance(board, SimavrBoard)
            stats, mark = link.stats(), board.stack_high_water_bytes()
            assert mark is not None
            chips_mark = 2048 - stats.static_ram_bytes - stats.untouched_ram_bytes
            assert 10 <= chips_mark <= mark <= chips_mark + 8, "sending the answer may go deeper"
            assert mark <= stack_bound(board.elf).total_bytes
