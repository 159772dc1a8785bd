"""The link against scripted boards: handshake, decisions, logits, what it refuses and what it reports."""

import itertools
from collections.abc import Iterable
from dataclasses import replace

import pytest

from hil.boards.faults import BoardDied
from hil.wire.expected_firmware import Setting
from hil.wire.link import BoardError, Link, NoAnswer, WrongFirmware, WrongPolicy
from hil.wire.protocol import ErrorCode, Frame, encode_frame, encode_hello_reply, encode_logits
from tests.helpers.fake_board import (
    ANSWER_TIME_US,
    BYTE_US,
    DECISION,
    HELLO,
    LOGITS,
    SHA256,
    STATS,
    FakeBoard,
    reply_to,
    silent,
    sound,
)
from tests.helpers.scripted_link import VALUES, failure, linked, refusing


def test_hello_tells_who_is_there() -> None:
    link, board = linked()
    assert link.greeting == HELLO
    assert board.written[0].startswith(b"\0"), "a delimiter flushes what the boot left half-sent"


def test_decide_gives_the_decision_and_its_times() -> None:
    link, board = linked()
    decision = link.decide(1, VALUES)
    assert (decision.action, decision.phase, decision.compute_cycles) == (2, 4, 21_313)
    assert decision.logits_crc == DECISION.logits_crc
    assert decision.tries == 1
    assert decision.response_us == pytest.approx(ANSWER_TIME_US)
    line_bytes = len(board.written[-1]) + len(reply_to(board.requests[-1]))
    assert decision.round_trip_us == pytest.approx(ANSWER_TIME_US + line_bytes * BYTE_US)
    assert board.requests[-1].intersection == 1
    assert link.counters.as_dict() == {
        "requests": 2,
        "retries": 0,
        "greetings": 0,
        "garbage_bytes": 0,
        "bad_frames": 0,
        "stale_frames": 0,
        "error_replies": 0,
        "unanswered": 0,
        "in_parts": 0,
        "sessions_lost": 0,
    }


def test_stats() -> None:
    assert linked()[0].stats() == STATS


def test_sequence_numbers_differ_and_wrap() -> None:
    link, board = linked()
    for _ in range(300):
        link.decide(0, VALUES)
    numbers = [request.sequence for request in board.requests]
    assert all((b - a) % 256 == 1 for a, b in itertools.pairwise(numbers))


def test_another_policy_is_refused() -> None:
    link = Link(FakeBoard())
    fault = failure(WrongPolicy, lambda: link.hello("cd" * 32))
    assert (fault.expected_sha256, fault.found_sha256) == ("cd" * 32, SHA256)
    assert "abababababab" in str(fault) and "cdcdcdcdcdcd" in str(fault)
    with pytest.raises(RuntimeError, match="handshake"):
        link.decide(0, VALUES)


def test_hello_is_repeated_until_the_board_has_booted() -> None:
    board = FakeBoard([silent, silent, silent])
    assert Link(board).hello() == HELLO
    assert len(board.requests) == 4


def test_hello_gives_up_after_the_boot_time() -> None:
    board = FakeBoard(afterwards=silent)
    failure(NoAnswer, Link(board).hello)
    assert board.now_us() == pytest.approx(board.boot_us)
    patient = FakeBoard(afterwards=silent)
    failure(NoAnswer, lambda: Link(patient).hello(patience_s=3))
    assert patient.now_us() == pytest.approx(3e6)


def test_boot_garbage_before_hello_is_passed_over() -> None:
    def booting(request: Frame) -> Iterable[bytes]:
        return [b"boot\x01\xff\x00", b"half a frame", b"\x00", reply_to(request)]

    link = Link(FakeBoard([booting]))
    assert link.hello(SHA256) == HELLO
    assert link.counters.bad_frames == 2


