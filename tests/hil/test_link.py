"""The link against scripted boards: every way in which a serial line and its other end can misbehave."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

import pytest

from hil.boards.faults import BoardDied
from hil.wire.expected_firmware import Setting
from hil.wire.link import BoardError, GarbageAnswer, Link, LinkError, NoAnswer, WrongFirmware, WrongPolicy
from hil.wire.protocol import (
    ErrorCode,
    ErrorReply,
    Frame,
    MessageType,
    encode_decide_reply,
    encode_error_reply,
    encode_frame,
    encode_hello_reply,
    encode_logits,
)
from tests.helpers.fake_board import (
    ANSWER_TIME_US,
    BYTE_US,
    DECISION,
    HELLO,
    LOGITS,
    SHA256,
    STATS,
    Answer,
    FakeBoard,
    Late,
    reply_to,
    silent,
    sound,
)

VALUES = [1, -2, 300]
T = TypeVar("T", bound=LinkError)


def linked(*script: Answer, afterwards: Answer = sound) -> tuple[Link, FakeBoard]:
    """A link that has shaken hands, and its board, whose script starts with the next request."""
    board = FakeBoard([sound, *script], afterwards=afterwards)
    link = Link(board)
    link.hello(SHA256)
    return link, board


def refusing(code: int, detail: int = 0, sequence: int | None = None) -> Answer:
    def answer(request: Frame) -> list[bytes]:
        payload = encode_error_reply(ErrorReply(code, detail))
        number = request.sequence if sequence is None else sequence
        return [encode_frame(Frame(MessageType.ERROR, number, request.intersection, payload))]

    return answer


def saying(*data: bytes) -> Answer:
    return lambda request: data


def instead(change: Callable[[Frame], Frame]) -> Answer:
    """Answers a changed request: a reply that does not belong to the one in hand."""
    return lambda request: [reply_to(change(request))]


def failure(kind: type[T], act: Callable[[], object]) -> T:
    with pytest.raises(kind) as caught:
        act()
    assert type(caught.value) is kind
    return caught.value


def slow(compute_us: float, *, lost: int | None = None) -> FakeBoard:
    """A board that computes each decision so long, at 1 MHz, and says so; decision `lost` is silent the first time."""
    asked = itertools.count()

    def answer(request: Frame) -> Iterable[bytes | Late]:
        if request.type == MessageType.HELLO:
            payload = encode_hello_reply(replace(HELLO, f_cpu_hz=1_000_000))
        elif request.type == MessageType.DECIDE and next(asked) != lost:
            payload = encode_decide_reply(replace(DECISION, compute_cycles=int(compute_us)))
        else:
            return []
        reply = encode_frame(Frame(request.type | 0x80, request.sequence, request.intersection, payload))
        return [Late(compute_us if request.type == MessageType.DECIDE else ANSWER_TIME_US, reply)]

    return FakeBoard(afterwards=answer)


@pytest.mark.parametrize("compute_us", [30_000, 45_000, 70_000, 90_000])
def test_a_slow_chip_is_given_its_time(compute_us: float) -> None:
    """From the first decision on, where it is known how long one can take."""
    link = Link(slow(compute_us), most_decision_cycles=95_000)
    link.hello(SHA256)
    assert [link.decide(0, VALUES).tries for _ in range(5)] == [1] * 5


def test_a_slow_chip_is_given_its_time_once_it_has_told_it() -> None:
    link = Link(slow(40_000))
    link.hello(SHA256)
    assert [link.decide(0, VALUES).tries for _ in range(5)] == [2, 1, 1, 1, 1]


@pytest.mark.parametrize("lost", [0, 3])
def test_a_slow_chips_lost_request_is_asked_again(lost: int) -> None:
    link = Link(slow(30_000, lost=lost), most_decision_cycles=40_000)
    link.hello(SHA256)
    assert [link.decide(0, VALUES).tries for _ in range(5)] == [1 + (number == lost) for number in range(5)]


def test_a_try_takes_the_time_that_is_too_short_for_another() -> None:
    """Its share of the time, which is that of its bytes, ends before the reply begins."""
    board = slow(25_000)
    board.byte_us = 2_200
    link = Link(board)
    link.hello(SHA256)
    assert link.decide(0, VALUES).tries == 1


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


def test_silence_is_retried_with_the_same_sequence_number() -> None:
    link, board = linked(silent, silent)
    decision = link.decide(0, VALUES)
    assert decision.tries == 3
    first, second, third = board.requests[1:]
    assert first == second == third
    assert [data.startswith(b"\0") for data in board.written[1:]] == [False, True, True]
    assert link.counters.retries == 2
    assert 66_000 < decision.round_trip_us < 75_000, "from the first try on: two tries of a third of 0.1 s each"
    assert decision.response_us == pytest.approx(ANSWER_TIME_US), "of the try that was answered"


def test_a_silent_board_costs_the_budget_and_no_more() -> None:
    link, board = linked(afterwards=silent)
    begin = board.now_us()
    fault = failure(NoAnswer, lambda: link.decide(0, VALUES))
    assert board.now_us() - begin == pytest.approx(100_000)
    assert fault.tries == 3 and "(fake, 3 tries in 100 ms)" in str(fault)
    assert link.counters.unanswered == 1
    with pytest.raises(NoAnswer, match=r"\(fake, 1 try in 6 ms\)"):
        Link(FakeBoard(afterwards=silent)).hello(patience_s=0.006)


def test_an_answer_after_the_budget_is_no_answer_and_not_taken_for_the_next() -> None:
    def slow(request: Frame) -> list[Late]:
        return [Late(120_000, reply_to(request))]

    link, board = linked(slow, slow, slow)
    failure(NoAnswer, lambda: link.decide(0, VALUES))
    assert link.decide(0, VALUES).logits_crc == DECISION.logits_crc
    assert link.counters.stale_frames == 3
    assert [request.sequence for request in board.requests[1:]] == [2, 2, 2, 3, 3, 3]


def test_a_late_answer_to_an_earlier_try_counts_from_that_try() -> None:
    def late(request: Frame) -> list[Late]:
        return [Late(40_000, reply_to(request))]

    link, _ = linked(late, silent)
    decision = link.decide(0, VALUES)
    assert decision.tries == 2
    assert 0 < decision.response_us < 40_000
    assert decision.round_trip_us > 40_000


@pytest.mark.parametrize(
    ("compute_us", "response_us"), [(30_000, pytest.approx(30_000)), (40_000, None), (60_000, None)], ids=str
)
def test_no_response_is_shorter_than_the_chip_has_computed(compute_us: float, response_us: float | None) -> None:
    """The first try's answer, come after a second try that went out while the chip was at it."""
    link = Link(slow(compute_us))
    link.hello(SHA256)
    decision = link.decide(0, VALUES)
    assert decision.response_us == response_us and decision.tries == (2 if response_us is None else 1)
    assert decision.round_trip_us > compute_us


def test_an_answer_from_memory_has_no_response_time() -> None:
    """The chip sends again at once what it had computed for the damaged first reply."""

    def damaged(request: Frame) -> list[bytes]:
        return [b"\x05" + reply_to(request)[1:]]

    def remembered(request: Frame) -> list[Late]:
        return [Late(300, reply_to(request))]

    link, _ = linked(damaged, remembered)
    decision = link.decide(0, VALUES)
    assert decision.tries == 2 and decision.compute_cycles == DECISION.compute_cycles
    assert decision.response_us is None


def test_garbage_before_the_reply_is_passed_over() -> None:
    def noisy(request: Frame) -> list[bytes]:
        return [b"\x05\x01", b"\x02\x00", b"\x00", reply_to(request)]

    link, _ = linked(noisy)
    assert link.decide(0, VALUES).tries == 1
    assert (link.counters.bad_frames, link.counters.garbage_bytes) == (1, 3)


@pytest.mark.parametrize(
    "garbage",
    [b"\xff" * 7, b"\x03\x01\x02\x00", bytes(range(1, 256)) * 20, b"\x00"],
    ids=["no delimiter", "frames", "endless", "delimiters"],
)
def test_nothing_but_garbage(garbage: bytes) -> None:
    link, board = linked(afterwards=saying(garbage))
    kind = NoAnswer if garbage == b"\x00" else GarbageAnswer
    assert failure(kind, lambda: link.decide(0, VALUES)).tries in range(2, 30)
    assert board.now_us() < 200_000


def test_an_endless_stream_of_frames_ends_with_the_budget() -> None:
    link, board = linked(afterwards=saying(*[b"\x03\x01\x02\x00"] * 5_000))
    failure(GarbageAnswer, lambda: link.decide(0, VALUES))
    assert board.now_us() < 150_000