def test_logits_are_fetched_when_asked_for() -> None:
    link, board = linked()
    assert link.decide(0, VALUES).logits == () and len(board.requests) == 2
    decision = link.decide(0, VALUES, logits=True)
    assert decision.logits == link.last_logits() == LOGITS
    assert board.requests[-1].payload == bytes((board.requests[-3].sequence, 0, 12))
    assert decision.round_trip_us < link.board.now_us() / 5, "the logits come after it"


def test_logits_with_another_crc_are_not_the_decisions() -> None:
    def other(request: Frame) -> list[bytes]:
        payload = encode_logits((1, *LOGITS[1:]))
        return [encode_frame(Frame(request.type | 0x80, request.sequence, request.intersection, payload))]

    link, _ = linked(sound, other)
    assert failure(BoardError, lambda: link.decide(0, VALUES, logits=True)).code == ErrorCode.BAD_PARTS


def test_a_dead_board_is_not_retried() -> None:
    class Dying(FakeBoard):
        def read(self, deadline_us: float) -> bytes:
            if len(self.requests) > 1:
                raise BoardDied("gone")
            return super().read(deadline_us)

    link = Link(Dying())
    link.hello()
    failure(BoardDied, lambda: link.decide(0, VALUES))


def test_a_hint_of_the_board_is_in_the_message() -> None:
    class Knowing(FakeBoard):
        def diagnosis(self) -> str:
            return "the cable is cut"

    assert "the cable is cut" in str(failure(NoAnswer, Link(Knowing(afterwards=silent)).hello))


def test_values_that_no_frame_can_hold_are_refused_before_sending() -> None:
    link, board = linked()
    for values in ([32_768], [-32_769], [0] * 100):
        with pytest.raises(ValueError):
            link.decide(0, values)
    assert len(board.requests) == 1


@pytest.mark.parametrize(("budget_s", "tries"), [(0, 3), (0.1, 0)])
def test_a_link_without_time_or_tries_is_refused(budget_s: float, tries: int) -> None:
    with pytest.raises(ValueError):
        Link(FakeBoard(), budget_s=budget_s, tries=tries)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (Setting(f_cpu_hz=8_000_000), "its clock is 16000000 Hz, not 8000000 Hz (`f_cpu_hz`)"),
        (Setting(baud=9600), "its line rate is 115200 baud, not 9600 baud (`baud`)"),
        (Setting(kernel="table"), "its kernel is c, not table (`kernel`)"),
        (Setting(min_green_s=5), "its minimum green is 0 s, not 5 s (`min_green_s`)"),
    ],
)
def test_a_firmware_built_with_other_settings_is_refused(setting: Setting, message: str) -> None:
    fault = failure(WrongFirmware, lambda: Link(FakeBoard()).hello(SHA256, setting))
    assert message in str(fault)
    assert Link(FakeBoard()).hello(SHA256, Setting(16_000_000, 115_200, "c", 0)) == HELLO


def test_a_firmware_built_with_other_settings_is_refused_after_a_restart() -> None:
    def slower(request: Frame) -> list[bytes]:
        payload = encode_hello_reply(replace(HELLO, f_cpu_hz=8_000_000))
        return [encode_frame(Frame(request.type | 0x80, request.sequence, request.intersection, payload))]

    board = FakeBoard([sound, refusing(ErrorCode.NO_SESSION), slower])
    link = Link(board)
    link.hello(SHA256, Setting(f_cpu_hz=16_000_000))
    failure(WrongFirmware, lambda: link.decide(0, VALUES))


def test_the_host_build_has_neither_clock_nor_line() -> None:
    def host(request: Frame) -> list[bytes]:
        payload = encode_hello_reply(replace(HELLO, f_cpu_hz=0, baud=0))
        return [encode_frame(Frame(request.type | 0x80, request.sequence, request.intersection, payload))]

    assert Link(FakeBoard([host])).hello(SHA256, Setting(16_000_000, 115_200, "table")).baud == 0