def test_a_damaged_reply_is_retried() -> None:
    def damaged(request: Frame) -> list[bytes]:
        reply = bytearray(reply_to(request))
        reply[5] ^= 0x10 if reply[5] != 0x10 else 0x20
        return [bytes(reply)]

    link, _ = linked(damaged)
    decision = link.decide(0, VALUES)
    assert decision.logits_crc == DECISION.logits_crc
    assert decision.tries == 2
    assert link.counters.bad_frames == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda request: replace(request, sequence=(request.sequence - 1) % 256),
        lambda request: replace(request, intersection=request.intersection + 1),
        lambda request: replace(request, type=MessageType.STATS),
    ],
    ids=["sequence", "intersection", "type"],
)
def test_a_reply_to_something_else_is_discarded(change: Callable[[Frame], Frame]) -> None:
    def mixed(request: Frame) -> list[bytes]:
        return [reply_to(change(request)), reply_to(request)]

    link, _ = linked(mixed)
    assert link.decide(0, VALUES).tries == 1
    assert link.counters.stale_frames == 1
    only_wrong, _ = linked(afterwards=instead(change))
    failure(NoAnswer, lambda: only_wrong.decide(0, VALUES))


def test_a_duplicated_reply_does_not_answer_the_next_request() -> None:
    def twice(request: Frame) -> list[bytes]:
        return [reply_to(request), reply_to(request)]

    link, _ = linked(twice)
    link.decide(0, VALUES)
    assert link.stats() == STATS
    assert link.decide(0, VALUES).action == DECISION.action
    assert link.counters.stale_frames == 1


@pytest.mark.parametrize("code", [ErrorCode.BAD_CRC, ErrorCode.MALFORMED, ErrorCode.TOO_LONG])
def test_an_error_that_the_wire_explains_is_retried_at_once(code: ErrorCode) -> None:
    link, _ = linked(refusing(code, sequence=99))
    decision = link.decide(0, VALUES)
    assert decision.tries == 2
    assert decision.round_trip_us < 30_000, "no waiting for the first try's share to end"
    assert link.counters.error_replies == 1


def test_an_error_about_the_flush_does_not_hide_the_last_tries_reply() -> None:
    def flushed(request: Frame) -> Iterable[bytes | Late]:
        return [*refusing(ErrorCode.MALFORMED)(request), reply_to(request)]

    link, _ = linked(silent, silent, flushed)
    assert link.decide(0, VALUES).tries == 3


def test_a_wire_error_on_every_try_is_reported() -> None:
    link, _ = linked(afterwards=refusing(ErrorCode.BAD_CRC))
    fault = failure(BoardError, lambda: link.decide(0, VALUES))
    assert fault.code == ErrorCode.BAD_CRC
    assert 10 < fault.tries < 40, "each is answered at once, so there is time for many"
    assert "BAD_CRC" in str(fault)


def test_an_error_that_a_retry_cannot_help_is_reported_at_once() -> None:
    link, board = linked(refusing(ErrorCode.BAD_INTERSECTION, 2))
    fault = failure(BoardError, lambda: link.decide(7, VALUES))
    assert (fault.code, fault.detail, fault.tries) == (5, 2, 1)
    assert "BAD_INTERSECTION, detail 2" in str(fault)
    assert len(board.requests) == 2


def test_a_stale_error_is_not_taken_for_this_request() -> None:
    def stale(request: Frame) -> Iterable[bytes | Late]:
        return [*refusing(ErrorCode.BAD_LENGTH, 9, sequence=request.sequence - 1)(request), reply_to(request)]

    link, _ = linked(stale)
    assert link.decide(0, VALUES).tries == 1
    assert link.counters.stale_frames == 1


def test_an_unknown_error_code_is_reported_as_such() -> None:
    link, _ = linked(refusing(77))
    assert "77 (unknown)" in str(failure(BoardError, lambda: link.decide(0, VALUES)))


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
    ("setting", "told"),
    [
        (Setting(f_cpu_hz=8_000_000), "its clock is 16000000 Hz, not 8000000 Hz (--f-cpu)"),
        (Setting(baud=9600), "its line rate is 115200 baud, not 9600 baud (--baud)"),
        (Setting(kernel="table"), "its kernel is c, not table (--kernel)"),
        (Setting(min_green_s=5), "its minimum green is 0 s, not 5 s (--min-green)"),
    ],
)
def test_a_firmware_built_otherwise_is_refused(setting: Setting, told: str) -> None:
    fault = failure(WrongFirmware, lambda: Link(FakeBoard()).hello(SHA256, setting))
    assert told in str(fault)
    assert Link(FakeBoard()).hello(SHA256, Setting(16_000_000, 115_200, "c", 0)) == HELLO


def test_a_firmware_built_otherwise_is_refused_after_a_restart() -> None:
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
